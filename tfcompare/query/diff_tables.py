"""The diffs of a comparison as tables of queries: `op_stats_diff` has what `diff` and the CSV files of pages have."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from tfcompare import schema
from tfcompare.compare.diff import INTERVAL, diff_columns
from tfcompare.compare.pairs import Pairs
from tfcompare.query.tables import DIFF
from tfcompare.schema import SIDES
from tfcompare.schema.columns import Table
from tfcompare.views.columns import for_file, shown


@dataclass(frozen=True)
class DiffTables:
    """The diffs of all candidates; sums are as in the comparison, per step where all runs have steps."""

    comparison: Pairs

    @cached_property
    def dtypes(self) -> dict[str, dict[str, str]]:
        """The columns of each diff by its name, with their dtypes; no diff is made for it."""
        return {f"{table.name}{DIFF}": self._dtypes(table) for table in schema.TABLES.values() if table.has_diff}

    def _dtypes(self, table: Table) -> dict[str, str]:
        """As the diff of a table has them: sums per step are fractions, cells of an absent side are missing."""
        per = self.comparison.sums_per()
        are_of_each = bool(self.comparison.of_each) and table.name in schema.OF_EACH
        found = dict.fromkeys(["baseline", *diff_columns(table)], "str")
        found |= {key: table.column(key).dtype for key in table.keys}
        found |= {f"{key}_candidate": table.column(key).dtype for key in table.keys if f"{key}_candidate" in found}
        for metric in table.metrics:
            name = metric.name
            dtype = "float64" if per.of(metric) or (metric.kind == "sum" and are_of_each) else metric.dtype
            found |= {f"{name}_{role}": dtype for role in SIDES}
            if metric.is_number:
                found |= {f"{name}_delta": dtype, f"{name}_ratio": "float64"}
        found |= {name: "float64" for name in INTERVAL if name in found}
        names = per.names(table)
        return {names.get(name, name): dtype for name, dtype in found.items()}

    def meaning(self, name: str, column: str) -> str:
        """What a column of a diff means; empty for the ids of the runs."""
        table, per = schema.table(name.removesuffix(DIFF)), self.comparison.sums_per()
        plain = {in_file: own for own, in_file in per.names(table).items()}
        return "" if column in SIDES else shown(plain.get(column, column), table, per).help

    def table(self, name: str) -> pd.DataFrame:
        """The diff of this name. Raises `Unknown` for one that there is not."""
        table = schema.table(name.removesuffix(DIFF))
        diff = for_file(self.comparison.diffs(table.name), table, self.comparison.sums_per())
        lists = [str(name) for name, dtype in diff.dtypes.items() if dtype == "object"]  # what a fused op was made of
        return diff.assign(**{c: diff[c].map(", ".join, na_action="ignore").astype("str") for c in lists})
