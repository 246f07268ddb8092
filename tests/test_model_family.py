"""How much of a recorded family of models is matched, and rightly (`tests/model_family/README.md`).

The table of docs/matching.md is that of `MEASURED`.
"""

from __future__ import annotations

import re

import pytest

from tests.laws import mostly_thorough
from tests.model_family.family import compared, found, pairs, recorded
from tests.model_family.record import VARIANTS
from tests.profiles import ROOT, compared_runs
from tfcompare.compare.pairs import pairs_of
from tfcompare.comparison import compare

PROBABLE = "probable"

# Least share of the time of ops that exist in both runs that stands in right pairs.
RIGHT = [
    ("auto", "auto_again", 1.0),
    ("explicit", "renamed", 0.98),
    ("auto", "explicit", 0.98),
    ("explicit", "fit", 0.95),
    ("auto", "fit", 0.95),
    ("jit", "jit_other_order", 1.0),
]

# What was inserted, removed or reordered makes wrong pairs possible, but none that is more than probable.
DOUBTFUL = [
    ("auto", "inserted"),
    ("auto", "inserted_same_width"),
    ("auto", "removed"),
    ("inserted", "removed"),
    ("branches", "branches_reordered"),
]

PAIRS = [*((one, other) for one, other, _ in RIGHT), *DOUBTFUL]


@pytest.mark.parametrize(("baseline", "candidate", "least"), RIGHT)
def test_ops_that_exist_in_both_are_matched_rightly(baseline: str, candidate: str, least: float) -> None:
    result = found(baseline, candidate)
    assert result.right >= least - 1e-9, "but for rounding of sums"
    assert result.wrong == {}


@pytest.mark.parametrize("baseline", VARIANTS)
def test_all_of_a_family_are_one_program(baseline: str) -> None:
    compared_to = [pairs_of(compared(baseline, candidate))[0] for candidate in VARIANTS]
    assert not any(pair.are_unrelated for pair in compared_to), "compiled or not, with other layers or names"


@pytest.mark.parametrize(("baseline", "candidate"), DOUBTFUL)
def test_no_wrong_pair_is_more_than_probable(baseline: str, candidate: str) -> None:
    assert set(found(baseline, candidate).wrong) <= {PROBABLE}


def test_reordered_layers_are_all_matched() -> None:
    assert found("branches", "branches_reordered").matched == 1.0
    rows = pairs("branches", "branches_reordered")
    layers = rows[rows["baseline_name"].str.contains("model_1/")]
    assert (layers["baseline"] == layers["candidate"]).all()


@pytest.mark.parametrize(("baseline", "candidate"), [("explicit", "renamed"), ("auto", "explicit"), ("auto", "fit")])
def test_renamed_layers_pair_as_a_whole(baseline: str, candidate: str) -> None:
    """All ops of a layer and of its gradients have the same layer as counterpart."""
    rows = pairs(baseline, candidate)
    rows = rows[rows["baseline"].str.contains("<") & rows["candidate"].str.contains("<")]
    role_of = [names.str.extract("<(.*?)>")[0] for names in (rows["baseline"], rows["candidate"])]
    assert role_of[0].equals(role_of[1])
    assert set(role_of[0]) == {"first", "second", "third", "fourth", "last"}


def test_layers_around_an_inserted_one_stay_themselves() -> None:
    rows = pairs("auto", "inserted")
    layers = rows[rows["baseline_name"].str.contains("model_1/")]
    assert (layers["status"] == "matched").all()
    assert (layers["baseline"] == layers["candidate"]).all()
    added = rows[rows["candidate_name"].str.contains("model_1/") & (rows["status"] == "added")]
    assert all("<new>" in name for name in added["candidate"])


@pytest.mark.parametrize("name", ["auto", "branches", "jit", "fit"])
def test_a_variant_beside_itself_is_exact(name: str) -> None:
    diff = compare(recorded(name), recorded(name)).table("op_stats")
    assert set(diff["match"]) == {"exact"}


@pytest.mark.parametrize("sides", mostly_thorough(PAIRS, ("explicit", "fit"), *DOUBTFUL))
def test_swapped_sides_mirror(sides: tuple[str, str]) -> None:
    names = ["baseline_name", "candidate_name", "match"]
    forth, back = pairs(*sides), pairs(*sides[::-1])
    turned = back.rename(columns={"baseline_name": "candidate_name", "candidate_name": "baseline_name"})
    assert sorted(forth[names].itertuples(index=False)) == sorted(turned[names].itertuples(index=False))


def test_a_table_of_some_ops_pairs_names_as_the_table_of_all_does() -> None:
    """At the peak few members of a family are live, other ones in each run: that makes no name doubtful."""
    assert set(compared_runs("filters_16_8", "filters_16_8_again").table("memory_peak")["match"].dropna()) == {"exact"}


def test_one_convolution_of_two_versions_of_jax_and_rocm() -> None:
    comparison = compared_runs("jax_conv_legacy", "jax_conv_08")
    assert comparison.coverage("kernel_stats")["matched_share"].item() >= 0.95
    assert [note for note in comparison.notes if "“Im3d2Col.kd”" in note]
    assert [note for note in comparison.notes if "jit(forward_3d_conv)/jit(main)/conv_general_dilated" in note]
    assert [
        note
        for note in comparison.notes
        if "jax_conv_minimal_legacy on 1 of 2 devices, jax_conv_minimal_08 on 8 devices" in note
    ]


def test_figures_per_device_and_per_occurrence_compare_one_device_with_eight() -> None:
    per_device = compared_runs("jax_conv_legacy", "jax_conv_08", "device").table("op_stats")
    conv = per_device[per_device["op_type"] == "conv_general_dilated"]
    assert 0.9 < conv["self_time_us_per_device_ratio"].item() < 1.1
    per_occurrence = compared_runs("jax_conv_legacy", "jax_conv_08").per_occurrence("op_stats")
    conv = per_occurrence[per_occurrence["op_type"] == "conv_general_dilated"]
    assert 0.9 < conv["self_time_us_per_occurrence_ratio"].item() < 1.1


@pytest.mark.parametrize(("baseline", "candidate"), PAIRS)
def test_the_documented_shares_are_those_measured(baseline: str, candidate: str) -> None:
    text = (ROOT / "docs" / "matching.md").read_text(encoding="utf-8")
    row = re.search(rf"^\| `{baseline}` → `{candidate}` \|.*\|$", text, re.MULTILINE)
    assert row is not None
    result = found(baseline, candidate)
    shares = [result.matched, result.right, sum(v for k, v in result.wrong.items() if k != PROBABLE)]
    shown = [f"{share:.1%}".replace("%", " %") for share in (*shares, result.wrong.get(PROBABLE, 0.0))]
    assert [cell.strip() for cell in row[0].split("|")[-5:-1]] == shown


def test_a_comparison_of_names_alone_says_nothing_of_notes() -> None:
    assert compared("auto", "auto_again").notes == ()
