"""What every view says of every sample pair. `python -m tests.views.golden` stores it, to review what a change did."""

from __future__ import annotations

from pathlib import Path

from tests.profiles import compared_runs, loaded_run
from tfcompare.compare import Comparison, compare
from tfcompare.render.shown import Shown
from tfcompare.views import NAMES

FOLDER = Path(__file__).with_name("golden")
WIDTH = 120
ROWS = 5
PAIRS = {
    "cpu": ("filters_512_128", "filters_16_8"),
    "gpu": ("filters_512_128_simulated", "filters_16_8_simulated"),
    "xla": ("jax_filters_128_32", "jax_filters_16_8"),
    "workers": ("workers_balanced", "workers_slow_input"),
    "alone": ("filters_16_8",),
}


def comparison_of(name: str) -> Comparison:
    """The comparison of that name, or the run alone."""
    first, *others = PAIRS[name]
    return compared_runs(first, *others) if others else compare(loaded_run(first), loaded_run(first))


def said(comparison: Comparison) -> str:
    """Every view as text."""
    texts = (Shown.of(comparison, name).to("table", width=WIDTH, rows=ROWS) for name in NAMES)
    return "\n".join(f"──── {name}\n\n{text}" for name, text in zip(NAMES, texts, strict=True))


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for pair in PAIRS:
        (FOLDER / f"{pair}.txt").write_text(said(comparison_of(pair)), encoding="utf-8")
