"""Makes the page of the public names from their docstrings: python docs/api.py"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import isotrope
from isotrope import figures, nn

PAGE = Path(__file__).parent / "api.md"

#: The sections of a docstring, what some of them are called on the page, and those that list names.
_SECTIONS = ("Args", "Attributes", "Examples", "Raises", "References", "Returns", "Yields")
_TITLES = {"Args": "Parameters"}
_LISTS = ("Args", "Attributes", "Raises")

#: Signatures longer than this are written one parameter to a line.
_LINE = 88


class _Bare(str):
    """An annotation that is shown as it was written, without quotation marks."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def call(name: str, of: Any) -> str:
    """How something is called: its name and parameters."""
    signature = inspect.signature(of)
    bare = [
        p.replace(annotation=_bare(p.annotation), default=_Bare("...") if inspect.isroutine(p.default) else p.default)
        for p in signature.parameters.values()
    ]
    returns = "" if inspect.isclass(of) else signature.return_annotation
    arrow = f" -> {returns}" if isinstance(returns, str) and returns else ""
    line = f"{name}{signature.replace(parameters=bare, return_annotation=inspect.Signature.empty)}{arrow}"
    if len(line) <= _LINE:
        return line
    star, parameters = False, []
    for p in bare:
        if p.kind is p.KEYWORD_ONLY and not star:
            parameters.append("*")
        star = star or p.kind in (p.KEYWORD_ONLY, p.VAR_POSITIONAL)
        parameters.append(str(p))
    return "\n".join([f"{name}(", *(f"    {p}," for p in parameters), f"){arrow}"])


def _bare(annotation: Any) -> Any:
    return _Bare(annotation) if isinstance(annotation, str) else annotation


def body(docstring: str) -> str:
    """A docstring as Markdown: sections with a title, parameters as a list, examples as code."""
    parts = []
    for title, text in _sections(docstring):
        if title:
            parts.append(f"**{_TITLES.get(title, title)}**")
        parts += [_parameters(text)] if title in _LISTS else [_paragraph(each) for each in re.split(r"\n\s*\n", text)]
    return "\n\n".join(part for part in parts if part)


def _sections(docstring: str) -> Iterator[tuple[str, str]]:
    """The title and the text of each section; what stands before the first title has none."""
    pieces = re.split(rf"(?m)^({'|'.join(_SECTIONS)}):\n", inspect.cleandoc(docstring))
    yield "", pieces[0].strip()
    for title, text in zip(pieces[1::2], pieces[2::2], strict=True):
        yield title, inspect.cleandoc(f"\n{text}")


def _parameters(text: str) -> str:
    """The lines `name: what it is` as a list."""
    items = re.findall(r"(?m)^(\*{0,2}\w+(?:, \w+)*):\s+((?:.*)(?:\n[ \t]+.*)*)", text)
    return "\n".join(f"- `{name}`: {_escaped(' '.join(says.split()))}" for name, says in items)


def _paragraph(text: str) -> str:
    text = inspect.cleandoc(text)
    return f"```pycon\n{text}\n```" if text.startswith(">>>") else _escaped(text)


def _escaped(text: str) -> str:
    """Signs that Markdown would take for its own, outside of code."""
    pieces = re.split(r"(`[^`]*`)", text)
    return "".join(p if p.startswith("`") else re.sub(r"([*_<])", r"\\\1", p) for p in pieces)


def _entry(name: str, of: Any) -> Iterator[str]:
    yield f"## {name.removeprefix('isotrope.')}"
    yield ""
    if inspect.isclass(of) and issubclass(of, Exception):
        yield from (f"`{name}`", "")
    else:
        yield from ("```python", call(name, of), "```", "")
    yield body(inspect.getdoc(of) or "")
    yield ""
    if inspect.isclass(of):
        yield from _members(of)


def _members(kind: type) -> Iterator[str]:
    """What an object of a class can do, a line each."""
    for name, member in inspect.getmembers(kind):
        home = getattr(member, "__module__", None) or getattr(getattr(member, "fget", None), "__module__", "")
        if name.startswith("_") or not (home or "").startswith("isotrope"):
            continue
        says = (inspect.getdoc(member) or "").partition("\n")[0]
        if says and (inspect.isroutine(member) or isinstance(member, property)):
            yield f"- `{name}`: {_escaped(says)}"
    yield ""


def page() -> str:
    """The whole page, in Markdown."""
    lines = ["# API", "", "The public names, from their docstrings. Importing `isotrope` imports nothing heavy.", ""]
    for module, names in ((isotrope, isotrope.__all__), (nn, nn.__all__), (figures, ("draw", "save"))):
        for name in names:
            if not inspect.ismodule(getattr(module, name)):
                lines += _entry(f"{module.__name__}.{name}", getattr(module, name))
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
