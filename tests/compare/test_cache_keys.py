"""What is kept with a comparison is kept under one name each: two modules with the same name would get each other's."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import tfcompare

PACKAGE = Path(tfcompare.__file__).parent


def keys(tree: ast.AST) -> Iterator[object]:
    """The constants that are keys, or begin one, in `x.cached(key, …)` and `partial(x.cached, key, …)`."""
    for call in ast.walk(tree):
        if isinstance(call, ast.Call):
            every = [call.func, *call.args]
            for function, key in pairwise(every):
                if isinstance(function, ast.Attribute) and function.attr == "cached":
                    first = key.elts[0] if isinstance(key, ast.Tuple) else key
                    if isinstance(first, ast.Constant):
                        yield first.value


def test_no_two_modules_keep_different_things_under_one_key() -> None:
    modules = defaultdict(set)
    for path in PACKAGE.rglob("*.py"):
        for key in keys(ast.parse(path.read_text(encoding="utf-8"))):
            modules[key].add(path.relative_to(PACKAGE).as_posix())
    assert len(modules) > 20, "the keys are found"
    assert {key: found for key, found in modules.items() if len(found) > 1} == {}
