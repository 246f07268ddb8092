"""What a redacted report must not tell, in every text of a profile."""

from __future__ import annotations

import base64
import gzip
import json
import re
import time
from dataclasses import replace

import pytest

from tests.hlo.builder import BF16, computation, instruction, metadata, parameter, program
from tests.laws import mostly_thorough
from tests.profiles import ALL_RUNS, loaded_run
from tests.ui.hostile_profile import hostile
from tests.xspace_builder import U64, Ref, chunk, event, integer, line, meta, plane, space
from tfcompare.comparison import Comparison, compare
from tfcompare.render.redaction import Secrets, redacted
from tfcompare.render.report import FORMATS, report
from tfcompare.run import Run, load
from tfcompare.schema.host_tables import HOST_TABLES

HOST = "kestrel17.corp-heron.example"
PATHS = (
    "/home/ada/egret/x.py",
    "model//home/ada/egret/x.py/MatMul",
    "model/~ada/egret/x.py",
    "~ada/x.py",
    "%2Fhome%2Fada%2Fegret%2Fx.py",
    "model%2F%2Fhome%2Fada%2Fegret%2Fx",
    "home/ada/egret/x.py",
    "a/home/ada/egret/x.py",
    "C:\\Users\\ada lovelace\\egret\\x.py",
    "C%3A%5CUsers%5Cada%5Cegret%5Cx",
    "///mnt/egret/x",
    "gs://egret/x",
    "/home/ada",
)
ADDRESSES = (
    "ibis97@corp-heron.example",
    "ibis97%40corp-heron.example",
    "10.97.96.95",
    "3.97.96.95:80",
    "fd00:97:96:95:1:2:3:4",
)
OTHERS = (f"{HOST}:8470", "kestrel17:Send", "RecvTensor from kestrel17", "run_of_ada", "ada")
TEXT = f'"{" | ".join((*PATHS, *ADDRESSES, *OTHERS))} | x'
"""Paths end at a `|`. The last part of a name is often cut off, and messages are after 300 characters."""
CANARY = re.compile(r"kestrel|heron|egret|ibis97|lovelace|97.96.95|97:96:95|(?<![^\W_])ada(?![^\W_])")


def of_programs(scale: float) -> bytes:
    """A run of a program on a GPU in whose every text are canaries."""
    origin = chunk(1, TEXT) + chunk(2, TEXT) + chunk(3, TEXT) + b"\x20\x07" + integer(15, 2)
    frames = chunk(1, TEXT) + chunk(2, TEXT) + chunk(3, integer(1, 1) + integer(2, 1) + integer(3, 7))
    frames += chunk(4, integer(1, 1)) + chunk(4, integer(1, 1) + integer(2, 1))
    attributes = chunk(68, chunk(1, chunk(1, TEXT) + chunk(2, TEXT)))
    others = chunk(7, origin) + chunk(28, TEXT) + chunk(43, TEXT) + attributes
    shape = BF16[64, 64]
    call = instruction(TEXT, "custom-call", shape, "p", others=others)
    made = program(computation(1, parameter("p", shape), call), name=TEXT, others=chunk(17, frames))
    kernel = meta(TEXT, TEXT, {"tf_op": Ref(TEXT), "source": TEXT, "hlo_category": TEXT})
    stats = {"hlo_op": TEXT, "hlo_module": TEXT, "program_id": 7, "kernel_details": TEXT, "name": Ref(TEXT)}
    kernels = [event(kernel, 100 * i, 9 * scale, stats) for i in range(3)]
    return space(
        plane("/host:CPU", line(TEXT, event(f"XlaCompile:#module={TEXT}#", 0, 9), event(f"f({TEXT})", 9, 9))),
        plane("/device:GPU:0", line("Stream #1(Kernel)", *kernels, id=1), stats={"device_type_string": TEXT}),
        plane("Task Environment", stats={"profile_start_time": 1, TEXT: TEXT}),
        metadata({f"{TEXT}(7)": made}),
        hostnames=[HOST, TEXT],
        errors=[TEXT],
        warnings=[f"written by {TEXT}"],
    )


