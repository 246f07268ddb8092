"""SparseCores of a TPU chip: their ops are shown, and they are no devices and in no time of one."""

from __future__ import annotations

import math

import pytest

from tests import xprof_oracle
from tests.frames.tables import device_ops, host, lines, ops, rows, run_with
from tests.frames.test_hlo_ops import gpu, kernel, metadata
from tests.views.timeline.cases import open_alone
from tests.xspace_builder import U64, Event, Meta, Plane, event, line, meta, plane
from tfcompare.frames.planes import STEPS_LINE
from tfcompare.run import Run
from tfcompare.views.timeline.aligned import align
from tfcompare.views.timeline.drawing import Viewport
from tfcompare.views.timeline.lanes import lane_pairs
from tfcompare.views.timeline.run_timeline import HostTimeline
from tfcompare.views.timeline.selection import range_table

STEPS, PERIOD_US = 12, 1_000


def instruction(symbol: int, name: str, tf_op: str, category: str, **costs: int) -> Meta:
    stats = {"tf_op": tf_op, "hlo_category": category, **costs}
    return meta(f"%{name}", name, program_id=U64(7), symbol_id=U64(symbol), **stats)


FUSION = instruction(1, "fusion.1", "model/dense/dot_general:", "convolution fusion", flops=10**9, bytes_accessed=10**6)
REDUCE = instruction(2, "all-reduce.2", "", "all-reduce", flops=0, bytes_accessed=10**4)
GATHER = instruction(9, "gather.9", "model/embedding/gather:", "sparse-core-op", flops=0, bytes_accessed=10**5)
PEAKS = {"peak_teraflops_per_second": 900.0, "peak_hbm_bw_gigabytes_per_second": 1600.0}


def each_step(*events: tuple[str | Meta, float, float], chip: int = 0) -> list[Event]:
    """These events, by name, start and length, in every step; steps of chip 1 begin 30 µs later."""
    begins = [PERIOD_US * step + 30 * chip for step in range(STEPS)]
    return [event(name, begin + start, length) for begin in begins for name, start, length in events]


def tensor_core(chip: int = 0) -> Plane:
    steps = [event(str(step), PERIOD_US * step + 30 * chip, 650) for step in range(STEPS)]
    return plane(
        f"/device:TPU:{chip}",
        line("Steps", *steps, id=STEPS_LINE),
        line("XLA Modules", *each_step(("jit_f(7)", 0, 650), chip=chip), id=2),
        line("XLA Ops", *each_step((FUSION, 0, 600), (REDUCE, 600, 50), chip=chip), id=3),
        stats=PEAKS,
    )


def sparse_core(number: int = 0, chip: int = 0, *, start: float = 100, op: Meta = GATHER, kind: str = "") -> Plane:
    """A core that runs the op for 100 µs of every step, and again after it."""
    return plane(
        f"/device:TPU:{chip} SparseCore {kind}{number}",
        line("Sparse Core Steps", *each_step(("0", start, 800), chip=chip), id=11),
        line("Sparse Core Modules", *each_step(("sc_offload(7)", start, 800), chip=chip), id=12),
        line("Sparse Core Ops", *each_step((op, start, 100), (op, 700, 100), chip=chip), id=13),
        stats=PEAKS,
    )


CORES = (sparse_core(), sparse_core(1, start=150))


@pytest.fixture(scope="module")
def plain() -> Run:
    return run_with(tensor_core(), tensor_core(1))


@pytest.fixture(scope="module")
def both() -> Run:
    """The same with two SparseCores of chip 0."""
    return run_with(tensor_core(), tensor_core(1), *CORES)


@pytest.mark.parametrize("name", ["steps", "slow_steps", "idle_gaps", "recorded", "op_profile", "kernel_stats"])
def test_tables_of_devices_are_the_same_with_and_without(plain: Run, both: Run, name: str) -> None:
    assert len(plain.table(name)) or name == "kernel_stats"
    assert both.table(name).equals(plain.table(name))


def test_a_chip_is_one_device(plain: Run, both: Run) -> None:
    assert both.devices == ("/device:TPU:0", "/device:TPU:1")
    assert both.info.device_count == plain.info.device_count == 2
    for name in ("idle", "device_steps", "collectives"):
        columns = [column for column in plain.tables.host_table(name) if column != "sparse_core_busy_us"]
        assert both.tables.host_table(name)[columns].equals(plain.tables.host_table(name)[columns])


