"""Layers of a run that XLA compiled beside those of one that it did not compile."""

from __future__ import annotations

import pandas as pd
import pytest

from tests.compare.compare_runs import ops, run
from tests.profiles import loaded_run
from tfcompare.compare import compare
from tfcompare.compare.groups.aggregate import group_diff, without_idle
from tfcompare.compare.groups.scope_tree import scope_tree

PLAIN = ops("""
    Host MatMul       StatefulPartitionedCall/net/hidden/MatMul            20 400
    Host BiasAdd      StatefulPartitionedCall/net/hidden/BiasAdd           20 50
    Host Relu         StatefulPartitionedCall/net/hidden/Relu              20 30
    Host _FusedMatMul StatefulPartitionedCall/net/head/BiasAdd             20 200
    Host MatMul       StatefulPartitionedCall/gradient_tape/net/hidden/MatMul_1 20 300
    Host Sub          StatefulPartitionedCall/loss/sub                     20 10
""")
COMPILED = ops("""
    Host MatMul       net/hidden/MatMul                                    20 100
    Host Relu         net/hidden/Relu                                      20 60
    Host MatMul       net/head/MatMul                                      20 80
    Host AddV2        gradient_tape/net/hidden/Add/add                     20 90
    Host Unknown      copy.3                                               20 5
    Host Mul          extra/mul                                            20 7
""")


def by_scope(before: pd.DataFrame, after: pd.DataFrame) -> dict[str, tuple[float, float]]:
    """The self time of both sides by scope, without the scope that wraps all of one side."""
    diff = compare(run("a", before), run("b", after), per="run").table("op_stats")
    rows = group_diff(diff, "scope").fillna({"self_time_us_baseline": 0.0, "self_time_us_candidate": 0.0})
    names = rows["scope"].str.removeprefix("StatefulPartitionedCall/")
    times = zip(rows["self_time_us_baseline"], rows["self_time_us_candidate"], strict=True)
    return dict(zip(names, times, strict=True))


def test_a_layer_is_one_row_whatever_it_was_compiled_to() -> None:
    assert by_scope(PLAIN, COMPILED) == {
        "net/hidden": (480, 160),
        "net/head": (200, 80),
        "gradient_tape/net/hidden": (300, 0),
        "gradient_tape/net/hidden/Add": (0, 90),
        "loss": (10, 0),
        "(no scope)": (0, 5),
        "extra": (0, 7),
    }


def test_swapping_the_sides_mirrors_the_layers() -> None:
    swapped = {name: times[::-1] for name, times in by_scope(COMPILED, PLAIN).items()}
    assert swapped == by_scope(PLAIN, COMPILED)


def test_the_layers_add_up_to_the_whole() -> None:
    times = by_scope(PLAIN, COMPILED).values()
    assert sum(ours for ours, _ in times) == PLAIN["self_time_us"].sum()
    assert sum(theirs for _, theirs in times) == COMPILED["self_time_us"].sum()


def test_the_tree_has_a_layer_once() -> None:
    diff = compare(run("a", PLAIN), run("b", COMPILED), per="run").table("op_stats")
    tree = scope_tree(diff).set_index("node")
    root = "Host/StatefulPartitionedCall"
    sides = ["self_time_us_baseline", "self_time_us_candidate"]
    assert tree.loc[f"{root}/net/head", sides].to_list() == [200, 80]
    assert tree.loc[f"{root}/gradient_tape/net/hidden", sides].to_list() == [300, 90]
    assert tree.loc["Host", sides].to_list() == [990, 342]
    assert "Host/net" not in tree.index


def test_a_renumbered_layer_takes_its_new_ops_along() -> None:
    before = ops("Host MatMul dense_3/MatMul 1 40\nHost Relu dense_3/Relu 1 4\nHost Cast dense_3/Cast 1 1")
    after = ops("Host MatMul dense_5/MatMul 1 30\nHost Relu dense_5/Relu 1 5\nHost Tanh dense_5/sub/Tanh 1 2")
    assert by_scope(before, after) == {"dense_3": (45, 35), "dense_3/sub": (0, 2)}


def test_a_layer_that_could_be_either_of_two_stays_where_it_is() -> None:
    before = ops("Host A StatefulPartitionedCall/x/a 1 1\nHost B jit(f)/x/b 1 1")
    after = ops("Host C x/c 1 5")
    diff = compare(run("a", before), run("b", after), per="run").table("op_stats")
    assert set(group_diff(diff, "scope")["scope"]) == {"StatefulPartitionedCall/x", "jit(f)/x", "x"}


@pytest.mark.parametrize("name", ["tensorflow_filters_128_32", "jax_filters_128_32"])
def test_a_compiled_run_beside_itself_has_no_difference(name: str) -> None:
    same = loaded_run(name)
    diff = without_idle(compare(same, same).table("op_stats"))
    rows = group_diff(diff, "scope")
    assert len(rows) > 10
    assert set(rows["status"]) == {"matched"}
    assert (rows["self_time_us_per_step_delta"] == 0).all()
    assert rows["self_time_us_per_step_baseline"].sum() == pytest.approx(diff["self_time_us_per_step_baseline"].sum())


def test_two_compiled_runs_have_all_their_layers_in_common() -> None:
    diff = compare(*map(loaded_run, ("tensorflow_filters_128_32", "tensorflow_filters_16_8"))).table("op_stats")
    rows = group_diff(diff, "scope").set_index("scope")
    layers = ["encoder_outer", "encoder_inner", "decoder_inner", "decoder_outer", "image"]
    assert set(rows.loc[[*layers, *(f"gradient_tape/{layer}" for layer in layers)], "status"]) == {"matched"}
