"""The arrays in the texts of instructions."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tfcompare.hlo.shape_texts import arrays_of

CONVOLUTION = (
    "%conv.1 = (f32[128,32,32,3], u8[2171027]) custom-call(f32[128,32,32,512] %get-tuple-element, f32[3,3,3,512] %w), "
    'custom_call_target="__cudnn$conv{way}", dim_labels=b01f_o01i->b01f'
)


@pytest.mark.parametrize(
    ("text", "result", "operands", "labels"),
    [
        ("%p = f32[] parameter(0)", "f32[]", "", None),
        (
            "%sum = bf16[8] fusion(f32[8,4] %x, s32[] %n), kind=kInput, calls=%f",
            "bf16[8]",
            "f32[8,4];s32[];",
            None,
        ),
        (
            CONVOLUTION.format(way="Forward"),
            "f32[128,32,32,3]",
            "f32[128,32,32,512];f32[3,3,3,512];",
            "b01f_o01i->b01f",
        ),
        (
            CONVOLUTION.format(way="BackwardInput"),  # its labels are of other places than those of its operands
            "f32[128,32,32,3]",
            "f32[128,32,32,512];f32[3,3,3,512];",
            None,
        ),
        (
            "%f = bf16[8,128]{1,0:T(8,128)(2,1)S(1)} fusion((f32[2]{0}, s32[]) %t, bf16[8]{0} %p), kind=kLoop",
            "bf16[8,128]",
            "f32[2];s32[];bf16[8];",
            None,
        ),
        ("no instruction", None, None, None),
        ("", None, None, None),
    ],
)
def test_arrays_of_an_instruction(text: str, result: str | None, operands: str | None, labels: str | None) -> None:
    assert arrays_of(pa.array([text])).to_pylist() == [{"result": result, "operands": operands, "labels": labels}]
