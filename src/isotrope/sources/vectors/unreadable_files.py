"""Files among many that cannot be read: the reading stops there, or goes on without them and says which."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from isotrope.errors import InputError
from isotrope.sources.vectors.row_blocks import Block, readable

CHOICES = ("stop", "skip")

#: What the workers of a cluster do: each only tries to open the files, and what cannot be read later is skipped there.
SKIP_UNOPENED = "skip what cannot be opened"

#: Rows that are read together when a file is tried.
_ROWS = 1024


def check_bad_files(bad_files: str) -> None:
    """Refuse what is neither of the two."""
    if bad_files not in (*CHOICES, SKIP_UNOPENED):
        raise InputError(f"there is no way {bad_files!r} with bad files; say {' or '.join(CHOICES)}.")


def whole_files(
    paths: Sequence[str], opened: Callable[[str], list[Block]], bad_files: str
) -> tuple[list[Block], dict[str, str]]:
    """The blocks of all files, and of those that were left out the reason, by path.

    To be left out, a file must be known to be bad before the first row is used: with "skip" each is read through
    once. Then rows keep their numbers, and a run that was stopped can go on. A file that is the only one is never left
    out.
    """
    if bad_files == "stop":
        return [block for path in paths for block in opened(path)], {}
    blocks: list[Block] = []
    left_out: dict[str, str] = {}
    for path in paths:
        try:
            found = opened(path)
            if bad_files != SKIP_UNOPENED:
                for block in found:
                    _read_through(block)
            blocks += found
        except InputError as error:
            left_out[path] = str(error)
    if not blocks:
        raise InputError(f"none of {len(paths):,} files can be read; the first: {next(iter(left_out.values()))}")
    return blocks, left_out


def _read_through(block: Block) -> None:
    with readable(block.name):
        rows = sum(len(values) for values, _ in block.pieces(0, _ROWS))
        if rows != block.rows:
            raise ValueError(f"it announced {block.rows} rows and holds {rows}")
