"""What got better and what got worse: told where it is real and worth it, mirrored when the sides are swapped."""

from __future__ import annotations

from dataclasses import replace

from tests.tools.advice.advice_facts import facts, kernels, memory, ops
from tfcompare.tools.advice import Facts, advise_on
from tfcompare.tools.advice.changes import changes


def texts(baseline: Facts, candidate: Facts) -> tuple[list[str], list[str]]:
    better, worse = changes(baseline, candidate)
    return [change.text for change in better], [change.text for change in worse]


WAITING = facts({"input": 6000, "host_compute": 4000}, jitter=0.02)
FED = facts({"input": 500, "host_compute": 4000}, jitter=0.02, content="other")


def test_what_got_better_is_told_with_both_figures_and_their_shares() -> None:
    assert texts(WAITING, FED) == (
        [
            "The average step fell from 10.0 ms to 4.50 ms (−55.0 %).",
            "Waiting for input fell from 6.00 ms to 500 µs a step (−91.7 %), from 60.0 % to 11.1 % of the step time.",
        ],
        [],
    )
    assert texts(FED, WAITING)[0] == []
    assert [text.partition(" (")[0] for text in texts(FED, WAITING)[1]] == [
        "The average step rose from 4.50 ms to 10.0 ms",
        "Waiting for input rose from 500 µs to 6.00 ms a step",
    ]


def test_a_share_that_grows_because_the_rest_shrinks_is_no_regression() -> None:
    slow, fast = facts({"input": 500, "host_compute": 9500}), facts({"input": 500, "host_compute": 500}, content="b")
    better, worse = texts(slow, fast)
    assert [text.partition(" fell")[0] for text in better] == ["The average step", "Host compute"]
    assert worse == []


def test_nothing_is_said_of_one_recording_or_of_different_machines() -> None:
    one = facts({"input": 6000}, content="same")
    assert texts(one, facts({"input": 500}, content="same")) == ([], [])
    assert texts(WAITING, facts({"input": 500}, device_type="GPU", content="b")) == ([], [])
    assert texts(WAITING, facts({"input": 500}, framework="JAX", content="b")) == ([], [])


def test_what_two_recordings_differ_by_anyway_is_not_told() -> None:
    assert texts(facts({"input": 6000}), facts({"input": 5900}, content="b")) == ([], [])
    noisy = facts({"input": 2000, "host_compute": 8000}, jitter=0.9)
    assert texts(noisy, facts({"input": 2600, "host_compute": 8000}, jitter=0.9, content="b")) == ([], [])


def test_a_part_that_only_one_side_has() -> None:
    compiles = facts({"compile": 3000, "host_compute": 7000})
    runs = facts({"host_compute": 7000}, content="b")
    better, _ = texts(compiles, runs)
    assert better[1] == "Compilation fell from 3.00 ms to 0 µs a step (−100 %), from 30.0 % to 0 % of the step time."
    _, worse = texts(runs, compiles)
    assert worse[1] == "Compilation rose from 0 µs to 3.00 ms a step, from 0 % to 30.0 % of the step time."


def test_few_steps_tell_nothing_of_times() -> None:
    few = facts({"input": 6000})
    short = Facts(**{**vars_of(few), "steps": few.steps.head(8)})
    assert texts(short, FED)[0] == []


def vars_of(run: Facts) -> dict[str, object]:
    return {name: getattr(run, name) for name in Facts.__dataclass_fields__}


def test_bytes_counts_and_shares() -> None:
    device = {"device_compute": 9000.0}
    before = facts(
        device,
        device_type="GPU",
        memory=memory("GPU_0_bfc", 8_000_000, 10**9),
        kernels=kernels(("k", "op", 100, 4000.0, True, False)),
        ops=ops(("Host", "MatMul", "a", 10, 100.0), eager=True),
        eager_share=0.1,
    )
    after = facts(
        device,
        device_type="GPU",
        content="b",
        memory=memory("GPU_0_bfc", 4_000_000, 10**9),
        kernels=kernels(("k", "op", 50, 2000.0, True, True)),
        ops=ops(("Host", "MatMul", "a", 1, 100.0)),
    )
    better = [
        "The peak of `GPU_0_bfc` fell from 8.00 MB to 4.00 MB (−50.0 %).",
        "The number of kernels fell from 100 to 50 a step (−50.0 %).",
        "Kernel time on tensor cores rose from 0 % to 100 %.",
        "The number of eager ops fell from 10 to 0 a step (−100 %).",
    ]
    assert texts(before, after) == (better, [])
    assert texts(after, before)[0] == []
    assert len(texts(after, before)[1]) == len(better)
    nearly = facts(device, device_type="GPU", content="c", memory=memory("GPU_0_bfc", 7_300_000, 10**9))
    assert not any("peak" in text for text in texts(before, nearly)[0])


def test_a_large_part_that_took_as_long_as_before_is_mentioned_where_the_step_changed() -> None:
    slow, fast = facts({"input": 300, "host_compute": 9700}), facts({"input": 305, "host_compute": 700}, content="b")
    assert [change.text for change in advise_on(slow, fast).unchanged] == [
        "Waiting for input stayed about the same: 305 µs a step, baseline 300 µs."
    ]
    assert advise_on(fast, fast).unchanged == ()
    slower_input = facts({"input": 600, "host_compute": 700}, content="b")
    assert advise_on(slow, slower_input).unchanged == ()


def test_eager_ops_in_a_step_or_two_are_no_change() -> None:
    """The summary writer of one step is most of the host's op time there, and nothing in the typical step."""
    silent = facts(ops=ops(("Host", "MatMul", "a", 1, 100.0)))
    summary = facts(content="b", ops=ops(("Host", "WriteSummary", "a", 10, 9000.0), eager=True), eager_share=0.0)
    assert texts(silent, summary) == ([], [])
    eager = facts(content="b", ops=ops(("Host", "MatMul", "a", 10, 9000.0), eager=True), eager_share=0.3)
    assert texts(silent, eager) == ([], ["The number of eager ops rose from 0 to 10 a step."])


def test_with_more_recordings_a_change_is_told_that_one_alone_does_not_bear_out() -> None:
    def waiting(us: float, content: str) -> Facts:
        return facts({"input": us, "host_compute": 6000}, jitter=0.1, content=content)

    before, after = waiting(3000, "a"), waiting(3600, "b")
    assert texts(before, after) == ([], [])
    grouped = [
        replace(side, captures=(*side.captures, *(waiting(us + n, "c").captures[0] for n in (-20, 20))))
        for side, us in ((before, 3000), (after, 3600))
    ]
    better, worse = texts(*grouped)
    assert better == []
    assert [text.partition(" (")[0] for text in worse] == [
        "The average step rose from 9.00 ms to 9.60 ms",
        "Waiting for input rose from 3.00 ms to 3.60 ms a step",
    ]
    assert len(texts(*grouped[::-1])[0]) == len(worse)
