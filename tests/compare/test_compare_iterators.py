"""Iterators of tf.data pair by their place in the graph."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.laws import law
from tfcompare.compare import iterators
from tfcompare.compare.iterator_tree import Iterator, branch, parent_name, transformation, tree_of
from tfcompare.compare.iterators import align_iterators, likeness, pair_iterators

Pairs = set[tuple[str, str, str]]


def tree(text: str) -> list[Iterator]:
    """Iterators from indented lines of `type` or `type element`; ids are types and line numbers."""
    out: list[Iterator] = []
    above: list[tuple[int, str]] = []
    for number, line in enumerate(text.strip("\n").splitlines()):
        indent = len(line) - len(line.lstrip())
        above = [(i, id_) for i, id_ in above if i < indent]
        iterator, _, element = line.strip().partition(" ")
        out.append(Iterator(f"{iterator}{number}", above[-1][1] if above else "", iterator, element=element))
        above.append((indent, out[-1].id))
    return out


def chain(*types: str) -> list[Iterator]:
    return tree("\n".join(" " * i + name for i, name in enumerate(types)))


def pairs(baseline: list[Iterator], candidate: list[Iterator]) -> Pairs:
    found = pair_iterators(baseline, candidate)
    return {(baseline[p.baseline].id, candidate[p.candidate].id, p.tier) for p in found}


def test_an_inserted_prefetch_is_one_added_iterator_and_all_others_pair() -> None:
    without = chain("Root", "BatchV2", "Map", "TFRecord")
    with_it = chain("Root", "Prefetch", "BatchV2", "Map", "TFRecord")
    assert pairs(without, with_it) == {
        ("Root0", "Root0", "exact"),
        ("BatchV21", "BatchV22", "structural"),
        ("Map2", "Map3", "structural"),
        ("TFRecord3", "TFRecord4", "structural"),
    }


def test_a_map_that_became_parallel_is_the_same_iterator_and_what_is_below_is_not_exact() -> None:
    assert pairs(chain("Root", "Map", "TFRecord"), chain("Root", "ParallelMapV2", "TFRecord")) == {
        ("Root0", "Root0", "exact"),
        ("Map1", "ParallelMapV21", "structural"),
        ("TFRecord2", "TFRecord2", "structural"),
    }


def test_another_transformation_is_not_the_same_iterator() -> None:
    assert pairs(chain("Root", "Map", "TFRecord"), chain("Root", "Filter", "TFRecord")) == {
        ("Root0", "Root0", "exact"),
        ("TFRecord2", "TFRecord2", "structural"),
    }


def test_of_two_alike_the_one_that_makes_the_same_elements_pairs() -> None:
    both = tree("Root\n Map [8]\n  Map [4]\n   TFRecord")
    one = tree("Root\n Map [4]\n  TFRecord")
    assert ("Map2", "Map1", "structural") in pairs(both, one)
    other = tree("Root\n Map [4]\n  Map [8]\n   TFRecord")
    assert ("Map1", "Map1", "exact") in pairs(other, one)


ZIP = """
Root
 Zip
  Map a
   TFRecord
  Map b
   TextLine
"""
MORE = """
Root
 Zip
  Map a
   TFRecord
  Map c
   Shuffle
    Generator
  Map b
   TextLine
