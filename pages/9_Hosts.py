"""The hosts and devices of runs side by side: which is slowest, what it does longer, and who waits for it."""

from __future__ import annotations

from tfcompare import ui
from tfcompare.ui.frame.pair import choose_pair, comparison_of
from tfcompare.ui.pages import hosts

with ui.page("Hosts", needs="pair") as view:
    pair = choose_pair(comparison_of(view))
    possible = hosts.groupings(pair)
    hosts.stop_without_hosts(pair, view.selection, possible)
    hosts.headline(pair, possible)
    shown = hosts.controls(possible)
    names = hosts.heat_maps(pair, shown)
    hosts.parts(pair, shown, names)
    hosts.one_host(pair)
    hosts.on_one_clock(pair)
    hosts.TABLE.show_rows(pair, shown)
