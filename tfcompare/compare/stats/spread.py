"""How far captures of one program are apart, where that is declared."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tfcompare.compare.stats.estimates import Floats

_SHORTEST_US = 100.0
"""What takes less was not measured, and is taken to differ no more."""
UNDER_LOAD = 5.0
"""How many times as far apart captures of a busy machine are as those of a quiet one (`docs/verdicts.md`)."""


@dataclass(frozen=True)
class Spread:
    """How far captures of one program are apart, as a standard deviation of the logarithm, and where that comes from.

    `share` holds for what takes `steady_us` a step or longer. What is shorter differs more, with the fourth root of how
    much shorter it is.
    """

    share: float
    source: str
    steady_us: float = 0.0
    remark: str = ""

    def of(self, typical_us: Floats) -> Floats:
        """The spread of what takes so long a step."""
        shorter = self.steady_us / np.maximum(typical_us, _SHORTEST_US)
        shares: Floats = self.share * np.maximum(shorter, 1.0) ** 0.25
        return shares

    def assumed(self, *typical_us: float) -> str:
        """`assumed to be 9.6 % (CPU default for steps this short)`: the figures for series of such typical steps."""
        shares = [float(self.of(np.array(us))) for us in typical_us]
        figures = " and ".join(dict.fromkeys(map(percent, shares)))
        wider = " for steps this short" if max(shares) > self.share else ""
        return f"assumed to be {figures} ({self.source}{wider}{self.remark})"

    def under_load(self) -> Spread:
        """The spread between captures of which any was recorded on a busy machine."""
        return replace(self, share=UNDER_LOAD * self.share, remark=", widened for captures under load")


def percent(share: float) -> str:
    """`9.6 %`."""
    return f"{100 * share:.2g} %"


DECLARED_SPREAD = {
    "CPU": Spread(0.05, "CPU default", steady_us=200_000),
    "GPU": Spread(0.03, "GPU default"),
    "TPU": Spread(0.02, "TPU default"),
}
"""What is taken for device types where nothing is measured; `docs/verdicts.md` tells where the figures come from."""

OF_HOSTS = DECLARED_SPREAD["CPU"]
"""What runs on the host is spread like a CPU's, whatever the device; so is an unknown device."""


def declared_spread(*device_types: str) -> Spread:
    """What is declared for the device type, of several the largest; for an unknown one, a CPU's."""
    known = [DECLARED_SPREAD[kind] for kind in device_types if kind in DECLARED_SPREAD] or [OF_HOSTS]
    return max(known, key=lambda spread: spread.share)
