"""Everything about a comparison as JSON, for programs: full precision, the units of `schema`, null for unknown."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import pandas as pd

from tfcompare import __version__, schema
from tfcompare.compare.pair import Pair
from tfcompare.compare.pairs import Pairs, pairs_of
from tfcompare.render.as_json import jsonable
from tfcompare.tools.caveats import caveats
from tfcompare.tools.columns import for_file
from tfcompare.tools.overview import dashboard
from tfcompare.views.answer import headline
from tfcompare.views.steps.attribution import attribution_of


def as_json(comparison: Pairs, checked: Mapping[str, Any] | None = None) -> str:
    """A JSON object.

    `tfcompare` (its version), `per`, `host`; `runs`: `id`, `name`, `digest`, `captures` (digests of its replicates) and
    the columns of `run_info`; `caveats`; `candidates`, one for each: its `id`, `headline`, `verdict`, `key_figures`,
    `why`, `parts` of the average step, `slowest_host`, and `tables`, every diff as `columns` and `rows`. Of a run
    alone, `candidates` has that run, compared with itself. `checked` is what `check` found.
    """
    content = {
        "tfcompare": __version__,
        "per": comparison.per,
        "host": comparison.host,
        "runs": [
            {
                "id": side.run.id, "name": side.name, "digest": side.run.content_id,
                "captures": [one.content_id for one in side.runs[1:]], **asdict(side.run.info),
            }
            for side in comparison.sides
        ],
        "caveats": caveats(comparison),
        **({} if checked is None else {"check": checked}),
        "candidates": [_pair(pair) for pair in pairs_of(comparison, by_name=True)],
    }  # fmt: skip
    return json.dumps(jsonable(content), ensure_ascii=False, allow_nan=False) + "\n"


def _pair(pair: Pair) -> dict[str, Any]:
    attribution = attribution_of(pair)
    verdict = pair.verdict
    return {
        "id": pair.candidate.id,
        "headline": headline(pair, whole=True),
        "verdict": {
            "word": verdict.text, "evidence": verdict.evidence, "ratio": verdict.ratio, "low": verdict.low,
            "high": verdict.high, "reason": verdict.reason, "caveat": verdict.caveat,
        },
        "key_figures": [
            {"label": one.label, "unit": one.unit, "baseline": one.baseline, "candidate": one.candidate}
            for one in dashboard(pair, attribution.parts)
        ],
        "why": attribution.sentence,
        "parts": attribution.parts.to_dict("records"),
        "slowest_host": attribution.host_sentence,
        "tables": {
            table.name: _table(for_file(pair.diff(table.name), table, pair.sums_per()))
            for table in schema.TABLES.values()
            if table.has_diff
        },
    }  # fmt: skip


def _table(frame: pd.DataFrame) -> dict[str, Any]:
    return {"columns": list(frame.columns), "rows": frame.astype(object).to_numpy().tolist()}
