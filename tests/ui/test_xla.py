"""The XLA page, run by Streamlit without a browser."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from tests.hlo.profiles import running, stored
from tests.profiles import CORPUS, ROOT, SAMPLES, run_path
from tests.ui.hostile_profile import EVIL
from tests.ui.page_texts import texts
from tests.ui.test_hostile_names import figures_of, is_markup, live_parts, markdown_of, strings_of
from tfcompare import compare, load, settings
from tfcompare.settings import Settings
from tfcompare.sources.logdir import find_runs
from tfcompare.tools.xla.xla_memory import buffer_key
from tfcompare.tools.xla.xla_tree import node_key
from tfcompare.views.xla.xla_instruction import NEIGHBOURS, instruction_key

pytestmark = pytest.mark.skipif(not CORPUS.exists(), reason="the recorded profiles are not on this machine")

CONVOLUTIONS = ("jax_conv_legacy", "jax_conv_08")
CHANGED = "input_transpose_fusion"


@pytest.fixture
def page() -> Iterator[AppTest]:
    with settings.override(Settings(places=(CORPUS,))):
        yield AppTest.from_file(str(ROOT / "pages" / "8_XLA.py"), default_timeout=90)


def opened(page: AppTest, *runs: str) -> AppTest:
    for role, name in zip(("baseline", "candidate"), runs, strict=False):
        page.query_params[role] = f"corpus/{run_path(name).relative_to(CORPUS)}"
    page.run()
    assert not page.exception
    return page


def table(page: AppTest, position: int = 0) -> pd.DataFrame:
    frame: pd.DataFrame = page.dataframe[position].value
    frame.columns = [column if isinstance(column, str) else column[-1] for column in frame.columns]
    return frame


def test_a_filter_leaves_the_rows_with_all_its_words(page: AppTest) -> None:
    page.query_params["filter"] = "LOOP transpose"
    assert table(opened(page, *CONVOLUTIONS))["hlo_op"].tolist() == ["loop_transpose_fusion"]


def test_the_row_in_the_address_opens_its_details(page: AppTest) -> None:
    row = {"host": "chi-mi300x-013.ord.vultr.cpe.ice.amd.com", "program": "jit_forward_3d_conv(15)"}
    row |= {"hlo_op": "cudnn-conv.1.0", "category": "custom-call", "status": "matched"}
    page.query_params["row"] = str(instruction_key(pd.DataFrame([row])).iloc[0])
    opened(page, *CONVOLUTIONS)
    assert page.code[0].value.startswith("%cudnn-conv.1.0 = (")
    assert "the same in both runs except for numbers" in texts(page)
    assert "In `jax_conv_minimal_08`: `cudnn-conv.1`" in texts(page)
    assert "generate_conv_trace.py:23" in texts(page)
    shown = {heading.value: code.value for heading, code in zip(headings(page), page.code[1:], strict=True)}
    assert shown["**Inputs come from**"] == (
        "%loop_transpose_fusion = bf16[5120,16,4] fusion\n%input_transpose_fusion.1 = bf16[16,199680] fusion"
    )
    (pills,) = [one for one in page.get("button_group") if "Open a neighbour" in str(one.proto)]
    assert {option.content for option in pills.proto.options} == {
        "loop_transpose_fusion", "input_transpose_fusion.1", "input_transpose_fusion"
    }  # fmt: skip


def headings(page: AppTest) -> list[Any]:
    """The headings of texts about neighbours in the dialog."""
    return [element for element in page.markdown if element.value.strip("*") in NEIGHBOURS]


def test_a_selected_group_leaves_its_instructions(page: AppTest) -> None:
    page.query_params["tree_row"] = node_key("category", "jit_forward_3d_conv\ncustom-call")
    opened(page, *CONVOLUTIONS)
    assert "Only instructions of `custom-call`" in texts(page)
    assert table(page)["hlo_op"].tolist() == ["cudnn-conv.1.0"]
    (show_all,) = [button for button in page.button if button.label == "Show all"]
    show_all.click().run()
    assert len(table(page)) == 4


def test_a_selected_buffer_is_in_the_chart(page: AppTest) -> None:
    host = "chi-mi300x-013.ord.vultr.cpe.ice.amd.com"
    row = {"host": host, "program": "jit_forward_3d_conv(15)", "memory_space": 0, "hlo_op": "input_transpose_fusion.1"}
    row |= {"output_index": "", "status": "matched"}
    page.query_params["memory_row"] = str(buffer_key(pd.DataFrame([row])).iloc[0])
    opened(page, *CONVOLUTIONS)
    (chart,) = [json.loads(figure) for figure in figures_of(page) if "over program order" in figure]
    names = [trace.get("name") for trace in chart["data"]]
    assert names[:2] == ["input_transpose_fusion.1, baseline", "input_transpose_fusion.1, candidate"]


def test_the_program_in_the_address_is_shown(page: AppTest) -> None:
    page.query_params["program"] = "jit__psum"
    opened(page, "jax_tpu")
    assert "`jit__psum` takes 122 ms per execution" in texts(page)
    assert table(page)["hlo_op"].tolist() == ["all-reduce"]


def test_runs_without_programs_say_so() -> None:
    with settings.override(Settings()):
        page = AppTest.from_file(str(ROOT / "pages" / "8_XLA.py"), default_timeout=90)
        ids = [run.id for run in find_runs(SAMPLES)][:2]
        page.query_params |= {"baseline": ids[0], "candidate": ids[1]}
        page.run()
    assert not page.exception
    assert (
        "No compiled XLA programs and no compilations were captured. JAX compiles every `jit`; TensorFlow compiles a "
        "`tf.function` with `jit_compile=True`."
    ) in texts(page)
    assert not page.metric and not page.dataframe


@pytest.mark.parametrize("by", ["category", "source line", "name scope"])
def test_names_are_text(tmp_path: Path, by: str) -> None:
    folders = stored(tmp_path, [running(EVIL, 10), running(EVIL, 20)], ["=a", "<b>b"])
    runs = [load(folder) for folder in folders]
    with settings.override(Settings(places=(tmp_path / "logs",))):
        page = AppTest.from_file(str(ROOT / "pages" / "8_XLA.py"), default_timeout=90)
        page.query_params |= {"baseline": "logs/plugins/profile/=a", "candidate": "logs/plugins/profile/<b>b", "by": by}
        page.query_params["row"] = str(instruction_key(compare(*runs).table("hlo_ops")).iloc[0])
        page.run()
    assert not page.exception
    for text in markdown_of(page):
        assert not live_parts(text), text
    for figure in figures_of(page):
        assert not [text for text in strings_of(json.loads(figure)) if is_markup(text)]
    assert "evil" in page.code[0].value
    assert any("evil" in text for text in markdown_of(page))
    assert any("evil" in text for text in figures_of(page))
