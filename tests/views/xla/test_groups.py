"""Instructions that the compiler grouped in another way, of small rows and of real pairs, and the section on them."""

from __future__ import annotations

import math

import pandas as pd
import pytest

import tfcompare as tfc
from tests.profiles import compared_runs
from tests.test_known_truth import FOLDER
from tests.views.flat import flat, sections_below
from tfcompare.compare.pair import Pair
from tfcompare.compare.pairs import pairs_of
from tfcompare.schema import SIDES
from tfcompare.views.blocks import Block, Facts, Section, Text
from tfcompare.views.xla.regrouped import MOST_MEMBERS, Regrouped, SourceOps, regrouped, section, source_ops
from tfcompare.views.xla.view import VIEW

PROGRAM = "jit_f(1)"


def rows(*names: tuple[str | None, str | None]) -> pd.DataFrame:
    """Rows of a diff: an instruction's name on both sides, None where it is not; each takes 1 µs there."""
    cells = [
        {
            "program": PROGRAM,
            "program_candidate": None if ours is None else PROGRAM,
            "program_key": PROGRAM,
            "hlo_op": ours or theirs,
            "hlo_op_candidate": theirs if ours and theirs else None,
            "status": "added" if ours is None else "removed" if theirs is None else "matched",
            "execution_time_us_baseline": 1.0 if ours else math.nan,
            "execution_time_us_candidate": 1.0 if theirs else math.nan,
        }
        for ours, theirs in names
    ]
    return pd.DataFrame(cells, index=range(100, 100 + len(cells)))


def computing(**ops: str) -> SourceOps:
    """The source ops of instructions, separated by spaces."""
    return {(PROGRAM, name): frozenset(f"jit(f)/{op}" for op in of_one.split()) for name, of_one in ops.items()}


def groups(frame: pd.DataFrame, ours: SourceOps, theirs: SourceOps) -> list[tuple[list[str], tuple[int, int]]]:
    found = regrouped(frame, ours, theirs)
    return [(sorted(frame["hlo_op"].loc[list(one.rows)]), one.counts) for one in found]


def test_three_instructions_that_became_one_fusion_are_a_group() -> None:
    frame = rows(("dot", "dot"), ("mul", None), ("add", None), ("tanh", None), (None, "fusion"))
    ours = computing(dot="a/dot", mul="a/mul", add="a/add", tanh="a/tanh")
    found = groups(frame, ours, computing(dot="a/dot", fusion="a/mul a/add a/tanh"))
    assert found == [(["add", "fusion", "mul", "tanh"], (3, 1))], "the product has its counterpart"


def test_a_matched_instruction_that_took_over_an_op_is_in_the_group() -> None:
    frame = rows(("fusion", "fusion"), ("tanh", None))
    found = groups(frame, computing(fusion="a/mul", tanh="a/tanh"), computing(fusion="a/mul a/tanh"))
    assert found == [(["fusion", "tanh"], (2, 1))]


def test_matched_instructions_that_share_an_op_are_no_group() -> None:
    frame = rows(("one", "one"), ("two", "two"))
    assert groups(frame, computing(one="a", two="a"), computing(one="a", two="a")) == []


def test_what_shares_no_op_stays_removed_and_added() -> None:
    frame = rows(("mul", None), (None, "add"), ("unknown", None), (None, "other"))
    assert groups(frame, computing(mul="a/mul"), computing(add="a/add")) == []


def test_ops_are_compared_without_scopes_that_wrap_the_program() -> None:
    theirs = {(PROGRAM, "fusion"): frozenset({"jit(main)/jit(f)/mul"})}
    assert groups(rows(("mul", None), (None, "fusion")), computing(mul="mul"), theirs) == [(["fusion", "mul"], (1, 1))]


def test_instructions_of_other_programs_do_not_belong_together() -> None:
    frame = rows(("mul", None), (None, "fusion"))
    frame.loc[101, ["program", "program_key"]] = "jit_g(2)"
    theirs = {("jit_g(2)", "fusion"): frozenset({"jit(f)/a/mul"})}
    assert groups(frame, computing(mul="a/mul"), theirs) == []


def test_too_many_that_hang_together_are_no_answer() -> None:
    names = [f"mul.{number}" for number in range(MOST_MEMBERS + 1)]
    frame = rows(*((name, None) for name in names), (None, "fusion"))
    (found,) = regrouped(frame, computing(**dict.fromkeys(names, "a/mul")), computing(fusion="a/mul"))
    assert found.is_too_large and found.counts == (len(names), 1)


PAIRS = [("jax_filters_128_32", "jax_filters_16_8"), ("h100_512_128", "h100_16_8")]


def of_pair(*names: str) -> tuple[pd.DataFrame, list[Regrouped]]:
    (pair,) = pairs_of(compared_runs(*names))
    return pair.instructions(), regrouped(
        pair.instructions(), *(source_ops(run.table("hlo_texts")) for run in pair.runs)
    )