"""


def test_an_added_branch_is_added_as_a_whole() -> None:
    found = pairs(tree(ZIP), tree(MORE))
    assert {(b, c) for b, c, _ in found} == {
        ("Root0", "Root0"),
        ("Zip1", "Zip1"),
        ("Map2", "Map2"),
        ("TFRecord3", "TFRecord3"),
        ("Map4", "Map7"),
        ("TextLine5", "TextLine8"),
    }


def test_a_zip_put_above_a_chain_leaves_the_chain_together() -> None:
    found = pairs(tree("Root\n Map\n  TFRecord"), tree("Root\n Zip\n  Map\n   TFRecord\n  Range"))
    assert {(b, c) for b, c, _ in found} == {("Root0", "Root0"), ("Map1", "Map2"), ("TFRecord2", "TFRecord3")}


def test_siblings_of_one_name_pair_in_order_and_the_last_are_left_over() -> None:
    files = [Iterator("top", "", "Interleave", "Iterator::Root::Interleave")]
    name = "Iterator::Root::Interleave[{}]::FlatMap"
    files += [Iterator(f"file{i}", "top", "FlatMap", name.format(i)) for i in range(12)]
    found = pairs(files[:9][::-1], files)
    assert found == {(f.id, f.id, "exact") for f in files[:9]}


def test_the_input_of_a_branch_tells_its_place() -> None:
    assert branch("Iterator::Root::Zip[12]::Map") == 12
    assert branch("Iterator::Root::Zip[12]::Map::TFRecord") == -1
    assert parent_name("Iterator::Root::Zip[12]::Map") == "Iterator::Root::Zip"
    assert parent_name("Iterator::Root") == ""


@pytest.mark.parametrize(
    ("iterator", "what"),
    [
        ("ParallelMapV2", "Map"),
        ("LegacyParallelInterleaveV2", "Interleave"),
        ("ForeverRepeat", "Repeat"),
        ("FiniteSkip", "Skip"),
        ("MemoryReader", "Cache"),
        ("MemoryCacheImpl", "Cache"),
        ("Parallel", "Parallel"),
        ("V2", "V2"),
        ("", ""),
    ],
)
def test_variants_of_a_transformation(iterator: str, what: str) -> None:
    assert transformation(iterator) == what


def test_large_trees_are_walked_from_the_top() -> None:
    wide = [Iterator("top", "", "Interleave"), *(Iterator(f"f{i}", "top", "FlatMap") for i in range(1200))]
    one_more = [*wide, Iterator("more", "top", "TFRecord")]
    assert len(pair_iterators(wide, one_more)) == len(wide)
    deep = chain(*["Map", "BatchV2"] * 2000)
    other = [*deep[:-1], replace(deep[-1], iterator="Zip")]
    assert len(pair_iterators(deep, other)) == len(deep) - 1
    assert pairs(deep, deep) == {(it.id, it.id, "exact") for it in deep}


def test_iterators_in_a_circle_or_without_parent_are_at_the_top() -> None:
    circle = [
        Iterator("a", "b", "Map"),
        Iterator("b", "a", "Batch"),
        Iterator("c", "gone", "Zip"),
        Iterator("d", "d", "Map"),
    ]
    read = tree_of(circle)
    assert sorted(read.place) == [0, 1, 2, 3]
    assert {it.id for it in (read.iterators[top] for top in read.tops)} == {"a", "c", "d"}
    assert len(pair_iterators(circle, circle)) == 4


def test_long_names_align_by_place() -> None:
    before = ["Iterator::Root", "Iterator::Root::BatchV2", "Iterator::Root::BatchV2::Map"]
    after = [
        "Iterator::Root",
        "Iterator::Root::Prefetch",
        "Iterator::Root::Prefetch::BatchV2",
        "Iterator::Root::Prefetch::BatchV2::ParallelMapV2",
    ]
    stage = "read_stage_1", "read_stage"
    found = align_iterators([(name, "") for name in (*before, stage[0])], [(name, "") for name in (*after, stage[1])])
    assert found == {after[0]: before[0], after[2]: before[1], after[3]: before[2], stage[1]: stage[0]}


def test_names_between_that_were_not_recorded_are_no_obstacle_and_are_not_given() -> None:
    deep = "Iterator::Root::Batch::Map::TFRecord"
    assert align_iterators([(deep, "")], [("Iterator::Root::Prefetch::Batch::Map::TFRecord", "")]) == {
        "Iterator::Root::Prefetch::Batch::Map::TFRecord": deep
    }


TYPES = st.sampled_from(["Map", "ParallelMapV2", "BatchV2", "Zip", "TFRecord", "Prefetch"])


@st.composite
def trees(draw: st.DrawFn, most: int = 12) -> list[Iterator]:
    types = draw(st.lists(TYPES, min_size=1, max_size=most))
    out: list[Iterator] = []
    for number, iterator in enumerate(types):
        parent = draw(st.integers(0, number - 1)) if number else -1
        element = draw(st.sampled_from(["", "[2]"]))
        name = f"Iterator::Root[{number}]::{iterator}"
        out.append(Iterator(str(number), str(parent) if number else "", iterator, name, element))
    return out


@given(trees(), trees())
def test_swapped_sides_mirror(one: list[Iterator], other: list[Iterator]) -> None:
    assert pairs(one, other) == {(b, c, tier) for c, b, tier in pairs(other, one)}
    assert likeness(one, other) == likeness(other, one)


@given(trees(), st.randoms())
def test_a_tree_is_itself_in_whatever_order_it_is_given(one: list[Iterator], random: object) -> None:
    shuffled = list(one)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert pairs(one, shuffled) == {(it.id, it.id, "exact") for it in one}


@given(trees(), st.data())
def test_one_more_iterator_anywhere_is_one_added(one: list[Iterator], data: st.DataObject) -> None:
    below = data.draw(st.integers(0, len(one) - 1))
    inserted = replace(one[below], id="new", iterator="Cache")
    other = [*one[:below], replace(one[below], parent="new"), *one[below + 1 :], inserted]
    assert {(b, c) for b, c, _ in pairs(one, other)} == {(it.id, it.id) for it in one}


@given(trees(), trees())
def test_pairs_keep_what_is_above_what_and_what_is_beside(one: list[Iterator], other: list[Iterator]) -> None:
    found = pair_iterators(one, other)
    assert len({p.baseline for p in found}) == len({p.candidate for p in found}) == len(found)
    for p in found:
        assert transformation(one[p.baseline].iterator) == transformation(other[p.candidate].iterator)
        for q in found:
            assert is_above(one, p.baseline, q.baseline) == is_above(other, p.candidate, q.candidate)


def is_above(side: list[Iterator], upper: int, lower: int) -> bool:
    """Whether one is above the other; parents come before their children in these trees."""
    at = lower
    while at >= 0:
        if at == upper:
            return True
        at = int(side[at].parent or -1)
    return False


@given(trees(6), trees(6))
@law(25)
def test_the_rule_for_large_trees_mirrors_too(one: list[Iterator], other: list[Iterator]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(iterators, "MOST_CELLS", 0)
        assert pairs(one, other) == {(b, c, tier) for c, b, tier in pairs(other, one)}
        assert pairs(one, one) == {(it.id, it.id, "exact") for it in one}
