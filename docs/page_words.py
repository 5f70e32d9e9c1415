"""Durations, bytes and tables as the pages of the documentation write them."""

from __future__ import annotations


def span(seconds: float) -> str:
    """A duration in words.

    >>> [span(s) for s in (0.02, 7, 300, 7_200, 400_000)]
    ['20 ms', '7.0 s', '5.0 min', '2.0 h', '4.6 days']
    """
    for unit, length in (("days", 86_400), ("h", 3_600), ("min", 60), ("s", 1)):
        if seconds >= (2 * length if unit == "days" else length):
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds * 1e3:.0f} ms"


def amount(count: float) -> str:
    """Bytes in words.

    >>> [amount(n) for n in (900, 5e6, 3.07e12)]
    ['900 B', '5.0 MB', '3.1 TB']
    """
    for unit, length in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= length:
            return f"{count / length:.1f} {unit}"
    return f"{count:.0f} B"


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
