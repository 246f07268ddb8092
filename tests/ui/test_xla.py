"""The XLA page, run by Streamlit without a browser."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from tests.hlo.builder import BF16, computation, instruction, parameter, program
from tests.profiles import CORPUS, ROOT, SAMPLES, run_path
from tests.ui.hostile_profile import EVIL
from tests.ui.page_texts import texts
from tests.ui.test_hostile_names import figures_of, is_markup, live_parts, markdown_of, strings_of
from tests.xspace_builder import chunk, event, integer, line, meta, plane, space
from tfcompare import compare, load, settings
from tfcompare.settings import Settings
from tfcompare.sources.logdir import find_runs
from tfcompare.tools.xla_memory import row_key as buffer_key
from tfcompare.tools.xla_tree import node_key
from tfcompare.views.xla_instruction import NEIGHBOURS, row_key

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


def test_a_pair_shows_its_program_per_execution(page: AppTest) -> None:
    opened(page, *CONVOLUTIONS)
    assert (
        "### `jit_forward_3d_conv` takes 689 µs per execution in `B`, "
        "717 µs in `A` (−3.98 %); largest change: `input_transpose_fusion` (−31.6 µs)."
    ) in texts(page)
    shown = {metric.label: metric.value for metric in page.metric}
    assert shown["Time per execution"] == "689 µs"
    assert shown["FLOP rate"] == "47.5 TFLOP/s"
    rows = table(page)
    assert rows["hlo_op"][0] == CHANGED
    assert rows["execution_time_us_baseline"].sum() == pytest.approx(3586.493 / 5)


def test_a_filter_leaves_the_rows_with_all_its_words(page: AppTest) -> None:
    page.query_params["filter"] = "LOOP transpose"
    assert table(opened(page, *CONVOLUTIONS))["hlo_op"].tolist() == ["loop_transpose_fusion"]


def test_a_filter_that_nothing_passes_says_so(page: AppTest) -> None:
    page.query_params["filter"] = "no*such`op"
    assert "Clear the filter" in texts(opened(page, *CONVOLUTIONS))


def test_the_row_in_the_address_opens_its_details(page: AppTest) -> None:
    row = {"host": "chi-mi300x-013.ord.vultr.cpe.ice.amd.com", "program": "jit_forward_3d_conv(15)"}
    row |= {"hlo_op": "cudnn-conv.1.0", "category": "custom-call", "status": "matched"}
    page.query_params["row"] = str(row_key(pd.DataFrame([row])).iloc[0])
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


def test_a_run_alone_on_tpus_shows_its_longest_program(page: AppTest) -> None:
    opened(page, "jax_tpu")
    assert "`jit_f` takes 784 ms per execution. Longest instruction: `copy-done.4` (24.8 %)." in texts(page)


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
    assert "ran no compiled XLA programs" in texts(page)
    assert not page.metric and not page.dataframe


def evil_profile(took_us: float) -> bytes:
    """A run of a program whose every name is Markdown, HTML and a formula."""
    origin = chunk(2, EVIL) + chunk(3, EVIL) + b"\x20\x07"
    made = program(
        computation(
            1,
            parameter("p", BF16[64, 64]),
            instruction(EVIL, "negate", BF16[64, 64], "p", others=chunk(7, origin)),
        ),
        name=EVIL,
    )
    stats = {"hlo_op": EVIL, "hlo_module": EVIL, "program_id": 7}
    kernels = [event(EVIL, 100 * i, took_us, stats) for i in range(3)]
    compiling = event(f"XlaCompile:#module={EVIL.replace(',', '').replace('#', '')}#", 0, took_us)
    entry = event(meta(f"{EVIL}(7)", "", {"Hlo Proto": made}), 0, 0)
    return space(
        plane("/host:CPU", line("python", compiling)),
        plane("/device:GPU:0", line("Stream #1(Kernel)", *kernels, id=1)),
        plane("/host:metadata", line("m", entry)),
    )


@pytest.mark.parametrize("by", ["category", "source line", "name scope"])
def test_names_are_text(tmp_path: Path, by: str) -> None:
    runs = []
    for name, took_us in (("=a", 10), ("<b>b", 20)):
        folder = tmp_path / "logs" / "plugins" / "profile" / name
        folder.mkdir(parents=True)
        (folder / "vm.xplane.pb").write_bytes(evil_profile(took_us))
        runs.append(load(folder))
    with settings.override(Settings(places=(tmp_path / "logs",))):
        page = AppTest.from_file(str(ROOT / "pages" / "8_XLA.py"), default_timeout=90)
        page.query_params |= {"baseline": "logs/plugins/profile/=a", "candidate": "logs/plugins/profile/<b>b", "by": by}
        page.query_params["row"] = str(row_key(compare(*runs).table("hlo_ops")).iloc[0])
        page.run()
    assert not page.exception
    for text in markdown_of(page):
        assert not live_parts(text), text
    for figure in figures_of(page):
        assert not [text for text in strings_of(json.loads(figure)) if is_markup(text)]
    assert "evil" in page.code[0].value
    assert any("evil" in text for text in markdown_of(page))
    assert any("evil" in text for text in figures_of(page))


def test_two_equal_runs_have_no_changes_to_draw(tmp_path: Path) -> None:
    for name in "ab":
        folder = tmp_path / "logs" / "plugins" / "profile" / name
        folder.mkdir(parents=True)
        (folder / "vm.xplane.pb").write_bytes(evil_profile(10))
    with settings.override(Settings(places=(tmp_path / "logs",))):
        page = AppTest.from_file(str(ROOT / "pages" / "8_XLA.py"), default_timeout=90)
        page.query_params |= {"baseline": "logs/plugins/profile/a", "candidate": "logs/plugins/profile/b"}
        page.query_params["by_change"] = "true"
        page.run()
    assert not page.exception
    assert "Both runs are the same capture: no program differs." in texts(page)
    assert "No instruction of this program changed its time." in texts(page)


def test_without_known_peaks_the_table_has_no_empty_columns() -> None:
    runs = {run.found.name: run.found.id for run in map(load, (SAMPLES / "autoencoder_xla").glob("jax_*"))}
    with settings.override(Settings(places=(SAMPLES,))):
        page = AppTest.from_file(str(ROOT / "pages" / "8_XLA.py"), default_timeout=90)
        page.query_params["baseline"], page.query_params["candidate"] = (
            f"sample_logs/autoencoder_xla/{run}" for run in sorted(runs.values())
        )
        page.run()
    assert not page.exception
    shown = set(table(page).columns)
    assert {"flops_per_s_baseline", "flops_per_s_candidate"} <= shown
    assert not {"excess_us_baseline", "excess_us_candidate", "bound_by_baseline", "bound_by_candidate"} & shown


def compiling_profile(times: int) -> bytes:
    """A run that compiled `f` that often, for other shapes each time, and ran no instructions."""
    entries = []
    for i in range(times):
        made = program(computation(1, parameter("x", BF16[8 + i, 64])), name="jit_f", others=integer(6, 1))
        entries.append(event(meta(f"jit_f({i})", "", {"Hlo Proto": made}), 0, 0))
    events = [event("backend_compile", 1000 * i, 500) for i in range(times)]
    calls = [event("PjitFunction(f)", 1000 * i, 900) for i in range(times)]
    return space(plane("/host:CPU", line("python", *calls, *events)), plane("/host:metadata", line("m", *entries)))


def opened_compiling(tmp_path: Path, *times: int) -> AppTest:
    names = "ab"[: len(times)]
    for name, count in zip(names, times, strict=True):
        folder = tmp_path / "logs" / "plugins" / "profile" / name
        folder.mkdir(parents=True)
        (folder / "vm.xplane.pb").write_bytes(compiling_profile(count))
    with settings.override(Settings(places=(tmp_path / "logs",))):
        page = AppTest.from_file(str(ROOT / "pages" / "8_XLA.py"), default_timeout=90)
        for role, name in zip(("baseline", "candidate"), names, strict=False):
            page.query_params[role] = f"logs/plugins/profile/{name}"
        page.run()
    assert not page.exception
    return page


def test_recompilation_is_shown_though_no_instruction_ran(tmp_path: Path) -> None:
    page = opened_compiling(tmp_path, 0, 2)
    assert "ran no compiled XLA programs" in texts(page)
    assert (
        "`f` was compiled 2 times (1.00 ms) in `B`, not once in `A`. The shapes of its arguments change: "
        "`bf16[8,64]`, `bf16[9,64]`."
    ) in texts(page)
    rows = table(page)
    assert rows[["function", "phase", "occurrences_candidate"]].values.tolist() == [["f", "compiling", 2]]
    assert pd.isna(rows["occurrences_baseline"][0])


def test_recompilation_of_a_run_alone(tmp_path: Path) -> None:
    page = opened_compiling(tmp_path, 3)
    assert "`f` was compiled 3 times (1.50 ms). The shapes of its arguments change: `bf16[8,64]`" in texts(page)
    assert table(page)["programs_baseline"].tolist() == [3]


def test_runs_that_compiled_nothing_say_so_in_a_line(page: AppTest) -> None:
    opened(page, *CONVOLUTIONS)
    assert "Nothing was compiled during either capture." in texts(page)
    assert not [frame for frame in page.dataframe if "function" in str(frame.value.columns)]


def test_what_a_tpu_compiled(page: AppTest) -> None:
    opened(page, "jax_tpu")
    assert "`convert_element_type` was compiled once (1.16 s)." in texts(page)
