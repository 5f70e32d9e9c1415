"""Feeds damaged inputs to one target or to all; whatever is neither a value nor an IsotropeError is a defect.

    python tests/fuzz/harness.py TARGET [COUNT [FIRST]]
    python tests/fuzz/harness.py all [COUNT [FIRST]]

Input number i is made from i alone, so that a defect can be looked at again. The process may take no more than a
gigabyte beyond what it has at the start, and fill no more than 300 MB of it; an input no more than two seconds of its
own time.
"""

from __future__ import annotations

import os
import random
import resource
import signal
import sys
import tempfile
import traceback
from importlib import import_module
from pathlib import Path
from typing import NoReturn

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))

from mutations import mutated
from targets import TARGETS

from isotrope.errors import IsotropeError

#: Memory that one process may ask for and may fill beyond what it has at the start, and seconds for one input.
_ROOM, _FILLED, _SECONDS = 1 << 30, 300_000_000, 2.0

#: What many targets import.
_SHARED = ("pandas", "pyarrow.parquet", "scipy.stats", "isotrope.scanner", "isotrope.repairs")


class TooSlow(BaseException):
    """An input takes longer than it may."""


def _too_slow(*_: object) -> NoReturn:
    raise TooSlow


def _limit_memory() -> None:
    taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + _ROOM, taken + _ROOM))


def _peak() -> int:
    """Bytes that the process has filled at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _asked_for_too_much(error: BaseException | None) -> bool:
    """Whether an error comes from memory that was not there: a size was believed before it was checked."""
    while error is not None:
        # Arrow asks for what a packed buffer claims to become, and takes none of it before it is unpacked.
        if isinstance(error, MemoryError) and type(error).__name__ != "ArrowMemoryError":
            return True
        error = error.__cause__ or error.__context__
    return False


def outcome(name: str, data: bytes, folder: Path) -> str:
    """What becomes of an input: "value", "refused", or what is wrong."""
    path = folder / f"input{TARGETS[name].ending}"
    path.write_bytes(data)
    signal.setitimer(signal.ITIMER_VIRTUAL, _SECONDS)
    try:
        TARGETS[name].read(path)
        return "value"
    except IsotropeError as error:
        if _asked_for_too_much(error):
            return f"asked for too much memory: {error}"
        text = str(error)
        return "refused" if text and "\n" not in text.strip() else f"no sentence: {text!r}"
    except (Exception, TooSlow):
        return traceback.format_exc()
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def feed_all(count: int, first: int = 0) -> int:
    """Feed so many inputs to each target, in a process of its own; the number of targets with defects."""
    for module in _SHARED:
        import_module(module)
    bad = 0
    for name in TARGETS:
        print(name, file=sys.stderr)
        child = os.fork()
        if child == 0:
            found = feed(name, count, first)
            sys.stdout.flush()
            os._exit(min(found, 100))
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if code < 0:
            print(f"{name}: the process was ended by signal {-code}", flush=True)
        bad += code != 0
    return bad


def feed(name: str, count: int, first: int = 0) -> int:
    """Feed so many inputs to a target; the number of defects."""
    signal.signal(signal.SIGVTALRM, _too_slow)
    bad, values = 0, 0
    in_memory = Path("/dev/shm")  # where files are quick
    with tempfile.TemporaryDirectory(dir=in_memory if in_memory.is_dir() else None) as place:
        seeds = TARGETS[name].seeds(Path(place))
        folder = Path(place) / "inputs"
        folder.mkdir()
        for seed in seeds:
            if (found := outcome(name, seed, folder)) != "value":
                print(f"{name}: a whole input is refused: {found}")
                return 1
        _limit_memory()
        before = _peak()
        for number in range(first, first + count):
            print(number, file=sys.stderr, flush=True)  # where the process dies, the last one tells which killed it
            data = mutated(random.Random(f"{name} {number}"), seeds)
            found = outcome(name, data, folder)
            values += found == "value"
            if found not in ("value", "refused"):
                bad += 1
                print(f"{name} {number}: {found}")
        if _peak() - before > _FILLED:
            bad += 1
            print(f"{name}: {(_peak() - before) / 1e6:,.0f} MB were filled")
    print(f"{name}: {count:,} inputs, {values:,} read, {count - values - bad:,} refused, {bad:,} defects")
    return bad


if __name__ == "__main__":
    numbers = map(int, sys.argv[2:])
    sys.exit(min(feed_all(*numbers) if sys.argv[1] == "all" else feed(sys.argv[1], *numbers), 100))
