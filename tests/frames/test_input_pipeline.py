"""`input_pipeline` by hand, and against xprof's input op table on every profile."""

from __future__ import annotations

import pandas as pd
import pytest

from tests import xprof_oracle
from tests.frames.tables import thorough_but
from tests.profiles import ALL_RUNS, run_path
from tests.xspace_builder import Event, Stats, event, line, plane, space
from tfcompare.frames.host import build
from tfcompare.schema.input import (
    ENQUEUING,
    IN_ADVANCE,
    INPUT_CATEGORIES,
    INPUT_PIPELINE,
    ON_DEMAND,
    OTHER_INPUT,
    PREPROCESSING,
)
from tfcompare.sources.logdir import find_run
from tfcompare.tables.frames import frame_of_hosts
from tfcompare.tables.input_pipeline import category, input_pipeline
from tfcompare.xspace import XSpace, parse, read

XPROFS_WORDS = {
    "Demanded file read": ON_DEMAND,
    "Advanced file read": IN_ADVANCE,
    "Preprocessing": PREPROCESSING,
    "Enqueue": ENQUEUING,
    "Unknown": OTHER_INPUT,
}
XPROFS_SUMS = {
    "demanded_file_read_us": ON_DEMAND,
    "advanced_file_read_us": IN_ADVANCE,
    "preprocessing_us": PREPROCESSING,
    "enqueue_us": ENQUEUING,
}


def input_of(*threads: list[Event], device: list[Event] | None = None) -> pd.DataFrame:
    lines = [line(f"thread {i}", *events, id=i + 1) for i, events in enumerate(threads)]
    planes = [plane("/host:CPU", *lines)]
    if device is not None:
        planes.append(plane("/device:GPU:0", line("Stream #1", *device)))
    return table_of(parse(space(*planes)), "a")


def table_of(recorded: XSpace, host: str) -> pd.DataFrame:
    hosts = [build(recorded, host, "")]
    return input_pipeline(frame_of_hosts("op_parts", hosts), frame_of_hosts("op_totals", hosts))


def as_text(frame: pd.DataFrame) -> list[str]:
    return frame.drop(columns="host").to_csv(index=False, header=False).splitlines()


@pytest.mark.parametrize(
    ("op_name", "op_type", "expected"),
    [
        ("Iterator::Root::Batch::TFRecord", "Dataset", ON_DEMAND),
        ("Iterator::FixedLengthRecord", "Dataset", ON_DEMAND),
        ("Iterator::Root::FlatMap[0]::SSTable", "Dataset", ON_DEMAND),
        ("Iterator::Root::Prefetch::TFRecord", "Dataset", IN_ADVANCE),
        ("Iterator::Root::ParallelMapV2::RecordIO", "Dataset", IN_ADVANCE),
        ("Iterator::Root::MemoryReader::TFRecord", "Dataset", IN_ADVANCE),
        ("Iterator::Root::ParallelInterleaveV4[1]::TFRecord", "Dataset", ON_DEMAND),
        ("Iterator::Root::TFRecordV2", "Dataset", PREPROCESSING),
        ("infeed", "InfeedEnqueueTuple", ENQUEUING),
        ("MemcpyHToD", "MemcpyHToD", ENQUEUING),
        ("load", "Read", ON_DEMAND),
        ("crop", "preprocessing", PREPROCESSING),
        ("send", "Enqueue", ENQUEUING),
        ("what", "unknown", OTHER_INPUT),
        ("IteratorGetNext", "IteratorGetNext", None),
    ],
)
def test_what_an_op_does_follows_from_its_name_and_type(op_name: str, op_type: str, expected: str | None) -> None:
    assert category(op_name, op_type) == expected


def test_times_are_added_up_by_op() -> None:
    frame = input_of(
        [
            event("Iterator::Root::Map", 0, 10),
            event("Iterator::Root::Map::TFRecord", 2, 3),
            event("model/dense:MatMul", 20, 50),
            event("IteratorGetNext:IteratorGetNext", 80, 1),
        ],
        [event("Iterator::Root::Map", 0, 20), event("feed:InfeedEnqueue", 5, 1)],
    )
    assert as_text(frame) == [
        "Iterator::Root::Map,preprocessing,2,30.0,26.0",
        "Iterator::Root::Map::TFRecord,reading on demand,1,3.0,3.0",
        "feed,enqueuing to the device,1,1.0,1.0",
    ]


def test_stages_that_a_program_marks_itself_are_ops_of_their_own_category() -> None:
    stage: Stats = {"_ipl_stage_name": "load"}
    events = [
        ("load", 0, 9, "read"),
        ("crop", 10, 4, "Preprocessing"),
        ("crop", 20, 1, "Preprocessing"),
        ("idle", 30, 4, "coffee"),
    ]
    frame = input_of(
        [
            event(name, at, took, stage | {"_ipl_stage_id": at, "_ipl_stage_cat": kind})
            for name, at, took, kind in events
        ]
    )
    assert as_text(frame) == ["load,reading on demand,1,9.0,9.0", "crop,preprocessing,2,5.0,5.0"]


def test_copies_on_a_device_are_not_the_hosts_input() -> None:
    frame = input_of([event("MemcpyHToD", 0, 2)], device=[event("MemcpyHToD", 0, 50)])
    assert as_text(frame) == ["MemcpyHToD,enqueuing to the device,1,2.0,2.0"]


def test_without_input_ops_the_table_is_empty() -> None:
    frame = input_of([event("model/dense:MatMul", 20, 50)])
    pd.testing.assert_frame_equal(frame, INPUT_PIPELINE.empty(), check_index_type=False)


@pytest.mark.parametrize("name", thorough_but(ALL_RUNS, "tf_cpu_zoo"))
def test_the_table_is_xprofs(name: str) -> None:
    files = [file.path for file in find_run(run_path(name)).files]
    tables = xprof_oracle.tool_data("input_pipeline_analyzer", *files)
    (table,) = (t for t in tables if "opName" in [c["id"] for c in t["cols"]])  # type: ignore[attr-defined]
    ours = pd.concat([table_of(read(file).space, file.stem) for file in files])
    ours = ours.groupby(["op_name", "category"])[["occurrences", "total_time_us", "self_time_us"]].sum()
    rows = [[cell["v"] for cell in row["c"]] for row in table["rows"]]
    theirs = pd.DataFrame(rows, columns=[c["id"] for c in table["cols"]])
    theirs = theirs.assign(op_name=theirs["opName"], category=theirs["category"].map(XPROFS_WORDS))
    theirs = theirs.set_index(["op_name", "category"])
    assert set(ours.index) == set(theirs.index)
    theirs = theirs.loc[ours.index]
    assert ours["occurrences"].to_list() == theirs["count"].to_list()
    assert ours["total_time_us"].to_list() == pytest.approx((theirs["timeInMs"] * 1000).to_list(), rel=1e-6)
    assert ours["self_time_us"].to_list() == pytest.approx((theirs["selfTimeInMs"] * 1000).to_list(), rel=1e-6)
    by_category = ours.groupby("category")["self_time_us"].sum().reindex(INPUT_CATEGORIES, fill_value=0.0)
    for key, words in XPROFS_SUMS.items():
        assert by_category[words] == pytest.approx(float(table["p"][key]), abs=0.001)
