"""What the candidate does otherwise, in the headline."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from tests.views.flat import KNOWN_TRUTH, only_pair, pair_of
from tfcompare.compare.pair import Pair
from tfcompare.comparison import compare
from tfcompare.run import load
from tfcompare.views.steps import causes
from tfcompare.views.steps.causes import cause

NAMES = "A", "B"


def recorded(baseline: str, candidate: str) -> Pair:
    return only_pair(compare(load(KNOWN_TRUTH / baseline), load(KNOWN_TRUTH / candidate)))


@pytest.mark.parametrize(
    ("baseline", "candidate", "said"),
    [
        ("jax_layers", "jax_layers_batch_128", "its matmuls have 64 → 128 rows, 2× the FLOPs in `third`"),
        ("jax_layers_batch_128", "jax_layers", "its matmuls have 128 → 64 rows, 1/2 of the FLOPs in `third`"),
        ("jax_layers", "jax_layers_bfloat16", "all 4 inputs went from f32 to bf16"),
        ("jax_layers", "jax_layers_inserted", "it has `inserted`, which A lacks (1.13 ms per step)"),
        ("jax_layers_inserted", "jax_layers", "it lacks `inserted`, which A has (1.13 ms per step)"),
        ("map_5ms", "map_parallel_5ms", "its input pipeline has `Map → ParallelMap`"),
        ("map_5ms", "map_8ms", ""),
        ("jax_layers", "jax_layers", ""),
    ],
)
def test_what_was_changed_is_named(baseline: str, candidate: str, said: str) -> None:
    assert cause(recorded(baseline, candidate), NAMES, is_subject=True) == said


def test_only_where_the_candidate_is_the_subject_it_stands_for_it() -> None:
    assert cause(recorded("map_5ms", "map_parallel_5ms"), NAMES, is_subject=False).startswith("B's input pipeline has ")
    assert cause(recorded("jax_layers", "jax_layers_inserted"), NAMES, is_subject=False).startswith("B has `inserted`")
    of_both = cause(recorded("jax_layers", "jax_layers_bfloat16"), NAMES, is_subject=False)
    assert of_both == "all 4 inputs went from f32 to bf16"


def test_the_text_of_programs_is_left_to_a_sentence_that_tells_of_it() -> None:
    pair = pair_of("h100_store_activations", "h100_recompute_activations")
    assert cause(pair, NAMES, is_subject=True) == "26 instructions are computed again"
    assert cause(pair, NAMES, is_subject=True, with_programs=False) == ""


@pytest.mark.parametrize(("moved_most", "said"), [("input_us", "its input"), ("host_compute_us", "its arrays")])
def test_another_input_comes_first_where_the_input_changed_most(monkeypatch, moved_most, said) -> None:
    for name, clause in (("_shapes", "its arrays"), ("_input", "its input")):
        monkeypatch.setattr(causes, name, lambda _, clause=clause: clause)
    monkeypatch.setattr(causes, "attribution_of", lambda _: SimpleNamespace(moved_most=moved_most))
    assert cause(recorded("jax_layers", "jax_layers_batch_128"), NAMES, is_subject=True) == said
