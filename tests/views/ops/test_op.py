"""The view of an op by its name, as from a row of memory: times on device and host, kernels, memory."""

from __future__ import annotations

import pandas as pd
import pytest

from tests.frames.tables import run_with
from tests.frames.test_sparse_cores import sparse_core, tensor_core
from tests.profiles import loaded_run
from tests.views.flat import flat, of_kind, only_pair, pair_of, words
from tests.xspace_builder import U64, meta
from tfcompare import compare
from tfcompare.units import format_value
from tfcompare.views.blocks import Block, Facts, Links, Table
from tfcompare.views.ops import op
from tfcompare.views.xla import view as xla

GPU = ("gpu_filters_512_128", "gpu_filters_16_8")
TRANSFORMERS = ("h100_store_activations", "h100_recompute_activations")


def opened(op_name: str, names: tuple[str, ...]) -> list[Block]:
    return op.details_by_name(pair_of(*names), op_name).blocks


def tables(blocks: list[Block]) -> dict[str, Table]:
    return {block.title: block for block in of_kind(blocks, Table)}


def numbers(blocks: list[Block]) -> tuple[list[str], dict[str, list[str]]]:
    """The header of the first small table, and its rows by their labels."""
    facts = of_kind(blocks, Facts)[0]
    return list(facts.header[1:]), {row[0]: list(row[1:]) for row in facts.rows}


@pytest.mark.parametrize("names", [GPU, GPU[:1]])
def test_an_op_is_shown_with_its_times_and_kernels(names):
    kernels = loaded_run(GPU[0]).table("kernel_stats")
    op_name = str(kernels.loc[kernels["op_name"] != "", "op_name"].iloc[0])
    blocks = opened(op_name, names)
    assert "Kernels" in tables(blocks)
    assert any(text.endswith("on device**") for text in words(blocks))
    assert any("confidence interval" in text for text in words(blocks)) == (len(names) == 2)
    assert ("Candidate" in numbers(blocks)[0]) == (len(names) == 2)


def test_an_op_without_time_says_so():
    assert "No time was recorded for this op." in words(opened("no/such/op", GPU))


XLA = ("tensorflow_filters_128_32", "tensorflow_filters_16_8")
COSTS = ["FLOPs per step", "Bytes accessed per step", "FLOP rate", "Bandwidth", "Intensity"]


def test_an_op_of_a_compiled_program_is_shown_with_what_it_costs():
    header, found = numbers(opened("decoder_inner/Relu", XLA))
    assert set(COSTS) <= set(found)
    runs = [loaded_run(name) for name in XLA]
    rows = [run.table("op_stats").set_index("op_name").loc["decoder_inner/Relu"] for run in runs]
    expected = [format_value(row["flops"] / run.info.step_count, "FLOP") for row, run in zip(rows, runs, strict=True)]
    assert header[:2] == ["Baseline", "Candidate"]
    assert found["FLOPs per step"][:2] == expected
    assert "Bound by" not in found  # no peaks of CPUs are known


def test_what_bounds_an_op_is_shown_where_the_peaks_are_known():
    assert numbers(opened("jit(f)/jit(main)/add", ("jax_tpu",)))[1]["Bound by"] == ["memory"]
    convolution = "jit(forward_3d_conv)/jit(main)/conv_general_dilated"
    both = numbers(opened(convolution, ("jax_conv_legacy", "jax_conv_08")))[1]
    assert both["Bound by"] == ["memory", "memory", "unchanged"]


def test_costs_that_are_unknown_are_not_shown():
    found = numbers(opened("autoencoder_1/image_1/convolution", ("filters_512_128",)))[1]
    assert "Self time per step" in found
    assert not set(COSTS) & set(found)


@pytest.mark.parametrize("names", [("jax_filters_128_32", "jax_filters_16_8"), ("jax_filters_16_8",)], ids=len)
def test_an_op_leads_to_its_instructions_and_one_without_to_none(names: tuple[str, ...]) -> None:
    pair = pair_of(*names)
    rows = pair.instructions()
    op_name = rows["op_name_baseline"].value_counts().drop("", errors="ignore").index[0]
    (link,) = [
        one
        for block in op.details_by_name(pair, op_name).blocks
        if isinstance(block, Links)
        for one in block.links
        if one.view == "xla"
    ]
    options = xla.Options(**link.parameters)
    (table,) = [
        one for one in flat(xla.blocks(pair, options)) if isinstance(one, Table) and one.table.name == "hlo_ops"
    ]
    of_op = (rows["op_name_baseline"] == op_name) | (rows["op_name_candidate"] == op_name)
    assert set(rows.loc[of_op, "hlo_op"]) <= set(table.rows["hlo_op"])
    assert len(table.rows) < len(rows)
    assert all(
        op_name in str(row["op_name_baseline"]) or op_name in str(row["op_name_candidate"])
        for _, row in table.rows.iterrows()
    )
    assert [one.view for block in of_kind(opened("no/such/op", GPU), Links) for one in block.links] == ["timeline"]


def test_an_op_of_a_program_of_sparse_cores_alone_leads_to_no_instructions() -> None:
    gather = meta("%gather.9", "gather.9", program_id=U64(8), symbol_id=U64(9), tf_op="model/embedding/gather:")
    run = run_with(tensor_core(), sparse_core(op=gather))
    blocks = op.details_by_name(only_pair(compare(run, run)), "model/embedding/gather").blocks
    assert [one.view for block in of_kind(blocks, Links) for one in block.links] == ["timeline"]


def test_an_op_tells_the_line_of_the_program_that_made_it() -> None:
    moved = "jit(train_step)/jvp(attention)/add"
    (text,) = [one for one in words(opened(moved, TRANSFORMERS)) if one.startswith("Source: ")]
    assert text == "Source: `record.py:57`", "not the line of the op that it is compared with"
    assert not any(one.startswith("Source: ") for one in words(opened("no/such/op", GPU)))


def test_the_view_of_a_renamed_op_has_the_kernels_of_both_names() -> None:
    rows = pd.DataFrame(
        {
            "op_name": ["a/conv", "a/conv", "b/conv", "a/other", "b/other"],
            "op_name_candidate": ["b/conv", None, "b/conv", "a/conv", "b/other"],
            "status": ["matched", "removed", "added", "matched", "added"],
        }
    )
    assert op.rows_named(rows, "a/conv", "b/conv").index.tolist() == [0, 1, 2]
    assert op.rows_named(rows, "a/conv", None).index.tolist() == [0, 1]
    assert op.rows_named(rows, None, "b/conv").index.tolist() == [0, 2]


def test_memory_at_the_peak_is_shown() -> None:
    peak = loaded_run("filters_512_128").table("memory_peak")
    named = peak[peak["op_name"].isin(loaded_run("filters_512_128").table("op_stats")["op_name"])]
    row = named.sort_values("allocation_bytes").iloc[-1]
    found = tables(opened(str(row["op_name"]), ("filters_512_128",)))["Memory at the peak"]
    assert row["memory_id"] in found.rows["memory_id"].tolist()
