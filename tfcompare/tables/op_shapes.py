"""`op_shapes`: the arrays that ops make and use, and what their dimensions are where the op tells."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Set
from functools import partial

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from tfcompare.hlo.shape_texts import arrays_of
from tfcompare.schema import OP_SHAPES

RESULT = 0
"""The number of a result; operands are counted from 1."""
_IMAGE, _KERNEL = 1, 2
"""The numbers of a convolution's operands."""
_OUTPUT = "output"
"""The region of an allocation that is a result of the op; others are its scratch memory, or last longer than it."""
_GRADIENT = re.compile(r"(^|/)gradients?(_tape|_\d+)?/|transpose\(")
"""In the name of an op that computes a gradient: there, dimensions of a convolution have each other's roles."""
_MOST_DIMENSIONS, _LONGEST_SIZE = 64, 18  # of XLA's arrays; digits of a 64-bit size
_SHAPE = r"\[[\d,]*\]"
_TYPE_SIZE = re.compile(r"([a-z]+)(\d+)")
_LETTERS = {"int": "s", "uint": "u", "float": "f", "complex": "c"}
_TYPES = {"float": "f32", "double": "f64", "half": "f16", "bfloat16": "bf16", "bool": "pred"}
_OPERAND = rf"^([a-z]\w*)({_SHAPE})$"  # TensorFlow tells none of references, resources and variants
_MOST_OPERANDS = 64  # of which shapes are told: ops with more, such as sums of gradients, have like ones
_HANDLES = ("resource", "variant", "INVALID")  # of what a tensor of another type refers to
_ROLES = ({"b": "batch", "f": "channels"}, {"i": "channels", "o": "filters"}, {"b": "batch", "f": "filters"})
"""What XLA's letters stand for in the image, kernel and result of a forward convolution."""
_FEATURES = "features"
"""The last dimension of products and embeddings; a width is that of an image."""
_SIDES = {1: ("width",), 2: ("height", "width"), 3: ("depth", "height", "width")}
_CONVOLUTIONS = ("Conv2D", "_FusedConv2D", "Conv2DBackpropInput")  # the last one is a transposed one outside gradients
_OF_KERNEL = "Conv2DBackpropFilter"
_PRODUCTS = ("MatMul", "_FusedMatMul", "dot_general", "dot")
_GATHERS = ("GatherV2", "ResourceGather", "Gather", "gather")


def op_shapes(
    memory: pa.Table, instructions: pd.DataFrame, parts: pd.DataFrame, operands: pd.DataFrame
) -> pd.DataFrame:
    """Columns of `schema.OP_SHAPES` of some hosts, from their tables `hlo_ops`, `op_parts` and `op_operands`, and the
    rows of `memory_events` with their `host`."""
    named = instructions[(instructions["op_name"] != "") & (instructions["expression"] != "")]
    longest = named.sort_values("self_time_us", ascending=False, kind="stable").drop_duplicates(["host", "op_name"])
    compiled = tensors_of(longest["expression"])
    compiled = compiled.assign(dimensions=dimensions_of(compiled, longest["op_name"]))
    ran = longest[["host", "op_name", "executions"]].iloc[compiled["row"]].reset_index(drop=True)
    compiled = compiled.assign(host=ran["host"], op_name=ran["op_name"], occurrences=ran["executions"])
    rows = pd.concat([compiled, _allocated(memory, parts), _recorded(operands)], ignore_index=True)
    rows = rows.drop_duplicates(["host", "op_name", "number"])
    rows = rows.sort_values(["host", "op_name", "number"], kind="stable", ignore_index=True)
    operand = "operand " + rows["number"].astype("str")
    return OP_SHAPES.conform(rows.assign(tensor=operand.where(rows["number"] != RESULT, "result")))


def tensors_of(expressions: pd.Series) -> pd.DataFrame:
    """The arrays of instructions, given their texts: `row` (a position among these), `number` (`RESULT`, or the
    operand's), `shape` and the `labels` of a convolution's dimensions, row by row; texts that are none have none."""
    found = arrays_of(pa.array(expressions, pa.string()))
    result, listed, labels = (
        pc.fill_null(found[name], "").combine_chunks() for name in ("result", "operands", "labels")
    )
    operands = pc.split_pattern(listed, ";")
    row = pc.list_parent_indices(operands).to_numpy()
    rows = pd.DataFrame(
        {
            "row": np.concatenate([np.arange(len(result)), row]),
            "number": np.concatenate(
                [np.full(len(result), RESULT), np.arange(len(row)) - np.searchsorted(row, row) + 1]
            ),
            "shape": pa.concat_arrays([result, pc.list_flatten(operands)]).to_numpy(zero_copy_only=False),
        }
    ).astype({"shape": "str"})
    rows = rows[rows["shape"] != ""].sort_values(["row", "number"], kind="stable", ignore_index=True)
    return rows.assign(labels=pd.Series(labels.to_numpy(zero_copy_only=False), dtype="str").to_numpy()[rows["row"]])


