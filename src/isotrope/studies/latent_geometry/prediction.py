"""A GLUE average predicted from the geometry of a model's last layer, with what such a prediction is worth."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from isotrope.errors import InputError
from isotrope.formats.json import to_plain
from isotrope.pipeline import Progress
from isotrope.sources.corpora.corpus import open_corpus
from isotrope.sources.input import Input
from isotrope.sources.models.load import Loaded
from isotrope.studies.latent_geometry.measures import CORPUS, MOST_ROWS, compute_measures, read_last_layer
from isotrope.studies.latent_geometry.published import TABLE_2, read_models
from isotrope.studies.latent_geometry.regression import compute_skill, correlate, fit, split_models
from isotrope.studies.representative_sample import SEQUENCES, draw_samples, split_sequences


@dataclass(frozen=True)
class Prediction:
    """A GLUE average (a share of 1) by one measure, with its 95 % prediction interval and what it is worth.

    Args:
        measure: the name of the measure.
        value: of the measure on the model.
        glue: the predicted average.
        low: the lower end of the interval.
        high: the upper end of the interval.
        seen_low: the least value of the measure over the models that the regression was fitted to.
        seen_high: the largest such value.
        inside: whether the value lies between them.
        r2: of the regression.
        r_bert_small: correlation of the measure with GLUE over noisy BERT-small models.
        r_roberta: the same over noisy RoBERTa models.
        error: root mean squared error on the 13 other models.
    """

    measure: str
    value: float
    glue: float
    low: float
    high: float
    seen_low: float
    seen_high: float
    inside: bool
    r2: float
    r_bert_small: float
    r_roberta: float
    error: float


@dataclass(frozen=True)
class Predictions:
    """All predictions for one model.

    Args:
        model: the name of the model.
        architecture: the one that the regressions used, None for none.
        rows: the number of tokens that were measured.
        predictions: one for each measure.
        guess: the mean of the models that the regressions were fitted to.
        guess_error: the root mean squared error of that guess on the 13 other models.
        spread: the standard deviation of these 13.
        warnings: reasons for caution.
    """

    model: str
    architecture: str | None
    rows: int
    predictions: list[Prediction]
    guess: float
    guess_error: float
    spread: float
    warnings: list[str]

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        data: dict[str, Any] = to_plain(asdict(self))
        return data


def predict_glue(
    model: str | Path | None = None,
    *,
    data: str | Path,
    seed: int = 0,
    device: str = "auto",
    batch_size: int | None = None,
    progress: Progress | None = None,
) -> Predictions:
    """Predict a model's GLUE average from each measure of its last layer, calibrated on the authors' 168 models.

    Corpus, 5,000 sequences, 116,667 tokens, last layer, special tokens and quantizers are fixed: the measures depend
    on them.

    Args:
        model: hub id, folder or GGUF file; None for the embedded model.
        data: a folder with `latent_geometry/` (the authors' files) and `wikitext-2/valid.txt`.
        seed: of the sequences and the quantizers.
        device: the device of the model.
        batch_size: texts in a batch; None for the default of a scan.
        progress: called with what is being done.

    References:
        Marbut, Chandler and Wheeler, Exploring the Impact of a Transformer's Latent Space Geometry on Downstream Task
        Performance
    """
    progress = progress or (lambda *_: None)
    root = Path(data)
    models = read_models(root / "latent_geometry" if (root / "latent_geometry").is_dir() else root)
    if not (root / CORPUS).is_file():
        raise InputError(
            f"there is no {CORPUS} in {str(root)!r}; the prediction holds for sequences of WikiText-2 only, add it."
        )
    progress("choosing 5,000 sequences", 0, None)
    sentences = split_sequences(text.text for text in open_corpus(root / CORPUS))
    texts = draw_samples(sentences, SEQUENCES, seed=seed)[0].texts
    reading = Input(model=model, text=texts, layers="-1", device=device, batch_size=batch_size)
    loaded = reading.load()
    rows = read_last_layer(reading, loaded, texts, MOST_ROWS, progress)
    progress("quantizing 116,667 rows", 0, None)
    return predict(loaded.name, find_architecture(loaded), compute_measures(rows, seed=seed), models, rows=len(rows))


def find_architecture(loaded: Loaded) -> str | None:
    """Which of the three architectures that the authors perturbed a model is of, None for another."""
    config = loaded.model.config
    if config.model_type == "roberta":
        return "RoBERTa"
    if config.model_type == "bert":
        return {512: "BERT-small", 768: "BERT-base"}.get(config.hidden_size)
    return None


def predict(
    model: str, architecture: str | None, values: Mapping[str, float], models: pd.DataFrame, *, rows: int
) -> Predictions:
    """The predictions for a model whose measures are known; models: see `read_models`."""
    perturbed, others = split_models(models)
    new = pd.DataFrame([{**values, "architecture": architecture}])
    predictions, warnings = [], []
    for name in TABLE_2:
        if not math.isfinite(values[name]):
            warnings.append(f"{name} is undefined on this model.")
            continue
        fitted = fit(perturbed, [name] if architecture is None else [name, "architecture"])
        (low,), (high,) = fitted.interval(new)
        seen = perturbed[name] if architecture is None else perturbed[perturbed["architecture"] == architecture][name]
        inside = bool(seen.min() <= values[name] <= seen.max())
        if not inside:
            warnings.append(
                f"{name} is {values[name]:.4g} here and {seen.min():.4g} to {seen.max():.4g} in the models that the "
                "regression has seen: do not use its prediction."
            )
        by = {a: correlate(perturbed[perturbed["architecture"] == a], name)["r"] for a in ("BERT-small", "RoBERTa")}
        predictions.append(
            Prediction(
                measure=name,
                value=values[name],
                glue=float(fitted.predict(new)[0]),
                low=float(low),
                high=float(high),
                seen_low=float(seen.min()),
                seen_high=float(seen.max()),
                inside=inside,
                r2=fitted.r2,
                r_bert_small=by["BERT-small"],
                r_roberta=by["RoBERTa"],
                error=math.sqrt(compute_skill(fitted, others)["mse"]),
            )
        )
    guess = float(perturbed["glue"].mean())
    if architecture is None:
        warnings.insert(
            0, "the model is none of BERT-small, BERT-base and RoBERTa: the regressions have seen nothing like it."
        )
    if rows < MOST_ROWS:
        warnings.insert(
            0, f"the sequences have {rows:,} tokens here, the calibration {MOST_ROWS:,}: quantized measures differ."
        )
    y = others["glue"].to_numpy(float)
    return Predictions(
        model, architecture, rows, predictions, guess, float(((y - guess) ** 2).mean()) ** 0.5, float(y.std()), warnings
    )
