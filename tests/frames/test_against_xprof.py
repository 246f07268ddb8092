"""Op stats, HLO ops, steps and memory against xprof's; what differs on purpose is listed here, row for row."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cached_property

import pandas as pd
import pytest

from tests import xprof_oracle
from tests.frames.memory_oracle import (
    HOST,
    WHAT,
    events_of,
    peak_of,
    summary_of,
    walk,
    xprof_memory,
    xprof_peak,
    xprof_summary,
    xprof_timeline,
)
from tests.frames.tables import thorough_but
from tests.profiles import ALL_RUNS, SAMPLE_RUNS, loaded_run, run_path
from tfcompare import schema
from tfcompare.frames.memory_events import STACK, UNEXPLAINED, MemoryEvents
from tfcompare.frames.ops.op_names import EAGER_EXECUTION
from tfcompare.frames.planes import events_of_lines
from tfcompare.run import Run
from tfcompare.sources.logdir import find_run
from tfcompare.tables.memory_timeline import memory_timeline
from tfcompare.xspace import XSpace, read

KEYS = ["host_or_device", "op_name", "op_type"]
XPROF_ROWS = 500
TOLERANCE = 0.001
STEPS_LIKE_XPROF = ["tf_cpu_base", "tf_cpu_zoo", "tf_cpu_sleepy", *SAMPLE_RUNS]


@dataclass(frozen=True)
class Both:
    """A run, xprof's op table of the same files, and the rows of both tables side by side, without IDLE."""

    run: Run
    xprof: pd.DataFrame
    rows: pd.DataFrame

    @property
    def in_both(self) -> pd.DataFrame:
        return self.rows[self.rows["_merge"] == "both"].copy()

    @property
    def runs_instructions_on_threads(self) -> bool:
        """Whether XLA programs ran on the host's threads: xprof takes none of their instructions for an op."""
        return self.run.info.device_type == "CPU" and not self.run.table("hlo_ops").empty

    @property
    def named_by_stat(self) -> set[str]:
        """What xprof takes for ops besides events named so: the `tf_op` stat of host events (memory, launches)."""
        labels = (label for file in self.run.found.files for label in read(file.path).space.strings("tf_op").labels)
        return {label.partition(":")[0] for label in labels}


@pytest.fixture(scope="module", params=thorough_but(ALL_RUNS))
def both(request: pytest.FixtureRequest) -> Both:
    run = loaded_run(request.param)
    xprof = with_ops_of_fusions(run, xprof_oracle.framework_op_stats(*(file.path for file in run.found.files)))
    ours = run.table("op_stats")
    if len(xprof) > XPROF_ROWS:  # 500 and the IDLE row that the cut spared
        known = ours.set_index(KEYS).index.isin(xprof.set_index(KEYS).index)
        ours = ours[known | (ours["host_or_device"] == schema.DEVICE)]
    merged = ours.merge(xprof, on=KEYS, how="outer", suffixes=("", "_xprof"), indicator=True)
    return Both(run, xprof, merged[merged["op_type"] != schema.IDLE])


def with_ops_of_fusions(run: Run, xprof: pd.DataFrame) -> pd.DataFrame:
    """xprof's table with a GPU's fusions that name no op under the last op in them, as here, if a name means one op."""
    if run.info.device_type != "GPU":
        return xprof
    rows = run.table("hlo_ops")
    fusions = rows.loc[rows["category"].str.endswith("fusion") & (rows["op_name"] != ""), ["hlo_op", "op_name"]]
    op_of = dict(fusions.drop_duplicates().drop_duplicates("hlo_op", keep=False).itertuples(index=False))
    type_of = run.table("op_stats").drop_duplicates("op_name").set_index("op_name")["op_type"]
    fused = xprof["op_name"].isin(op_of) & (xprof["host_or_device"] == schema.DEVICE)
    named = xprof.copy()
    named.loc[fused, "op_name"] = xprof.loc[fused, "op_name"].map(op_of)
    named.loc[fused, "op_type"] = named.loc[fused, "op_name"].map(type_of)
    sums = {"occurrences": "max", "total_time_us": "sum", "self_time_us": "sum"}
    return named.groupby([*KEYS, "eager"], sort=False, as_index=False).agg(sums)


