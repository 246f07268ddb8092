"""Names of programs and of their functions."""

from __future__ import annotations

import pytest

from tfcompare.hlo.names import function_name, plain_instruction, plain_program

MUST = "__XlaMustCompile_true_config_proto_1356_executor_type_1116_.2"


@pytest.mark.parametrize(
    ("program", "plain", "function"),
    [
        ("jit_step(17)", "jit_step", "step"),
        ("jit__psum(9646411105960254074)", "jit__psum", "_psum"),
        ("jit__lambda(34)", "jit__lambda", "<lambda>"),
        ("jit__lambda_", "jit__lambda_", "<lambda>"),
        ("pmap_jit_f", "pmap_jit_f", "jit_f"),
        (f"a_inference_comp_15{MUST}(0)", "inference_comp", "comp"),
        ("a_inference_one_step_on_data_558__.6(62)", "inference_one_step_on_data", "one_step_on_data"),
        (f"a_backward_comp_15{MUST}(0)", "backward_comp", "backward_comp"),
        ("a_inference_comp", "a_inference_comp", "a_inference_comp"),
        ("module", "module", "module"),
        ("", "", ""),
    ],
)
def test_names(program: str, plain: str, function: str) -> None:
    assert (plain_program(program), function_name(program)) == (plain, function)


def test_numbers_at_the_end_of_an_instruction_are_left_out() -> None:
    names = ["fusion.12", "copy.1.2", "negate.remat", "p0", "v1.2x", ""]
    assert list(map(plain_instruction, names)) == ["fusion", "copy", "negate.remat", "p0", "v1.2x", ""]