def test_their_ops_are_apart_and_have_no_idle_time(plain: Run, both: Run) -> None:
    of_sparse_cores = [row for row in ops(both) if row.startswith("SparseCore")]
    assert of_sparse_cores == lines("SparseCore gather model/embedding/gather 48 4800 4800")
    assert [row for row in ops(both) if row not in of_sparse_cores] == ops(plain)
    on_chip = both.table("op_stats", device="/device:TPU:0")
    assert rows(on_chip, "host_or_device", "op_name", "self_time_us") == lines("""
        Device      model/dense/dot_general  7200
        Device      IDLE                     3850
        Device      all-reduce.2             600
        SparseCore  model/embedding/gather   4800
    """)
    assert "SparseCore" not in set(both.table("op_stats", device="/device:TPU:1")["host_or_device"])


def test_their_ops_belong_to_the_steps_of_their_chip() -> None:
    """Of chip 1, the op that starts 10 µs into the step of chip 0 is in none; so is what runs after a step."""
    early = line("Sparse Core Ops", *each_step((GATHER, 10, 5), (GATHER, 40, 10)))
    run = run_with(tensor_core(), tensor_core(1), sparse_core(), plane("/device:TPU:1 SparseCore 0", early))
    steps = run.table("op_steps").query("host_or_device == 'SparseCore'")
    assert steps["self_time_us"].tolist() == [100.0 + 10] * STEPS
    assert run.table("op_stats").query("host_or_device == 'SparseCore'")["self_time_us"].tolist() == [STEPS * 215.0]


def test_their_ops_belong_to_the_step_whose_span_contains_them() -> None:
    """Where the host marks the steps, and does not wait for the work that it launches: step n ends with that work."""
    markers = [event("train", 100 + 1_000 * n, 100, _r=1, step_num=n) for n in range(5)]
    calls = [event("DoEnqueueProgram", 120 + 1_000 * n, 5, run_id=900 + n) for n in range(5)]
    modules = [event("jit_f(7)", 500 + 1_000 * n, 600, run_id=900 + n) for n in range(5)]
    chip = [event(FUSION, 500 + 1_000 * n, 600) for n in range(5)]
    core = [event(GATHER, at + 1_000 * n, 50) for n in range(5) for at in (300, 900)]
    run = run_with(
        host(*markers, *calls),
        plane("/device:TPU:0", line("XLA Modules", *modules, id=2), line("XLA Ops", *chip, id=3)),
        plane("/device:TPU:0 SparseCore 0", line("Sparse Core Ops", *core, id=4)),
    )
    assert run.table("steps")["start_us"].tolist() == [500.0 + 1_000 * n for n in range(5)]
    inside = run.table("op_steps").query("host_or_device == 'SparseCore'")
    assert inside["step"].tolist() == [*range(5)]
    assert inside["self_time_us"].tolist() == [50.0] * 5, "not those that run before their step begins on the device"


def test_a_collective_on_a_sparse_core_is_not_the_first_of_its_step(plain: Run) -> None:
    offloaded = run_with(tensor_core(), tensor_core(1), sparse_core(op=REDUCE))
    assert len(plain.tables.host_table("collectives")) == STEPS
    assert offloaded.tables.host_table("collectives").equals(plain.tables.host_table("collectives"))


def test_busy_time_stands_beside_the_steps_of_the_chip(both: Run) -> None:
    """What two cores run at the same time counts once; what they run after the step does not."""
    busy = both.table("hosts").set_index("device")["sparse_core_busy_us"]
    assert busy["/device:TPU:0"].tolist() == pytest.approx([150.0] * STEPS)
    assert busy["/device:TPU:1"].isna().all(), "not recorded, so not 0"


def test_an_instruction_of_both_types_of_core_is_two_rows() -> None:
    run = run_with(tensor_core(), sparse_core(op=FUSION))
    found = run.table("hlo_ops")
    assert rows(found, "hlo_op", "core_type", "executions", "self_time_us") == lines("""
        fusion.1      TensorCore  12  7200
        fusion.1      SparseCore  24  2400
        all-reduce.2  TensorCore  12  600
    """)
    own, other = (found[found["core_type"] == name].iloc[0] for name in ("TensorCore", "SparseCore"))
    assert own["peak_flops_per_s"] == 900e12 and own["bound_by"] == "compute"
    assert math.isnan(other["peak_flops_per_s"]) and other["bound_by"] == "", "the recorded peak is the TensorCore's"
    inside = run.tables.in_steps("hlo_ops").set_index(["hlo_op", "core_type"])["executions"]
    assert inside["fusion.1", "TensorCore"] == inside["fusion.1", "SparseCore"]
    costs = run.table("op_stats").set_index(["host_or_device", "op_name"])["flops"]
    assert costs["Device", "model/dense/dot_general"] == STEPS * 10**9
    assert costs["SparseCore", "model/dense/dot_general"] == 2 * STEPS * 10**9


