"""Aligns two sequences, either of which may have elements that the other lacks."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def agreed_alignment(gains: npt.NDArray[np.int64]) -> list[tuple[int, int]]:
    """The pairs that all optimal alignments of two sequences have in common.

    `gains[i, j]`, at least 0, is the gain of pairing element i of the first sequence with element j of the second.
    Pairs preserve the order of both sequences; unpaired elements cost nothing.
    """
    forward = _best_until(gains)
    backward = _best_until(gains[::-1, ::-1])[::-1, ::-1]
    best = forward[-1, -1]
    can_pair = (gains > 0) & (forward[:-1, :-1] + gains + backward[1:, 1:] == best)
    can_skip = (forward[:-1, :] + backward[1:, :] == best).any(axis=1)
    settled = ~can_skip & (can_pair.sum(axis=1) == 1)
    return [(int(i), int(can_pair[i].argmax())) for i in np.flatnonzero(settled)]


def _best_until(gains: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The maximum total gain of aligning the first i elements with the first j elements, for all i and j."""
    best = np.zeros((gains.shape[0] + 1, gains.shape[1] + 1), dtype=np.int64)
    for i, row in enumerate(gains, start=1):
        best[i, 1:] = np.maximum.accumulate(np.maximum(best[i - 1, 1:], best[i - 1, :-1] + row))
    return best