def test_times_and_eager_flags_are_xprofs(both: Both) -> None:
    rows = both.in_both
    assert (rows["is_eager"].astype(bool) == (rows["eager"] == "Eager")).all()
    of_function = rows["op_name"].str.match("__inference_")
    if both.runs_instructions_on_threads:  # these take their time from the compiled function around them
        rows["self_time_us_xprof"] = rows["self_time_us"].where(of_function)
    for time in ("self_time_us", "total_time_us"):
        assert (rows[time] - rows[f"{time}_xprof"]).abs().le(TOLERANCE * rows[f"{time}_xprof"]).all()
    if both.runs_instructions_on_threads:
        rows = rows[~of_function]
    sums = rows.groupby("host_or_device")[["self_time_us", "self_time_us_xprof"]].sum()
    assert sums["self_time_us"].to_numpy() == pytest.approx(sums["self_time_us_xprof"].to_numpy(), rel=TOLERANCE)


def test_only_events_that_merely_mention_an_op_are_missing(both: Both) -> None:
    """xprof counts events whose `tf_op` stat names an op as the op itself: allocations, launches of XLA modules.

    Fusions that it shows under their own names are here under that of the last op in them.
    """
    instructions = both.run.table("hlo_ops")
    is_fusion = instructions["category"].str.endswith("fusion") & (instructions["op_name"] != "")
    missing = both.rows[both.rows["_merge"] == "right_only"]
    missing = missing[~missing["op_name"].isin(set(instructions.loc[is_fusion, "hlo_op"]))]
    assert set(missing["host_or_device"]) <= {schema.HOST}
    assert set(missing["op_name"]) <= both.named_by_stat


def test_only_what_xprof_cannot_name_is_added(both: Both) -> None:
    """It drops kernels and copies without `tf_op`; ours are there, by their annotation or their own name. It shows no
    op of an eager program on CPU: TensorFlow names no event there `name:type`. Nor does XLA."""
    added = both.rows[both.rows["_merge"] == "left_only"]
    if both.runs_instructions_on_threads:
        instructions = both.run.table("hlo_ops")
        added = added[~added["op_name"].isin({*instructions["op_name"], *instructions["hlo_op"]})]
    on_host = added[added["host_or_device"] == schema.HOST]
    assert on_host["is_eager"].astype(bool).all()
    assert on_host["op_name"].str.startswith(EAGER_EXECUTION).all()
    if both.run.info.device_type == "TPU":
        assert len(added) == len(on_host)


def test_occurrences_are_xprofs_less_the_mentions_and_further_kernels(both: Both) -> None:
    """xprof counts each kernel of an instruction as an occurrence of its op."""
    rows = both.in_both
    more = rows["occurrences_xprof"] - rows["occurrences"]
    instructions = both.run.table("hlo_ops")
    has_more_kernels = instructions["occurrences"] > instructions["executions"]
    of_several_kernels = {name.partition(":")[0] for name in instructions.loc[has_more_kernels, "op_name"]}
    assert more.ge(0).all()
    assert set(rows.loc[more > 0, "op_name"]) <= both.named_by_stat | of_several_kernels


@pytest.mark.parametrize(
    ("name", "op", "ours", "xprofs"),
    [
        ("jax_conv_legacy", "jit(forward_3d_conv)/jit(main)/conv_general_dilated", 5, 10),
        ("jax_conv_08", "jit(forward_3d_conv)/conv_general_dilated", 40, 79),
        ("jax_te", "jit(loss_fn)/jvp()/te_fused_attn_forward_ffi", 10, 10),
        ("jax_te", "jit(loss_fn)/transpose(jvp())/te_fused_attn_backward_ffi", 10, 25),
    ],
)
def test_an_op_ran_as_often_as_its_programs_however_many_kernels_it_has(
    name: str, op: str, ours: int, xprofs: int
) -> None:
    """On eight GPUs, of which one lacks a kernel; two layers whose instructions run a kernel twice."""
    run = loaded_run(name)
    theirs = xprof_oracle.framework_op_stats(*(file.path for file in run.found.files))
    found = [rows.set_index("op_name").loc[op, "occurrences"] for rows in (run.table("op_stats"), theirs)]
    assert found == [ours, xprofs]


def test_idle_of_the_host_is_xprofs_where_no_mention_widens_it(both: Both) -> None:
    tables = (both.run.table("op_stats"), both.xprof)
    of_host = "op_type == 'IDLE' and host_or_device == 'Host'"
    idle, expected = (table.query(of_host)["self_time_us"].sum() for table in tables)
    if both.runs_instructions_on_threads:
        assert idle >= expected * (1 - TOLERANCE)  # threads that run nothing else count as well
    elif not both.named_by_stat:
        assert idle == pytest.approx(expected, rel=TOLERANCE)
    else:
        assert idle <= expected * (1 + TOLERANCE)


