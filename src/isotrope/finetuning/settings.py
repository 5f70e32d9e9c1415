"""Settings of fine-tuning, without torch: hyperparameters of training, and the methods that are compared."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from isotrope.errors import InputError
from isotrope.options import option
from isotrope.registry import did_you_mean
from isotrope.softdecay.formula import DOMAINS

_PANEL = "Training"

#: Which rows a model is trained on and which epoch is kept: "held-out" leaves a tenth of the rows out and keeps the
#: epoch with the best score on them; "run-glue" is that of the script run_glue of transformers: all rows, last epoch.
RECIPES = ("held-out", "run-glue")

#: Plain fine-tuning, the baseline of all methods.
BASE = "base"

#: The initial values of α that the paper searches (Yan et al. 2022, Appendix B).
ALPHAS = (-0.2, -0.5, -0.8)


@dataclass(frozen=True)
class Training:
    """Hyperparameters; the defaults are the usual ones of GLUE, with linear decay of the learning rate.

    Args:
        epochs: Largest number of epochs.
        batch_size: Rows of a step.
        learning_rate: Learning rate of the model.
        softdecay_learning_rate: Learning rate of α.
        max_length: Number of tokens at which texts are truncated.
        patience: Epochs without a better score on held-out rows before early stopping.
        train_rows: Number of training rows; None for all.
        recipe: One of `RECIPES`.
        softdecay_form: Form of SoftDecay: "shifted", "paper" or "clipped", see `isotrope.nn.SoftDecay`.
        pretraining_text: Text whose sentences "bert-ct" and "simcse" learn from first; None for the task's own.
        pretraining_epochs: Epochs of that first stage, also of "sbert".
    """

    epochs: int = option(3, "At most.", panel=_PANEL)
    batch_size: int = option(32, "Rows in a step.", panel=_PANEL)
    learning_rate: float = option(2e-5, "Of the model.", panel=_PANEL)
    softdecay_learning_rate: float = option(2e-3, "Of α.", panel=_PANEL)
    max_length: int = option(128, "Tokens at which texts are cut.", panel=_PANEL)
    patience: int = option(2, "Epochs without a better held-out score before it stops.", panel=_PANEL)
    train_rows: int | None = option(None, "Training rows to use.", panel=_PANEL, type=int, shown="all")
    recipe: str = option("held-out", "held-out, or run-glue: all rows, last epoch.", panel=_PANEL)
    softdecay_form: str = option("shifted", "shifted, clipped, or paper: its Eq. 2.", panel=_PANEL)
    pretraining_text: str | None = option(
        None, "Text that BERT-CT and SimCSE learn from first.", panel=_PANEL, shown="the task's own"
    )
    pretraining_epochs: int = option(1, "Of that first stage.", panel=_PANEL)

    def __post_init__(self) -> None:
        if self.recipe not in RECIPES:
            raise InputError(f"there is no recipe {self.recipe!r}; there are {' and '.join(RECIPES)}.")
        if self.softdecay_form not in DOMAINS:
            raise InputError(f"there is no form {self.softdecay_form!r} of SoftDecay; say {', '.join(DOMAINS)}.")
        for name in ("epochs", "batch_size", "max_length", "patience", "train_rows", "pretraining_epochs"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InputError(f"{name.replace('_', ' ')} is {value}, expected 1 or more.")
        for name in ("learning_rate", "softdecay_learning_rate"):
            if not 0 < getattr(self, name) < math.inf:
                raise InputError(f"the {name.replace('_', ' ')} is {getattr(self, name)}, expected a positive number.")

    def settings(self) -> dict[str, Any]:
        """The hyperparameters as plain data; those that version 0.1 did not have only where they are not default."""
        found = asdict(self)
        later = {name for name in _LATER if found[name] == getattr(Training, name)}
        return {name: value for name, value in found.items() if name not in later}


#: Hyperparameters that version 0.1 did not have: runs that lack them were trained with the defaults.
_LATER = ("recipe", "softdecay_form", "pretraining_text", "pretraining_epochs")


@dataclass(frozen=True)
class Method:
    """A method of training: with or without pretraining as a sentence encoder, SoftDecay and ExpDecay.

    first: the sentence encoder that is trained first, None for none. alpha: initial value of SoftDecay, None without
    SoftDecay. block: the block that SoftDecay is attached to, −1 for the last.
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

#: A second baseline of a method, besides plain fine-tuning.
ALSO_AGAINST = {"simcse+softdecay": "simcse"}


def parse_methods(names: Sequence[str], alphas: Sequence[float] = ALPHAS, block: int = -1) -> list[Method]:
    """List the methods of these names, the baseline first; a method with SoftDecay occurs once for each α.

    Args:
        names: names of methods.
        alphas: initial values of SoftDecay.
        block: the block that SoftDecay is attached to, −1 for the last.

    Examples:
        >>> [method.name for method in parse_methods(["softdecay"], [-0.2, -0.5])]
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
        method = replace(METHODS[name], block=block)
        for alpha in alphas if method.softdecay else ():
            label = f"{name}:alpha={alpha:g}"
            found[label] = replace(method, name=label, alpha=alpha)
        if not method.softdecay:
            found[name] = method
    return list(found.values())


def family(name: str) -> str:
    """The name of a method without its α.

    >>> family("simcse+softdecay:alpha=-0.2")
    'simcse+softdecay'
    """
    return name.partition(":")[0]
