"""`compilations` of profiles written by hand, in the form that JAX and TensorFlow record them, and of a TPU."""

from __future__ import annotations

import numpy as np
import pytest

from tests.frames.tables import rows, run_with, threads
from tests.hlo.builder import F32, computation, instruction, metadata, parameter, program
from tests.profiles import loaded_run
from tests.xspace_builder import Event, Plane, event, integer, line, plane, space
from tfcompare.frames.hlo.compilations import _is_within_another
from tfcompare.run import Run
from tfcompare.xspace import parse

TWO_SHAPES = "f32[8,4]; f32[9,4]"


def programs(**shapes: tuple[int, ...]) -> Plane:
    """The plane with a program of each name and id (`jit_f_7` is `jit_f(7)`), whose parameter has that shape."""
    protos = {}
    for key, shape in shapes.items():
        name, _, number = key.rpartition("_")
        parameters = parameter("w", F32[128, 64]), parameter("x", F32[shape], 1)
        body = computation(1, *parameters, instruction("n", "negate", F32[shape], "x"))
        protos[f"{name}({number})"] = program(body, name=name, others=integer(6, 1))
    return metadata(protos)


def call(name: str, at: float, took: float) -> list[Event]:
    """A call of a function that `jax.jit` made, which JAX records twice."""
    return [event(f"PjitFunction({name})", at, took), event(f"PjitFunction({name})", at, took)]


def found(run: Run) -> list[str]:
    table = run.table("compilations")
    columns = ("function", "phase", "occurrences", "total_time_us", "longest_us", "programs", "shapes")
    return [row.strip() for row in rows(table, *columns)]


def test_jax_compiles_a_function_for_two_shapes() -> None:
    """The compiler works on a thread of its own, within the time of the event on Python's thread."""
    python, pool = [], []
    for at, took in ((0, 100), (500, 40)):
        python += [*call("f", at, took + 50), event("lower_sharding_computation", at + 5, 10)]
        python += [event("backend_compile_and_load", at + 20, took)]
        pool += [event("PjRtCpuClient::Compile", at + 21, took - 3)]
        pool += [event("CpuCompiler::RunBackend", at + 22, took - 5, {"name": "jit_f"})]
        pool += [event("CpuCompiler::CompileCpuExecutable", at + 23, took - 8, {"name": "jit_f"})]
    python += call("f", 900, 5)
    run = run_with(threads(python, pool), programs(jit_f_9=(9, 4), jit_f_7=(8, 4)))
    assert found(run) == [f"f compiling 2 140 100 2 {TWO_SHAPES}", f"f lowering 2 20 10 2 {TWO_SHAPES}"]


def test_what_a_traced_function_calls_is_traced_with_it_but_compiled_for_itself() -> None:
    python = [
        *call("outer", 0, 100),
        event("trace_to_jaxpr_dynamic", 1, 60),
        *call("inner", 2, 20),
        event("trace_to_jaxpr_dynamic", 3, 10),
        *call("add", 30, 20),
        event("backend_compile", 32, 15),
        event("backend_compile", 70, 25),
    ]
    assert found(run_with(threads(python))) == [
        "outer tracing 1 60 60 0",
        "outer compiling 1 25 25 0",
        "add compiling 1 15 15 0",
    ]


def test_a_program_from_a_cache_on_disk_is_lowered_and_not_compiled() -> None:
    python = [*call("f", 0, 90), event("lower_sharding_computation", 5, 30)]
    assert found(run_with(threads(python))) == ["f lowering 1 30 30 0"]


def test_tensorflow_traces_and_compiles() -> None:
    """It compiles on threads of its own, whose events name the module; an inner function is traced with the outer."""
    python = [
        event("train_function", 0, 90, tf_function_call="traced-nonXla"),
        event("tf.function-graph_building", 1, 50),
        event("train_step", 2, 40, tf_function_call="traced-xla"),
        event("tf.function-graph_building", 3, 30),
        event("train_function", 100, 9, tf_function_call="notTraced-nonXla"),
    ]
    modules = ["a_inference_train_step_55__.6", "a_inference_train_step_58__XlaMustCompile_true_config_proto_1_.2"]
    pool = [event("CpuCompiler::RunBackend", 60 + 40 * i, 20, {"name": name}) for i, name in enumerate(modules)]
    run = run_with(threads(python, pool), programs(**{f"{name}_{i}": (8 + i, 4) for i, name in enumerate(modules)}))
    assert found(run) == ["train_function tracing 1 50 50 0", f"train_step compiling 2 40 20 2 {TWO_SHAPES}"]


