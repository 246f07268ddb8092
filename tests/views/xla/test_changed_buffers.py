"""Which of XLA's buffers changed the planned peak of a program most."""

from __future__ import annotations

import pytest

from tests.compare.compare_runs import run, table
from tests.profiles import compared_runs, loaded_run
from tests.views.flat import flat, shown
from tfcompare.compare.pair import Pair
from tfcompare.compare.pairs import pair_with
from tfcompare.comparison import compare
from tfcompare.views import answer
from tfcompare.views.blocks import Links
from tfcompare.views.memory.peak import names_no_op
from tfcompare.views.memory.view import VIEW
from tfcompare.views.xla.changed_buffers import ChangedBuffers, changed_buffers, sentence

Buffers = list[tuple[str, str, int, bool]]
"""Op, shape, bytes, and whether it is live at the peak."""
SAME: Buffers = [("jit(f)/dense/dot", "f32[8,8]", 500, True)]


def pair_of(baseline: Buffers, candidate: Buffers) -> Pair:
    """Two runs of a program with these buffers, and of one that does not change."""
    runs = []
    for name, buffers in (("a", baseline), ("b", candidate)):
        rows = [*(("jit_f(1)", *one) for one in buffers), ("jit_g(2)", "jit(g)/mul", "f32[9]", 9_000, True)]
        programs, ops, shapes, sizes, live = map(list, zip(*rows, strict=True))
        made = run(name)
        made.frames["hlo_memory"] = table(
            "hlo_memory",
            host=["worker"] * len(rows),
            program=programs,
            hlo_op=[f"fusion.{i}" for i in range(len(rows))],
            memory_space=[0] * len(rows),
            op_name=ops,
            shape=shapes,
            size_bytes=sizes,
            is_live_at_peak=live,
        )
        made.frames["hlo_ops"] = table(
            "hlo_ops", host=["worker"] * 2, program=["jit_f(1)", "jit_g(2)"], hlo_op=["fusion.1", "fusion.2"]
        )
        runs.append(made)
    return pair_with(compare(*runs))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (  # what is not live at the peak is no part of it; two buffers of one op and shape count together
            [*SAME, ("jit(f)/jvp(mlp)/mul", "f32[4]", 300, True), ("jit(f)/mlp/mul", "f32[4]", 300, True)],
            [*SAME, ("jit(f)/mlp/mul", "f32[4]", 300, True), ("jit(f)/x", "f32[99]", 10_000, False)],
            ChangedBuffers("jit_f", (1100, 800), "mlp/mul", ("f32[4]", "f32[4]"), (600, 300)),
        ),
        (  # the same in another shape
            [*SAME, ("jit(f)/net/mlp/mul", "f32[8,4]", 400, True)],
            [*SAME, ("jit(f)/net/mlp/mul", "f32[8,64]", 6_400, True)],
            ChangedBuffers("jit_f", (900, 6_900), "mlp/mul", ("f32[8,4]", "f32[8,64]"), (400, 6_400)),
        ),
        (  # on one side only, and of no op
            SAME,
            [*SAME, ("", "f32[80]", 320, True)],
            ChangedBuffers("jit_f", (500, 820), "fusion", ("", "f32[80]"), (0, 320)),
        ),
        ([*SAME, ("x/y", "f32[1]", 4, True)], SAME, None),  # less than 1 %
    ],
)
def test_the_buffers_that_changed_most(before: Buffers, after: Buffers, expected: ChangedBuffers | None) -> None:
    assert changed_buffers(pair_of(before, after)) == expected
    back = changed_buffers(pair_of(after, before))
    if expected is None:
        assert back is None
    else:
        mirrored = (each[::-1] for each in (expected.peaks, expected.shapes, expected.sizes))
        assert back is not None and (back.peaks, back.shapes, back.sizes) == tuple(mirrored)


def test_a_run_has_no_changed_buffers_beside_itself() -> None:
    assert changed_buffers(pair_with(compare(*[loaded_run("h100_16_8")] * 2))) is None


@pytest.mark.parametrize(
    ("shapes", "expected"),
    [
        (("f32[4]", "f32[4]"), "`f32[4]` of `mlp/mul`"),
        (("f32[4]", "f32[8]"), "`f32[4]` → `f32[8]` of `mlp/mul`"),
        (("", "f32[8]"), "`f32[8]` of `mlp/mul`"),
    ],
)
def test_the_sentence_names_the_shape_on_both_sides(shapes: tuple[str, str], expected: str) -> None:
    found = ChangedBuffers("jit_f", (6e6, 2e6), "mlp/mul", shapes, (3e6, 1e6))
    assert sentence(found, ("A", "B")) == (
        f"XLA's buffers of `jit_f`: 2.00 MB in B, 6.00 MB in A (−4.00 MB), above all {expected} (−2.00 MB)."
    )


def test_memory_that_was_allocated_outside_of_ops_leads_to_them() -> None:
    pair = pair_with(compared_runs("h100_store_activations", "h100_recompute_activations"))
    assert names_no_op(pair)
    (found,) = flat(answer.memory(pair))
    of_page = next(links for links in shown(VIEW, pair, Links) if links.text)
    for links in (found, of_page):
        assert isinstance(links, Links) and links.text.startswith("XLA's buffers of `jit_train_step`")
        assert links.links[0].parameters["program"] == "jit_train_step"


def test_memory_that_ops_are_named_for_does_not() -> None:
    assert not names_no_op(pair_with(compared_runs("filters_512_128", "filters_16_8")))
