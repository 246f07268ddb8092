"""The versions of tables: what they depend on, and that they change when the tables of the same profiles do.

`python -m tests.store.test_versions` writes `tables.json` anew: for each table its version, and the digest of what the
profiles of `SAMPLES` and the fuzzer give.
"""

from __future__ import annotations

import dataclasses
import json
from hashlib import blake2b
from pathlib import Path

import pyarrow as pa
import pytest

from tests.profiles import run_path
from tests.store.test_packing import built
from tests.xspace import fuzz_inputs
from tests.xspace_builder import event, line, plane, space
from tfcompare import schema
from tfcompare.frames import HostTables
from tfcompare.frames import host as frames_host
from tfcompare.run import Run, load
from tfcompare.schema import HOST_TABLES, host_tables
from tfcompare.store import cached_frames, version
from tfcompare.store.version import SUMMARY, reader_version, versions
from tfcompare.views.run_listing import summary_of

EXPECTED = Path(__file__).with_name("tables.json")
SAMPLES = ("workers_slow_input", "tensorflow_filters_16_8", "gpu_filters_16_8")
COMPILING = space(
    plane(
        "/host:CPU",
        line(
            "python",
            event("train_function", 0, 90, tf_function_call="traced-nonXla"),
            event("tf.function-graph_building", 1, 50),
        ),
    )
)
VERBOSE = space(plane("/host:CPU", line("python", event("dense/Relu:Relu", 0, 1, shape="(float[8,64])"))))
WRITTEN = (COMPILING, VERBOSE)
"""What no other profile here has: compilations, and operands of ops."""
_DIGITS = 9
"""What is left of floats: other processors add them in another order."""


def content_digests() -> dict[str, str]:
    """Of each name in `versions`, a digest of what is made of the profiles."""
    runs, hosts = read()
    contents = {name: [_rows(host.table(name)) for host in hosts] for name in HOST_TABLES}
    contents["host"] = [_facts(host) for host in hosts]
    contents[SUMMARY] = [_rounded(dataclasses.asdict(summary_of(run))) for run in runs]
    return {name: blake2b(repr(content).encode(), digest_size=6).hexdigest() for name, content in contents.items()}


def read() -> tuple[list[Run], list[HostTables]]:
    """(the sample runs; their hosts, and those of small profiles of every dialect)."""
    runs = [load(run_path(name)) for name in SAMPLES]
    return runs, [*(host for run in runs for host in run.hosts), *map(built, (*fuzz_inputs.built(), *WRITTEN))]


def _rows(table: pa.Table) -> object:
    return [(name, _rounded(table[name].to_pylist())) for name in sorted(table.column_names)]


def _facts(host: HostTables) -> object:
    facts = (field.name for field in dataclasses.fields(host) if field.name not in ("tables", "late", "digest"))
    return [(name, _rounded(getattr(host, name))) for name in facts]


def _rounded(value: object) -> object:
    if isinstance(value, float):
        return f"{value:.{_DIGITS}g}"
    if isinstance(value, dict):
        return {key: _rounded(each) for key, each in value.items()}
    return [_rounded(each) for each in value] if isinstance(value, (list, tuple)) else value


def test_what_changes_has_another_version() -> None:
    before: dict[str, list[str]] = json.loads(EXPECTED.read_text())
    now, made = versions(), content_digests()
    changed = [name for name, (of, digest) in before.items() if now.get(name) == of and made[name] != digest]
    assert not changed, (
        f"The same profiles give another content of {', '.join(changed)}, under the same version. Raise its number in "
        "tfcompare/frames/host.py (`NUMBERS`; of `summary` in tfcompare/store/version.py), so that what was stored "
        "before does not count as the same. If only the form or a wording changed, leave the number. Then run "
        "`python -m tests.store.test_versions`, which notes the new content, and commit tables.json."
    )
    noted = {name: of for name, (of, _) in before.items()}
    assert noted == now, "versions changed: run `python -m tests.store.test_versions`, and commit tables.json"


def test_every_table_is_made_of_some_profile() -> None:
    _, hosts = read()
    assert [name for name in HOST_TABLES if not any(len(host.table(name)) for host in hosts)] == []


def test_a_version_depends_on_the_declaration_and_the_number_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    before = versions()
    steps, ops = HOST_TABLES["steps"], HOST_TABLES["op_parts"]
    prose = schema.STEPS.columns[1]
    again = dataclasses.replace(prose, label="Another", meaning="Another sentence.")
    public = dataclasses.replace(schema.STEPS, columns=(schema.STEPS.columns[0], again, *schema.STEPS.columns[2:]))
    monkeypatch.setitem(HOST_TABLES, "steps", host_tables._host_table_of(public, unique=("step",)))
    assert versions() == before, "prose does not count"

    def changed() -> set[str]:
        return {name for name, one in versions().items() if one != before[name]}

    duration = steps.columns["duration_us"]
    for other in (dataclasses.replace(duration, dtype="Float64"), dataclasses.replace(duration, kind="sum")):
        monkeypatch.setitem(
            HOST_TABLES, "steps", dataclasses.replace(steps, columns={**steps.columns, "duration_us": other})
        )
        assert changed() == {"steps"}
    monkeypatch.setitem(HOST_TABLES, "steps", steps)
    reordered = dict(reversed(ops.columns.items()))
    monkeypatch.setitem(HOST_TABLES, "op_parts", dataclasses.replace(ops, columns=reordered))
    assert changed() == set()
    monkeypatch.setitem(frames_host.NUMBERS, "copies", 2)
    assert changed() == {"copies"}


def test_packs_are_named_by_all_versions_and_the_release(monkeypatch: pytest.MonkeyPatch) -> None:
    def name() -> str:
        reader_version.cache_clear()
        return cached_frames.pack_name("vm", "digest")

    names = [name()]
    with monkeypatch.context() as patch:
        patch.setitem(frames_host.NUMBERS, "copies", 2)
        names.append(name())
    with monkeypatch.context() as patch:
        patch.setattr(version, "__version__", "99.0")
        names.append(name())
    assert len(set(names)) == 3
    assert name() == names[0]


if __name__ == "__main__":
    digests = content_digests()
    lines = [f"  {json.dumps(name)}: {json.dumps([of, digests[name]])}" for name, of in versions().items()]
    EXPECTED.write_text("{\n" + ",\n".join(lines) + "\n}\n")
