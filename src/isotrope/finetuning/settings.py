"""How models are fine-tuned: the settings of the loop, without torch."""

from __future__ import annotations

import math
from dataclasses import dataclass

from isotrope.errors import InputError
from isotrope.options import option

_PANEL = "Training"


@dataclass(frozen=True)
class Training:
    """How to train: the customary settings of GLUE (batches of 32, three epochs, 2e-5, 128 tokens, linear decay).

    softdecay_learning_rate: of α. patience: epochs without a better score on held-out rows after which to stop.
    train_rows: how many training rows to use, None for all.
    """

    epochs: int = option(3, "At most.", panel=_PANEL)
    batch_size: int = option(32, "Rows in a step.", panel=_PANEL)
    learning_rate: float = option(2e-5, "Of the model.", panel=_PANEL)
    softdecay_learning_rate: float = option(2e-3, "Of α.", panel=_PANEL)
    max_length: int = option(128, "Tokens at which texts are cut.", panel=_PANEL)
    patience: int = option(2, "Epochs without a better held-out score before it stops.", panel=_PANEL)
    train_rows: int | None = option(None, "Training rows to use.", panel=_PANEL, type=int, shown="all")

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "max_length", "patience", "train_rows"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InputError(f"{name.replace('_', ' ')} is {value}, expected 1 or more.")
        for name in ("learning_rate", "softdecay_learning_rate"):
            if not 0 < getattr(self, name) < math.inf:
                raise InputError(f"the {name.replace('_', ' ')} is {getattr(self, name)}, expected a positive number.")
