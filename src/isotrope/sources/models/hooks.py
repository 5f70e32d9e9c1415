"""Layers by name: the outputs of modules of a model that gives no hidden states, or not the ones that are asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from fnmatch import fnmatchcase
from typing import Any

from isotrope.errors import InputError


def find_modules(model: Any, patterns: str) -> dict[str, Any]:
    """The modules that patterns such as "patch_embed,blocks.*" name, in the order of the patterns and of the model.

    A star stands for one part of a name, so that `blocks.*` is blocks.0 but not blocks.0.norm.

    >>> import torch
    >>> net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Sequential(torch.nn.ReLU()))
    >>> list(find_modules(net, "1.0,*"))
    ['1.0', '0', '1']
    """
    found: dict[str, Any] = {}
    modules = dict(model.named_modules())
    for pattern in (part.strip() for part in patterns.split(",")):
        named = {name: module for name, module in modules.items() if name and _matches(name, pattern)}
        if not named:
            raise InputError(f"no module of the model is named {pattern!r}; {suggest_hooks(model)}.")
        found |= {name: module for name, module in named.items() if name not in found}
    return found


def _matches(name: str, pattern: str) -> bool:
    names, patterns = name.split("."), pattern.split(".")
    return len(names) == len(patterns) and all(map(fnmatchcase, names, patterns))


def suggest_hooks(model: Any) -> str:
    """Which hook to name: the numbered blocks of a model, the most first, else its parts.

    >>> import torch
    >>> suggest_hooks(torch.nn.ModuleDict({"blocks": torch.nn.ModuleList([torch.nn.ReLU(), torch.nn.ReLU()])}))
    'name the modules whose outputs are its layers with --hook, such as blocks.* (2 modules)'
    """
    counts: dict[str, int] = {}
    for name, _ in model.named_modules():
        stem, _, last = name.rpartition(".")
        if last.isdigit() and not any(part.isdigit() for part in stem.split(".")):
            pattern = f"{stem}.*" if stem else "*"
            counts[pattern] = counts.get(pattern, 0) + 1
    if not counts:
        counts = {name: 1 for name, _ in model.named_children()}
    most = sorted(counts, key=lambda pattern: -counts[pattern])[:3]
    listed = " or ".join(f"{name} ({counts[name]} module{'s' if counts[name] > 1 else ''})" for name in most)
    return f"name the modules whose outputs are its layers with --hook, such as {listed or 'their names'}"


@contextmanager
def record_outputs(modules: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """What modules give while the context lasts, by name; the last time where one runs several times."""
    seen: dict[str, Any] = {}

    def keep(name: str) -> Any:
        return lambda _, __, out: seen.__setitem__(name, _tensor(out))

    hooks = [module.register_forward_hook(keep(name)) for name, module in modules.items()]
    try:
        yield seen
    finally:
        for hook in hooks:
            hook.remove()


def _tensor(out: Any) -> Any:
    """The output, or the first of several."""
    while not hasattr(out, "shape"):
        parts = list(out.values()) if isinstance(out, Mapping) else list(out or ())
        if not parts:
            return None
        out = parts[0]
    return out
