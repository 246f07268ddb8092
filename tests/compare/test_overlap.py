"""Runs of different programs are told from those of one program that changed, by the time in ops of both."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

import numpy as np
import pytest

from tests.compare.compare_runs import diff as diff_of
from tests.compare.compare_runs import op_stats
from tests.profiles import compared_runs
from tfcompare.compare.check.conditions import check, parse_condition
from tfcompare.compare.matching.overlap import LEAST, Overlap, overlap_of
from tfcompare.compare.pair import Pair
from tfcompare.compare.pairs import pairs_of
from tfcompare.compare.stats.verdict import UNTESTED
from tfcompare.render.report import report
from tfcompare.render.shown import Shown
from tfcompare.views.blocks import Beside, Block, Chart, Live, Section, Table, Verdict
from tfcompare.views.caveats import caveats
from tfcompare.views.ops.work_words import TERMS
from tfcompare.views.pair_words import DIFFERENT_PROGRAMS, WHAT_TO_CHOOSE
from tfcompare.views.registry import view

H100, TRANSFORMER = "h100_512_128", "h100_store_activations"
LAYERS = ("embed", "attention", "mlp", "norm", "head")

Ops = dict[str, float]


def program(*layers: str, op: str = "MatMul", us: float = 10.0) -> Ops:
    """Ops of these layers and how long each takes."""
    return {f"{layer}/{op}": us + at for at, layer in enumerate(layers)}


def overlap(
    ours: Ops, theirs: Ops, *, places: tuple[str, str] = ("Host", "Host"), alike: bool = True, iterators: float = 0.0
) -> Overlap:
    """Of ops by name and time; `iterators` is the time of one that both have."""
    frames = []
    for side, place in zip((ours, theirs), places, strict=True):
        rows = [(place, name.rpartition("/")[2], name, 1, us) for name, us in side.items()]
        more = [("Host", "Dataset", "Iterator::Root::Map", 1, iterators)] * (iterators > 0)
        frames.append(op_stats([*rows, *more, (place, "IDLE", "IDLE", 1, 1000.0)]))
    return overlap_of(diff_of("op_stats", *frames), recorded_alike=alike)


OTHERS = program("conv", "pool", "dense", "softmax", "loss", op="Conv2D")
SAME = program(*LAYERS)


@pytest.mark.parametrize(
    ("ours", "theirs", "shares"),
    [
        (SAME, SAME, (1.0, 1.0)),
        (SAME, SAME | {"debug/Print": 60 * 20.0}, (1.0, 60 / 1260)),  # one op takes twenty times as long as the others
        (SAME, {name: 100 * us for name, us in SAME.items()}, (1.0, 1.0)),
        (SAME, {**OTHERS, "embed/MatMul": 10.0}, (10 / 60, 10 / 70)),
        (SAME, OTHERS, (0.0, 0.0)),
    ],
)
def test_programs_are_different_where_both_sides_have_little_time_in_ops_of_both(
    ours: Ops, theirs: Ops, shares: tuple[float, float]
) -> None:
    found, mirrored = overlap(ours, theirs), overlap(theirs, ours)
    assert found.shares == pytest.approx(shares)
    assert found.are_unrelated == mirrored.are_unrelated == (sum(shares) / 2 < LEAST)
    assert isinstance(found.are_unrelated, bool), "not one of NumPy, which JSON does not have"
    assert mirrored.shares == pytest.approx(shares[::-1])


def test_iterators_bear_the_names_of_the_framework_and_few_ops_say_nothing() -> None:
    assert overlap(SAME, OTHERS, iterators=1000.0).are_unrelated
    few = dict(list(OTHERS.items())[:4])
    assert not overlap(SAME, few).are_unrelated
    assert not overlap(SAME, {}).are_unrelated
    assert all(map(np.isnan, overlap({}, {}).shares))


def test_ops_that_could_not_be_paired_say_nothing_if_they_are_in_the_same_layers() -> None:
    written_in_jax = {
        f"jit(step)/transpose(jvp({layer}_1))/dot_general": us for layer, us in zip(LAYERS, SAME.values(), strict=True)
    }
    for how in ({"alike": False}, {"places": ("Host", "Device")}):
        assert not overlap(SAME, written_in_jax, **how).are_unrelated, how
        assert overlap(OTHERS, written_in_jax, **how).are_unrelated, how
        without_layers = {name.replace("/", "."): us for name, us in SAME.items()}
        assert not overlap(OTHERS, without_layers, **how).are_unrelated, "there is no layer that could be the same"
    assert overlap(SAME, written_in_jax).are_unrelated, "in one framework, the same ops have the same names"


def unrelated() -> Pair:
    return pairs_of(compared_runs(H100, TRANSFORMER))[0]


@pytest.mark.parametrize(
    ("baseline", "candidate"),
    [
        (H100, TRANSFORMER),
        ("filters_16_8", "workers_balanced"),
        ("filters_512_128", TRANSFORMER),
        ("jax_filters_16_8", TRANSFORMER),
    ],
)
def test_samples_of_different_programs(baseline: str, candidate: str) -> None:
    for names in ((baseline, candidate), (candidate, baseline)):
        assert pairs_of(compared_runs(*names))[0].are_unrelated


@pytest.mark.parametrize(
    ("baseline", "candidate"),
    [
        ("h100_store_activations", "h100_recompute_activations"),
        ("h100_16_8", H100),
        ("h100_16_8", "jax_filters_16_8"),  # one program on a GPU and a CPU
        ("filters_16_8", "gpu_filters_16_8"),
        ("filters_16_8", "tensorflow_filters_16_8"),  # compiled as a whole, and op by op
        ("tensorflow_filters_16_8", "jax_filters_16_8"),
    ],
)
def test_samples_of_one_program_are_comparable(baseline: str, candidate: str) -> None:
    for names in ((baseline, candidate), (candidate, baseline)):
        pair = pairs_of(compared_runs(*names))[0]
        assert not pair.are_unrelated
        assert DIFFERENT_PROGRAMS not in " ".join(caveats(pair.among))


def test_different_programs_get_no_verdict_anywhere() -> None:
    pair = unrelated()
    assert pair.verdict.word == pair.headline_verdict.word == UNTESTED
    assert pair.device_verdict is None
    assert {kind.verdict.word for kind in pair.step_kinds} == {UNTESTED}
    for table in ("op_stats", "kernel_stats"):
        assert set(pair.diff(table)["verdict"].dropna()) <= {UNTESTED}
    assert set(pair.scopes()["verdict"].dropna()) <= {UNTESTED}


def test_every_surface_says_that_there_is_nothing_to_compare() -> None:
    comparison = compared_runs(H100, TRANSFORMER)
    text = f"{DIFFERENT_PROGRAMS}. Ops of both take 0.143 % of the device time in `h100_512_128_run-1` and"
    assert comparison.headline().startswith(text)
    assert caveats(comparison)[0] == f"**{DIFFERENT_PROGRAMS}**"
    (found,) = json.loads(Shown.of(comparison, "overview").to("json"))["candidates"]
    (verdict,) = (block for block in found["blocks"] if block["kind"] == "verdict")
    (finding,) = verdict["findings"]
    assert (verdict["badge"], finding["id"]) == ("", "different_programs")
    assert 0 < finding["baseline"] < finding["candidate"] < LEAST
    steps = Shown.of(comparison, "timeline").to("markdown")
    assert not any(verb in steps for verb in ("gains most", "falls behind most"))
    for form in ("html", "markdown"):
        written = report(comparison, form)
        assert DIFFERENT_PROGRAMS in written
        assert not any(word in written for word in ("likely faster", "likely slower", "Largest changes, "))


def walked(blocks: Iterable[Block]) -> Iterator[Block]:
    """All blocks, and those within them."""
    for block in blocks:
        yield block
        if isinstance(block, Section | Beside):
            yield from walked(block.blocks)


def test_nothing_on_the_pages_of_different_programs_tells_what_changed() -> None:
    pair = pairs_of(compared_runs(H100, TRANSFORMER))[0]
    (verdict,) = (block for block in view("overview").blocks(pair) if isinstance(block, Verdict))
    assert verdict.basis[0].endswith(f" {WHAT_TO_CHOOSE}")
    for name in ("overview", "op_stats", "kernel_stats", "memory", "xla"):
        blocks = list(walked(view(name).blocks(pair)))
        titles = {block.title for block in blocks if isinstance(block, Section | Table)}
        assert not titles & {"What changed", "Where the time changed", "Name scopes", "Regrouped instructions"}
        drawn = {block.name for block in blocks if isinstance(block, Chart)}
        assert not drawn & {"op_changes", "kernel_changes", "memory_peak_changes", "xla_time", "scopes"}
        assert not any(isinstance(block, Live) and block.name == "typical_step" for block in blocks)
        shown = {column for block in blocks if isinstance(block, Table) for column in [*block.names, *block.every]}
        assert not shown & set(TERMS)


def test_a_check_of_different_programs_is_not_judged() -> None:
    comparison = compared_runs(H100, TRANSFORMER)
    texts = ("step_time>+5%", "flops>+1%", "device_time<1s", "op:*dot*>+5%")
    judged = check(comparison, list(map(parse_condition, texts))).judge(strict=True)
    assert judged.outcome == "not judged"
    assert len(judged.reasons) == 1
    assert check(comparison, []).judge(strict=False).outcome == "not judged"
