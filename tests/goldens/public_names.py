"""The public names, and how each of them is called."""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from typing import Any

#: The packages whose `__all__` is public.
PACKAGES = (
    "isotrope",
    "isotrope.measures",
    "isotrope.repairs",
    "isotrope.nn",
    "isotrope.studies",
    "isotrope.integrations",
)

_REPAIR = [
    *("fit", "fit_moments", "fit_transform", "get_feature_names_out", "get_params", "inverse_transform"),
    *("partial_fit", "save", "score", "score_samples", "set_output", "set_params", "transform"),
    *("affine_", "fit_check_", "fitted_on_", "gains_", "left_alone_", "likelihoods_", "map_", "n_features_in_"),
    *("normalizes_", "query_rounding_", "spectrum_"),
]
_STATISTIC = ["arrays", "empty", "from_arrays", "of"]

#: The methods and properties that users call, of the classes that have more for the inside of isotrope.
_MEMBERS = {
    "Advice": ["layers", "pooling", "to_dict", "token_weights", "words"],
    "Affine": ["columns", "inverse", "load", "push", "save", "then", "to_torch", "width"],
    "Findings": [
        "from_dict",
        "from_json",
        "get",
        "model",
        "plot",
        "report",
        "revision",
        "to_dict",
        "to_frame",
        "to_json",
    ],
    "GeometryMonitor": ["on_step_end", "on_train_begin", "read"],
    "Measure": ["bounds", "value"],
    "Run": ["findings", "finished"],
    **dict.fromkeys(("Moments", "Sample", "SequenceStatistics", "TokenStatistics"), _STATISTIC),
    **dict.fromkeys(("AllButTheTop", "Centering", "ClusterIsotropy", "Flow", "SoftDecay", "Whitening"), _REPAIR),
}


def describe_names() -> dict[str, Any]:
    """Every public name, sorted, with what `describe` says of it."""
    found: dict[str, Any] = {}
    for package in PACKAGES:
        module = import_module(package)
        found |= {f"{package}.{name}": describe(getattr(module, name)) for name in getattr(module, "__all__", ())}
    measures = import_module("isotrope.measures")
    found |= {f"isotrope.measures.{name}": {"kind": "measure"} for name in measures.MEASURES.names()}
    return dict(sorted(found.items()))


def describe(thing: Any) -> dict[str, Any]:
    """What a name stands for: a class, a function, a module or a value, with its parameters and members."""
    if inspect.isclass(thing):
        members = {name: getattr(thing, name) for name in _MEMBERS.get(thing.__name__, ()) if hasattr(thing, name)}
        described = {name: _parameters(member) for name, member in members.items()}
        return {"kind": "class", "parameters": _parameters(thing), "members": described}
    if inspect.isfunction(thing):
        return {"kind": "function", "parameters": _parameters(thing)}
    return {"kind": "module" if inspect.ismodule(thing) else "value"}


def _parameters(thing: Any) -> list[str] | None:
    """The parameters as they are written, such as `["X", "*", "seed=0"]`; None where nothing can be called."""
    if not callable(thing) or (inspect.isclass(thing) and issubclass(thing, Exception)):
        return None
    written: list[str] = []
    for p in inspect.signature(thing).parameters.values():
        if p.name.startswith("_"):
            continue
        if p.kind is p.KEYWORD_ONLY and not any(one.startswith("*") for one in written):
            written.append("*")
        stars = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        written.append(stars + p.name + ("" if p.default is p.empty else f"={_shorten(p.default)}"))
    return written


def _shorten(default: Any) -> str:
    return "..." if inspect.isroutine(default) else re.sub(r" at 0x[0-9a-f]+", "", repr(default))


def find_losses(recorded: dict[str, Any], now: dict[str, Any] | None) -> list[str]:
    """List in words what a caller of the recorded form would miss; what was added is no loss."""
    if now is None:
        return ["the name is gone"]
    if recorded["kind"] != now["kind"]:
        return [f"it was a {recorded['kind']} and is a {now['kind']}"]
    losses = _find_changes(recorded.get("parameters"), now.get("parameters"))
    for name, parameters in recorded.get("members", {}).items():
        if name not in now["members"]:
            losses.append(f"{name} is gone")
        else:
            losses += [f"{name}: {change}" for change in _find_changes(parameters, now["members"][name])]
    return losses


def _find_changes(recorded: list[str] | None, now: list[str] | None) -> list[str]:
    """List the changes of parameters that break a call."""
    if recorded is None or now is None:
        return [] if recorded is now else [f"it was {recorded} and is {now}"]
    (before, before_named), (after, after_named) = _split(recorded), _split(now)
    changes = [] if after[: len(before)] == before else [f"the parameters were {recorded} and are {now}"]
    changes += [f"the parameter {one} is gone" for one in before_named if one not in after_named]
    new = after[len(before) :] + [one for one in after_named if one not in before_named]
    return changes + [f"the new parameter {one} has no default" for one in new if "=" not in one and "*" not in one]


def _split(parameters: list[str]) -> tuple[list[str], list[str]]:
    """Parameters by position, and by name alone: those from the first star on."""
    first = next((i for i, one in enumerate(parameters) if one.startswith("*")), len(parameters))
    return parameters[:first], parameters[first:]
