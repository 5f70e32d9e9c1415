"""A repair from the folder that it was saved in, or from a word such as `softdecay:alpha=-0.2`."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotrope.errors import InputError
from isotrope.repairs import persistence as saved
from isotrope.repairs.query_rounding import QueryRounding
from isotrope.repairs.repair import REPAIRS, Repair
from isotrope.statistics.saved_arrays import name_file

#: What the command line calls parameters that have a longer name in Python.
_SHORT = {"dimensions": "n_components", "directions": "n_directions"}

_WORDS = {"true": True, "false": False, "none": None}


def load_repair(folder: str | Path, *, width: int | None = None, model: str | None = None) -> Repair:
    """The repair that `save` wrote.

    Args:
        folder: where it was saved.
        width: of the rows that it is for; another is refused.
        model: whose rows it is for; another is warned of.
    """
    facts, arrays = saved.read(folder)
    try:
        with name_file(Path(folder)):
            return _restore(folder, facts, arrays, width, model)
    except (KeyError, TypeError, AttributeError, IndexError, OverflowError) as error:
        raise saved.make_damage_error(Path(folder)) from error


def _restore(
    folder: str | Path,
    facts: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
    width: int | None,
    model: str | None,
) -> Repair:
    if facts["repair"] == "affine":
        raise InputError(f"{str(folder)!r} holds a bare map; use Affine.load.")
    if width is not None and width != facts["width"]:
        raise InputError(
            f"the repair in {str(folder)!r} is for rows of width {facts['width']}, got rows of width {width}; "
            "fit one on these rows."
        )
    for source in facts["fitted_on"].get("sources", []):
        if model is not None and source.get("model") not in (None, model):
            warnings.warn(
                f"the repair in {str(folder)!r} was fitted on rows of {source['model']}, not of {model}", stacklevel=2
            )
    found = REPAIRS.get(facts["repair"])(**facts["parameters"])
    found.restore(arrays, facts["fitted_on"])
    found.normalizes_ = facts.get("normalize", "none")  # 0.1 never divided
    if rounding := facts.get("query_rounding"):
        found._query_rounding = QueryRounding(**rounding)
    if facts["feature_names"] is not None:
        found.feature_names_in_ = np.array(facts["feature_names"], dtype=object)
    return found


def named(text: str) -> Repair:
    """The repair, not fitted yet, that a name stands for; settings follow with a colon before each.

    >>> named("whitening:strength=0.5:dimensions=256")
    Whitening(n_components=256, strength=0.5)
    """
    name, *settings = text.split(":")
    repair = REPAIRS.get(name.strip())()
    known = repair.get_params()
    for setting in settings:
        word, given, value = setting.partition("=")
        parameter = word.strip() if word.strip() in known else _SHORT.get(word.strip(), "")
        if not given or parameter not in known:
            takes = ", ".join(known) or "no settings"
            raise InputError(f"{name} has no setting {setting!r}, expected name=value with one of: {takes}.")
        read = _value(value.strip())
        if isinstance(read, str) != isinstance(known[parameter], str):
            kind = "a word" if isinstance(known[parameter], str) else "a number"
            raise InputError(f"{name} got {setting!r}, expected {kind} after the equals sign.")
        repair.set_params(**{parameter: read})
    return repair


def _value(text: str) -> object:
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
