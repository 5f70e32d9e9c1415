"""Something that stands for a model's `forward` and can step aside again."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any


class StandIn:
    """Called in place of a model's own `forward`, which is handed to `around(whole, args, kwargs)`.

    Not a hook: sentence-transformers and PEFT call `forward` itself, past all hooks. A copy of a model copies it with
    all that it refers to, so that it belongs to the copy.

    >>> import torch
    >>> model = torch.nn.Identity()
    >>> doubled = StandIn(model, lambda whole, args, kwargs: 2 * whole(*args, **kwargs))
    >>> model(3)
    6
    >>> doubled.stop()
    >>> model(3)
    3
    """

    def __init__(
        self, model: Any, around: Callable[[Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any]
    ) -> None:
        self.model, self.whole = model, model.forward
        self.around: Callable[..., Any] | None = around
        self.__signature__ = inspect.signature(model.forward)  # which the Trainer reads
        model.forward = self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.whole(*args, **kwargs) if self.around is None else self.around(self.whole, args, kwargs)

    def given(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """All arguments by their names."""
        found = self.__signature__.bind_partial(*args, **kwargs).arguments
        return {**found, **found.get("kwargs", {})}

    def stop(self) -> None:
        """Give the model its own `forward` back, or, where others have wrapped this since, just pass calls on."""
        self.around = None
        if vars(self.model).get("forward") is self:
            del self.model.forward
            if self.model.forward != self.whole:  # it had been wrapped before
                self.model.forward = self.whole
