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

#: Signatures longer than this are written one parameter to a line.
_LINE = 88


#: The headings of a docstring's sections.
_SECTIONS = ("Args:", "Attributes:", "Returns:", "References:", "Examples:")


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
    """A docstring as Markdown: sections with a heading, parameters as a list, examples as code."""
    parts = []
    for paragraph in re.split(r"\n\s*\n", docstring.strip()):
        title, _, rest = paragraph.strip().partition("\n")
        if rest and title in _SECTIONS:
            parts.append(f"**{title.removesuffix(':')}**")
            paragraph = _format_list(rest) if title in ("Args:", "Attributes:") else f"\n{rest}"
        text = inspect.cleandoc(paragraph)
        parts.append(f"```pycon\n{text}\n```" if text.startswith(">>>") else _escaped(text))
    return "\n\n".join(parts)


def _format_list(entries: str) -> str:
    """Lines `name: what it is`, of which some go on in further lines that are indented more, as a Markdown list."""
    lines = inspect.cleandoc(f"\n{entries}").splitlines()
    return "\n".join(
        f"  {line.strip()}" if line.startswith(" ") else re.sub(r"^(\w+):", r"- `\1`:", line) for line in lines
    )


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
