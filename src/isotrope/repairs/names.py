"""A repair by its name and settings, in one word such as `softdecay:alpha=-0.2`."""

from __future__ import annotations

from isotrope.errors import InputError
from isotrope.repairs.repair import REPAIRS, Repair

#: What the command line calls parameters that have a longer name in Python.
_SHORT = {"dimensions": "n_components", "directions": "n_directions"}

_WORDS = {"true": True, "false": False, "none": None}


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
