"""What every view says of every sample pair, and what each of its options changes in that.

`python -m tests.views.golden` stores it, to review what a change did.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from tests.profiles import compared_runs, loaded_run
from tests.views.flat import flat, of_kind
from tfcompare.compare.pairs import pairs_of
from tfcompare.comparison import Comparison, compare
from tfcompare.render import terminal
from tfcompare.render.shown import Shown
from tfcompare.views import NAMES
from tfcompare.views.blocks import Beside, Block, Chart, Section
from tfcompare.views.caveats import caveats
from tfcompare.views.xla.figures import node_key

FOLDER = Path(__file__).with_name("golden")
OPTIONS = FOLDER / "options"
WIDTH = 120
ROWS = 5
PAIRS = {
    "cpu": ("filters_512_128", "filters_16_8"),
    "gpu": ("h100_512_128", "h100_16_8"),
    "xla": ("jax_filters_128_32", "jax_filters_16_8"),
    "workers": ("workers_balanced", "workers_slow_input"),
    "alone": ("filters_16_8",),
}
SEVERAL = {"several": ("filters_512_128", "filters_16_8", "filters_16_8_better_input")}
CHOICES: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "overview": [
        ("cpu", {"steps_as": "part"}),
        ("cpu", {"steps_as": "distribution"}),
        ("cpu", {"steps_as": "all"}),
        ("gpu", {"top": 2}),
        ("gpu", {"short": True}),
    ],
    "op_stats": [
        ("cpu", {"by": "op_type"}),
        ("xla", {"by": "scope"}),
        ("gpu", {"where": "Device"}),
        ("cpu", {"filter": "backprop IMAGE_1"}),
        ("cpu", {"filter": "no*such`op"}),
        ("cpu", {"idle": True}),
        ("cpu", {"per_occurrence": True}),
        ("gpu", {"part": "kernel_launch_us"}),
        ("cpu", {"scope": "Host/gradient_tape"}),
    ],
    "kernel_stats": [
        ("gpu", {"by": "op_name"}),
        ("gpu", {"by": "kernel_and_op"}),
        ("gpu", {"by": "launch"}),
        ("gpu", {"filter": "cudnn WGRAD", "by": "kernel_and_op"}),
        ("gpu", {"filter": "no*such`kernel"}),
        ("gpu", {"per_launch": True}),
        ("gpu", {"changes": "launches"}),
        ("gpu", {"shares": True}),
    ],
    "memory": [
        ("cpu", {"span": "run"}),
        ("cpu", {"span": "run", "align": "time", "parts": True}),
        ("cpu", {"level": "stack_bytes"}),
        ("cpu", {"level": "free_bytes", "span": "run"}),
        ("cpu", {"level": "fragmentation"}),
        ("cpu", {"axis": "share"}),
        ("cpu", {"parts_by": "region"}),
    ],
    "input_pipeline": [
        ("cpu", {"filter": "flatmap[1]"}),
        ("cpu", {"filter": "no such op"}),
        ("cpu", {"category": "reading on demand"}),
        ("cpu", {"wait_as": "share"}),
    ],
    "tf_data": [
        ("workers", {"tf_host": "worker2"}),
        ("cpu", {"rank": 3}),
    ],
    "timeline": [
        ("cpu", {"step_a": "14", "find": "conv2d"}),
        ("cpu", {"step_b": "20"}),
        ("cpu", {"at": "1:60886.291:436.371"}),
        ("gpu", {"align": "jit(train_step)/transpose(jvp(decoder_outer))/conv_general_dilated"}),
        ("gpu", {"range": "0:500"}),
        ("workers", {"timeline_host": "worker2 (B)"}),
        ("workers", {"timeline_host": "worker0 (B)", "timeline_beside": "worker1 (B)"}),
    ],
    "xla": [
        ("xla", {"filter": "LOOP transpose_copy"}),
        ("xla", {"filter": "no*such`op"}),
        ("xla", {"group": node_key("category", "jit_train_step\nconvolution")}),
        ("xla", {"by": "source"}),
        ("xla", {"by": "scope"}),
    ],
    "hosts": [
        ("workers", {"metric": "input_us"}),
        ("workers", {"at_step": 7}),
    ],
    "candidates": [
        ("several", {}),
        ("several", {"changes_by": "op_type"}),
        ("several", {"beside": "memory_summary"}),
    ],
    "op": [
        ("gpu", {}),
        ("cpu", {"op": "autoencoder_1/image_1/convolution"}),
    ],
}
"""Of which pair each option is shown; without options, all that the view says."""
IN_OTHER_TESTS = {
    "kernel_stats": {"by_device"},
    "memory": {"memory", "memory_baseline", "memory_candidate"},
    "tf_data": {"pipeline"},
    "timeline": {"stretch"},
    "xla": {"program", "buffer"},
    "hosts": {"by", "every_host", "one_host"},
}
"""The options that no sample has, or of which no text depends."""


@cache
def comparison_of(name: str) -> Comparison:
    """The comparison of that name, or the run alone."""
    first, *others = (PAIRS | SEVERAL)[name]
    if len(others) == 1:
        return compared_runs(first, *others)
    return compare(loaded_run(first), *map(loaded_run, others or [first]))


def said(pair: str) -> str:
    """Every view of that pair as text."""
    views = [f"──── {name}\n\n{text_of(parts(pair, name))}" for name in NAMES]
    return "\n".join([*views, text_of(["──── caveats", *caveats(comparison_of(pair))])])


def with_options(name: str) -> str:
    """What the view says otherwise with each of its `CHOICES` than without."""
    return "\n".join(text_of(_difference(name, pair, options)) for pair, options in CHOICES[name])


def text_of(paragraphs: Iterable[str]) -> str:
    """The paragraphs below each other; charts are lines, without a space between them."""
    return "\n\n".join(paragraphs).replace("\n\n[", "\n[") + "\n"


def _difference(name: str, pair: str, options: dict[str, Any]) -> Iterator[str]:
    yield "──── " + " ".join([*(f"{option}={value}" for option, value in options.items()), f"({pair})"])
    before, after = parts(pair, name) if options else [], parts(pair, name, *options.items())
    if gone := [f"− {part.splitlines()[0]}" for part in before if part not in after]:
        yield "\n".join(gone)
    yield from (part for part in after if part not in before)


@cache
def parts(pair: str, name: str, *options: tuple[str, Any]) -> list[str]:
    """The paragraphs of a view, and at their end a line for each of its charts."""
    comparison = comparison_of(pair)
    first, *_ = pairs_of(comparison, by_name=True)
    blocks = list(_made(Shown.of(comparison, name, **dict(options))._of_pair(first, every=False)))
    figures = ((chart.name, chart.draw()) for chart in of_kind(flat(blocks), Chart))
    drawn = [f"[{chart}] {about(figure)}" for chart, figure in figures if figure is not None]
    return [*terminal.as_lines(blocks, WIDTH, ROWS).split("\n\n"), *drawn]


def _made(blocks: Iterable[Block]) -> Iterator[Block]:
    """The blocks with what sections would make each time that they are asked."""
    for block in blocks:
        if isinstance(block, Section):
            yield replace(block, make=list(_made(block.blocks)))
        else:
            yield (
                replace(block, parts=[list(_made(part)) for part in block.parts])
                if isinstance(block, Beside)
                else block
            )


def about(figure: Any) -> str:
    """The title, the axes and the kinds of traces of a Plotly figure."""
    layout = figure.to_dict()["layout"]
    axes = [
        f"{axis[0]}: {title}"
        for axis in sorted(layout)
        if axis[1:5] == "axis" and (title := layout[axis].get("title", {}).get("text"))
    ]
    kinds = [trace.type for trace in figure.data]
    counts = [f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds)]
    return "; ".join([layout["title"]["text"], *dict.fromkeys(axes), ", ".join(counts)])


if __name__ == "__main__":
    OPTIONS.mkdir(parents=True, exist_ok=True)
    for one in PAIRS:
        (FOLDER / f"{one}.txt").write_text(said(one), encoding="utf-8")
    for one in CHOICES:
        (OPTIONS / f"{one}.txt").write_text(with_options(one), encoding="utf-8")
