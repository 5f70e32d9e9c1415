"""A new folder for results that were given none."""

from __future__ import annotations

from datetime import datetime
from itertools import count
from pathlib import Path


def fresh_folder(place: str, name: str) -> Path:
    """A name with the time that is not taken yet, not even where the clock was set back; nothing is made."""
    first = Path(place) / f"{name}-{datetime.now():%Y%m%d-%H%M%S}"
    others = (first.with_name(f"{first.name}-{number}") for number in count(2))
    return first if not first.exists() else next(other for other in others if not other.exists())
