"""The figures that the simulated GPU samples are made after."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Published:
    """Milliseconds of an average step, as published with one decimal; `copies` is what the other parts leave of it."""

    step: float
    launch: float
    compute: float
    input: float
    copies: float
    other: float
    shares: dict[str, float]


PUBLISHED = {
    "filters_512_128_simulated": Published(
        9.5, 0.7, 8.1, 0.1, 0.3, 0.3, {"Conv2DBackpropFilter": 0.258, "Conv2D": 0.198}
    ),
    "filters_16_8_simulated": Published(4.5, 2.8, 1.1, 0.0, 0.2, 0.4, {"Conv2DBackpropFilter": 0.162, "Conv2D": 0.148}),
}