def dimensions_of(tensors: pd.DataFrame, op_names: pd.Series) -> pd.Series:
    """What the dimensions of `tensors_of` instructions are, as in `schema.OP_SHAPES`, given the ops of all of these."""
    op_name = pd.Series(op_names.to_numpy()[tensors["row"]], tensors.index, dtype="str")
    leaf = op_name.str.rsplit("/", n=1).str[-1]
    leaf = leaf.where(leaf.isin((*_PRODUCTS, *_GATHERS)) & (tensors["number"] == RESULT), "")
    images = tensors[(tensors["labels"] != "") & (tensors["number"] == _IMAGE)].set_index("row")["shape"]
    image = tensors["row"].map(images).astype("str").fillna("")
    told = tensors[["labels", "number", "shape"]].assign(op_name=op_name, leaf=leaf, image=image)
    told = told[(told["labels"] != "") | (leaf != "")]
    return _for_each(told, _of_tensor).reindex(tensors.index, fill_value="")


def _for_each(rows: pd.DataFrame, dimensions_of: Callable[..., str]) -> pd.Series:
    """The dimensions of each row, computed once for equal ones: hosts have the same ops."""
    cells = list(zip(*(rows[name].tolist() for name in rows), strict=True))
    known = {row: dimensions_of(*row) for row in dict.fromkeys(cells)}
    return pd.Series([known[row] for row in cells], rows.index, dtype="str")


def _of_tensor(labels: str, number: int, shape: str, op_name: str, leaf: str, image: str) -> str:
    return _of_convolution(op_name, labels, number, shape, image) if labels else _of_result(op_name, leaf, shape)


def sizes_of(shape: str) -> tuple[int, ...]:
    """The dimensions of an array such as `f32[3,3,512,128]`; none of one with more or larger ones than arrays have."""
    sizes = shape.partition("[")[2].removesuffix("]").split(",", _MOST_DIMENSIONS)
    are_sizes = all(size.isdecimal() and len(size) <= _LONGEST_SIZE for size in sizes)
    return tuple(map(int, sizes)) if are_sizes else ()


def _of_convolution(op_name: str, labels: str, number: int, shape: str, of_image: str) -> str:
    """The dimensions of the image, kernel (the operands 1 and 2) or result of a convolution with these labels. The
    kernel of a grouped one has the channels of a group, which are no number of channels to a reader."""
    places = (2, 0, 1)  # of result, image and kernel in the labels
    if number >= len(places) or _GRADIENT.search(op_name):
        return ""
    image, _, others = labels.partition("_")
    kernel, _, result = others.partition("->")
    letters = (image, kernel, result)[places[number]]
    sides = _SIDES.get(len(letters) - 2, ())
    roles = _ROLES[places[number]] | {str(side): name for side, name in enumerate(sides)}
    if number == _KERNEL and _size(kernel, "i", shape) != _size(image, "f", of_image):
        roles.pop("i")
    return ",".join(roles.get(letter, str(place)) for place, letter in enumerate(letters))


def _size(letters: str, letter: str, shape: str) -> int | None:
    """The size of the dimension with that letter; None of a shape that does not fit."""
    sizes, place = sizes_of(shape), letters.find(letter)
    return sizes[place] if len(sizes) == len(letters) and place >= 0 else None


def _of_result(op_name: str, op_type: str, shape: str, *, is_transposed: bool = False) -> str:
    """The dimensions of an op's result by its type; `is_transposed`: of the gradient of a transposed convolution."""
    sizes = sizes_of(shape)
    if op_type == _OF_KERNEL and len(sizes) == 4:
        return "height,width,filters,channels" if is_transposed else "height,width,channels,filters"
    if _GRADIENT.search(op_name):
        return ""
    if op_type in _CONVOLUTIONS and len(sizes) == 4:
        _, second, third, last = sizes  # images are square more often than not; of others the layout is unknown
        if second == third != last:
            return "batch,height,width,filters"
        return "batch,filters,height,width" if third == last != second else "batch,1,2,3"
    if op_type in _PRODUCTS and len(sizes) == 2:
        return f"0,{_FEATURES}"
    is_embedding = op_type in _GATHERS and (op_type == "ResourceGather" or "embed" in op_name.lower())
    return f"batch,sequence,{_FEATURES}" if is_embedding and len(sizes) == 3 else ""


