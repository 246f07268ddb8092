"""SQL over the tables of runs: `ask("SELECT …", RunTables(runs), Limits())` returns an `Answer`."""

from tfcompare.query.asking import Answer, Asked, Limits, QueryFailed, ask
from tfcompare.query.ready import READY, Ready
from tfcompare.query.tables import RUNS, RunTables, every_table

__all__ = ["READY", "RUNS", "Answer", "Asked", "Limits", "QueryFailed", "Ready", "RunTables", "ask", "every_table"]
