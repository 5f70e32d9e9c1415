"""The repairs that an evaluation tries: by name and settings, saved in folders, or as they are in Python."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from isotrope.errors import InputError, IsotropeError
from isotrope.repairs import REPAIRS, Repair, load_repair, named

#: The name of rows as they are.
RAW = "none"

#: The word for fitting each repair on the texts of the set that it is tried on, without their scores.
OWN = "own"


@dataclass(frozen=True)
class Treatment:
    """What is done to rows: nothing, or a repair. fitted_on: its text in a few words, None before it is fitted."""

    name: str
    repair: Repair | None = None
    fitted_on: str | None = None

    @property
    def ready(self) -> bool:
        """Whether there is nothing to fit."""
        return self.repair is None or self.fitted_on is not None

    def fit(self, rows: Any, fitted_on: str, text: str) -> Treatment:
        """The same treatment fitted to rows (n, d), unless it was fitted before. text: theirs, for a refusal."""
        if self.repair is None or self.ready:
            return self
        try:
            repair = type(self.repair)(**self.repair.get_params()).fit(rows)
        except IsotropeError as error:
            raise InputError(f"{self.name} cannot be fitted on {text}: {error}") from error
        return Treatment(self.name, repair, fitted_on)

    def __call__(self, rows: Any) -> Any:
        """Rows as they are after it, (n, d) -> (n, k)."""
        return rows if self.repair is None else self.repair.transform(rows)

    def refuse_width(self, width: int) -> None:
        """Refuse a repair that was fitted to rows of another width."""
        if self.repair is not None and self.ready and self.repair.n_features_in_ != width:
            raise InputError(
                f"the repair {self.name} is for rows of width {self.repair.n_features_in_}, the model gives rows of "
                f"width {width}; fit one on rows of this model."
            )


def treatments(repairs: Sequence[str | Path | Repair], *, seed: int = 0, model: str | None = None) -> list[Treatment]:
    """No repair first, and then each of the repairs named.

    repairs: names with settings such as `softdecay:alpha=-0.2`, folders of saved repairs, `none`, or repairs, fitted or
    not. seed: for those that draw at random, unless they name one. model: whose rows they are for; a saved repair of
    another is warned of.

    >>> [t.name for t in treatments(["softdecay", "whitening:strength=0.5"])]
    ['none', 'softdecay', 'whitening:strength=0.5']
    """
    found = {RAW: Treatment(RAW)}
    for given in repairs:
        made = _treatment(given, seed, model)
        found[made.name] = made
    return list(found.values())


def _treatment(given: str | Path | Repair, seed: int, model: str | None) -> Treatment:
    if isinstance(given, Repair):
        return Treatment(repr(given), given, _text(given) if given.__sklearn_is_fitted__() else None)
    name = str(given).strip()
    if name == RAW:
        return Treatment(RAW)
    if isinstance(given, Path) or (name not in REPAIRS and Path(name).is_dir()):
        loaded = load_repair(name, model=model)
        return Treatment(name, loaded, _text(loaded))
    if "/" in name or os.sep in name:
        raise InputError(f"there is no folder {name!r} with a saved repair; check the path.")
    repair = named(name)
    if "seed" in repair.get_params() and "seed=" not in name:
        repair.set_params(seed=seed)
    return Treatment(name, repair)


def _text(fitted: Repair) -> str:
    """What a repair says that it was fitted on."""
    corpora = [source["corpus"]["name"] for source in fitted.fitted_on_["sources"] if "corpus" in source]
    return ", ".join(corpora) or "as saved"
