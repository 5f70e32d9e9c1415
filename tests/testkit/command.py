"""What a command said, and what a refusal must look like."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple


class Result(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Command = Callable[..., Result]


def one_sentence(result: Result) -> str:
    """What a refusal said, having checked that it is one sentence, and nothing else."""
    assert result.code == 2, result
    assert result.out == ""
    assert result.err.startswith("isotrope: ")
    assert result.err.count("\n") == 1
    assert result.err.endswith((".\n", "?\n"))
    assert "Traceback" not in result.err
    return result.err
