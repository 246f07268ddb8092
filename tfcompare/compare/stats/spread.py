"""The assumed variation between captures of one program, by device type."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tfcompare.schema.arrays import Floats

_SHORTEST_US = 100.0
"""Shorter times were not measured; their variation is assumed to be the same as at this time."""
UNDER_LOAD = 5.0
"""The factor by which captures of a busy machine vary more than those of an idle one (`docs/verdicts.md`)."""


@dataclass(frozen=True)
class Spread:
    """The variation between captures of one program, as a standard deviation of the logarithm, and its source.

    `share` applies to times of `steady_us` per step or longer. Shorter times vary more: by `steady_us` ÷ time to the
    power of `exponent`.
    """

    share: float
    source: str
    steady_us: float = 0.0
    remark: str = ""
    exponent: float = 0.25

    def of(self, mean_us: Floats) -> Floats:
        """The spread of times of `mean_us` per step."""
        shorter = self.steady_us / np.maximum(mean_us, _SHORTEST_US)
        shares: Floats = self.share * np.maximum(shorter, 1.0) ** self.exponent
        return shares

    def assumed(self, *mean_us: float) -> str:
        """`assumed to be 9.6 % (CPU default for steps this short)`, for series with these means."""
        shares = [float(self.of(np.array(us))) for us in mean_us]
        figures = " and ".join(dict.fromkeys(map(percent, shares)))
        wider = " for steps this short" if max(shares) > self.share else ""
        return f"assumed to be {figures} ({self.source}{wider}{self.remark})"

    def under_load(self) -> Spread:
        """The spread between captures if any of them was recorded on a busy machine."""
        return replace(self, share=UNDER_LOAD * self.share, remark=", widened for captures under load")


def percent(share: float) -> str:
    """`9.6 %`; from 100 % on without digits behind the point: `240 %`."""
    return f"{100 * share:.2g} %" if share < 0.995 else f"{100 * share:,.0f} %"


DECLARED_SPREAD = {
    "CPU": Spread(0.05, "CPU default", steady_us=200_000),
    "GPU": Spread(0.03, "GPU default"),
    "TPU": Spread(0.02, "TPU default"),
}
"""The default spread of each device type, used if none is measured; `docs/verdicts.md` derives the figures."""

OF_HOSTS = DECLARED_SPREAD["CPU"]
"""The spread of host work, whatever the device, and of unknown devices: that of a CPU."""


def declared_spread(*device_types: str) -> Spread:
    """The default spread of the device type; the largest of several, and a CPU's for an unknown type."""
    known = [DECLARED_SPREAD[kind] for kind in device_types if kind in DECLARED_SPREAD] or [OF_HOSTS]
    return max(known, key=lambda spread: spread.share)
