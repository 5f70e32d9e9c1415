"""scan() and measure() from Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import isotrope
from isotrope.errors import InputError, StoreError
from isotrope.readings.selected_measures import resolve_measures
from isotrope.runs.run import Run
from isotrope.storage.provenance import format_command

ROWS = np.random.default_rng(3).normal(size=(500, 6))


def test_public_names() -> None:
    assert isotrope.scan(vectors=ROWS, measures="isoscore").get("isoscore").value == pytest.approx(
        isotrope.measure(ROWS, ["isoscore"])["isoscore"]
    )


def test_output_can_be_read_again(tmp_path: Path) -> None:
    found = isotrope.scan(vectors=ROWS, output=tmp_path / "run")
    again = Run(tmp_path / "run").findings()
    assert again.to_json() == found.to_json()
    for name, table in found.tables.items():
        assert table.equals(again.tables[name])
    with pytest.raises(StoreError, match="already holds a run"):
        isotrope.scan(vectors=ROWS, output=tmp_path / "run")


def test_the_seed_chooses_the_sample_and_is_recorded() -> None:
    first, same, other = (isotrope.scan(vectors=ROWS, sample=100, seed=seed) for seed in (1, 1, 2))
    assert first.to_dict()["readings"] == same.to_dict()["readings"]
    a, b = first.get("isoscore"), other.get("isoscore")
    assert (a.value, a.seed, b.seed) == (b.value, 1, 2)
    assert (a.low, a.high) != (b.low, b.high)


def test_batches_do_not_matter() -> None:
    a, b = (isotrope.scan(vectors=ROWS, batch_size=size) for size in (7, 500))
    for one, two in zip(a.readings, b.readings, strict=True):
        for end in ("value", "low", "high"):
            assert getattr(one, end) == pytest.approx(getattr(two, end), rel=1e-9, abs=1e-9, nan_ok=True)


def test_progress_is_told() -> None:
    seen: list[tuple[str, float, float | None]] = []
    isotrope.scan(vectors=ROWS, batch_size=100, progress=lambda *now: seen.append(now))
    assert ("reading rows", 500, 500) in seen
    what, done, total = seen[-1]
    assert what == "measuring"
    assert done == pytest.approx(total)


def test_long_measuring_is_announced_and_told_step_by_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("isotrope.pipeline.estimate_seconds_after", lambda *_: 240.0)
    seen: list[tuple[str, float, float | None]] = []
    isotrope.scan(vectors=ROWS, measures="moments,quantized_2x16", progress=lambda *now: seen.append(now))
    assert seen[0][0] == "reading rows, then about 4 minutes of measuring"
    measuring = [done for what, done, _ in seen if what == "measuring"]
    assert measuring[0] == 0
    assert len(measuring) == 4  # moments, and the cells of two quantizers
    assert measuring == sorted(measuring)


def test_measures_across_layers_bring_what_they_are_made_of() -> None:
    names = [m.name for m in resolve_measures("drift_correlation_pearson").measures]
    assert {"mean_cosine", "drift_norm"} <= set(names)


def test_measure_names_what_it_cannot_take() -> None:
    values = isotrope.measure(ROWS)
    assert "isoscore" in values
    assert all(isinstance(value, float) for value in values.values())
    with pytest.raises(InputError, match="self_similarity cannot be taken from rows alone"):
        isotrope.measure(ROWS, ["self_similarity"])


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"vectors": ROWS, "text": "x"}, "vectors alone"),
        ({"vectors": ROWS, "pooling": "mean"}, "pooling"),
        ({"vectors": ROWS, "precision": "half"}, "half"),
        ({"vectors": ROWS, "resume": True}, "nothing to resume"),
        ({"vectors": ROWS[:1]}, "one row has no geometry; give at least two"),
        ({"vectors": np.vstack([ROWS[:1], np.zeros((3, 6))])}, "besides 3"),
        ({"vectors": [[1.0, 2.0]]}, "list"),
    ],
)
def test_refusals(arguments: dict[str, Any], word: str) -> None:
    with pytest.raises(InputError, match=word):
        isotrope.scan(**arguments)


@pytest.mark.parametrize(
    ("argument", "shown"),
    [
        ("https://me:pass@host/x.npy", "'https://***@host/x.npy'"),
        ("https://hf_abcdefgh1234567890@host/x", "'https://***@host/x'"),
        ("hf_abcdefgh1234567890", "'hf_***'"),
        ("https://host/x?api_key=123&y=2", "'https://host/x?api_key=***&y=2'"),
        ("--token=abc", "'--token=***'"),
        ("hf_internal/model", "hf_internal/model"),
        ("me@host.npy", "me@host.npy"),
    ],
)
def test_secrets_are_masked(argument: str, shown: str) -> None:
    assert format_command(["/usr/bin/isotrope", "scan", argument]) == f"isotrope scan {shown}"