def test_instructions_of_other_devices_have_no_type_of_core() -> None:
    run = run_with(gpu(kernel("k", 0, 10, "dot.1")), metadata(jit_f=7))
    assert run.table("hlo_ops")["core_type"].tolist() == [""]


@pytest.mark.parametrize("name", ["SparseCore Tile 1", "SparseCore 12", "Other 1"])
def test_any_part_of_a_chip_is_no_device(plain: Run, name: str) -> None:
    part = plane(f"/device:TPU:0 {name}", line("Sparse Core Ops", *each_step((GATHER, 0, 50)), id=13))
    run = run_with(tensor_core(), tensor_core(1), part)
    assert run.devices == plain.devices and run.table("steps").equals(plain.table("steps"))
    assert ("gather" in set(run.table("op_stats")["op_type"])) == name.startswith("SparseCore")


def test_where_only_sparse_cores_were_recorded_steps_are_unknown() -> None:
    run = run_with(plane("/device:TPU:0"), sparse_core())
    assert run.info.device_type == "TPU" and not run.tables.has_recorded_devices()
    assert "nothing that ran on the TPU was recorded" in run.why_untimed
    assert [row.split()[0] for row in ops(run)] == ["SparseCore"]
    alone = run_with(sparse_core())
    assert alone.info.device_type == "TPU" and not alone.tables.has_recorded_devices()


def test_lanes_stand_below_their_chips_with_the_ops_that_ran_there(both: Run) -> None:
    timeline = HostTimeline("a", *both.tables.timeline("a"), zero_ps=0)
    of_chip = [f"/device:TPU:0{part}" for part in ("", " SparseCore 0", " SparseCore 1")]
    assert timeline.lanes["plane"].drop_duplicates().tolist() == [*of_chip, "/device:TPU:1"]
    pairs = lane_pairs([timeline])
    recorded = [pair.label for pair in pairs if pair.place == "SparseCore"]
    assert recorded[0].startswith("TPU:0 SparseCore 0") and len(recorded) == 6
    labels = [pair.label for pair in pairs]
    assert [label.split()[0] for label in labels] == sorted(label.split()[0] for label in labels)
    assert labels.index(recorded[-1]) < labels.index("TPU:1 XLA Ops")
    spans = timeline.spans[timeline.spans["op_type"] == "gather"]
    planes = timeline.lanes["plane"].astype(str).iloc[spans["lane"].to_numpy()]
    assert planes.value_counts().to_dict() == {f"/device:TPU:0 SparseCore {n}": 2 * STEPS for n in (0, 1)}


def test_spans_have_the_times_of_the_devices_own_clock_as_ops_do() -> None:
    own = event(GATHER, 50, 77, device_offset_ps=U64(40_000_000), device_duration_ps=U64(30_000_000))
    core = plane("/device:TPU:0 SparseCore 0", line("Sparse Core Ops", own, id=13))
    _, spans = run_with(tensor_core(), core).tables.timeline("a")
    (span,) = spans[spans["op_type"] == "gather"].to_dict("records")
    assert (span["start_ps"], span["duration_ps"]) == (40_000_000, 30_000_000)


def test_what_ran_in_a_range_is_divided_on_each_type_of_core_by_itself(both: Run) -> None:
    aligned = align(open_alone(both))
    table, covered = range_table(aligned, Viewport(), (100.0, 300.0))
    found = rows(table, "host_or_device", "op_name", "wall_time_us_baseline")
    assert found == lines("""
        Device      model/dense/dot_general  200
        SparseCore  model/embedding/gather   150
    """)
    assert covered.set_index("host_or_device")["baseline"].to_dict() == {"Device": 1.0, "SparseCore": 0.75}


def test_xprof_counts_the_chip_as_one_device_too_and_shows_the_same_ops_there(both: Run) -> None:
    (file,) = both.found.files
    assert xprof_oracle.tool_data("overview_page", file.path)[2]["p"]["device_core_count"] == "2"  # type: ignore[index]
    shown = xprof_oracle.tool_data("framework_op_stats", file.path)
    table = shown[0] if isinstance(shown, list) else shown
    names = [column["id"] for column in table["cols"]]
    cells = [dict(zip(names, [cell.get("v") for cell in row["c"]], strict=True)) for row in table["rows"]]
    theirs = {
        row["operation"]: row["total_self_time"]
        for row in cells
        if row["host_or_device"] == "Device" and row["operation"] != "IDLE"
    }
    ours = {name: float(us) for _, name, _, _, us in (row.split() for row in device_ops(both)) if name != "IDLE"}
    assert ours == pytest.approx(theirs)
