"""Names of compiled programs, of their instructions, and of the functions that they were compiled from."""

from __future__ import annotations

import re

_ID = re.compile(r"\((\d*)\)$")
_TENSORFLOW_FUNCTION = re.compile(r"a_((?:inference|forward|backward)_.+)_\d+__(?:XlaMustCompile_.*|(?:\.\d+)?$)")
_JAX_PREFIX = re.compile(r"(?:jit|pjit|pmap)_")
_LAMBDA = re.compile(r"_lambda_?")
_NUMBERS_AT_END = re.compile(r"(?:\.\d+)+$")


def plain_program(program: str) -> str:
    """A program's name without its id, and without what TensorFlow adds to the name of a function.

    `a_inference_step_114__XlaMustCompile_true_config_proto_…_.4(0)` is `inference_step`.
    """
    name = _ID.sub("", program)
    function = _TENSORFLOW_FUNCTION.match(name)
    return function[1] if function else name


def plain_instruction(name: str) -> str:
    """An instruction's name without the numbers at its end, which the compiler gives anew: `fusion.12` is `fusion`."""
    return _NUMBERS_AT_END.sub("", name)


def function_name(program: str) -> str:
    """The function that a program was compiled from, as its source names it: `jit_step(17)` is `step`."""
    name = plain_program(program).removeprefix("inference_")
    name = _JAX_PREFIX.sub("", name, count=1) if _JAX_PREFIX.match(name) else name
    return "<lambda>" if _LAMBDA.fullmatch(name) else name