def test_busy_and_idle_time_of_devices_add_up_to_xprofs(both: Both) -> None:
    """What ours recovers was idle time to xprof, but for gaps that events it drops fill beyond its span."""
    tables = (both.run.table("op_stats"), both.xprof)
    device, expected = (table.query("host_or_device == 'Device'")["self_time_us"].sum() for table in tables)
    if len(both.xprof) <= XPROF_ROWS:
        assert device == pytest.approx(expected, rel=TOLERANCE)


@pytest.mark.parametrize("name", thorough_but(STEPS_LIKE_XPROF, "tf_cpu_base"))
def test_included_steps_are_xprofs(name: str) -> None:
    run = loaded_run(name)
    xprof = xprof_oracle.step_table(*(file.path for file in run.found.files))
    steps = run.table("steps").query("included")
    assert steps["duration_us"].to_numpy() == pytest.approx(xprof["duration_us"].to_numpy(), rel=1e-6)


def test_the_step_of_a_multi_gpu_run_is_xprofs() -> None:
    run = loaded_run("tf_gpu")
    xprof = xprof_oracle.step_table(*(file.path for file in run.found.files))
    assert run.steps["duration_us"].to_list() == pytest.approx(xprof["duration_us"].to_list())


def test_device_ops_of_old_gpu_files_are_those_on_their_derived_line() -> None:
    """TF 2.4 and older wrote a line with the op behind each kernel, which xprof 2.24 cannot name any more."""
    run = loaded_run("tf_gpu")
    space = read(run.found.files[0].path).space
    rows = events_of_lines(space, [i for i, name in enumerate(space.lines.name) if name == "TensorFlow Ops"])
    names = space.metadata_names[space.events.metadata[rows]]
    expected = pd.Series(space.events.duration_ps[rows] / 1e6).groupby(names).sum()
    ours = run.table("op_stats", host=run.host_names[0]).query("host_or_device == 'Device'")
    found = ours.set_index(ours["op_name"] + ":" + ours["op_type"])["self_time_us"]
    assert found[expected.index].to_numpy() == pytest.approx(expected.to_numpy(), rel=1e-9)
    copies = set(found.index) - set(expected.index)
    assert {name.rpartition(":")[2] for name in copies} <= {"IDLE", "Unknown", "_Recv", "_HostRecv", "RemoteCall"}


XPROF_SNAPSHOTS = 1000
TO_SIX_DIGITS = 1e-5  # xprof prints fragmentation so

WHOLE_PROFILE_TO_XPROF = ["jax_elementwise", "jax_conv_08", "jax_conv_legacy", "jax_tpu"]


def timed_as_xprof(space: XSpace) -> XSpace:
    """The XSpace with its lines' own starts left out of the times, as xprof has it."""
    lines = space.lines
    since = (lines.timestamp_ns - lines.timestamp_ns[lines.event_count > 0].min()) * 1000
    events = space.events
    return replace(space, events=replace(events, start_ps=events.start_ps - since[events.line]))


@dataclass(frozen=True)
class Host:
    """A host file of a run, and xprof's answer on it."""

    run: str
    recorded: XSpace
    profiles: dict[str, dict]

    @cached_property
    def events(self) -> MemoryEvents:
        return events_of(self.recorded)

    @cached_property
    def as_xprof(self) -> MemoryEvents:
        return events_of(timed_as_xprof(self.recorded))


@pytest.fixture(scope="module", params=thorough_but(ALL_RUNS, "tf_gpu"))
def hosts(request: pytest.FixtureRequest) -> list[Host]:
    files = [file.path for file in find_run(run_path(request.param)).files]
    return [Host(request.param, read(file).space, xprof_memory(file)) for file in files]


def assert_same_fragmentation(ours: pd.Series, xprof: pd.Series) -> None:
    """An allocator without a limit recorded no number, which xprof gives as the text `NaN`."""
    assert ours.to_list() == pytest.approx(xprof.astype(float).to_list(), rel=TO_SIX_DIGITS, nan_ok=True)


def test_the_summary_is_xprofs(hosts: list[Host]) -> None:
    """xprof takes the lifetime peak of the last event; ours is the largest that any told, or that was seen."""
    for host in hosts:
        ours = summary_of(host.as_xprof)
        xprof = xprof_summary(host.profiles)
        exact = [c for c in xprof.columns if c not in ("fragmentation", "peak_heap_bytes")]
        pd.testing.assert_frame_equal(ours[exact], xprof[exact], check_dtype=False)
        assert_same_fragmentation(ours["fragmentation"], xprof["fragmentation"])
        higher = ours["memory_id"][ours["peak_heap_bytes"] != xprof["peak_heap_bytes"]].to_list()
        assert (ours["peak_heap_bytes"] >= xprof["peak_heap_bytes"]).all()
        assert higher == (["GPU_4_bfc"] if host.run == "tf_gpu" else [])


