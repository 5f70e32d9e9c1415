"""Drift and attention over checkpoints of one run, against numpy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from isotrope.errors import InputError
from isotrope.sources.models.load import Loaded, load
from isotrope.studies.anisotropy.checkpoints import (
    QUANTITIES,
    judge_checkpoints,
    measure_blocks_on_texts,
    measure_checkpoints,
    name_checkpoints,
)
from isotrope.studies.options import StudyOptions
from testkit.models import save_model, texts

TEXTS = texts(24, longest=8)


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A small BERT before and after some steps of training that push its rows in one direction."""
    folder = tmp_path_factory.mktemp("run")
    first = save_model(folder / "step-0", "bert")
    loaded = load(first, device="cpu")
    model = loaded.model.train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    direction = torch.ones(16) / 4
    for text in TEXTS[:8]:
        ids = torch.tensor([loaded.tokenizer(text)["input_ids"]])
        states = model(input_ids=ids, output_hidden_states=True).hidden_states
        loss = -(states[0] @ direction).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval().save_pretrained(folder / "step-8")
    loaded.tokenizer.save_pretrained(folder / "step-8")
    return [first, folder / "step-8"]


def find_record(loaded: Loaded, block: int, given: list[str]) -> dict[str, float]:
    """The quantities of one block over texts, by hand from the hidden states and the weights."""
    model = loaded.model
    attention = model.encoder.layer[block].attention.self
    rows, query, key, largest = [], [], [], []
    for text in given:
        ids = torch.tensor([loaded.tokenizer(text)["input_ids"]])
        with torch.inference_mode():
            state = model(input_ids=ids, output_hidden_states=True).hidden_states[block][0]
            q, k = (m(state).double().numpy().reshape(len(state), 2, 8) for m in (attention.query, attention.key))
        scores = np.einsum("ihd,jhd->hij", q, k) / np.sqrt(8)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        rows.append(state.double().numpy())
        query.append(q)
        key.append(k)
        largest.append(weights.max(-1).mean())

    def cosine(x: np.ndarray) -> float:
        unit = x / np.linalg.norm(x, axis=1, keepdims=True)
        return float((unit @ unit.T)[np.triu_indices(len(x), 1)].mean())

    every = {"query": np.concatenate(query), "key": np.concatenate(key)}
    joined = np.concatenate(rows)
    record = {
        "drift_norm": np.linalg.norm(joined.mean(0)),
        "mean_cosine": cosine(joined),
        "softmax_max": np.mean(largest),
    }
    for name, values in every.items():
        record[f"{name}_norm"] = np.linalg.norm(values, axis=2).mean()
        record[f"{name}_cosine"] = np.mean([cosine(values[:, head]) for head in range(2)])
    return record


def test_quantities_of_a_block_on_its_own_rows(checkpoints: list[Path]) -> None:
    loaded = load(checkpoints[0], device="cpu")
    frame = pd.DataFrame(measure_blocks_on_texts(loaded, TEXTS))
    assert len(frame) == 3 * 10  # blocks and groups
    for block, group in ((0, 0), (2, 3)):
        (found,) = frame[(frame["block"] == block) & (frame["group"] == group)].to_dict("records")
        expected = find_record(loaded, block, TEXTS[group::10])
        for name in QUANTITIES:
            assert found[name] == pytest.approx(expected[name], rel=1e-4, abs=1e-6), name


def test_checkpoints_of_a_small_run(checkpoints: list[Path], tmp_path: Path) -> None:
    options = StudyOptions(output=tmp_path / "s", text=TEXTS, quick=True, device="cpu")
    results = measure_checkpoints(options, checkpoints)
    means = results.tables[0].frame
    assert list(dict.fromkeys(means["checkpoint"])) == ["step-0", "step-8"]
    first = means[means["block"] == 0].set_index("checkpoint")["drift_norm"]
    assert first["step-8"] != first["step-0"]
    (claim,) = results.claims
    assert "from step-0 to step-8" in claim.text
    assert "over 10 groups of texts" in claim.evidence
    figure = results.figures[0].draw()
    assert len([axes for axes in figure.axes if axes.axison]) == len(QUANTITIES)


def make_frame(drift: float, weight: float, spread: float = 0.01) -> pd.DataFrame:
    rows: list[dict[str, Any]] = []
    for group in range(4):
        at = {"block": 0, "group": group}
        rows.append(at | {"checkpoint": "a", "drift_norm": 1.0, "softmax_max": 0.5})
        change = spread * (group - 1.5)
        rows.append(at | {"checkpoint": "b", "drift_norm": 1.0 + drift + change, "softmax_max": 0.5 + weight + change})
    return pd.DataFrame(rows)


@pytest.mark.parametrize(
    ("drift", "weight", "outcome"),
    [
        (1.0, 0.2, "agrees"),
        (1.0, -0.2, "contradicts"),
        (1.0, 0.0, "undecided"),
        (-0.5, -0.2, "agrees"),
        (-0.5, 0.2, "contradicts"),
        (0.0, 0.2, "undecided"),
    ],
)
def test_attention_sharpens_as_rows_drift(drift: float, weight: float, outcome: str) -> None:
    assert judge_checkpoints(make_frame(drift, weight)).outcome == outcome


def test_checkpoints_need_names_of_their_own() -> None:
    assert name_checkpoints(["run/step-1", "run/step-2"]) == {"step-1": "run/step-1", "step-2": "run/step-2"}
    for given in (["run/step-1"], ["a/step-1", "b/step-1"]):
        with pytest.raises(InputError, match="not two or more of different names"):
            name_checkpoints(given)
