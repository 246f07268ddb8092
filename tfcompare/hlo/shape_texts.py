"""The arrays that instructions work on, from their texts: those of many instructions at once."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

_PARTS = (
    r"^%?\S+ = \(?(?P<result>[a-z]\w*\[[0-9,]*\]).*? [a-z][a-z0-9\-]*\((?P<operands>.*?)\)"
    r"(?:, [a-z_]+=(?P<attributes>.*))?$"
)
"""Of an instruction as XLA writes it; a result that is a tuple stands for its first array, since the further ones are
scratch memory of a library's call, or other results of a fusion."""
_UP_TO_ARRAY = r"[^;]*?\b([a-z][a-z0-9]*\[[0-9,]*\])"
_AFTER_LAST_ARRAY = r"(^|;)[^;]*$"
_LABELS = r"dim_labels=(?P<labels>[a-z0-9]+_[a-z0-9]+->[a-z0-9]+)"

_BACKWARD = "$convBackward"
"""In the target of cuDNN's calls for a convolution's gradients, whose operands have other places than labels say."""


def arrays_of(expressions: pa.Array) -> pa.Table:
    """For each text of an instruction: `result`, the shape of its first result such as `f32[8,128]`, its
    `operands`, the shapes of those that it lists, each followed by `;`, and `labels` of the dimensions of a convolution
    such as `b01f_01io->b01f`. Null for a text that is none, and for `labels` of others; arrays of tuples are listed one
    by one."""
    parts = pc.extract_regex(expressions, _PARTS)
    result, listed = (pc.struct_field(parts, name) for name in ("result", "operands"))
    listed = pc.replace_substring_regex(listed, _UP_TO_ARRAY, r"\1;")
    operands = pc.replace_substring_regex(listed, _AFTER_LAST_ARRAY, r"\1")
    labels = pc.struct_field(pc.extract_regex(expressions, _LABELS), "labels")
    labels = pc.if_else(pc.match_substring(expressions, _BACKWARD), None, labels)
    return pa.table({"result": result, "operands": operands, "labels": labels})