def test_every_snapshot_that_xprof_kept_is_in_the_timeline(hosts: list[Host]) -> None:
    for host in hosts:
        ours = memory_timeline(host.as_xprof, HOST)
        if not host.profiles:
            assert ours.empty
            continue
        kept = xprof_timeline(host.profiles)
        counts = ours["memory_id"].value_counts()
        assert kept["memory_id"].value_counts().to_dict() == counts.clip(upper=XPROF_SNAPSHOTS).to_dict()
        at = ["memory_id", "time_us"]
        tied = pd.MultiIndex.from_frame(ours.loc[ours.duplicated(at), at])  # several at one time are in any order
        kept, ours = (one[~pd.MultiIndex.from_frame(one[at]).isin(tied)] for one in (kept, ours))
        both = kept.merge(ours, on=at, suffixes=("_xprof", ""), validate="1:1")
        assert len(both) == len(kept)
        for column in ("event", *WHAT, "stack_bytes", "heap_bytes", "free_bytes", "in_use_bytes"):
            assert (both[column] == both[f"{column}_xprof"]).all(), column
        assert_same_fragmentation(both["fragmentation"], both["fragmentation_xprof"])
        for column in ("requested_bytes", "allocation_bytes"):
            differs = both[column] != both[f"{column}_xprof"]
            # TPU: a deallocation carries no size, xprof shows 0; ours is that of its allocation.
            assert set(both.loc[differs, "event"]) <= {"deallocation"}
            assert (both.loc[differs, f"{column}_xprof"] == 0).all()
            assert differs.any() == (host.run == "jax_tpu")


def test_what_is_live_at_the_peak_adds_up_to_it_and_is_what_a_plain_walk_finds(hosts: list[Host]) -> None:
    for host in hosts:
        summary, peak = summary_of(host.events), peak_of(host.events)
        assert peak.groupby("memory_id")["allocation_bytes"].sum().to_list() == summary["peak_bytes"].to_list()
        ours = peak[~peak["op_name"].isin([UNEXPLAINED, STACK])]
        counts = ours.groupby("memory_id")["occurrences"].sum().to_dict()
        assert counts == {m: len(live) for m, live in walk(host.recorded).items() if live}


@pytest.mark.parametrize("name", thorough_but(WHOLE_PROFILE_TO_XPROF))
def test_live_at_the_peak_is_xprofs_where_it_looks_at_the_whole_profile(name: str) -> None:
    """Where threads start apart, xprof's order of events opens addresses twice; it then counts both sizes and leaves
    too little unexplained to show it."""
    for file in find_run(run_path(name)).files:
        ours = peak_of(events_of(timed_as_xprof(read(file.path).space))).drop(columns="host")
        xprof = xprof_peak(xprof_memory(file.path)).groupby(["memory_id", *WHAT], as_index=False).sum()
        merged = ours.merge(xprof, on=["memory_id", *WHAT], how="outer", suffixes=("", "_xprof"), indicator=True)
        both = merged[merged["_merge"] == "both"]
        for column in ("requested_bytes", "allocation_bytes", "occurrences"):
            assert (both[column] == both[f"{column}_xprof"]).all()
        added = merged[merged["_merge"] != "both"]
        assert set(added["_merge"]) <= {"left_only"}
        assert set(added["op_name"]) <= {UNEXPLAINED}
        assert len(added) == (8 if name == "jax_conv_legacy" else 0)


def test_memory_and_kernels_lie_at_the_same_time_when_lines_start_apart() -> None:
    """The allocating threads of this run start 1.6 s after the first one; xprof puts their events at 33 ms."""
    file = find_run(run_path("jax_conv_legacy")).files[0].path
    recorded = read(file).space
    on_gpu = recorded.events.start_ps[next(p for p in recorded.planes if p.name == "/device:GPU:7").events] / 1e6
    summary = summary_of(events_of(recorded)).set_index("memory_id")
    at_peak = summary.at["GPU_7_bfc", "peak_time_us"]
    assert on_gpu.min() < at_peak < on_gpu.max() + 20_000
    shown = xprof_summary(xprof_memory(file)).set_index("memory_id").at["GPU_7_bfc", "peak_time_us"]
    assert at_peak - shown == pytest.approx(1_632_903.869)