def test_two_threads_that_compile_at_one_time_are_two_compilations() -> None:
    first = event("CpuCompiler::RunBackend", 0, 100, {"name": "jit_f"})
    second = event("CpuCompiler::RunBackend", 10, 50, {"name": "jit_g"})
    assert found(run_with(threads([first], [second]))) == ["f compiling 1 100 100 0", "g compiling 1 50 50 0"]


def test_a_compilation_without_a_call_has_the_name_of_the_only_module_within_its_time() -> None:
    python = [event("backend_compile", at, 50) for at in (0, 100, 200)]
    modules = {10: "jit__lambda", 110: "jit_f", 120: "jit_g"}
    pool = [event("CpuCompiler::RunBackend", at, 5, {"name": name}) for at, name in modules.items()]
    assert found(run_with(threads(python, pool))) == ["compiling 2 100 50 0", "<lambda> compiling 1 50 50 0"]


def test_gpus_name_the_module_in_the_event() -> None:
    python = [
        event("PjRtStreamExecutorClient::Compile", 0, 90),
        event("XlaCompile:#module=jit_step,program_id=5#", 5, 80),
        event("XlaCompile:#module=pmap_eval,program_id=6#", 200, 8),
    ]
    assert found(run_with(threads(python))) == ["step compiling 1 90 90 0", "eval compiling 1 8 8 0"]


def test_programs_that_are_damaged_or_differ_in_more_than_shapes_have_none() -> None:
    python = [event("backend_compile", 60 * i, 50) for i in range(2)]
    calls = [*call("f", 0, 55), *call("g", 60, 55)]
    two = program(computation(1, parameter("p", F32[8]), parameter("q", F32[8], 1)), name="jit_g", others=integer(6, 1))
    one = program(computation(1, parameter("p", F32[8])), name="jit_g", others=integer(6, 1))
    protos = metadata({f"jit_f({i})": b"\x0b" for i in range(3)} | {"jit_g(7)": two, "jit_g(8)": one})
    run = run_with(threads([*calls, *python]), protos)
    assert found(run) == ["f compiling 1 50 50 3", "g compiling 1 50 50 2"]


def test_long_lists_of_shapes_end_early() -> None:
    many = programs(**{f"jit_f_{i:02}": (i + 1, 4) for i in range(20)})
    run = run_with(threads([*call("f", 0, 60), event("backend_compile", 5, 50)]), many)
    (row,) = found(run)
    assert row.startswith("f compiling 1 50 50 20 f32[1,4]; f32[2,4]; ")
    assert row.endswith("; f32[8,4]; …")


def test_events_without_a_duration_and_profiles_without_such_events_have_no_rows() -> None:
    for events in ([event("backend_compile", 0, 0)], [event("MatMul:MatMul", 0, 5)], []):
        assert run_with(threads(events)).table("compilations").empty
    device = plane("/device:GPU:0", line("Stream", event("backend_compile", 0, 5)))
    assert run_with(device).table("compilations").empty
    assert loaded_run("jax_conv_08").table("compilations").empty


def test_the_recorded_tpu_profile_compiled_each_program_once() -> None:
    """As its events say: four `backend_compile`, each around a `TfrtTpuCompiler::Compile`, four lowerings."""
    table = loaded_run("jax_tpu").table("compilations")
    compiling = table[table["phase"] == "compiling"].set_index("function")
    assert compiling["occurrences"].to_dict() == {"convert_element_type": 1, "f": 1, "_psum": 1, "broadcast_in_dim": 1}
    assert compiling.loc["f", "total_time_us"] == pytest.approx(207_397.432)
    assert (compiling["programs"] == 1).all()
    assert table.groupby("phase")["occurrences"].sum().to_dict() == {"compiling": 4, "lowering": 4, "tracing": 4}


def test_an_event_within_another_one_of_another_name_is_found_as_by_definition() -> None:
    generator = np.random.default_rng(5)
    for _ in range(30):
        begins, lengths = generator.permutation(40)[:12], generator.integers(1, 40, 12)
        names = [f"XlaCompile:{number}" for number in generator.integers(3, size=12)]
        spans = list(zip(begins.tolist(), lengths.tolist(), names, strict=True))
        profile = parse(space(threads(*([event(name, begin, took)] for begin, took, name in spans))))
        assert _is_within_another(profile, np.arange(12, dtype=np.int32)).tolist() == [
            any(n != name and b < begin and b + t >= begin + took for b, t, n in spans) for begin, took, name in spans
        ]
