"""What a capture recorded, and what follows for its steps."""

from __future__ import annotations

import pytest

from tests.frames.tables import run_of, run_with, threads
from tests.profiles import EACH_KIND, loaded_run
from tests.unrecorded import DROPPED, NO_CUPTI, PERIOD_US, program
from tests.xspace_builder import event, line, plane, space
from tfcompare.run import Run, load
from tfcompare.schema import STEP_PARTS


def statuses(run: Run) -> dict[tuple[str, str], tuple[str, int]]:
    """The status and number of events of each device and kind."""
    rows = run.table("recorded")
    return dict(
        zip(
            zip(rows["device"], rows["kind"], strict=True),
            zip(rows["status"], rows["events"], strict=True),
            strict=True,
        )
    )


def counted(run: Run) -> list[int]:
    """The numbers of the steps that count."""
    steps = run.table("steps")
    return steps.loc[steps["included"].astype(bool), "step"].tolist()


def test_a_whole_capture_has_a_row_for_each_kind_of_event() -> None:
    run = program()
    assert statuses(run) == {
        ("/host:CPU", "ops"): ("recorded", 30),
        ("/host:CPU", "memory"): ("absent", 0),
        ("/host:CPU", "input"): ("absent", 0),
        ("/host:CPU", "python"): ("absent", 0),
        ("/host:CPU", "programs"): ("absent", 0),
        ("/device:GPU:0", "ops"): ("recorded", 60),
        ("/device:GPU:0", "kernels"): ("recorded", 60),
        ("/device:GPU:0", "copies"): ("absent", 0),
    }
    of_gpu = run.table("recorded").set_index(["device", "kind"]).loc[("/device:GPU:0", "kernels")]
    assert (of_gpu["first_us"], of_gpu["last_us"]) == (50, 29 * PERIOD_US + 1_500)
    assert run.tables.has_recorded_devices()
    assert run.remarks == ()


NOT_RECORDED = {
    "an empty plane": program([]),
    "an error alone": program([], has_plane=False, has_launches=False, complaint=NO_CUPTI),
    "launches alone": program([], has_plane=False),
    "all of them": program([], complaint=NO_CUPTI, waits=True),
}


@pytest.mark.parametrize("run", NOT_RECORDED.values(), ids=NOT_RECORDED)
def test_without_a_record_of_the_device_times_of_steps_are_missing(run: Run) -> None:
    device = "/device:GPU:0" if "GPU:0" in str(run.table("recorded")["device"].to_list()) else "/device:GPU"
    assert statuses(run)[device, "ops"] == ("absent", 0)
    assert (run.info.device_type, run.tables.has_recorded_devices()) == ("GPU", False)
    steps = run.table("steps")
    assert steps[["duration_us", "device_span_us", *STEP_PARTS]].isna().all(axis=None)
    assert steps["start_us"].diff().dropna().eq(PERIOD_US).all()  # from marker to marker
    assert counted(run) == list(range(1, 29))  # they count for what the host's ops took
    ops = run.tables.in_steps("op_stats").set_index("op_name")
    assert ops.loc["loader/Decode", "self_time_us"] == 28 * 50
    assert ops["wall_time_us"].isna().all()
    assert not run.info.has_step_times
    assert run.why_untimed.startswith("nothing that ran on the GPU was recorded")
    assert ("libcupti` was not found" in run.why_untimed) == (
        NO_CUPTI in str(run.table("recorded")["complaint"].to_list())
    )
    for empty in ("idle_gaps", "hosts", "kernel_stats"):
        assert run.table(empty).empty


@pytest.mark.parametrize(
    "message", ["", "No GPU detected.", "cuInit failed: CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected"]
)
def test_a_machine_without_a_device_lacks_no_record(message: str) -> None:
    run = program([], has_plane=False, has_launches=False, complaint=message)
    assert (run.info.device_type, run.tables.has_recorded_devices(), run.why_untimed) == ("CPU", True, "")
    assert run.info.has_step_times


@pytest.mark.parametrize("waits", [True, False])
@pytest.mark.parametrize("has_launches", [True, False])
def test_steps_after_the_end_of_the_devices_record_do_not_count(waits: bool, has_launches: bool) -> None:
    if not (waits or has_launches):
        pytest.skip("nothing tells which step a kernel is of")
    run = program(range(17), waits=waits, has_launches=has_launches)
    assert counted(run) == list(range(1, 17))
    steps = run.table("steps").set_index("step")
    assert steps["duration_us"].notna().tolist() == [True] * 17 + [False] * 13
    assert run.info.step_time_ms_mean == pytest.approx(1.8 if waits else 1.45)
    (remark,) = run.remarks
    assert "13 of 30 steps" in remark
    assert ("work of 26 launches" in remark) == has_launches
    assert sorted(run.table("hosts")["step"].unique()) == list(range(17))