@pytest.mark.parametrize("names", PAIRS)
def test_an_instruction_is_in_one_group_and_both_sides_have_one(names: tuple[str, str]) -> None:
    rows, found = of_pair(*names)
    members = [row for one in found for row in one.rows]
    assert found and len(members) == len(set(members))
    for one in found:
        here = rows.loc[list(one.rows)]
        assert one.counts == tuple(int((here[f"execution_time_us_{side}"].notna()).sum()) for side in SIDES)
        assert min(one.counts) >= 1 and one.ops and (here["status"] != "matched").any()


@pytest.mark.parametrize("names", PAIRS)
def test_exchanged_sides_have_the_same_groups_mirrored(names: tuple[str, str]) -> None:
    (_, there), (_, back) = of_pair(*names), of_pair(*names[::-1])
    assert sorted((one.counts, sorted(one.ops)) for one in there) == sorted(
        (one.counts[::-1], sorted(one.ops)) for one in back
    )


@pytest.mark.parametrize("name", ["jax_filters_16_8", "h100_16_8"])
def test_a_run_with_itself_has_none(name: str) -> None:
    assert of_pair(name, name)[1] == []


TITLE = "Regrouped instructions"


def sections(pair: Pair) -> list[Section]:
    return [one for one in sections_below(VIEW.blocks(pair)) if one.title == TITLE]


def blocks(pair: Pair) -> list[Block]:
    return list(flat(sections(pair)))


def test_a_group_is_a_row_with_its_sums_and_opens_to_its_members() -> None:
    (pair,) = pairs_of(tfc.compare(tfc.load(FOLDER / "jax_unfused"), tfc.load(FOLDER / "jax_fused")))
    (facts,) = blocks(pair)
    assert isinstance(facts, Facts) and facts.opens is not None and facts.opens.details is not None
    ((label, *_),) = facts.rows
    assert label.startswith("13 → 1: layer/activation/")
    assert facts.note.endswith("with these groups 100 %.")
    (finding,) = facts.findings
    assert finding.baseline > 5 * finding.candidate > 0
    details = facts.opens.details(finding.id)
    assert details is not None and details.title == label
    members, common = details.blocks
    assert isinstance(members, Facts) and len(members.rows) == 14 and isinstance(common, Text)
    assert {row[3] for row in members.rows} == {"added", "removed"}
    assert facts.opens.details("group:other") is None


def test_without_instructions_that_lack_a_counterpart_there_is_no_section() -> None:
    assert not sections(pairs_of(compared_runs("tensorflow_filters_128_32", "tensorflow_filters_16_8"))[0])
    assert not sections(pairs_of(compared_runs("jax_filters_16_8", "jax_filters_16_8"))[0])
    assert not sections(pairs_of(compared_runs("h100_16_8", "h100_16_8_command_buffers"))[0])


def test_where_no_op_is_in_common_it_says_how_much_time_has_a_counterpart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tfcompare.views.xla.regrouped.groups", lambda *_: [])
    (pair,) = pairs_of(tfc.compare(tfc.load(FOLDER / "jax_unfused"), tfc.load(FOLDER / "jax_fused")))
    (text,) = blocks(pair)
    assert isinstance(text, Text) and text.text.startswith("74.7 % of the time is in instructions with a counterpart")


def shown(monkeypatch: pytest.MonkeyPatch, frame: pd.DataFrame, ours: SourceOps, theirs: SourceOps) -> Block:
    """The block of the section on handmade instructions."""
    monkeypatch.setattr("tfcompare.views.xla.regrouped.groups", lambda *_: regrouped(frame, ours, theirs))
    (outer,) = section(pairs_of(compared_runs("jax_filters_128_32", "jax_filters_16_8"))[0], "", frame)
    (block,) = outer.blocks
    return block


def test_groups_too_large_to_show_are_said_to_be_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"mul.{number}" for number in range(MOST_MEMBERS + 1)]
    frame = rows(*((name, None) for name in names), (None, "fusion"))
    text = shown(monkeypatch, frame, computing(**dict.fromkeys(names, "a/mul")), computing(fusion="a/mul"))
    assert isinstance(text, Text) and text.text == (
        "0 % of the time is in instructions with a counterpart; too many of the others compute ops in common to be "
        "shown as one group (33 → 1), so only the sums by category compare them."
    )


def test_groups_that_begin_with_instructions_of_one_name_open_each_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = rows(("fusion", None), (None, "fusion"), (None, "mul"), ("add", None))
    frame["execution_time_us_baseline"] *= [3, 1, 1, 1]
    facts = shown(monkeypatch, frame, computing(fusion="a/mul", add="a/add"), computing(mul="a/mul", fusion="a/add"))
    assert isinstance(facts, Facts) and facts.opens is not None and facts.opens.details is not None
    opened = [facts.opens.details(finding.id) for finding in facts.findings]
    assert [one and one.title for one in opened] == ["1 → 1: a/mul", "1 → 1: a/add"]


def test_the_ops_of_a_group_are_named_in_the_same_order_in_every_process() -> None:
    ops = "a/sub a/add a/mul a/tanh a/exp a/log a/neg a/abs"
    (found,) = regrouped(rows(("one", None), (None, "other")), computing(one=ops), computing(other=ops))
    assert list(found.ops) == sorted(found.ops), "sets of texts have another order in each process"
