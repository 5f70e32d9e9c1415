"""Models in ONNX files, and where the hidden states of their graphs are: what their numbered blocks hand on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard

from isotrope.errors import InputError

#: A numbered part of a node's name, as in `/encoder/layer.3/output/Add`.
_NUMBERED = re.compile(r"[./](\d{1,6})(?=/)")


def is_graph(model: Any) -> TypeGuard[str | Path]:
    """Whether a model is an ONNX file, told from its name.

    >>> is_graph("model.onnx"), is_graph("bert-base-uncased"), is_graph(None)
    (True, False, False)
    """
    return isinstance(model, (str, Path)) and str(model).endswith(".onnx")


def refuse_graph(model: Any, what: str) -> None:
    """Refuse an ONNX file for what needs a model's weights."""
    if is_graph(model):
        raise InputError(f"{what} needs the weights, and {model} is an ONNX file; give the model's folder or hub id.")


class GraphBlocks(NamedTuple):
    """Values that may be hidden states: those that go into the first block, and those that leave each one, in order."""

    enter: list[str]
    leave: list[list[str]]

    @property
    def all(self) -> list[str]:
        return [*self.enter, *(name for names in self.leave for name in names)]


def blocks(graph: Any) -> Iterator[GraphBlocks]:
    """Every way to read the numbers in the names of a graph's nodes as blocks, that with the most first.

    graph: an `onnx.GraphProto`.

    >>> from onnx import helper
    >>> nodes = [
    ...     helper.make_node("Gather", ["table", "ids"], ["x"], name="/embed/Gather"),
    ...     helper.make_node("Relu", ["x"], ["y"], name="/layer.0/Relu"),
    ...     helper.make_node("Relu", ["y"], ["z"], name="/layer.1/Relu"),
    ...     helper.make_node("Relu", ["z"], ["out"], name="/norm/Relu"),
    ... ]
    >>> list(blocks(helper.make_graph(nodes, "small", [], [])))
    [GraphBlocks(enter=['x'], leave=[['y'], ['z']])]
    """
    numbers: dict[str, set[int]] = {}
    for node in graph.node:
        for stem, number in _numbers(node.name):
            numbers.setdefault(stem, set()).add(number)
    whole = [stem for stem, found in numbers.items() if found == set(range(len(found)))]
    for stem in sorted(whole, key=lambda stem: (-len(numbers[stem]), -len(stem))):
        yield _crossing(graph, stem, len(numbers[stem]))


def _numbers(name: str) -> Iterator[tuple[str, int]]:
    """Each number in a node's name, with what comes before it."""
    for found in _NUMBERED.finditer(name):
        yield name[: found.start() + 1], int(found.group(1))


def _crossing(graph: Any, stem: str, count: int) -> GraphBlocks:
    """The values that cross the borders of the blocks whose names begin with a stem."""
    inside = [dict(_numbers(node.name)).get(stem) for node in graph.node]
    made = {
        name: block
        for node, block in zip(graph.node, inside, strict=True)
        for name in node.output
        if node.op_type != "Constant"
    }
    enter: dict[str, None] = {}
    leave: list[dict[str, None]] = [{} for _ in range(count)]
    for node, block in zip(graph.node, inside, strict=True):
        for name in node.input:
            if name in made and made[name] != block:
                _note(name, made[name], block, enter, leave)
    for value in graph.output:
        if value.name in made:
            _note(value.name, made[value.name], None, enter, leave)
    return GraphBlocks(list(enter), [list(names) for names in leave])


def _note(
    name: str, out_of: int | None, into: int | None, enter: dict[str, None], leave: list[dict[str, None]]
) -> None:
    if out_of is not None:
        leave[out_of][name] = None
    elif into == 0:
        enter[name] = None
