"""Machine code as one block: what can be laid out so, and that it gives what LLVM's own linker gives."""

from __future__ import annotations

import mmap
import os
import platform
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import llvmlite.binding as llvm
import numpy as np
import numpy.typing as npt
import pytest

import tfcompare
from tfcompare.xspace import compilation, flat_code, kept_code, machine_code

can_be_flat = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64", reason="only ELF for x86-64 is laid out flat"
)


def object_of(program: str, triple: str | None = None) -> bytes:
    """What LLVM makes of a program in its own language."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple(triple) if triple else llvm.Target.from_default_triple()
    machine = target.create_target_machine(reloc="pic", codemodel="small")
    module = llvm.parse_assembly(program)
    module.triple = triple or module.triple
    return bytes(machine.emit_object(module))


ANSWER = "define i32 @answer() { ret i32 42 }"
WITH_OTHERS = {
    "a function of a library": "declare i32 @rand() define i32 @answer() { %n = call i32 @rand() ret i32 %n }",
    "a variable": "@n = global i32 42 define i32 @answer() { %n = load i32, ptr @n ret i32 %n }",
    "an address": "define i32 @other() { ret i32 1 } @n = constant ptr @other "
    "define ptr @answer() { %n = load ptr, ptr @n ret ptr %n }",
}


@can_be_flat
def test_a_function_that_needs_nothing_else_can_be_flat() -> None:
    code = flat_code.flat(object_of(ANSWER), "answer")
    assert code is not None
    assert 0 <= code.entry < len(code.content)


@can_be_flat
@pytest.mark.parametrize("needed", WITH_OTHERS)
def test_what_needs_more_than_itself_is_left_to_the_linker(needed: str) -> None:
    assert flat_code.flat(object_of(WITH_OTHERS[needed]), "answer") is None


@pytest.mark.parametrize("triple", ["aarch64-unknown-linux-gnu", "arm64-apple-macosx", "x86_64-pc-windows-msvc"])
def test_so_is_code_for_other_processors_and_systems(triple: str) -> None:
    try:
        content = object_of(ANSWER, triple)
    except RuntimeError:
        pytest.skip(f"this LLVM makes no code for {triple}")
    assert flat_code.flat(content, "answer") is None


@can_be_flat
def test_a_file_that_begins_with_something_else_is_not_run(tmp_path: Path) -> None:
    code = flat_code.flat(object_of(ANSWER), "answer")
    assert code is not None
    file = tmp_path / "kept"
    for content in (code.content[:-1], b"\0" * len(code.content), b""):
        file.write_bytes(content)
        assert flat_code.address(file, code) is None
    assert flat_code.address(tmp_path / "none", code) is None
    file.write_bytes(code.content + b"more")
    assert flat_code.address(file, code)


@pytest.fixture
def loop(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[], compilation.Compiled]:
    """The same loop in each call as in a process of its own, its code kept in `tmp_path`."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))

    def of_new_process() -> compilation.Compiled:
        made = compilation.compiled(_fill_and_choose)
        assert isinstance(made, compilation.Compiled)
        return made

    of_new_process()(*arguments(0))
    return of_new_process


def arguments(number: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8], int]:
    return np.arange(50), np.full(1000, 7, np.uint8), number


@can_be_flat
def test_flat_code_gives_what_the_linker_gives(
    monkeypatch: pytest.MonkeyPatch, loop: Callable[[], compilation.Compiled]
) -> None:
    """With a jump table, and zeros written by the hundred, for which LLVM calls memset."""
    with monkeypatch.context() as patched:
        patched.setattr(machine_code, "link", None)
        flat = loop()
        by_block = [(flat(*given), given[1].tolist()) for given in map(arguments, range(-1, 9))]
    monkeypatch.setattr(flat_code, "address", lambda *_: None)
    linked = loop()
    by_linker = [(linked(*given), given[1].tolist()) for given in map(arguments, range(-1, 9))]
    assert by_block == by_linker
    assert by_block == [(_fill_and_choose(*given), given[1].tolist()) for given in map(arguments, range(-1, 9))]


def test_where_nothing_can_be_mapped_to_run_the_linker_does_it(
    monkeypatch: pytest.MonkeyPatch, loop: Callable[[], compilation.Compiled]
) -> None:
    def refused(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(mmap, "mmap", refused)
    monkeypatch.setattr(machine_code, "translate", None)
    assert loop()(*arguments(3)) == _fill_and_choose(*arguments(3))


@can_be_flat
def test_every_loop_of_the_reader_is_flat() -> None:
    """Neither numba nor LLVM is loaded to read a profile whose loops are kept."""
    read = """
        import sys
        from tfcompare.xspace import parse
        parse(bytes.fromhex("0a00"))
        print([name for name in ("llvmlite", "numba", "elftools") if name in sys.modules])
    """
    environment = {**os.environ, "PYTHONPATH": str(Path(tfcompare.__file__).parents[1])}
    call = [sys.executable, "-c", textwrap.dedent(read)]
    for _ in range(2):
        done = subprocess.run(call, env=environment, capture_output=True, text=True, timeout=300)
        assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "[]\n"


@can_be_flat
def test_what_is_kept_can_be_told_again(loop: Callable[[], compilation.Compiled], tmp_path: Path) -> None:
    (file,) = tmp_path.iterdir()
    assert loop().is_at_hand
    kept = kept_code.read(file.stem)
    assert kept is not None
    code = machine_code.MachineCode.from_bytes(kept.code)
    assert code.flat is not None
    assert code.to_bytes() == kept.code
    assert kept.code.startswith(code.flat.content)
    for damaged in (kept.code[1:], kept.code + b"\0", b""):
        with pytest.raises(ValueError):
            machine_code.MachineCode.from_bytes(damaged)


def _fill_and_choose(numbers: npt.NDArray[np.int64], bytes_: npt.NDArray[np.uint8], which: int) -> int:
    for i in range(bytes_.size // 2):
        bytes_[i] = 0
    if which == 0:
        return int(numbers[3])
    if which == 1:
        return int(numbers[7]) * 5
    if which == 2:
        return int(numbers[1]) - 90
    if which == 3:
        return int(numbers[4]) + 12
    if which == 4:
        return int(numbers[40]) ^ 13
    if which == 5:
        return int(numbers[41]) | 64
    return -1
