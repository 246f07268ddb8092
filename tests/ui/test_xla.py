"""The XLA page: an instruction opens its text and neighbours, a group and a buffer are selected, names are text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from tests.hlo.profiles import running, stored
from tests.profiles import CORPUS, ROOT
from tests.ui.hostile_profile import EVIL
from tests.ui.pages import charts, opened, said, shown, table
from tests.ui.test_hostile import check, markdown_of
from tfcompare import compare, load, settings
from tfcompare.settings import Settings
from tfcompare.views.xla.figures import node_key
from tfcompare.views.xla.instruction import NEIGHBOURS, instruction_key
from tfcompare.views.xla.memory import buffer_key

FILE = "8_XLA"
CONVOLUTIONS = ("jax_conv_legacy", "jax_conv_08")
ROW = {"host": "chi-mi300x-013.ord.vultr.cpe.ice.amd.com", "program": "jit_forward_3d_conv(15)", "status": "matched"}
recorded = pytest.mark.skipif(not CORPUS.exists(), reason="the recorded profiles are not on this machine")


@recorded
def test_the_row_in_the_address_opens_its_text_source_and_neighbours() -> None:
    row = pd.DataFrame([{**ROW, "hlo_op": "cudnn-conv.1.0", "category": "custom-call", "core_type": ""}])
    page = opened(FILE, *CONVOLUTIONS, row=str(instruction_key(row).iloc[0]))
    assert page.code[0].value.startswith("%cudnn-conv.1.0 = (")
    assert "generate_conv_trace.py:23" in said(page)
    headings: list[Any] = [element for element in page.markdown if element.value.strip("*") in NEIGHBOURS]
    codes = {heading.value: code.value for heading, code in zip(headings, page.code[1:], strict=True)}
    assert codes["**Inputs come from**"] == (
        "%loop_transpose_fusion = bf16[5120,16,4] fusion\n%input_transpose_fusion.1 = bf16[16,199680] fusion"
    )
    (pills,) = [one for one in page.get("button_group") if "Open a neighbour" in str(one.proto)]
    assert {option.content for option in pills.proto.options} == {
        "loop_transpose_fusion",
        "input_transpose_fusion.1",
        "input_transpose_fusion",
    }


@recorded
def test_a_selected_group_leaves_its_instructions_and_a_selected_buffer_is_in_the_chart() -> None:
    row = pd.DataFrame([{**ROW, "memory_space": 0, "hlo_op": "input_transpose_fusion.1", "output_index": ""}])
    group = node_key("category", "jit_forward_3d_conv\ncustom-call")
    page = opened(FILE, *CONVOLUTIONS, tree_row=group, memory_row=str(buffer_key(row).iloc[0]), more="true")
    assert table(page)["hlo_op"].tolist() == ["cudnn-conv.1.0"]
    (chart,) = [chart for title, chart in charts(page).items() if "over program order" in title]
    assert [trace.get("name") for trace in chart["data"]][:2] == [
        "input_transpose_fusion.1, baseline",
        "input_transpose_fusion.1, candidate",
    ]
    next(button for button in page.button if button.label == "In `custom-call`").click()
    assert len(table(shown(page))) == 4


def test_names_are_text(tmp_path: Path) -> None:
    folders = stored(tmp_path, [running(EVIL, 10), running(EVIL, 20)], ["=a", "<b>b"])
    row = str(instruction_key(compare(*map(load, folders)).table("hlo_ops")).iloc[0])
    pair = {"baseline": "logs/plugins/profile/=a", "candidate": "logs/plugins/profile/<b>b"}
    for by in ("category", "source line"):
        with settings.override(Settings(places=(tmp_path / "logs",))):
            page = AppTest.from_file(str(ROOT / "pages" / f"{FILE}.py"), default_timeout=90)
            page.query_params |= {**pair, "by": by, "row": row, "more": "true"}
            page.run()
        assert not page.exception
        check(page)
        assert "evil" in page.code[0].value
        assert any("evil" in text for text in markdown_of(page))
