"""What a scan found, as plain data: readings, verdict, counts and provenance; JSON and DataFrame out."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isotrope.errors import InputError, StoreError
from isotrope.formats.facts import check_facts
from isotrope.formats.json import format_json, to_plain

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

#: Version of the JSON and of the run folder. A newer one is refused, older ones are read.
FORMAT = 1


@dataclass(frozen=True, slots=True)
class Reading:
    """One number: of which layer, which measure, between which ends, from how many rows, beside which null.

    value, low, high, null: NaN where undefined; `reason` then says why the value is. note: what to know about it
    (biased, unresolved). layer: None for a reading across layers. group: None for all rows.
    """

    layer: int | str | None
    measure: str
    value: float
    low: float = math.nan
    high: float = math.nan
    n: int = 0
    null: float = math.nan
    variant: str = "definition"
    seed: int = 0
    reason: str | None = None
    note: str | None = None
    group: str | None = None


@dataclass(frozen=True, slots=True)
class Statement:
    """One sentence of the verdict: how bad (0 good, 1 mild, 2 bad, 3 very bad), what, in which layers, how sure."""

    level: int
    text: str
    layers: tuple[int | str, ...] = ()
    sure: bool = True


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is wrong with the space, in words: the last layer first, then the others, then single rows.

    `word` is that of the last layer, one of the words of the table of thresholds.
    """

    word: str
    statements: tuple[Statement, ...] = ()

    def __str__(self) -> str:
        return "\n".join(s.text for s in self.statements)


