"""The comparisons that the pages are photographed with: the samples, real profiles, and made ones that are awkward."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

from tests.profiles import CORPUS, SAMPLES
from tests.ui.hostile_profile import hostile
from tests.xspace_builder import Event, event, line, plane, space
from tfcompare import find_runs
from tfcompare.sources.replicates import suggest

LONG = 300


@dataclass(frozen=True)
class Scene:
    """The names of the runs to compare, and where they are: in `place`, or written for this scene by `made`."""

    name: str
    title: str
    baseline: str
    candidates: tuple[str, ...] = ()
    place: Path | None = None
    made: Callable[[Path], object] | None = None
    has_replicates: bool = False

    @property
    def is_available(self) -> bool:
        """Whether its profiles are on this machine: those of the corpus may be missing."""
        return self.place is None or self.place.exists()

    def write(self, folder: Path) -> Path:
        """The folder to serve: that of existing profiles, or `folder`, filled with those made."""
        if self.made is not None:
            self.made(folder)
        return self.place or folder

    def query(self, folder: Path) -> str:
        """The query of the link to this comparison, of the runs in `folder`."""
        runs = find_runs(folder)
        ids = {run.name: run.id for run in runs}
        baseline, *candidates = (ids[name] for name in (self.baseline, *self.candidates))
        chosen = {"baseline": baseline, "candidate": candidates}
        if self.has_replicates:
            found = suggest(runs, baseline, candidates)
            sides = enumerate((baseline, *candidates))
            chosen["repeat"] = [f"{side}:{one}" for side, run in sides for one in found.get(run, ())]
        return urlencode(chosen, doseq=True)


def _program(names: list[str], *, steps: int = 12, scale: float = 1.0) -> bytes:
    """A program on a CPU whose ops bear these names, `steps` times, each op half as long as the one before."""
    events: list[Event] = []
    for step in range(steps):
        at = 3_000 * step
        events.append(event("train", at, 2_000 * scale, _r=1, step_num=step))
        begin = at + 10.0
        for position, name in enumerate(names):
            duration = 800 * scale / 2**position * (1 + 0.02 * (step % 3))
            events.append(event(f"{name}:{name.rsplit('/')[-1]}", begin, duration))
            begin += duration
    return space(plane("/host:CPU", line("python", *events, id=1)), hostnames=["host"])


_USUAL = ["model/dense/MatMul", "model/dense/BiasAdd", "model/relu/Relu", "loss/Mean"]
_LONG = [f"{'model/' + 'very_long_layer_name/' * 13}{name}"[-LONG:] for name in ("MatMul", "BiasAdd", "Relu")]


def scenes() -> list[Scene]:
    """All of them, those first whose profiles come with the project."""
    sample, gpu = SAMPLES / "autoencoder", SAMPLES / "autoencoder_gpu"
    wide, small = "filters_512_128", ("filters_16_8", "filters_16_8_again", "filters_16_8_better_input")
    return [
        Scene("sample", "The sample pair", wide, small[:1], sample),
        Scene(
            "gpu",
            "On an H100, three captures each",
            "h100_512_128_run-1",
            ("h100_16_8_run-1",),
            gpu,
            has_replicates=True,
        ),
        Scene("xla", "Compiled by XLA", "jax_filters_128_32", ("jax_filters_16_8",), SAMPLES / "autoencoder_xla"),
        Scene("workers", "Three workers", "balanced", ("slow_input",), SAMPLES / "workers"),
        Scene("series", "Runs of twenty nights", "night_01", ("night_20",), SAMPLES / "nightly"),
        Scene("sample_alone", "One run alone", wide, (), sample),
        Scene("three_candidates", "Three candidates", wide, small, sample),
        Scene(
            "jax_gpu",
            "JAX on a GPU",
            "jax_conv_minimal_legacy",
            ("jax_conv_minimal_08",),
            CORPUS / "jax_mi300",
        ),
        Scene("tpu_alone", "A TPU run alone", "tpu_inference_2", (), CORPUS / "jax_tpu_v6e"),
        _made(
            "one_step",
            "One step each",
            lambda: _program(_USUAL, steps=1),
            lambda: _program(_USUAL, steps=1, scale=1.3),
        ),
        _made(
            "nothing_in_common",
            "Two runs with nothing in common",
            lambda: _program(_USUAL),
            lambda: _program(["other/Conv2D", "other/Softmax", "other/Gather"]),
        ),
        _made("long_names", f"Names of {LONG} characters", lambda: _program(_LONG), lambda: _program(_LONG, scale=1.4)),
        _made("hostile_names", "Names with HTML and Markdown", lambda: hostile(1), lambda: hostile(2)),
    ]


def _made(name: str, title: str, before: Callable[[], bytes], after: Callable[[], bytes]) -> Scene:
    def write(folder: Path) -> None:
        for run, make in (("before", before), ("after", after)):
            path = folder / run / "plugins" / "profile" / "1" / "host.xplane.pb"
            path.parent.mkdir(parents=True)
            path.write_bytes(make())

    return Scene(name, title, "before", ("after",), made=write)
