"""Links to one host in the other views, and to its slowest step in the timeline."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pandas as pd

from tfcompare.compare.pair import Pair
from tfcompare.markdown import as_markdown
from tfcompare.views import links
from tfcompare.views.blocks import Block, Link, Links
from tfcompare.views.registry import view

LINKED = ("overview", "op_stats", "kernel_stats", "memory", "input_pipeline", "tf_data")


def blocks(pair: Pair, rows: pd.DataFrame, order: Sequence[str], name: str) -> Iterator[Block]:
    """The links for the host `name`; `rows` are the steps of the candidate's hosts, which `order` has slowest first."""
    found = []
    if name in pair.baseline.host_names:
        shown = [one for one in map(view, LINKED) if not one.why_not(pair)]
        found = [Link(one.title, one.name, host=name) for one in shown]
    step = _slowest_step(rows[rows["name"] == name])
    moment = links.Moment(0 if pair.is_single else 1, float(step["start_us"]), float(step["duration_us"]))
    found.append(links.to_moment(pair, moment, str(step["host"]), f"Show step {step['place']} in timeline"))
    yield Links([*found, *_beside(pair, rows, order, name, step)])


def _slowest_step(rows: pd.DataFrame) -> pd.Series:
    counted = rows[rows["included"].astype(bool)]
    return counted.iloc[int(counted["busy_us"].argmax())]


def _beside(pair: Pair, rows: pd.DataFrame, order: Sequence[str], name: str, step: pd.Series) -> Iterator[Link]:
    """A link to that step of the host beside the median of the others."""
    others = [other for other in order if other != name]
    if not others:
        return
    other = others[len(others) // 2]
    same = rows[(rows["name"] == other) & (rows["place"] == step["place"])]
    if same.empty:
        return
    hosts = str(same["host"].iloc[0]), str(step["host"])
    label = f"Show {as_markdown(hosts[1])} beside {as_markdown(hosts[0])} in timeline"
    yield links.to_hosts(pair, pair.candidate, hosts, int(same["step"].iloc[0]), label)
