"""The ways of training that are compared on GLUE, by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from isotrope.errors import InputError
from isotrope.sources.corpora.columns import did_you_mean

BASE = "base"

#: The initial α's that the paper searches (Yan et al. 2022, Appendix B).
ALPHAS = (-0.2, -0.5, -0.8)


@dataclass(frozen=True)
class Method:
    """A way of training: a first stage as a sentence encoder or none, with SoftDecay, with ExpDecay.

    alpha: that SoftDecay begins with, None where there is no SoftDecay. block: the one that it is in, −1 for the last.
    """

    name: str
    first: str | None = None
    softdecay: bool = False
    expdecay: bool = False
    alpha: float | None = None
    block: int = -1


METHODS = {
    method.name: method
    for method in (
        Method(BASE),
        Method("softdecay", softdecay=True),
        Method("expdecay", expdecay=True),
        Method("sbert", first="sbert"),
        Method("bert-ct", first="bert-ct"),
        Method("simcse", first="simcse"),
        Method("simcse+softdecay", first="simcse", softdecay=True),
    )
}

#: What a method is compared with beside the base.
ALSO_AGAINST = {"simcse+softdecay": "simcse"}


def methods(names: Sequence[str], alphas: Sequence[float] = ALPHAS) -> list[Method]:
    """The methods of these names, the base first; one with SoftDecay is there once for each α.

    >>> [method.name for method in methods(["softdecay"], [-0.2, -0.5])]
    ['base', 'softdecay:alpha=-0.2', 'softdecay:alpha=-0.5']
    """
    if not alphas or not all(-1 < alpha < 0 for alpha in alphas):
        got = ", ".join(f"{alpha:g}" for alpha in alphas) or "none"
        raise InputError(f"got alpha {got}, expected numbers between −1 and 0, such as -0.2,-0.5,-0.8.")
    found = dict[str, Method]()
    for name in (BASE, *names):
        if name not in METHODS:
            raise InputError(
                f"there is no method {name!r}{did_you_mean(name, METHODS)}; there are {', '.join(METHODS)}."
            )
        method = METHODS[name]
        for alpha in alphas if method.softdecay else ():
            label = f"{name}:alpha={alpha:g}"
            found[label] = replace(method, name=label, alpha=alpha)
        if not method.softdecay:
            found[name] = method
    return list(found.values())


def family(name: str) -> str:
    """The method whose α is one of several.

    >>> family("simcse+softdecay:alpha=-0.2")
    'simcse+softdecay'
    """
    return name.partition(":")[0]
