"""The Overview's page: the guidance of the demo, the captures behind the caveats, and several candidates."""

from __future__ import annotations

from streamlit.testing.v1 import AppTest

from tests.profiles import ROOT, SAMPLES, compared_runs
from tests.ui.pages import CPU, id_of, opened, said, shown
from tfcompare import settings
from tfcompare.settings import Settings

FILE = "1_Overview"
DEMO = Settings(places=(SAMPLES / "autoencoder",), is_demo=True)


def test_the_demo_says_what_to_look_at_until_it_is_hidden() -> None:
    page = AppTest.from_file(str(ROOT / "pages" / f"{FILE}.py"), default_timeout=90)

    def guidance() -> list[str]:
        assert not page.exception
        return [caption.value for caption in page.caption if settings.DEMO_GUIDANCE[0] in caption.value]

    with settings.override(DEMO):
        page.run()
        (text,) = guidance()
        assert all(sentence in text for sentence in settings.DEMO_GUIDANCE)
        next(button for button in page.button if button.label == "Hide").click().run()
        assert guidance() == []


def test_the_demo_goes_from_the_home_page_to_the_overview_once() -> None:
    home = AppTest.from_file(str(ROOT / "app.py"), default_timeout=90)
    with settings.override(DEMO):
        home.run()
        assert f"### {compared_runs(*CPU).headline(names=('A', 'B'))}" in said(home)
        home.switch_page("app.py").run()
    assert not home.exception
    assert "Compare profile runs" in [title.value for title in home.title]


def test_the_first_screen_has_no_guidance_and_the_captures_behind_the_caveats() -> None:
    page = opened(FILE, *CPU)
    assert not page.warning, "nothing to warn of between two recordings on one machine"
    assert settings.DEMO_GUIDANCE[0] not in said(page)
    facts = page.table[0].value
    assert list(facts.columns) == ["A filters_512_128", "B filters_16_8", "Differs"]
    assert facts.loc["Device type"].tolist() == ["CPU", "CPU", ""]
    changes = page.dataframe[0].value
    assert changes["Verdict"].tolist() == ["▼ likely faster"] * 5
    assert changes[["A", "B", "Ratio"]].iloc[0].tolist() == ["131 ms", "1.28 ms", "0.00977×"]


def test_several_candidates_have_a_headline_each_and_one_is_shown_in_detail() -> None:
    page = opened(FILE, *CPU, "filters_16_8_better_input")
    first = [metric.value for metric in page.metric]
    assert "### `B` " in said(page)
    page.segmented_control(key="detail").set_value(id_of("filters_16_8_better_input"))
    assert "### `C` " in said(shown(page))
    assert [metric.value for metric in page.metric] != first
