"""Op stats and steps against xprof's, on every profile at hand; what differs on purpose is listed here, row for row."""

from __future__ import annotations

import pandas as pd
import pytest

from tests import xprof_oracle
from tests.profiles import ALL_RUNS, SAMPLE_RUNS, loaded_run
from tfcompare import schema
from tfcompare.frames.ops.op_names import EAGER_EXECUTION
from tfcompare.frames.planes import events_of_lines
from tfcompare.run import Run
from tfcompare.xspace import read

KEYS = ["host_or_device", "op_name", "op_type"]
XPROF_ROWS = 500
TOLERANCE = 0.001

STEPS_LIKE_XPROF = [
    "tf_cpu_base",
    "tf_cpu_zoo",
    "tf_cpu_sleepy",
    *SAMPLE_RUNS,
]


@pytest.fixture(scope="module", params=ALL_RUNS)
def both(request: pytest.FixtureRequest) -> tuple[Run, pd.DataFrame]:
    """A run, and xprof's op table of the same files."""
    run = loaded_run(request.param)
    return run, with_ops_of_fusions(run, xprof_oracle.framework_op_stats(*(file.path for file in run.found.files)))


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
    keys = [*KEYS, "eager"]
    sums = {"occurrences": "max", "total_time_us": "sum", "self_time_us": "sum"}
    return named.groupby(keys, sort=False, as_index=False).agg(sums)


def side_by_side(run: Run, xprof: pd.DataFrame) -> pd.DataFrame:
    """Rows of both tables without IDLE; `_merge` tells which have a row. xprof's table ends after 500 rows."""
    ours = run.table("op_stats")
    if len(xprof) > XPROF_ROWS:  # 500 and the IDLE row that the cut spared
        ours = ours[
            ours.set_index(KEYS).index.isin(xprof.set_index(KEYS).index) | (ours["host_or_device"] == schema.DEVICE)
        ]
    merged = ours.merge(xprof, on=KEYS, how="outer", suffixes=("", "_xprof"), indicator=True)
    return merged[merged["op_type"] != schema.IDLE]


def named_by_stat(run: Run) -> set[str]:
    """What xprof takes for ops besides events named so: the `tf_op` stat of host events (memory, launches)."""
    names = set()
    for file in run.found.files:
        labels = read(file.path).space.strings("tf_op").labels
        names |= {label.partition(":")[0] for label in labels}
    return names


def fusions_named_otherwise(run: Run) -> set[str]:
    """Names of fusions that name no op, while an op in them does."""
    rows = run.table("hlo_ops")
    return set(rows.loc[rows["category"].str.endswith("fusion") & (rows["op_name"] != ""), "hlo_op"])


def compiled_ops(run: Run) -> set[str]:
    """Names of the ops of instructions that ran on the host's threads."""
    rows = run.table("hlo_ops")
    return {*rows["op_name"], *rows["hlo_op"]} if runs_instructions_on_threads(run) else set()


def runs_instructions_on_threads(run: Run) -> bool:
    """Whether XLA programs ran on the host's threads: xprof takes none of their instructions for an op."""
    return run.info.device_type == "CPU" and not run.table("hlo_ops").empty


def test_self_and_total_times_are_xprofs(both: tuple[Run, pd.DataFrame]) -> None:
    rows = side_by_side(*both)
    rows = rows[rows["_merge"] == "both"]
    if runs_instructions_on_threads(both[0]):  # these take their time from the compiled function around them
        rows["self_time_us_xprof"] = rows["self_time_us"].where(rows["op_name"].str.match("__inference_"))
    assert (rows["self_time_us"] - rows["self_time_us_xprof"]).abs().le(TOLERANCE * rows["self_time_us_xprof"]).all()
    assert (rows["total_time_us"] - rows["total_time_us_xprof"]).abs().le(TOLERANCE * rows["total_time_us_xprof"]).all()


def test_sums_are_xprofs(both: tuple[Run, pd.DataFrame]) -> None:
    rows = side_by_side(*both)
    rows = rows[rows["_merge"] == "both"]
    if runs_instructions_on_threads(both[0]):
        rows = rows[~rows["op_name"].str.match("__inference_")]
    sums = rows.groupby("host_or_device")[["self_time_us", "self_time_us_xprof"]].sum()
    assert sums["self_time_us"].to_numpy() == pytest.approx(sums["self_time_us_xprof"].to_numpy(), rel=TOLERANCE)


def test_only_events_that_merely_mention_an_op_are_missing(both: tuple[Run, pd.DataFrame]) -> None:
    """xprof counts events whose `tf_op` stat names an op as the op itself: allocations, launches of XLA modules.

    Fusions that it shows under their own names are here under that of the last op in them.
    """
    rows = side_by_side(*both)
    missing = rows[rows["_merge"] == "right_only"]
    missing = missing[~missing["op_name"].isin(fusions_named_otherwise(both[0]))]
    assert set(missing["host_or_device"]) <= {schema.HOST}
    assert set(missing["op_name"]) <= named_by_stat(both[0])


