"""Treatments of rows that an evaluation compares: none, and repairs by name, from a folder or from Python."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from isotrope.errors import InputError, IsotropeError
from isotrope.pipeline import Progress
from isotrope.repairs import REPAIRS, Repair, load_repair, named
from isotrope.sources import EMBEDDED
from isotrope.sources.corpora.corpus import Corpus, open_corpus
from isotrope.sources.text.encoder import Encoder

#: The treatment that leaves rows unchanged.
RAW = "none"

#: The name of the text of a set itself: each repair is fitted on the set that it is evaluated on, without gold scores.
OWN = "own"


class EvaluatedSystem(Protocol):
    """Where rows come from: an encoder, or vectors, which have neither layers nor a pooling."""

    @property
    def name(self) -> str:
        """The name of the model, or of the vectors."""

    @property
    def layers(self) -> str | None:
        """The layers that rows are the average of."""

    @property
    def pooling(self) -> str | None:
        """How tokens become one row."""


@dataclass(frozen=True)
class Treatment:
    """What is done to rows: nothing, or a repair. fitted_on: the name of its text, None before it is fitted."""

    name: str
    repair: Repair | None = None
    fitted_on: str | None = None

    @property
    def ready(self) -> bool:
        """Whether there is nothing to fit."""
        return self.repair is None or self.fitted_on is not None

    def fit(self, rows: Any, fitted_on: str, text: str) -> Treatment:
        """Fit the repair to rows (n, d), unless it is fitted already.

        Args:
            rows: rows to fit on.
            fitted_on: name of the text in results.
            text: description of the text in errors.

        Returns:
            The fitted treatment.
        """
        if self.repair is None or self.ready:
            return self
        try:
            repair = type(self.repair)(**self.repair.get_params()).fit(rows)
        except IsotropeError as error:
            raise InputError(f"{self.name} cannot be fitted on {text}: {error}") from error
        return Treatment(self.name, repair, fitted_on)

    def __call__(self, rows: Any) -> Any:
        """Apply the treatment to rows, (n, d) -> (n, k)."""
        return rows if self.repair is None else self.repair.transform(rows)

    def check_width(self, width: int) -> None:
        """Raise InputError for a repair that was fitted to rows of another width."""
        if self.repair is not None and self.ready and self.repair.n_features_in_ != width:
            raise InputError(
                f"the repair {self.name} is for rows of width {self.repair.n_features_in_}, the rows here are of "
                f"width {width}; fit one on such rows."
            )

    def describe(self, system: EvaluatedSystem) -> dict[str, Any]:
        """The columns of a table of scores that say which system was evaluated."""
        return {
            "model": system.name,
            "repair": self.name,
            "layers": system.layers,
            "pooling": system.pooling,
            "fitted_on": self.fitted_on,
        }


def parse_treatments(
    repairs: Sequence[str | Path | Repair],
    *,
    seed: int = 0,
    model: str | Path | None = None,
    of_vectors: bool = False,
) -> list[Treatment]:
    """List the treatments of an evaluation: no repair first, then each repair.

    Args:
        repairs: names with settings such as `softdecay:alpha=-0.2`, folders of saved repairs, `none`, or repairs,
            fitted or not.
        seed: seed of repairs that use random numbers, unless their settings name one.
        model: model of the rows, None for the embedded default; a saved repair of another model gives a warning.
        of_vectors: whether rows are vectors that come without a model, so that there is nothing to warn of.

    Examples:
        >>> [t.name for t in parse_treatments(["softdecay", "whitening:strength=0.5"])]
        ['none', 'softdecay', 'whitening:strength=0.5']
    """
    if not 0 <= seed < 2**31:
        raise InputError(f"the seed is {seed}, expected 0 to {2**31 - 1:,}.")
    of_model = None if of_vectors else EMBEDDED if model is None else str(model)
    found = {RAW: Treatment(RAW)}
    for given in repairs:
        made = _parse_treatment(given, seed, of_model)
        found[made.name] = made
    return list(found.values())


def _parse_treatment(given: str | Path | Repair, seed: int, model: str | None) -> Treatment:
    if isinstance(given, Repair):
        return Treatment(repr(given), given, _fit_text_of(given) if given.__sklearn_is_fitted__() else None)
    name = str(given).strip()
    if name == RAW:
        return Treatment(RAW)
    if isinstance(given, Path) or (name not in REPAIRS and Path(name).is_dir()):
        loaded = load_repair(name, model=model)
        return Treatment(name, loaded, _fit_text_of(loaded))
    if "/" in name or os.sep in name:
        raise InputError(f"there is no folder {name!r} with a saved repair; check the path.")
    repair = named(name)
    if "seed" in repair.get_params() and "seed=" not in name:
        repair.set_params(seed=seed)
    return Treatment(name, repair)


def _fit_text_of(fitted: Repair) -> str:
    """The name of the text that a repair was fitted on."""
    corpora = [source["corpus"]["name"] for source in fitted.fitted_on_["sources"] if "corpus" in source]
    return ", ".join(corpora) or "as saved"


def open_fit_text(fit_text: str | Path | Sequence[str]) -> tuple[str, Corpus] | None:
    """Open the text that repairs are fitted on; None for the texts of each set itself.

    Returns:
        The name of the text in results, and the corpus.
    """
    if isinstance(fit_text, str) and fit_text == OWN:
        return None
    corpus = open_corpus(fit_text)
    return str(fit_text) if isinstance(fit_text, (str, Path)) else corpus.name, corpus


def prepare_treatments(
    treatments: Sequence[Treatment],
    encoder: Encoder,
    fit_text: tuple[str, Corpus] | None,
    sample: str,
    progress: Progress,
) -> list[Treatment]:
    """Load the model, check that the treatments match its rows, and fit them on a text of their own.

    Args:
        treatments: treatments of an evaluation.
        encoder: encoder of the model.
        fit_text: name and corpus, None to fit on each set later.
        sample: any text, to find the width of the rows.
        progress: called with a stage, what is done and the total.
    """
    progress("loading the model", 0, None)
    width = encoder([sample]).shape[1]
    for treatment in treatments:
        treatment.check_width(width)
    if fit_text is None or all(treatment.ready for treatment in treatments):
        return list(treatments)
    name, corpus = fit_text
    rows = encoder.of(corpus, partial(progress, f"encoding {name}"))
    return [treatment.fit(rows, name, name) for treatment in treatments]
