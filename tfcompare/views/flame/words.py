"""What a flame graph says about itself."""

from __future__ import annotations


def subtitle(*, is_alone: bool, is_neutral: bool, per: str) -> str:
    """What widths and colours mean."""
    each = f" per {per}" if per else ""
    if is_alone:
        return f"Width: time{each}."
    colour = "" if is_neutral else " Colour: its change."
    return f"Width: the longer time{each}.{colour}"
