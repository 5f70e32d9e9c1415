"""A GLUE average predicted from the geometry of a model's last layer, with what such a prediction is worth."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from isotrope.errors import InputError
from isotrope.formats.json import to_plain
from isotrope.pipeline import Progress
from isotrope.quantization.faiss_reference import choose_engine
from isotrope.sources.input import Input
from isotrope.sources.models.load import Loaded
from isotrope.studies.latent_geometry.corpus import SampledText, find_files, sample_text
from isotrope.studies.latent_geometry.measures import (
    KNOWN_SHIFT,
    MOST_ROWS,
    compute_measures,
    prepare_space,
    read_last_layer,
)
from isotrope.studies.latent_geometry.model_selection import choose_design, cross_validate
from isotrope.studies.latent_geometry.published import TABLE_2, read_models
from isotrope.studies.latent_geometry.regression import compute_skill, correlate, fit, split_models
from isotrope.studies.options import name_model
from isotrope.studies.representative_sample import SEQUENCES


@dataclass(frozen=True)
class Prediction:
    """A GLUE average (a share of 1) by one measure, with its 95 % prediction interval and what it is worth.

    Args:
        measure: the name of the measure.
        value: of the measure on the model.
        quantizer: the engine of the quantizers with its version; empty for a measure without one.
        regression: the terms, chosen by cross-validation.
        glue: the predicted average, cut to 0 to 1; NaN where the value is outside what the regression has seen.
        low: the lower end of the interval, cut likewise.
        high: the upper end of the interval.
        seen_low: the least value of the measure over the models that the regression was fitted to.
        seen_high: the largest such value.
        inside: whether the value lies between them.
        r2: of the regression.
        r_bert_small: correlation of the measure with GLUE over noisy BERT-small models.
        r_roberta: the same over noisy RoBERTa models.
        cross_error: root mean squared error on architectures that are left out in turn.
        error: root mean squared error on the 13 other models.
    """

    measure: str
    value: float
    quantizer: str
    regression: str
    glue: float
    low: float
    high: float
    seen_low: float
    seen_high: float
    inside: bool
    r2: float
    r_bert_small: float
    r_roberta: float
    cross_error: float
    error: float


@dataclass(frozen=True)
class Predictions:
    """All predictions for one model.

    Args:
        model: the name of the model.
        architecture: the one of the authors' that it is of, None for another.
        rows: the number of tokens that were measured.
        quantizer: the engine of the quantizers with its version.
        predictions: one for each measure, by increasing error in cross-validation.
        guess: the mean of the models that the regressions were fitted to.
        guess_cross_error: the root mean squared error of such a guess in cross-validation.
        guess_error: the root mean squared error of that guess on the 13 other models.
        spread: the standard deviation of these 13.
        warnings: reasons for caution.
    """

    model: str
    architecture: str | None
    rows: int
    quantizer: str
    predictions: list[Prediction]
    guess: float
    guess_cross_error: float
    guess_error: float
    spread: float
    warnings: list[str]

    @property
    def choice(self) -> Prediction | None:
        """The prediction with the least error in cross-validation among those inside what was seen."""
        return next((one for one in self.predictions if one.inside), None)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, None where there is no number."""
        chosen = self.choice
        data: dict[str, Any] = to_plain(asdict(self) | {"choice": None if chosen is None else chosen.measure})
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
    on them. The quantizers are faiss's, as in the paper, where it is installed.

    Args:
        model: hub id, folder or GGUF file; None for the embedded model.
        data: a folder with `latent_geometry/` (the authors' files), `wikitext-2/` and, where it is there, `ptb/`.
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
    if not find_files(root):
        raise InputError(
            f"there is no text in wikitext-2/ or ptb/ of {str(root)!r}; the prediction holds for sequences of "
            "WikiText-2 and Penn Treebank only, add them."
        )
    progress("choosing 5,000 sequences", 0, None)
    sampled = sample_text(None, root, count=SEQUENCES, seed=seed)
    reading = Input(model=model, text=sampled.texts, layers="-1", device=device, batch_size=batch_size)
    loaded = reading.load()
    rows = read_last_layer(reading, loaded, sampled.texts, MOST_ROWS, progress)
    progress(f"quantizing {len(rows):,} rows", 0, None)
    values = compute_measures(prepare_space(rows, seed=seed))
    found = predict(name_model(loaded.name), find_architecture(loaded), values, models, rows=len(rows))
    return replace(found, warnings=[*_warn_of_sample(sampled), *found.warnings])


def _warn_of_sample(sampled: SampledText) -> list[str]:
    """How the sample differs from the paper's."""
    warnings = []
    if not sampled.complete:
        read = ", ".join(str(row["text"]) for row in sampled.sources[:-1])
        warnings.append(
            f"the sequences are {sampled.unit} of {read}; those of the calibration are lines of all splits of Penn "
            "Treebank and WikiText-2."
        )
    if len(sampled.texts) < SEQUENCES:
        warnings.append(f"the text has {len(sampled.texts):,} sequences, the calibration {SEQUENCES:,}.")
    return warnings


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
    engine, quantizer = choose_engine()
    predictions = [
        _predict_from(name, architecture, values[name], models, quantizer)
        for name in TABLE_2
        if math.isfinite(values[name])
    ]
    warnings = [KNOWN_SHIFT] if engine == "own" else []
    if rows < MOST_ROWS:
        warnings.append(
            f"the sequences have {rows:,} tokens here, the calibration {MOST_ROWS:,}: quantized measures differ."
        )
    if architecture is None:
        warnings.append(
            "the model is none of BERT-small, BERT-base and RoBERTa: the regressions have seen nothing like it."
        )
    warnings += [f"{name} is undefined on this model." for name in TABLE_2 if not math.isfinite(values[name])]
    warnings += [
        f"{one.measure} is {one.value:.4g} here and {one.seen_low:.4g} to {one.seen_high:.4g} in the models that the "
        "regression has seen: there is no prediction."
        for one in predictions
        if not one.inside
    ]
    guess, y = float(perturbed["glue"].mean()), others["glue"].to_numpy(float)
    return Predictions(
        model=model,
        architecture=architecture,
        rows=rows,
        quantizer=quantizer,
        predictions=sorted(predictions, key=lambda one: one.cross_error),
        guess=guess,
        guess_cross_error=cross_validate(perturbed, ()),
        guess_error=math.sqrt(float(((y - guess) ** 2).mean())),
        spread=float(y.std()),
        warnings=warnings,
    )


def _predict_from(
    measure: str, architecture: str | None, value: float, models: pd.DataFrame, quantizer: str
) -> Prediction:
    """The prediction from one measure, by the regression that cross-validation chooses."""
    perturbed, others = split_models(models)
    design = choose_design(perturbed, measure)
    fitted = fit(perturbed, design.terms)
    new = pd.DataFrame([{measure: value, "architecture": architecture}])
    (low,), (high,) = fitted.interval(new)
    known = "architecture" in design.terms and architecture is not None
    seen = (perturbed[perturbed["architecture"] == architecture] if known else perturbed)[measure]
    inside = bool(seen.min() <= value <= seen.max())
    ends = np.clip([fitted.predict(new)[0], low, high], 0.0, 1.0) if inside else np.full(3, math.nan)
    by = {a: correlate(perturbed[perturbed["architecture"] == a], measure)["r"] for a in ("BERT-small", "RoBERTa")}
    return Prediction(
        measure=measure,
        value=value,
        quantizer=quantizer if measure.endswith(("additive", "product")) else "",
        regression=design.name,
        glue=float(ends[0]),
        low=float(ends[1]),
        high=float(ends[2]),
        seen_low=float(seen.min()),
        seen_high=float(seen.max()),
        inside=inside,
        r2=fitted.r2,
        r_bert_small=by["BERT-small"],
        r_roberta=by["RoBERTa"],
        cross_error=design.error,
        error=math.sqrt(compute_skill(fitted, others)["mse"]),
    )
