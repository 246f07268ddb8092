"""Removes what frameworks add to names: scopes that only wrap a program, and numbers of traced functions.

StatefulPartitionedCall/model/dense/MatMul      model/dense/MatMul
jit(step)/jit(main)/dense/dot_general           dense/dot_general
while/body/_12/model/dense/MatMul               model/dense/MatMul
cond/then/_5/cond/StatefulPartitionedCall/m/x   m/x
jit(step)/while/body/closed_call/dense/dot      dense/dot
transpose(jvp(jvp()))/checkpoint/attention/dot  transpose(jvp(attention))/dot
__inference_step_701                            __inference_step
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache

from tfcompare.text import NAMES_KEPT

_FUNCTION_NUMBER = re.compile(r"(__(?:inference|forward|backward)_\w*?)_\d+(?=\W|__|$)")
_WRAPPER = re.compile(
    # a tf.function that is called by another one, in a loop with Keras' `steps_per_execution`
    r"(?:(?:(?:while|cond)(?:_\d+)?/)*(?:StatefulPartitionedCall|PartitionedCall)(?:_\d+)?/"
    r"|(?:[^/]+/)*?(?:while(?:_\d+)?/body|cond(?:_\d+)?/(?:then|else))/_\d+/"  # the body of a loop, a branch
    r"|while/body/(?:closed_call/)?"  # the same in JAX, around all of a program: a scan over microbatches
    r"|jit\([^()/]*\)/"  # a function that JAX compiled, and its `main`
    r"|compile_loss/)"  # Keras' loss in `fit`
)
_GRADIENT_OF_GRADIENT = "transpose(jvp(jvp()))/"
_CHECKPOINT = "checkpoint/"
_RECOMPUTED = "/checkpoint/rematted_computation/"
_TWICE = re.compile(r"transpose\(jvp\(([^/]+?)\)\)/((?:[^/]+/)*?)jvp\(\1\)/\2")
_SCOPE_BELOW = re.compile(r"transpose\(jvp\(\)\)/checkpoint/(?!while/|cond/)([^/]+)/")
_OF_JAX = re.compile(r"jit\(|(?:.*/)?(?:jvp|transpose)\(")
_TRANSFORMED = re.compile(r"^((?:\w+\()+)([^()/]+)(\)+)(?=/)")
_TRANSFORMATIONS = re.compile(r"(?:\w+\()+([^()]*)\)+")
_GRADIENTS = re.compile(r"(?:gradient_tape|gradients(?:_\d+)?)/")


@lru_cache(maxsize=NAMES_KEPT)
def plain_type(op_type: str) -> str:
    """An op type without the number of a traced function."""
    return _FUNCTION_NUMBER.sub(r"\1", op_type) if "__" in op_type else op_type


@lru_cache(maxsize=NAMES_KEPT)
def plain_name(name: str) -> str:
    """A name without leading wrapper scopes (the gradient scope stays) and numbers of traced functions, and with the
    gradients of `jax.checkpoint` named as without it."""
    plain = _without_checkpoint(plain_type(name))
    gradients = ""
    while True:
        if wrapper := _WRAPPER.match(plain):
            plain = plain[wrapper.end() :]
        elif not gradients and (found := _GRADIENTS.match(plain)):
            gradients, plain = found[0], plain[found.end() :]
        else:
            return gradients + plain


def is_recomputed(name: str) -> bool:
    """Whether an op computes again for a gradient, below `jax.checkpoint`, what another one computed."""
    return _RECOMPUTED in name


def bare_path(name: str) -> list[str]:
    """The scopes of an op and the op, without wrapper scopes and what transformations of JAX add: `["mlp", "mul"]` of
    `jit(f)/transpose(jvp(jvp()))/checkpoint/rematted_computation/mlp/mul`, and of `jit(f)/transpose(jvp(mlp))/mul`."""
    parts = plain_name(name.rpartition("rematted_computation/")[2]).split("/")
    return [bare for part in parts if (bare := _TRANSFORMATIONS.sub(r"\1", part))]


def _without_checkpoint(name: str) -> str:
    """The name as JAX gives it without `jax.checkpoint`; what is recomputed for a gradient has no such name."""
    if is_recomputed(name) or not _OF_JAX.match(name):
        return name
    name = _TWICE.sub(r"transpose(jvp(\1))/\2", name.replace(_GRADIENT_OF_GRADIENT, "transpose(jvp())/"))
    return _SCOPE_BELOW.sub(r"transpose(jvp(\1))/", name).replace(f"/{_CHECKPOINT}", "/")


def plain_paths(*sides: Iterable[str]) -> dict[str, str]:
    """Maps each name of both sides to its plain name, in which transformations of JAX are scopes of their own; names of
    one side that would collide stay unchanged.

    `jvp(encoder)/enc_0/dot_general` is `jvp()/encoder/enc_0/dot_general`, as JAX wraps only the outermost scope.
    """
    names = [set(side) for side in sides]
    plain = {name: _TRANSFORMED.sub(r"\1\3/\2", plain_name(name)) for side in names for name in side}
    taken = [Counter(plain[name] for name in side) for side in names]
    ambiguous = {path for counts in taken for path, count in counts.items() if count > 1}
    return {name: name if path in ambiguous or not path else path for name, path in plain.items()}
