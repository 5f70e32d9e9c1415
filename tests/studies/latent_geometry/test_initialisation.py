"""Fresh weights whose scale is chosen by geometry: nearer to the trained model, judged over seeds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from isotrope.finetuning.settings import Training
from isotrope.measures import eee, isoscore
from isotrope.sources.models.load import Loaded, load
from isotrope.studies.finetuning_plan import FineTuning
from isotrope.studies.latent_geometry.changed_models import reset_weights
from isotrope.studies.latent_geometry.corpus import sample_text
from isotrope.studies.latent_geometry.initialisation import (
    SCALES,
    choose_scale,
    compare_initialisations,
    compute_distance,
    judge_initialisation,
    measure_geometry,
    scale_weights,
)
from isotrope.studies.latent_geometry.protocol import Protocol
from isotrope.studies.options import StudyOptions
from testkit.models import save_model, texts

SENTENCES = [text for text in texts(120, longest=12, seed=1) if len(text.split()) > 2]


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Loaded:
    """A "trained" model whose weights are eight times fresh ones."""
    plain = load(save_model(tmp_path_factory.mktemp("bert"), "bert"), device="cpu")
    return scale_weights(reset_weights(plain, 3), 8.0)


def test_matrices_of_blocks_are_scaled_and_nothing_else(loaded: Loaded) -> None:
    before = {name: p.detach().clone() for name, p in loaded.model.named_parameters()}
    for name, after in scale_weights(loaded, 2.0).model.named_parameters():
        matrix = name.startswith("encoder.") and after.ndim > 1
        assert torch.equal(after, 2.0 * before[name] if matrix else before[name]), name


def make_protocol(loaded: Loaded, folder: Path) -> Protocol:
    options = StudyOptions(output=folder, models=["trained"], text=SENTENCES, tasks=[], device="cpu")
    sampled = sample_text(SENTENCES, None, tokens="words")
    return Protocol(options, lambda: sampled, lambda name: loaded, {}, None, FineTuning.plan(options, Training()))


def test_the_chosen_scale_is_nearer_to_the_trained_model(loaded: Loaded, tmp_path: Path) -> None:
    found = compare_initialisations(make_protocol(loaded, tmp_path), "trained", [0])
    table = found.tables[0].frame
    assert list(table["scale"]) == [1.0, *SCALES]
    fresh = table[table["weights"] == "fresh"].set_index("scale")["distance"]
    chosen = choose_scale(table)
    assert fresh[chosen] == fresh.min()
    assert fresh[chosen] < fresh[1.0]
    assert chosen == pytest.approx(8.0, rel=1.0)  # the scale that it was made with, or a neighbour
    assert [claim.outcome for claim in found.claims] == ["note"]


def test_distance_by_hand() -> None:
    rows = np.random.default_rng(0).normal(size=(50, 6)) * np.arange(1, 7)
    found = measure_geometry(rows)
    assert found == {"eee": eee(rows), "isoscore": isoscore(rows)}
    assert compute_distance({"eee": 0.5, "isoscore": 0.2}, {"eee": 0.3, "isoscore": 0.3}) == pytest.approx(0.15)


@pytest.mark.parametrize(
    ("gains", "outcome"),
    [([0.10, 0.11, 0.12], "agrees"), ([-0.10, -0.11, -0.12], "contradicts"), ([0.1, -0.1, 0.0], "undecided"),
     ([0.3], "undecided")],
)  # fmt: skip
def test_the_verdict_is_over_seeds(gains: list[float], outcome: str) -> None:
    rows = []
    for seed, gain in enumerate(gains):
        rows += [{"initialisation": "plain", "seed": seed, "glue": 0.5 + seed / 100}]
        rows += [{"initialisation": "by geometry", "seed": seed, "glue": 0.5 + seed / 100 + gain}]
    claim = judge_initialisation("one", pd.DataFrame(rows), 4.0)
    assert claim.outcome == outcome
    assert claim.ours == pytest.approx(np.mean(gains))


def test_plain_and_scaled_weights_are_fine_tuned_with_each_seed(
    loaded: Loaded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[str, int]] = []

    def score(self: Protocol, name: str, model: Loaded, seed: int) -> tuple[dict[str, float], list[str]]:
        seen.append((name, seed))
        return {"rte": 0.6 if "by geometry" in name else 0.5, "cola": 0.1 * seed}, []

    monkeypatch.setattr(Protocol, "score", score)
    monkeypatch.setattr(FineTuning, "names", ["rte", "cola"])
    found = compare_initialisations(make_protocol(loaded, tmp_path), "trained", [0, 1])
    expected = [(f"trained initialised {how} seed {seed}", seed) for seed in (0, 1) for how in ("plain", "by geometry")]
    assert seen == expected
    assert list(found.tables[1].frame["glue"]) == pytest.approx([0.25, 0.3, 0.3, 0.35])
    (claim,) = found.claims
    assert claim.ours == pytest.approx(0.05)
