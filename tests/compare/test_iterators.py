"""Iterators of tf.data pair by their place in the graph."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.laws import law
from tfcompare.compare.tf_data import iterators
from tfcompare.compare.tf_data.iterator_tree import Iterator, branch, parent_name, transformation, tree_of, whereabouts
from tfcompare.compare.tf_data.iterators import align_iterators, likeness, pair_iterators

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


@pytest.mark.parametrize(
    ("candidate", "expected"),
    [
        ("Prefetch BatchV2 Map TFRecord", "Root0 Root0, BatchV21 BatchV22, Map2 Map3, TFRecord3 TFRecord4"),
        # A Map that became parallel is the same iterator, a Filter in its place is another one.
        ("BatchV2 ParallelMapV2 TFRecord", "Root0 Root0, BatchV21 BatchV21, Map2 ParallelMapV22, TFRecord3 TFRecord3"),
        ("BatchV2 Filter TFRecord", "Root0 Root0, BatchV21 BatchV21, TFRecord3 TFRecord3"),
    ],
)
def test_what_is_below_a_change_pairs_by_its_place(candidate: str, expected: str) -> None:
    found = pairs(chain("Root", "BatchV2", "Map", "TFRecord"), chain("Root", *candidate.split()))
    assert {f"{ours} {theirs}" for ours, theirs, _ in found} == set(expected.split(", "))
    is_below = {("Map2", "structural"), ("TFRecord3", "structural"), ("Root0", "exact")}
    assert {(ours, tier) for ours, _, tier in found if ours != "BatchV21"} <= is_below


def test_of_two_alike_the_one_that_makes_the_same_elements_pairs() -> None:
    both = tree("Root\n Map [8]\n  Map [4]\n   TFRecord")
    one = tree("Root\n Map [4]\n  TFRecord")
    assert ("Map2", "Map1", "structural") in pairs(both, one)
    other = tree("Root\n Map [4]\n  Map [8]\n   TFRecord")
    assert ("Map1", "Map1", "exact") in pairs(other, one)


def readers(maker: str, *calls: tuple[int, int]) -> list[Iterator]:
    """Root ← `maker` ← a TFRecord for each (input, calls), ids being `maker[input]`."""
    top = f"Iterator::Root::{maker}"
    below = [
        Iterator(f"[{number}]", maker, "TFRecord", f"{top}[{number}]::TFRecord", start_us=number, calls=n)
        for number, n in calls
    ]
    return [Iterator("Root", "", "Root", "Iterator::Root"), Iterator(maker, "Root", maker, top), *below]


ENDED, READING, HALF, REST = 1, 16, 8, 9
Calls = list[tuple[int, int]]


@pytest.mark.parametrize("maker", ["FlatMap", "ParallelInterleaveV4", "ForeverRepeat"])
@pytest.mark.parametrize(
    ("baseline", "candidate", "expected"),
    [
        ([(1, ENDED), (2, READING)], [(0, READING)], {(2, 0)}),
        ([(1, ENDED), (2, READING)], [(1, READING)], {(2, 1)}),
        ([(1, READING), (2, ENDED)], [(0, READING)], {(1, 0)}),
        ([(0, HALF), (1, REST)], [(0, READING)], {(1, 0)}),
        ([(1, ENDED), (2, 64)], [(0, 4)], {(2, 0)}),
        ([(1, 12), (2, 53)], [(0, 8)], {(2, 0)}),
        ([(1, ENDED), (2, READING)], [(3, ENDED), (4, READING)], {(1, 3), (2, 4)}),
    ],
)
def test_of_the_readers_of_several_files_the_busiest_has_the_counterpart(
    monkeypatch: pytest.MonkeyPatch, maker: str, baseline: Calls, candidate: Calls, expected: set[tuple[int, int]]
) -> None:
    ours, theirs = readers(maker, *baseline), readers(maker, *candidate)
    for most_cells in (iterators.MOST_CELLS, 0):
        monkeypatch.setattr(iterators, "MOST_CELLS", most_cells)
        for forth, back in ((ours, theirs), (theirs, ours)):
            found = {(b, c) for b, c, _ in pairs(forth, back) if b[0] == "["}
            names = {(f"[{b}]", f"[{c}]") for b, c in expected}
            assert found == (names if forth is ours else {name[::-1] for name in names})


def test_three_readers_beside_two_pair_by_their_calls_and_in_their_order() -> None:
    three = readers("FlatMap", (0, ENDED), (1, READING), (2, ENDED))
    for two, expected in (
        ([(5, READING), (6, ENDED)], {("[1]", "[5]"), ("[2]", "[6]")}),
        ([(5, ENDED), (6, READING)], {("[0]", "[5]"), ("[1]", "[6]")}),
    ):
        assert {(b, c) for b, c, _ in pairs(three, readers("FlatMap", *two))} >= expected


@pytest.mark.parametrize("used", [0, 1])
def test_of_the_inputs_that_a_program_chooses_between_each_is_itself_however_often_it_was_asked(used: int) -> None:
    both = readers("DirectedInterleave", (0, 1), (1, 15)), readers("DirectedInterleave", (0, 15), (1, 1))
    for either in both:
        assert (f"[{used}]", f"[{used}]", "exact") in pairs(either, readers("DirectedInterleave", (used, 16)))


def test_what_an_iterator_makes_tells_more_than_which_input_it_is_and_how_often_it_was_asked() -> None:
    before = [replace(it, element=it.id) for it in readers("Zip", (0, 1), (1, 15))]
    after = [
        replace(it, element={"[0]": "new", "[1]": "[0]", "[2]": "[1]"}.get(it.id, it.id))
        for it in readers("Zip", (0, 15), (1, 15), (2, 1))
    ]
    assert {(b, c) for b, c, _ in pairs(before, after) if b[0] == "["} == {("[0]", "[1]"), ("[1]", "[2]")}


def test_an_added_branch_is_added_as_a_whole() -> None:
    branches = ["Root\n Zip\n  Map a\n   TFRecord\n", "  Map c\n   Shuffle\n    Generator\n", "  Map b\n   TextLine"]
    found = pairs(tree(branches[0] + branches[2]), tree("".join(branches)))
    same = {(name, name) for name in ("Root0", "Zip1", "Map2", "TFRecord3")}
    assert {(b, c) for b, c, _ in found} == {*same, ("Map4", "Map7"), ("TextLine5", "TextLine8")}
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


def test_an_iterator_is_told_from_others_of_its_type_by_as_little_as_does() -> None:
    top = "Iterator::Root::Batch"
    assert whereabouts(
        [top, f"{top}::Map", f"{top}::Map::FlatMap[0]::TFRecord", f"{top}::Map::FlatMap[1]::TFRecord"]
    ) == {
        top: "",
        f"{top}::Map": "",
        f"{top}::Map::FlatMap[0]::TFRecord": "FlatMap[0]",
        f"{top}::Map::FlatMap[1]::TFRecord": "FlatMap[1]",
    }
    files = [f"{top}::Interleave[{i}]::FlatMap[0]::TFRecord" for i in (0, 1)]
    assert list(whereabouts(files).values()) == ["Interleave[0]::FlatMap[0]", "Interleave[1]::FlatMap[0]"]
    assert whereabouts(["Iterator::Map", "Iterator::Map::Map", ""]) == {
        "Iterator::Map": "Iterator",
        "Iterator::Map::Map": "Map",
        "": "",
    }


def test_variants_of_a_transformation() -> None:
    variants = ["ParallelMapV2", "LegacyParallelInterleaveV2", "ForeverRepeat", "MemoryCacheImpl", "Parallel", "V2", ""]
    plain = ["Map", "Interleave", "Repeat", "Cache", "Parallel", "V2", ""]
    assert list(map(transformation, variants)) == plain


def test_large_trees_are_walked_from_the_top() -> None:
    wide = [Iterator("top", "", "Interleave"), *(Iterator(f"f{i}", "top", "FlatMap") for i in range(600))]
    one_more = [*wide, Iterator("more", "top", "TFRecord")]
    assert len(pair_iterators(wide, one_more)) == len(wide)
    deep = chain(*["Map", "BatchV2"] * 1000)
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
    deep = "Iterator::Root::Batch::Map::TFRecord"
    below = "Iterator::Root::Prefetch::Batch::Map::TFRecord"
    assert align_iterators([(deep, "")], [(below, "")]) == {below: deep}, "names between were not recorded"


TYPES = st.sampled_from(["Map", "ParallelMapV2", "BatchV2", "Zip", "FlatMap", "TFRecord", "Prefetch"])


@st.composite
def trees(draw: st.DrawFn, most: int = 12) -> list[Iterator]:
    types = draw(st.lists(TYPES, min_size=1, max_size=most))
    out: list[Iterator] = []
    for number, iterator in enumerate(types):
        parent = draw(st.integers(0, number - 1)) if number else -1
        element = draw(st.sampled_from(["", "[2]"]))
        name = f"Iterator::Root[{number}]::{iterator}"
        calls = draw(st.sampled_from([1, 1, 2, 16, 10**12]))
        out.append(Iterator(str(number), str(parent) if number else "", iterator, name, element, calls=calls))
    return out


@law(40)
@given(trees(), trees(), st.randoms())
def test_pairs_keep_what_is_above_what_and_mirror_in_whatever_order(
    one: list[Iterator], other: list[Iterator], random: Random
) -> None:
    assert pairs(one, other) == {(b, c, tier) for c, b, tier in pairs(other, one)}
    assert likeness(one, other) == likeness(other, one)
    found = pair_iterators(one, other)
    assert len({p.baseline for p in found}) == len({p.candidate for p in found}) == len(found)
    for p in found:
        assert transformation(one[p.baseline].iterator) == transformation(other[p.candidate].iterator)
        for q in found:
            assert is_above(one, p.baseline, q.baseline) == is_above(other, p.candidate, q.candidate)
    shuffled = list(one)
    random.shuffle(shuffled)
    assert pairs(one, shuffled) == {(it.id, it.id, "exact") for it in one}


@law(40)
@given(trees(), st.data())
def test_one_more_iterator_anywhere_is_one_added(one: list[Iterator], data: st.DataObject) -> None:
    below = data.draw(st.integers(0, len(one) - 1))
    inserted = replace(one[below], id="new", iterator="Cache")
    other = [*one[:below], replace(one[below], parent="new"), *one[below + 1 :], inserted]
    assert {(b, c) for b, c, _ in pairs(one, other)} == {(it.id, it.id) for it in one}


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
