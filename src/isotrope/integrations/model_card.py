"""The model card of a written embedder: a header that the hub reads, and what was done and measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from isotrope.integrations.linear_map import resolve_affine
from isotrope.repairs import Affine, Repair
from isotrope.sources.models.load import Loaded
from isotrope.sources.text.source import TextSource
from isotrope.version import __version__

_TAGS = ("sentence-transformers", "sentence-similarity", "feature-extraction")

_USE = """```python
from sentence_transformers import SentenceTransformer

model = SentenceTransformer("path/to/this/folder")
rows = model.encode(["A first sentence.", "Another one."])
print(model.similarity(rows, rows))
```"""


def format_model_card(
    model: str, made_of: Mapping[str, Any], sections: Mapping[str, Any] | None = None, *, base_model: str | None = None
) -> str:
    """The text of a README.md.

    Args:
        model: its short name.
        made_of: what the embedder consists of.
        sections: more, by their headings: a text, a list of sentences, a mapping of names to values, or a table as a
            list of such mappings.
        base_model: the model's name on the hub, if it has one.

    Examples:
        >>> card = format_model_card("gpt2", {"layers": "1+6"}, {"Measured": [{"set": "sts-b", "spearman": 61.23456}]})
        >>> print(card.partition("## Measured")[2].strip())
        | set | spearman |
        | --- | --- |
        | sts-b | 61.235 |
    """
    header = {"library_name": "sentence-transformers", "pipeline_tag": "sentence-similarity"}
    if base_model is not None:
        header["base_model"] = base_model
    lines = [f"{name}: {value}" for name, value in header.items()] + ["tags:"] + [f"- {tag}" for tag in _TAGS]
    parts = [
        "---",
        *lines,
        "---",
        "",
        f"# {model} as an embedder",
        "",
        _format_section(made_of),
        "",
        "## Use",
        "",
        _USE,
    ]
    for heading, content in (sections or {}).items():
        parts += ["", f"## {heading}", "", _format_section(content)]
    return "\n".join(parts) + "\n"


def _format_section(content: Any) -> str:
    if isinstance(content, Mapping):
        return "\n".join(f"- {name}: {_format_value(value)}" for name, value in content.items())
    if isinstance(content, Sequence) and not isinstance(content, str):
        if content and all(isinstance(row, Mapping) for row in content):
            return _format_table(content)
        return "\n".join(f"- {_format_value(item)}" for item in content)
    return str(content)


def _format_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows as a table with every column that any of them has."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    cells = [columns, ["---"] * len(columns), *([_format_value(row.get(name)) for name in columns] for row in rows)]
    return "\n".join(f"| {' | '.join(row)} |" for row in cells)


def _format_value(value: Any) -> str:
    """A value on one line; numbers to five digits, and nothing for None."""
    if value is None:
        return ""
    text = f"{value:.5g}" if isinstance(value, float) else str(value)
    return " ".join(text.split()).replace("|", "\\|")


def describe_embedder(source: TextSource, repair: Repair | Affine | None, normalize: bool) -> dict[str, Any]:
    """What an embedder consists of, for its card."""
    loaded, weights = source.loaded, source.token_weights
    facts = {
        "model": find_hub_name(loaded) or shorten_name(loaded),
        "revision": loaded.revision,
        "files": "; ".join(map(_format_file, loaded.files)) or None,
        "layers": f"{source.layers[0]}, averaged" if len(source.choices[0].states) > 1 else source.layers[0],
        "pooling": source.pooling.name if source.pooling else None,
        "token weights": None if weights is None else str(weights),
        "special tokens": "left out of the pooling" if source.special_tokens == "drop" else None,
        "longest text": f"{source.max_length} tokens",
        "repair": None if repair is None else _format_repair(repair),
        "dimensions": source.width if repair is None else resolve_affine(repair).columns,
        "rows": "of length 1" if normalize else None,
        "written by": f"isotrope {__version__}",
    }
    return {name: value for name, value in facts.items() if value is not None}


def _format_repair(repair: Repair | Affine) -> str:
    """A repair with all its settings, and how many rows it was fitted on."""
    if isinstance(repair, Affine):
        return repr(repair)
    settings = ", ".join(f"{name}={value!r}" for name, value in repair.get_params().items())
    return f"{type(repair).__name__}({settings}), fitted on {repair.fitted_on_['rows']:,} rows"


def _format_file(facts: Mapping[str, Any]) -> str:
    digest = f"SHA-256 {facts['sha256']}" if "sha256" in facts else f"SHA-256 of both ends {facts['sha256_ends']}"
    return f"{facts['path']}, {facts['bytes']:,} bytes, {digest}"


def shorten_name(loaded: Loaded) -> str:
    """A model's name without where it lies."""
    return Path(loaded.name).name


def find_hub_name(loaded: Loaded) -> str | None:
    return None if loaded.revision is None else loaded.name