RUNS = ["jax_elementwise", "jax_conv_08", "jax_conv_legacy", "jax_tpu"]
HLO_KEYS = ["program_id", "hlo_op"]


def theirs(name: str) -> pd.DataFrame:
    (file,) = run_path(name).rglob("*.xplane.pb")
    return xprof_oracle.hlo_stats(file).set_index(HLO_KEYS).sort_index()


def ours(name: str) -> pd.DataFrame:
    rows = loaded_run(name).table("hlo_ops")
    return rows.assign(program_id=rows["program"].str.extract(r"\((\d+)\)$")[0]).set_index(HLO_KEYS).sort_index()


def without_layouts(text: str) -> str:
    """The first part of an instruction's text: its result, opcode and operands."""
    return re.sub(r"\{[^}]*\}", "", text).partition("), ")[0].rstrip(")")


@pytest.mark.parametrize("name", thorough_but(RUNS))
def test_the_same_instructions_in_the_same_notation_with_the_same_times(name: str) -> None:
    own, other = ours(name), theirs(name)
    assert len(own) >= 4
    assert own.index.equals(other.index)
    expressions = [rows.map(without_layouts).to_list() for rows in (own["expression"], other["hlo_op_expression"])]
    assert expressions[0] == expressions[1]
    assert own["category"].equals(other["category"])
    assert own["occurrences"].equals(other["occurrences"])
    named = other["tf_op_name"].str.removesuffix(":")
    assert own["op_name"].where(named != "", "").equals(named)
    assert own.loc[(named == "") & (own["op_name"] != ""), "category"].str.endswith("fusion").all()
    for metric in ("total_time_us", "self_time_us"):
        assert own[metric].to_numpy() == pytest.approx(other[metric].to_numpy(), rel=1e-9)


def test_an_instruction_that_runs_a_kernel_twice_ran_once() -> None:
    """The backward pass of an attention clears memory with the same kernel twice."""
    own = ours("jax_te")
    assert set(own["executions"]) == {5}
    calls = own[own.index.get_level_values("hlo_op").str.startswith("te_fused_attn_")]
    assert calls["occurrences"].to_list() == [25, 25, 10, 10]


@pytest.mark.parametrize("name", thorough_but(["jax_conv_08", "jax_conv_legacy"]))
def test_costs_of_copies_and_convolutions_are_theirs(name: str) -> None:
    """Of one execution; xprof multiplies them by the number of kernels, of which a convolution here has two."""
    own, other = ours(name), theirs(name)
    for cost, each in (("flops", "flops_each"), ("bytes_accessed", "bytes_each")):
        assert (own[cost] / own["executions"]).to_numpy() == pytest.approx(other[each].to_numpy(), rel=1e-6)


def test_costs_on_a_tpu_are_those_that_the_compiler_recorded() -> None:
    own, other = ours("jax_tpu"), theirs("jax_tpu")
    waits = own["category"].str.contains("copy-")
    assert own.loc[waits, ["flops_per_s", "bandwidth_bytes_per_s", "operational_intensity"]].isna().all(axis=None)
    for metric, each in (("flops", "flops_each"), ("bytes_accessed", "bytes_each")):
        found = own[metric] / own["occurrences"]
        assert found[~waits].to_numpy() == pytest.approx(other.loc[~waits, each].to_numpy(), rel=1e-6)
    assert own.loc[~waits, "operational_intensity"].to_numpy() == pytest.approx(
        other.loc[~waits, "operational_intensity"].to_numpy(), rel=1e-6
    )


def test_elementwise_costs_count_one_operation_per_element() -> None:
    """xprof counts what the arithmetic takes on a device: 668 for a sine, 12 for a product of two bfloat16."""
    own = ours("jax_elementwise").reset_index().set_index("program")
    elements = 8 * 4096 * 2048
    other = theirs("jax_elementwise")["flops_each"].groupby("program_id").sum()
    assert (other["13"], other["17"]) == pytest.approx((668 * elements, 12 * elements))
    for program in ("jit_add(11)", "jit_multiply(17)", "jit_sin(13)", "jit_relu(19)"):
        assert own.loc[program, "flops"] == 5 * elements
    assert own.loc["jit_add(11)", "bytes_accessed"] == 5 * 3 * 2 * elements
    assert own.loc["jit_relu(19)", "bytes_accessed"] == 5 * 2 * 2 * elements
