"""JSON of views, reports and series has the form that the schema declares, and the ids that the documentation lists."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from copy import deepcopy
from functools import cache
from typing import Any

import jsonschema
import pytest

from tests.laws import mostly_thorough
from tests.profiles import ROOT, compared_runs, loaded_run
from tests.store.runs_in_stores import put, small
from tests.views.golden import PAIRS, SEVERAL
from tests.views.series.series_runs import nights
from tfcompare.compare.attribution import OTHER_HOSTS
from tfcompare.comparison import Comparison, compare
from tfcompare.render.as_json import VERSION, json_schema
from tfcompare.render.report import report
from tfcompare.render.shown import Shown
from tfcompare.schema import STEP_PARTS
from tfcompare.views import MODULES
from tfcompare.views.advice import RULES

CASES = PAIRS | SEVERAL
CASES |= {
    "tf_gpu": ("gpu_filters_512_128", "gpu_filters_16_8"),
    "kinds of steps": ("h100_store_activations", "h100_recompute_activations"),
    "unrelated": ("filters_16_8", "h100_16_8"),
    "compilers": ("tensorflow_filters_128_32", "jax_filters_16_8"),
    "one on a GPU": ("h100_16_8",),
}
"""Runs that are compared with each other."""


def closed(schema: Any) -> Any:
    """The schema without room for further fields: what is not declared is not documented."""
    if isinstance(schema, dict):
        inner = {name: closed(one) for name, one in schema.items()}
        return {"additionalProperties": False, **inner} if isinstance(inner.get("properties"), dict) else inner
    return [closed(one) for one in schema] if isinstance(schema, list) else schema


SCHEMA = json.loads(json_schema())
STRICT = jsonschema.Draft202012Validator(closed(SCHEMA))


def problem(document: Any) -> str:
    """Where a document breaks the schema, and how, at its deepest place; empty if it does not."""
    waiting, found = list(STRICT.iter_errors(document)), []
    while waiting:
        error = waiting.pop()
        waiting += error.context
        found.append((len(error.absolute_path), f"{error.json_path}: {error.message[-300:]}"))
    return max(found, default=(0, ""))[1]


def findings(value: Any) -> Iterator[dict[str, Any]]:
    """The findings of all blocks in it."""
    if isinstance(value, dict):
        yield from value.get("findings", ())
        for name in ("candidates", "blocks"):
            for one in value.get(name, ()):
                yield from findings(one)


@cache
def documented_ids() -> dict[str, re.Pattern[str]]:
    """What each id of the table in `docs/json.md` stands for, by the id as it is written there."""
    page = (ROOT / "docs" / "json.md").read_text(encoding="utf-8")
    table = page.partition("## Ids of findings")[2].partition("\n## ")[0]
    cells = re.findall(r"^\| (`.*?) \| ", table, re.MULTILINE)
    ids = [one for cell in cells for one in re.findall(r"`([^`]+)`", cell)]
    words = {name: re.escape(name).replace("PER", "[a-z]+(_and_[a-z]+)?") for name in ids}
    return {name: re.compile(re.sub(r"\b[A-Z]{3,}\b", ".+", words[name])) for name in ids}


def undocumented(found: set[str]) -> list[str]:
    return sorted(one for one in found if not any(each.fullmatch(one) for each in documented_ids().values()))


def comparison_of(case: str) -> Comparison:
    names = CASES[case]
    return compared_runs(*names) if len(names) == 2 else compare(*map(loaded_run, names))


@pytest.mark.parametrize("case", mostly_thorough(CASES, "alone", "xla", "workers", "several", "kinds of steps"))
def test_every_view_has_the_form_and_the_ids_that_are_documented(case: str) -> None:
    comparison = comparison_of(case)
    for name in MODULES:
        document = json.loads(Shown.of(comparison, name).to("json", every=name == "op_stats"))
        assert problem(document) == "", name
        assert undocumented({one["id"] for one in findings(document)}) == [], name


@pytest.mark.parametrize("case", mostly_thorough(CASES, "alone", "tf_gpu"))
def test_a_report_has_the_form_and_the_ids_that_are_documented(case: str) -> None:
    document = json.loads(report(comparison_of(case), "json"))
    assert problem(document) == ""
    found = {one["id"] for one in findings(document)}
    assert {"step_time", "different_programs"} & found
    assert undocumented(found) == []


def test_a_checked_report_and_a_series_have_the_form(tfcompare, tmp_path) -> None:
    runs = [str(small(name, tmp_path)) for name in ("theirs", "ours")]
    out = tmp_path / "report.json"
    tfcompare("check", *runs, "--fail-if", "step_time>+5%", "--fail-if", "peak_memory>1kB", "--report", str(out))
    checked = json.loads(out.read_text(encoding="utf-8"))
    assert len(checked["check"]["findings"]) == 2
    assert problem(checked) == ""
    put([nights(tmp_path / "logs", 14)], tmp_path / "store")
    for more in ((), ("--every-op", "--all-columns")):
        document = json.loads(tfcompare("series", "--store", str(tmp_path / "store"), "--format", "json", *more)[1])
        assert (document["view"], problem(document)) == ("series", "")


def overview() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(Shown.of(comparison_of("cpu"), "overview").to("json"))
    return document


def test_the_schema_refuses_what_is_missing_unknown_or_of_another_type() -> None:
    good = overview()
    assert problem(good) == ""
    verdict = good["candidates"][0]["blocks"][0]
    assert verdict["kind"] == "verdict"

    def broken(**changes: Any) -> dict[str, Any]:
        """The document with these fields of the first finding changed, None for one that is left out."""
        document = deepcopy(good)
        finding = document["candidates"][0]["blocks"][0]["findings"][0]
        for name, value in changes.items():
            finding[name] = value
            if value is None:
                del finding[name]
        return document

    for name in ("version", "runs", "candidates", "caveats"):
        assert problem({key: value for key, value in good.items() if key != name}), name
    for name in ("id", "unit", "baseline", "ratio", "interval"):
        assert problem(broken(**{name: None})), name
    assert problem(broken(candidate="10 ms"))
    assert problem(broken(verdict="quicker"))
    assert problem(broken(value=1.0))
    assert problem(broken(interval=[1.0]))
    assert problem(broken(surprise=1)).endswith("('surprise' was unexpected)")
    assert problem(good | {"version": VERSION + 1})
    assert problem(good | {"view": "summary"})
    for block in ({"kind": "picture"}, {"kind": "text"}, {"kind": "facts", "title": "a", "note": "", "rows": []}):
        document = deepcopy(good)
        document["candidates"][0]["blocks"].append(block)
        assert problem(document), block
    assert not jsonschema.Draft202012Validator(SCHEMA).is_valid(good | {"version": VERSION + 1})
    assert jsonschema.Draft202012Validator(SCHEMA).is_valid(broken(surprise=1)), "new fields may come"


def test_the_schema_is_of_this_version_and_of_all_views(tfcompare) -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    view = SCHEMA["$defs"]["view"]["properties"]
    assert SCHEMA["$id"] == f"urn:tfcompare:json:{VERSION}"
    assert view["version"] == {"const": VERSION}
    assert view["view"]["enum"] == list(MODULES)
    assert tfcompare("view", "--json-schema") == (0, json_schema(), "")


def test_the_documented_ids_are_those_of_all_parts_and_rules_and_another_one_is_found() -> None:
    by_kind: dict[str, set[str]] = {"part": set(), "advice": set()}
    for one in documented_ids():
        kind, _, name = one.partition(":")
        by_kind.setdefault(kind, set()).add(name)
    assert by_kind["part"] == {*STEP_PARTS, OTHER_HOSTS}
    assert by_kind["advice"] == set(RULES)
    assert undocumented({"op:Host:MatMul:a/b", "figure:ops", "figure:kernel_time_per_step_and_device"}) == []
    unknown = {"op:Host", "figure:op", "figure:kernel_time_per_", "advice:nothing", "part:idle", "loss", "step_times"}
    assert undocumented(unknown) == sorted(unknown)