def of_a_tpu(scale: float) -> bytes:
    """A run on a TPU, whose instructions have their texts in the metadata of events."""
    more = {
        "tf_op": TEXT,
        "source": TEXT,
        "source_stack": f"{TEXT}:1:2\n{TEXT}:3:4",
        "hlo_category": TEXT,
        "program_id": U64(7),
        "symbol_id": U64(9),
    }
    ops = [event(meta(f"%{TEXT}", TEXT, more), 0, 9 * scale)]
    return space(
        plane("/device:TPU:0", line("XLA Ops", *ops, id=3), line(TEXT, event(TEXT, 0, 9), id=4)),
        plane("/host:metadata", stats={"jax_version": TEXT, f"{TEXT}_version": TEXT}),
    )


@pytest.fixture(scope="module")
def secret(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    """A pair in which every text of the profiles, the paths and the metadata have canaries."""
    logs = tmp_path_factory.mktemp("home") / "home" / "ada" / "egret"
    runs = []
    for name, scale in (("before_kestrel", 1.0), ("after_kestrel", 1.5)):
        folder = logs / name / "plugins" / "profile" / "2026_11_20_10_17_24"
        folder.mkdir(parents=True)
        for host, data in (
            (f"{HOST}_1", hostile(scale, TEXT)),
            (f"{HOST}_2", of_programs(scale)),
            (HOST, of_a_tpu(scale)),
        ):
            (folder / f"{host}.xplane.pb").write_bytes(data)
        texts = {f"of ada on {HOST[:9]}": TEXT, "commit": "abc", "tags": ["kestrel17", "/home/ada/egret/x.py"]}
        (folder / "tfcompare.json").write_text(json.dumps(texts))
        (folder / f"{HOST}_4.xplane.pb").write_bytes(b"damaged")
        runs.append(load(logs / name))
    return compare(*runs)


@pytest.fixture(scope="module")
def open_(secret: Comparison) -> Comparison:
    return redacted(secret)


def texts_of(run: Run) -> dict[str, str]:
    """Every text of a run, by where it is."""
    kept = (run.id, run.path, run.host_names, run.remarks, run.found, run.choice, run.likely_markers, run.info)
    found = {"run": repr(kept)}
    for host in run.hosts:
        found[f"{host.host} origin"] = repr((host.origin, host.step_source, host.remarks, host.why_untimed))
        for name in HOST_TABLES:
            for column, values in host.table(name).to_pydict().items():
                texts = [value for value in values if isinstance(value, str)]
                found[f"{name}.{column}"] = f"{found.get(f'{name}.{column}', '')} {' | '.join(texts)}"
    return found


def test_the_canaries_are_in_what_is_redacted(secret: Comparison) -> None:
    found = {where for where, text in texts_of(secret.baseline).items() if CANARY.search(text)}
    assert {
        *("run", f"{HOST} origin", f"{HOST}_1 origin", f"{HOST}_2 origin", "op_parts.op_name"),
        *("kernel_stats.kernel_name", "hlo_ops.source", "hlo_ops.program", "hlo_ops.hlo_op", "hlo_ops.op_name"),
        *("hlo_ops.category", "hlo_ops.expression", "memory_events.region_type", "tf_data_executions.long_name"),
        *("tf_data_executions.settings", "timeline_lanes.line", "timeline_spans.name", "hlo_texts.source_ops"),
        *("hlo_texts.source_stack", "hlo_programs.expression", "compilations.function"),
    } <= found
    for word in ("kestrel", "heron", "egret", "ibis97", "lovelace", "97.96.95", "97:96:95", "ada"):
        assert word in report(secret, "json"), word


def test_no_text_of_a_redacted_run_has_a_canary(open_: Comparison) -> None:
    leaks = {
        (where, text[max(found.start() - 60, 0) : found.end() + 30])
        for run in (open_.baseline, *open_.candidates)
        for where, text in texts_of(run).items()
        if (found := CANARY.search(text))
    }
    assert not leaks


@pytest.mark.parametrize("form", FORMATS)
def test_no_redacted_report_has_a_canary(open_: Comparison, form: str) -> None:
    found = report(open_, form)  # type: ignore[arg-type]
    packed = re.findall(r">(H4sI[A-Za-z0-9+/=]+)<", found)  # gzip in base64
    assert bool(packed) == (form == "html")
    for text in (found, *(gzip.decompress(base64.b64decode(one)).decode() for one in packed)):
        plain = re.sub(r"[A-Za-z0-9+/=]{200,}", "", text)
        assert not CANARY.search(plain) and not CANARY.search(plain.replace("\\", ""))
    assert "host 1" in found


def test_redacting_a_redacted_comparison_changes_nothing(open_: Comparison) -> None:
    assert texts_of(redacted(open_).baseline) == texts_of(open_.baseline)


def test_a_comparison_with_itself_has_no_difference_when_it_is_redacted(secret: Comparison) -> None:
    for candidate in (secret.baseline, replace(secret.baseline, id="copy", name="copy")):
        diff = redacted(compare(secret.baseline, candidate)).table("op_stats")
        assert set(diff["status"]) == {"matched"} and len(diff)
        assert not diff["self_time_us_per_step_delta"].any()


@pytest.mark.parametrize("name", mostly_thorough(ALL_RUNS, "filters_16_8", "h100_512_128", "jax_filters_128_32"))
def test_names_without_secrets_stay(name: str) -> None:
    run = loaded_run(name)
    other = redacted(compare(run, run)).baseline
    for table in ("op_stats", "kernel_stats", "hosts"):
        names = run.table(table).drop(columns="host")
        assert names.equals(other.table(table).drop(columns="host"))


SECRETS = Secrets(
    {"my.run": "A"},
    {f"{HOST}:8470": "host 1", "worker": "host 2", "ab": "host 3"},
    {},
    ["/home/ada/x", "model/home/dense/x"],
)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("model//home/ada/x.py/MatMul", "model/MatMul"),
        ("model/~ada/x.py", "model/x.py"),
        ("model%2F%2Fmnt%2Fada%2Fx", "model%2Fx"),
        ("home/ada/x.py", "x.py"),
        ("model/home/dense/MatMul", "model/MatMul"),
        ("dense", "dense"),
        ("/home/ada.l", "…"),
        ("grpc://kestrel17:80", "…"),
        ("/logs/x/my.run", "A"),
        ("my.run", "my.run"),
        ("kestrel17:Send from kestrel17.corp-heron.example", "host 1:Send from host 1"),
        ("kestrel171 kestrel17_0", "kestrel171 host 1_0"),
        ("ada's adam", "user 1's adam"),
        ("/job:worker/replica:0/task:0/device:CPU:0", "/job:worker/replica:0/task:0/device:CPU:0"),
        ("ab/ab", "ab/ab"),
        ("cuDNN 9.1.0.70, 1.2.3.4, 535.104.05, 999.98.97.96", "cuDNN 9.1.0.70, 1.2.3.4, 535.104.05, 999.98.97.96"),
        ("memcpy@GLIBC_2.14", "memcpy@GLIBC_2.14"),
        ("2026-11-20 10:17:24 c10::add a::b f32::add ::1", "2026-11-20 10:17:24 c10::add a::b f32::add ::1"),
    ],
)
def test_a_text_is_left_without_its_secrets_and_no_more(text: str, left: str) -> None:
    assert (SECRETS.in_name(text), SECRETS.in_name(left)) == (left, left)


def test_of_a_message_that_was_cut_the_last_word_is_left_out() -> None:
    assert [SECRETS.in_sentence(text) for text in ("sent by ibis@cor …", "sent by … …")] == ["sent by … …"] * 2


@pytest.mark.parametrize(
    "unit", ["/", "~", "~/", "a/", "\\", "%2F", "%252F", "a@", "a@b.", "10.1.", "fd:", "2001:", "ada-"]
)
def test_a_long_text_takes_time_in_proportion_to_its_length(unit: str) -> None:
    def seconds(size: int) -> float:
        text = unit * (size // len(unit))
        began = time.process_time()
        SECRETS.in_name(f"{text} !")
        return time.process_time() - began

    assert seconds(400_000) < 12 * seconds(100_000) + 0.1