def test_steps_whose_events_the_profiler_dropped_do_not_count_wherever_they_are() -> None:
    run = program([i for i in range(30) if i not in (5, 6, 20)], complaint=DROPPED)
    assert set(range(1, 29)) - set(counted(run)) == {5, 6, 20}
    assert statuses(run)["/device:GPU:0", "ops"] == ("partial", 54)
    (remark,) = run.remarks
    assert "the profiler dropped events" in remark


def launches(recorded: list[bool], kind: str = "GPU") -> Run:
    """Of a launch a millisecond and, where it was recorded, what it launched; each call also looks at its device."""
    stat, stream = {"GPU": ("correlation_id", "Stream #1"), "TPU": ("run_id", "XLA Modules")}[kind]
    starts = range(0, 1000 * len(recorded), 1000)
    calls = [event("Launch", at, 5, {stat: i}) for i, at in enumerate(starts)]
    looks = [event("GetDevice", at + 6, 1, {stat: 10_000 + i}) for i, at in enumerate(starts)]
    work = [event("jit_f", at + 10, 500, {stat: i}) for i, at in enumerate(starts) if recorded[i]]
    return run_with(threads(calls + looks), plane(f"/device:{kind}:0", line(stream, *work, id=1)))


@pytest.mark.parametrize("kind", ["GPU", "TPU"])
def test_launches_without_work_at_the_end_of_a_capture_are_remarked_on(kind: str) -> None:
    (remark,) = [text for text in launches([True] * 60 + [False] * 40, kind).remarks if "incomplete" in text]
    assert "nothing was recorded of the work of 40 launches" in remark
    assert not [text for text in launches([True] * 100, kind).remarks if "incomplete" in text]


WEAK = {
    "work is missing throughout": [True, False] * 40 + [False] * 40,
    "only the start is missing": [False] * 60 + [True] * 40,
}


@pytest.mark.parametrize("recorded", WEAK.values(), ids=WEAK)
def test_weak_evidence_is_none(recorded: list[bool]) -> None:
    assert not [text for text in launches(recorded).remarks if "incomplete" in text]


@pytest.mark.parametrize("name", [*EACH_KIND, "jax_te"])
def test_nothing_is_lost_in_complete_captures(name: str) -> None:
    run = loaded_run(name)
    assert "partial" not in run.table("recorded")["status"].to_list()
    assert not [text for text in run.remarks if "incomplete" in text]


def test_what_a_program_does_on_the_host_alone_is_not_lost() -> None:
    """Steps on the GPU, then steps of another kind on the host, as of an evaluation there."""
    host, kernels = [], []
    for i in range(20):
        at, on_gpu = PERIOD_US * i, i < 12
        host += [
            event("train" if on_gpu else "eval", at, 1_800, _r=1, step_num=i),
            event("metric/Mean:Mean", at + 9, 1_500),
        ]
        if on_gpu:
            host.append(event("cuLaunchKernel", at + 5, 1, {"correlation_id": i}))
            kernels.append(event("gemm", at + 8, 900, {"correlation_id": i, "kernel_details": "regs:8"}))
    run = run_with(threads(host), plane("/device:GPU:0", line("Stream #1", *kernels, id=1)))
    assert (run.lost_steps, counted(run), run.remarks) == (0, list(range(1, 19)), ())


def test_where_every_step_lost_something_that_is_why_there_is_no_step_time() -> None:
    run = program([*range(9)], steps=24, complaint=DROPPED)
    whole, lost = (load(run.path, steps=chosen) for chosen in ("2:8", "14:20"))
    assert (whole.why_untimed, whole.info.steps_included) == ("", 7)
    assert lost.why_untimed.startswith("no step was recorded as a whole") and not lost.info.has_step_times


def test_the_step_of_a_run_is_unknown_where_that_of_any_host_is() -> None:
    whole, absent = (program(waits=True), program([], waits=True, complaint=NO_CUPTI))
    files = [next(run.path.iterdir()).read_bytes() for run in (whole, absent)]
    run = run_of(*files)
    assert not run.info.has_step_times and not run.tables.has_recorded_devices()
    assert run.why_untimed.startswith("nothing that ran on the GPU was recorded")
    assert run.tables.has_recorded_devices("a") and not run.tables.has_recorded_devices("b")


@pytest.mark.parametrize("message", ["gpu-node-3: 12 TraceMe events were lost", "Detected a slow disk on tpu-worker-7"])
def test_a_hosts_name_is_no_complaint_about_devices(message: str) -> None:
    host = [event("train", 100 * i, 90, _r=1, step_num=i) for i in range(9)] + [
        event("a/MatMul:MatMul", 100 * i + 5, 80) for i in range(9)
    ]
    run = run_of(space(threads(host), hostnames=["tpu-worker-7"], warnings=[message]))
    assert (run.info.device_type, run.info.has_step_times) == ("CPU", True)
