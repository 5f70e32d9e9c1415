"""The model card of a written embedder: a header that the hub reads, and what was done and measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_TAGS = ("sentence-transformers", "sentence-similarity", "feature-extraction")

_USE = """```python
from sentence_transformers import SentenceTransformer

model = SentenceTransformer("path/to/this/folder")
rows = model.encode(["A first sentence.", "Another one."])
print(model.similarity(rows, rows))
```"""


def model_card(
    model: str, made_of: Mapping[str, Any], sections: Mapping[str, Any] | None = None, *, base_model: str | None = None
) -> str:
    """The text of a README.md.

    model: its short name. made_of: what the embedder consists of. sections: more, by their headings: a text, a list of
    sentences, a mapping of names to values, or a table as a list of such mappings. base_model: the model's name on the
    hub, if it has one.

    >>> card = model_card("gpt2", {"layers": "1+6"}, {"Measured": [{"set": "sts-b", "spearman": 61.23456}]})
    >>> print(card.partition("## Measured")[2].strip())
    | set | spearman |
    | --- | --- |
    | sts-b | 61.235 |
    """
    header = {"library_name": "sentence-transformers", "pipeline_tag": "sentence-similarity"}
    if base_model is not None:
        header["base_model"] = base_model
    lines = [f"{name}: {value}" for name, value in header.items()] + ["tags:"] + [f"- {tag}" for tag in _TAGS]
    parts = ["---", *lines, "---", "", f"# {model} as an embedder", "", _rendered(made_of), "", "## Use", "", _USE]
    for heading, content in (sections or {}).items():
        parts += ["", f"## {heading}", "", _rendered(content)]
    return "\n".join(parts) + "\n"


def _rendered(content: Any) -> str:
    if isinstance(content, Mapping):
        return "\n".join(f"- {name}: {_plain(value)}" for name, value in content.items())
    if isinstance(content, Sequence) and not isinstance(content, str):
        if content and all(isinstance(row, Mapping) for row in content):
            return _table(content)
        return "\n".join(f"- {_plain(item)}" for item in content)
    return str(content)


def _table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows as a table with every column that any of them has."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    cells = [columns, ["---"] * len(columns), *([_plain(row.get(name)) for name in columns] for row in rows)]
    return "\n".join(f"| {' | '.join(row)} |" for row in cells)


def _plain(value: Any) -> str:
    """A value on one line; numbers to five digits, and nothing for None."""
    if value is None:
        return ""
    text = f"{value:.5g}" if isinstance(value, float) else str(value)
    return " ".join(text.split()).replace("|", "\\|")
