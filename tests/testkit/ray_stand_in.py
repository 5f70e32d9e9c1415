"""Ray in this very process: tasks are done when somebody waits for them, the one begun last first."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable
from typing import Any

from isotrope.engines.ray.merge_tree import Merger
from isotrope.engines.ray.replica import Replica
from isotrope.engines.ray.source import Workers


class Ref:
    """What a task gives, worked out once."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make: Callable[[], Any] | None = make
        self._value: Any = None

    def value(self) -> Any:
        if self._make is not None:
            self._value, self._make = self._make(), None
        return self._value


class _Method:
    def __init__(self, ray: StandIn, name: str, function: Callable[..., Any], returns: int = 1) -> None:
        self._ray, self._name, self._function, self._returns = ray, name, function, returns

    def options(self, num_returns: int) -> _Method:
        return _Method(self._ray, self._name, self._function, num_returns)

    def remote(self, *arguments: Any) -> Any:
        self._ray.begun[self._name] += 1
        self._ray.taken[self._name] += sum(isinstance(one, Ref) for one in arguments)
        whole = Ref(lambda: self._function(*(one.value() if isinstance(one, Ref) else one for one in arguments)))
        if self._returns == 1:
            return whole
        return tuple(Ref(lambda i=i: whole.value()[i]) for i in range(self._returns))


class _Actor:
    def __init__(self, ray: StandIn, held: Any) -> None:
        self._ray, self._held = ray, held

    def __getattr__(self, name: str) -> _Method:
        return _Method(self._ray, name, getattr(self._held, name))


class StandIn:
    """The part of the module `ray` that a source needs. begun: tasks by name; taken: references they were given."""

    __version__ = "stand-in"

    def __init__(self) -> None:
        self.begun: Counter[str] = Counter()
        self.taken: Counter[str] = Counter()
        self.got = 0

    def put(self, value: Any) -> Ref:
        kept = pickle.dumps(value)
        return Ref(lambda: pickle.loads(kept))

    def get(self, reference: Ref) -> Any:
        self.got += 1
        return reference.value()

    def wait(self, references: list[Ref], num_returns: int = 1, timeout: float | None = None) -> tuple[Any, Any]:
        return references[-num_returns:], references[:-num_returns]

    def workers(self, count: int, *, skip: bool = False) -> Workers:
        replicas = [Replica() for _ in range(count)]
        lives = {_Actor(self, replica): replica.ping() for replica in replicas}
        self.replicas = replicas
        found = Workers(self, lives, [_Actor(self, Merger())], skip=skip)
        found.get = self.get  # type: ignore[method-assign]
        return found