def test_only_device_events_that_xprof_cannot_name_are_added(both: tuple[Run, pd.DataFrame]) -> None:
    """xprof drops kernels and copies without `tf_op`; ours are there, by their annotation or their own name."""
    rows = side_by_side(*both)
    added = rows[rows["_merge"] == "left_only"]
    added = added[~added["op_name"].str.startswith(EAGER_EXECUTION) & ~added["op_name"].isin(compiled_ops(both[0]))]
    assert set(added["host_or_device"]) <= {schema.DEVICE}
    if both[0].info.device_type == "TPU":
        assert added.empty


def test_only_eager_executions_and_instructions_are_added_on_the_host(both: tuple[Run, pd.DataFrame]) -> None:
    """xprof shows no op of an eager program on CPU: TensorFlow names no event there `name:type`. Nor does XLA."""
    rows = side_by_side(*both)
    added = rows[(rows["_merge"] == "left_only") & (rows["host_or_device"] == schema.HOST)]
    added = added[~added["op_name"].isin(compiled_ops(both[0]))]
    assert added["is_eager"].astype(bool).all()
    assert added["op_name"].str.startswith(EAGER_EXECUTION).all()


def test_occurrences_are_xprofs_less_the_mentions_and_further_kernels(both: tuple[Run, pd.DataFrame]) -> None:
    """xprof counts each kernel of an instruction as an occurrence of its op."""
    rows = side_by_side(*both)
    rows = rows[rows["_merge"] == "both"]
    more = rows["occurrences_xprof"] - rows["occurrences"]
    instructions = both[0].table("hlo_ops")
    has_more_kernels = instructions["occurrences"] > instructions["executions"]
    of_several_kernels = {name.partition(":")[0] for name in instructions.loc[has_more_kernels, "op_name"]}
    assert more.ge(0).all()
    assert set(rows.loc[more > 0, "op_name"]) <= named_by_stat(both[0]) | of_several_kernels


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


def test_eager_flags_are_xprofs(both: tuple[Run, pd.DataFrame]) -> None:
    rows = side_by_side(*both)
    rows = rows[rows["_merge"] == "both"]
    assert (rows["is_eager"].astype(bool) == (rows["eager"] == "Eager")).all()


def test_idle_of_the_host_is_xprofs_where_no_mention_widens_it(both: tuple[Run, pd.DataFrame]) -> None:
    run, xprof = both
    idle = run.table("op_stats").query("op_type == 'IDLE' and host_or_device == 'Host'")["self_time_us"].sum()
    expected = xprof.query("op_type == 'IDLE' and host_or_device == 'Host'")["self_time_us"].sum()
    mentions = named_by_stat(run)
    if runs_instructions_on_threads(run):
        assert idle >= expected * (1 - TOLERANCE)  # threads that run nothing else count as well
    elif not mentions:
        assert idle == pytest.approx(expected, rel=TOLERANCE)
    else:
        assert idle <= expected * (1 + TOLERANCE)


def test_busy_and_idle_time_of_devices_add_up_to_xprofs(both: tuple[Run, pd.DataFrame]) -> None:
    """What ours recovers was idle time to xprof, but for gaps that events it drops fill beyond its span."""
    run, xprof = both
    device = run.table("op_stats").query("host_or_device == 'Device'")["self_time_us"].sum()
    expected = xprof.query("host_or_device == 'Device'")["self_time_us"].sum()
    if len(xprof) <= XPROF_ROWS:
        assert device == pytest.approx(expected, rel=TOLERANCE)


@pytest.mark.parametrize("name", STEPS_LIKE_XPROF)
def test_included_steps_are_xprofs(name: str) -> None:
    run = loaded_run(name)
    xprof = xprof_oracle.step_table(*(file.path for file in run.found.files))
    steps = run.table("steps")
    assert steps.loc[steps["included"], "duration_us"].to_numpy() == pytest.approx(
        xprof["duration_us"].to_numpy(), rel=1e-6
    )


def test_the_step_of_a_multi_gpu_run_is_xprofs() -> None:
    run = loaded_run("tf_gpu")
    xprof = xprof_oracle.step_table(*(file.path for file in run.found.files))
    assert run.steps["duration_us"].to_list() == pytest.approx(xprof["duration_us"].to_list())


def test_device_ops_of_old_gpu_files_are_those_on_their_derived_line() -> None:
    """TF 2.4 and older wrote a line with the op behind each kernel, which xprof 2.24 cannot name any more."""
    run = loaded_run("tf_gpu")
    space = read(run.found.files[0].path).space
    lines = [i for i, name in enumerate(space.lines.name) if name == "TensorFlow Ops"]
    rows = events_of_lines(space, lines)
    derived = pd.DataFrame(
        {"name": space.metadata_names[space.events.metadata[rows]], "ps": space.events.duration_ps[rows]}
    )
    expected = derived.groupby("name")["ps"].sum() / 1e6
    ours = run.table("op_stats", host=run.host_names[0]).query("host_or_device == 'Device'")
    found = ours.set_index(ours["op_name"] + ":" + ours["op_type"])["self_time_us"]
    assert found[expected.index].to_numpy() == pytest.approx(expected.to_numpy(), rel=1e-9)
    copies = set(found.index) - set(expected.index)
    assert {name.rpartition(":")[2] for name in copies} <= {"IDLE", "Unknown", "_Recv", "_HostRecv", "RemoteCall"}