@dataclass
class Findings:
    """All that a run found.

    tables: token types, spectra and curves as DataFrames, by name. rows: rows to look at, by kind (zero, nonfinite,
    extreme): the id and the layer of each, not more than some for each kind; `counts` says how many there are.
    """

    readings: list[Reading]
    layers: list[int | str] = field(default_factory=list)
    layer_names: dict[str, str] = field(default_factory=dict)
    verdict: Verdict = field(default_factory=lambda: Verdict("unknown"))
    source: dict[str, Any] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    provenance: dict[str, Any] = field(default_factory=dict)
    tables: dict[str, pd.DataFrame] = field(default_factory=dict, repr=False)
    rows: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    @property
    def model(self) -> str | None:
        return self.source.get("model")

    @property
    def revision(self) -> str | None:
        return self.source.get("revision")

    @property
    def title(self) -> str:
        """What was measured: the model, without the folders above it where its whole path was given, or "vectors"."""
        return (Path(self.model).name if Path(self.model).is_absolute() else self.model) if self.model else "vectors"

    def get(self, measure: str, layer: int | str | None = -1, group: str | None = None) -> Reading:
        """One reading; a negative layer counts from the end, None is for readings across layers.

        measure: its name; of a quantized one, the name with and without `_additive` mean the same.
        """
        if isinstance(layer, int) and layer < 0:
            if layer < -len(self.layers):
                raise InputError(f"there is no layer {layer}: the run has {len(self.layers)}.")
            layer = self.layers[layer]
        wanted = (self.find_name(measure), layer, group, "definition")
        for r in self.readings:
            if (r.measure, r.layer, r.group, r.variant) == wanted:
                return r
        raise InputError(f"the run has no reading of {measure!r}" + ("." if layer is None else f" for layer {layer}."))

    def find_name(self, measure: str) -> str:
        """The name under which the readings have a measure; the name itself where they do not have it."""
        names = dict.fromkeys(r.measure for r in self.readings)
        if measure in names:
            return measure
        return next((name for name in names if _short_name(name) == _short_name(measure)), measure)

    def report(self, path: str | Path) -> Path:
        """Write these findings as one HTML file; the report in a run folder has maps of the rows too."""
        import isotrope

        return isotrope.write_report(self, path)

    def to_frame(self) -> pd.DataFrame:
        """The readings as a tidy table: model, revision, layer, measure, value, low, high, n, null, ..."""
        import pandas as pd

        frame = pd.DataFrame([asdict(r) for r in self.readings], columns=[f.name for f in fields(Reading)])
        frame.insert(0, "model", self.model)
        frame.insert(1, "revision", self.revision)
        frame["layer"] = [None if r.layer is None else str(r.layer) for r in self.readings]
        # Text also where a column is all empty, so that the tables of several runs can be joined.
        typed: pd.DataFrame = frame.astype(dict.fromkeys(_TEXTS, "string"))
        return typed

    def to_dict(self) -> dict[str, Any]:
        """Plain data without NaN: an undefined value is None and its reason is given."""
        return {
            "format": FORMAT,
            "model": self.model,
            "revision": self.revision,
            "layers": self.layers,
            "layer_names": self.layer_names,
            "verdict": asdict(self.verdict),
            "counts": self.counts,
            "rows": self.rows,
            "source": self.source,
            "provenance": self.provenance,
            "readings": [to_plain(asdict(r)) for r in self.readings],
        }

    def to_json(self) -> str:
        """The same as one JSON document."""
        return format_json(self.to_dict())

    def plot(self, measure: str, *, group: str | None = None, ax: Axes | None = None) -> Axes:
        """A measure over the layers with its 95 % interval and null, as matplotlib's Axes, in `ax` where it is given.

        group: of a run with groups; None for all rows together.
        """
        from isotrope.drawing.curve import curve, layer_axis
        from isotrope.drawing.style import COLUMN, style

        kind = (self.find_name(measure), group, "definition")
        found = {r.layer: r for r in self.readings if (r.measure, r.group, r.variant) == kind}
        if None in found:
            raise InputError(f"{measure} is one number for all layers ({found[None].value:.4g}) and has no curve.")
        if not any(math.isfinite(r.value) for r in found.values()):
            of = "" if group is None else f" for the group {group!r}"
            raise InputError(f"the run has no value of {measure!r}{of} to plot; it reads {_listed(self.readings)}.")
        shown = [found.get(layer, Reading(layer, measure, math.nan)) for layer in self.layers]
        with style():
            if ax is None:
                from matplotlib import pyplot

                ax = pyplot.subplots(figsize=(COLUMN, 2.3))[1]
            low, high, null = ([getattr(r, end) for r in shown] for end in ("low", "high", "null"))
            curve(ax, [r.value for r in shown], low=low, high=high, null=null, label=group)
            layer_axis(ax, self.layers, self.layer_names)
            ax.set_ylabel(measure.replace("_", " "))
            if ax.get_legend_handles_labels()[1]:
                ax.legend()
        return ax

    def _repr_html_(self) -> str:
        """The verdict and the layers as a small table, for notebooks."""
        from isotrope.drawing.card import card

        return card(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Findings:
        """The findings that `to_dict` gave; refuses a newer format."""
        version = data.get("format")
        if not isinstance(version, int) or version > FORMAT:
            raise StoreError(
                f"it has format {version!r}, this isotrope reads up to {FORMAT}; "
                "update isotrope (pip install -U isotrope)."
            )
        try:
            verdict = data["verdict"]
            statements = (Statement(**{**s, "layers": tuple(s["layers"])}) for s in verdict["statements"])
            return _checked(
                cls(
                    readings=[Reading(**_floats(r)) for r in data["readings"]],
                    layers=list(data["layers"]),
                    layer_names=dict(data["layer_names"]),
                    verdict=Verdict(verdict["word"], tuple(statements)),
                    source=dict(data["source"]),
                    counts=dict(data["counts"]),
                    rows={kind: [dict(row) for row in rows] for kind, rows in data.get("rows", {}).items()},
                    provenance=dict(data["provenance"]),
                )
            )
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise StoreError(f"it is damaged ({error!r}); run the scan again.") from error

    @classmethod
    def from_json(cls, text: str | bytes) -> Findings:
        """The findings that `to_json` gave."""
        try:
            data = json.loads(text)
            # Python reads two things that are no JSON: infinity, and half a surrogate pair, which no file can hold.
            json.dumps(data, ensure_ascii=False, allow_nan=False).encode()
        except (ValueError, RecursionError) as error:
            raise StoreError(f"it is not JSON ({error}); run the scan again.") from error
        if not isinstance(data, dict):
            raise StoreError("it is not a JSON object; run the scan again.")
        return cls.from_dict(data)


_NUMBERS = ("value", "low", "high", "null")
_TEXTS = ("model", "revision", "layer", "measure", "variant", "reason", "note", "group")


#: What the fields of readings and statements hold.
_KINDS: dict[str, tuple[type, ...]] = {
    "layer": (int, str, type(None)),
    **dict.fromkeys(("measure", "variant", "text"), (str,)),
    **dict.fromkeys(("value", "low", "high", "null"), (int, float)),
    **dict.fromkeys(("n", "seed", "level"), (int,)),
    **dict.fromkeys(("reason", "note", "group"), (str, type(None))),
    "sure": (bool,),
    "layers": (tuple,),
}


#: How bad a statement may be, and the largest whole number that tables can hold.
_LEVELS, _LARGEST = range(4), 2**63 - 1


def _checked(found: Findings) -> Findings:
    """The same findings, refused where something is of another kind than what is written."""
    ones: list[Reading | Statement] = [*found.readings, *found.verdict.statements]
    for one in ones:
        for f in fields(one):
            value = getattr(one, f.name)
            if type(value) not in _KINDS[f.name] or (isinstance(value, int) and not -_LARGEST <= value <= _LARGEST):
                raise TypeError(f"{f.name} is {value!r}")
            if f.name == "level" and value not in _LEVELS:
                raise ValueError(f"a statement has level {value}")
    words = [found.verdict.word, *found.layer_names, *found.layer_names.values()]
    layers = [*found.layers, *(layer for s in found.verdict.statements for layer in s.layers)]
    if not found.verdict.word:
        raise ValueError("the verdict has no word")
    if len(set(found.layers)) < len(found.layers):
        raise ValueError("a layer is there twice")
    check_facts(found.source, found.provenance)
    named = [row for rows in found.rows.values() for row in rows]
    expected: list[tuple[Iterable[Any], tuple[type, ...]]] = [
        (words, (str,)),
        (found.counts.values(), (int,)),
        ((row["id"] for row in named), (int,)),
        ((row["layer"] for row in named), (int, str)),
        (layers, (int, str)),
    ]
    for values, kinds in expected:
        for value in values:
            if type(value) not in kinds or (isinstance(value, int) and not -_LARGEST <= value <= _LARGEST):
                raise TypeError(f"{value!r} where {kinds[0].__name__} is expected")
    return found


def _short_name(measure: str) -> str:
    """A measure's name without the additive quantizer, which is meant where none is named.

    >>> _short_name("point_patchiness_additive_8x64"), _short_name("point_patchiness_product")
    ('point_patchiness_8x64', 'point_patchiness_product')
    """
    return re.sub(r"_additive(?=_\d+x\d+$|$)", "", measure)


def _listed(readings: list[Reading]) -> str:
    """The measures that have a value somewhere, in words."""
    names = list(dict.fromkeys(r.measure for r in readings if math.isfinite(r.value) and r.layer is not None))
    more = f" and {len(names) - 8} more" if len(names) > 8 else ""
    return (", ".join(names[:8]) or "nothing") + more


def _floats(reading: Mapping[str, Any]) -> dict[str, Any]:
    return {k: math.nan if k in _NUMBERS and v is None else v for k, v in reading.items()}


def in_layer_order(layers: Iterable[int | str], order: list[int | str]) -> list[int | str]:
    """Layers sorted as a run lists them."""
    return sorted(set(layers), key=order.index)