def _allocated(memory: pa.Table, parts: pd.DataFrame) -> pd.DataFrame:
    """The result of each op of each host that it allocated most often, of several the largest."""
    names = ["host", "op_name", "data_type", "shape"]
    is_result = pc.and_(memory["is_allocation"], pc.equal(memory["region_type"], _OUTPUT))
    counts = memory.select(names).filter(is_result).unify_dictionaries().group_by(names).aggregate([([], "count_all")])
    declared = pa.schema([*((name, pa.string()) for name in names), ("count_all", pa.int64())])
    rows: pd.DataFrame = counts.select(declared.names).cast(declared).to_pandas()
    rows = rows.rename(columns={"count_all": "occurrences"})
    rows = rows[(rows["op_name"] != "") & ~rows["data_type"].isin(_HANDLES) & rows["shape"].str.fullmatch(_SHAPE)]
    elements = {shape: math.prod(map(float, sizes_of(shape))) for shape in rows["shape"].unique()}
    types = {name: _xla_type(name) for name in rows["data_type"].unique()}
    rows = rows.assign(elements=rows["shape"].map(elements), shape=rows["data_type"].map(types) + rows["shape"])
    order = ["host", "op_name", "occurrences", "elements", "shape"]
    rows = rows.sort_values(order, ascending=[True, True, False, False, True], kind="stable")
    rows = rows.drop_duplicates(["host", "op_name"]).reset_index(drop=True)
    of_type = parts.drop_duplicates("op_name").set_index("op_name")["op_type"]
    told = pd.DataFrame({"op_name": rows["op_name"], "op_type": rows["op_name"].map(of_type), "shape": rows["shape"]})
    told = told[told["op_type"].isin((*_CONVOLUTIONS, _OF_KERNEL, *_PRODUCTS, *_GATHERS))]
    transposed = set(of_type.index[of_type == "Conv2DBackpropInput"])
    dimensions = _for_each(told, partial(_of_allocated, transposed)).reindex(rows.index, fill_value="")
    return rows[["host", "op_name", "shape", "occurrences"]].assign(number=RESULT, dimensions=dimensions)


def _recorded(operands: pd.DataFrame) -> pd.DataFrame:
    """The operands with which each op of each host ran most often."""
    order = ["host", "op_name", "occurrences", "operands"]
    rows = operands.sort_values(order, ascending=[True, True, False, True], kind="stable")
    rows = rows.drop_duplicates(["host", "op_name"])[["host", "op_name", "occurrences"]].assign(
        shape=rows["operands"].str.removeprefix("(").str.removesuffix(")").str.split(";", n=_MOST_OPERANDS)
    )
    rows = rows.explode("shape")
    rows = rows.assign(number=rows.groupby(level=0).cumcount() + 1)
    arrays = rows["shape"].astype("str").str.extract(_OPERAND)
    rows = rows.assign(type=arrays[0], shape=arrays[1])
    rows = rows[arrays[0].notna() & (rows["number"] <= _MOST_OPERANDS)]
    types = {name: _xla_type(name) for name in rows["type"].unique()}
    rows = rows.assign(shape=rows["type"].map(types) + rows["shape"], dimensions="").reset_index(drop=True)
    return rows.drop(columns="type")


def _of_allocated(transposed: Set[str], op_name: str, op_type: str, shape: str) -> str:
    forward = _GRADIENT.sub("", op_name).removesuffix(f"/{_OF_KERNEL}")
    return _of_result(op_name, op_type, shape, is_transposed=forward in transposed)


def _xla_type(data_type: str) -> str:
    """`f32` for TensorFlow's `float`; its own name for types that XLA has not."""
    if data_type in _TYPES:
        return _TYPES[data_type]
    found = _TYPE_SIZE.fullmatch(data_type)
    return f"{_LETTERS[found[1]]}{found[2]}" if found and found[1] in _LETTERS else data_type
