"""What a scan found, as plain data: readings, verdict, counts and provenance; JSON and DataFrame out."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isotrope.errors import InputError
from isotrope.findings.document import FORMAT, TEXTS, parse_document, parse_json
from isotrope.findings.reading import Reading, Verdict, name_reading
from isotrope.formats.json import format_json, to_plain
from isotrope.layers import find_layer

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


@dataclass
class Findings:
    """All that a run found.

    Args:
        readings: The value of every measure in every layer.
        layers: The layers, in order.
        layer_names: What each is called.
        verdict: What is wrong with the space, in words.
        source: What was read, as plain data.
        counts: What was counted, such as texts and zero rows.
        provenance: How the run came about, as plain data.
        tables: Token types, spectra and curves as DataFrames, by name.
        rows: Rows to look at, by kind (zero, nonfinite, extreme, duplicates, hubs, never_found, outliers), the worst
            first: `id`, `row` (its number), `text` where it is known, the layer and numbers. Duplicates of one `group`
            belong together. At most 100 of each kind; `counts` says how many there are.
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

    def get(
        self, measure: str, layer: int | str | None = -1, group: str | None = None, variant: str = "definition"
    ) -> Reading:
        """Find one reading.

        Args:
            measure: Its name; of a quantized one, the name with and without `_additive` mean the same.
            layer: A negative number counts from the end, None is for readings across layers.
            group: None for all rows.
            variant: Which definition of the measure.
        """
        if isinstance(layer, int) and layer < 0:
            found = find_layer(layer, self.layers)
            if found is None:
                raise InputError(f"there is no layer {layer}: the run has {len(self.layers)}.")
            layer = found
        wanted = (self.find_name(measure), layer, group, variant)
        for r in self.readings:
            if (r.measure, r.layer, r.group, r.variant) == wanted:
                return r
        raise InputError(
            f"the run has no reading of {name_reading(measure, variant)!r}"
            + ("." if layer is None else f" for layer {layer}.")
        )

    def find_name(self, measure: str) -> str:
        """The name under which the readings have a measure; the name itself where they do not have it."""
        names = dict.fromkeys(r.measure for r in self.readings)
        if measure in names:
            return measure
        return next((name for name in names if _short_name(name) == _short_name(measure)), measure)

    def report(self, path: str | Path) -> Path:
        """Write these findings as one HTML file; the report in a run folder has maps of the rows too."""
        from isotrope import write_report

        return write_report(self, path)

    def to_frame(self) -> pd.DataFrame:
        """The readings as a tidy table: model, revision, layer, measure, value, low, high, n, null, ..."""
        import pandas as pd

        frame = pd.DataFrame([asdict(r) for r in self.readings], columns=[f.name for f in fields(Reading)])
        frame.insert(0, "model", self.model)
        frame.insert(1, "revision", self.revision)
        frame["layer"] = [None if r.layer is None else str(r.layer) for r in self.readings]
        # Text also where a column is all empty, so that the tables of several runs can be joined.
        typed: pd.DataFrame = frame.astype(dict.fromkeys(TEXTS, "string"))
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
            "readings": [to_plain(r) for r in self.readings],
        }

    def to_json(self) -> str:
        """The same as one JSON document."""
        return format_json(self.to_dict())

    def plot(self, measure: str, *, group: str | None = None, ax: Axes | None = None) -> Axes:
        """Plot a measure over the layers with its 95 % interval and null value.

        Args:
            measure: Its name.
            group: Of a run with groups; None for all rows together.
            ax: Where to plot; None for a new figure.

        Returns:
            The axes of matplotlib.
        """
        from isotrope.drawing.layers import draw_curve, label_layers
        from isotrope.drawing.style import COLUMN_WIDTH, use_style

        kind = (self.find_name(measure), group, "definition")
        found = {r.layer: r for r in self.readings if (r.measure, r.group, r.variant) == kind}
        if None in found:
            raise InputError(f"{measure} is one number for all layers ({found[None].value:.4g}) and has no curve.")
        if not any(math.isfinite(r.value) for r in found.values()):
            of = "" if group is None else f" for the group {group!r}"
            raise InputError(
                f"the run has no value of {measure!r}{of} to plot; it reads {_list_measures(self.readings)}."
            )
        shown = [found.get(layer, Reading(layer, measure, math.nan)) for layer in self.layers]
        with use_style():
            if ax is None:
                from matplotlib import pyplot

                ax = pyplot.subplots(figsize=(COLUMN_WIDTH, 2.3))[1]
            low, high, null = ([getattr(r, end) for r in shown] for end in ("low", "high", "null"))
            draw_curve(ax, [r.value for r in shown], low=low, high=high, null=null, label=group)
            label_layers(ax, self.layers, self.layer_names)
            ax.set_ylabel(measure.replace("_", " "))
            if ax.get_legend_handles_labels()[1]:
                ax.legend()
        return ax

    def _repr_html_(self) -> str:
        """The verdict and the layers as a small table, for notebooks."""
        from isotrope.findings.card import format_card

        return format_card(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Findings:
        """The findings that `to_dict` gave; refuses a newer format."""
        return cls(**parse_document(data))

    @classmethod
    def from_json(cls, text: str | bytes) -> Findings:
        """The findings that `to_json` gave."""
        return cls.from_dict(parse_json(text))


def _short_name(measure: str) -> str:
    """A measure's name without the additive quantizer, which is meant where none is named.

    >>> _short_name("point_patchiness_additive_8x64"), _short_name("point_patchiness_product")
    ('point_patchiness_8x64', 'point_patchiness_product')
    """
    return re.sub(r"_additive(?=_\d+x\d+$|$)", "", measure)


def _list_measures(readings: list[Reading]) -> str:
    """The measures that have a value somewhere, in words."""
    names = list(dict.fromkeys(r.measure for r in readings if math.isfinite(r.value) and r.layer is not None))
    more = f" and {len(names) - 8} more" if len(names) > 8 else ""
    return (", ".join(names[:8]) or "nothing") + more
