"""What every repair is: an estimator with a map of rows to rows, a name, and one way to be saved and loaded."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from isotrope.compute.arrays import check_width, to_matrix
from isotrope.errors import InputError
from isotrope.registry import Registry
from isotrope.repairs import persistence as saved
from isotrope.repairs.affine import Map
from isotrope.repairs.estimator import Estimator
from isotrope.repairs.fit_check import FitCheck, Lengths
from isotrope.repairs.query_rounding import NEAREST, QueryRounding, measure_query_rounding
from isotrope.repairs.unit_length import NormalizedMap, check_way
from isotrope.statistics import Sample
from isotrope.statistics.saved_arrays import name_file

if TYPE_CHECKING:
    from typing_extensions import Self


class Repair(Estimator):
    """Fitted once, applied to rows never seen; a kind of repair says how to fit, its map, and its arrays.

    Fitted on rows of length 1, it gives rows of length 1: an index by inner product stays one by cosine. `normalizes_`
    says so, and can be set; `map_` is the bare map.
    """

    name: str
    _sample: Sample | None = None
    _query_rounding: QueryRounding | None = None
    _normalizes: str = "none"

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit on rows (n, d), files, a source or statistics of a scan, and forget earlier fits. y: ignored."""
        self._fit(X, divided=False)
        self._store_names(X)
        return self

    def fit_unit_rows(self, X: Any) -> Self:
        """Fit on rows divided by their length; `transform` then divides rows by their length, before and after."""
        self._fit(X, divided=True)
        self._store_names(X)
        return self

    def _fit(self, X: Any, *, divided: bool) -> None:
        """Fit on rows; divided: by their length."""
        raise NotImplementedError

    def name_sources(self, sources: list[dict[str, Any]]) -> None:
        """Say where the rows of the fit are from, where what it was fitted on does not."""
        raise NotImplementedError

    @property
    def map_(self) -> Map:
        """What is done to rows."""
        raise NotImplementedError

    @property
    def fitted_on_(self) -> dict[str, Any]:
        """What it was fitted on, as plain data: rows, and the sources that say what they are."""
        raise NotImplementedError

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The whole fitted state as named arrays, for saving."""
        raise NotImplementedError

    def restore(self, arrays: Mapping[str, NDArray[Any]], fitted_on: Mapping[str, Any]) -> None:
        """Take over the fitted state that `arrays` and `fitted_on_` returned."""
        raise NotImplementedError

    @property
    def normalizes_(self) -> str:
        """Where rows are divided by their length: "none", "input" (before the map), "output" (after it) or "both"."""
        self._check_is_fitted()
        return self._normalizes

    @normalizes_.setter
    def normalizes_(self, way: str) -> None:
        check_way(way)
        self._normalizes, self._query_rounding = way, None

    @property
    def applied_map_(self) -> NormalizedMap:
        """What `transform` does to rows: the map, with rows divided by their length as `normalizes_` says."""
        return NormalizedMap(self.map_, self.normalizes_)

    @property
    def fit_check_(self) -> FitCheck | None:
        """What rows are compared with, None where the fit does not tell."""
        raise NotImplementedError

    def find_mismatch(self, X: Any) -> str | None:
        """How rows, (n, d), differ in length or mean from those that it was fitted on, None where they do not."""
        check = self.fit_check_
        return None if check is None else check.find_mismatch(X)

    def check_width(self, width: int) -> None:
        """Check that rows of a width are as wide as those that it was fitted on."""
        if width != self.n_features_in_:
            raise InputError(
                f"got rows of width {width}, expected {self.n_features_in_}: give rows of the width that the "
                "repair was fitted on."
            )

    @property
    def query_rounding_(self) -> QueryRounding | None:
        """How the nearest rows survive rounding of queries, on rows of the fit; None where none were kept."""
        if self._query_rounding is None and self._sample is not None and self._sample.n >= NEAREST + 2:
            self._query_rounding = measure_query_rounding(self, self._sample.values)
        return self._query_rounding

    def _remember(self, sample: Sample | None, lengths: Lengths, normalize: str | None) -> None:
        """Keep what a fit leaves besides the map; normalize: None for the way that suits the lengths of the rows."""
        self._sample, self._query_rounding = sample, None
        self._normalizes = normalize or ("output" if lengths.unit else "none")

    def transform(self, X: Any) -> Any:
        """Repaired rows, (n, d) -> (n, k): numpy to numpy, torch to torch, each float type to itself.

        Rows that differ much in length or mean from those of the fit are warned of.
        """
        self._check_is_fitted()
        rows = to_matrix(X)
        self._check_names(X)
        check_width(rows, self.n_features_in_, type(self).__name__)
        repaired = self.applied_map_(rows)
        if mismatch := self.find_mismatch(rows):
            kind = type(self).__name__
            warnings.warn(f"these rows are unlike those that {kind} was fitted on: {mismatch}", stacklevel=2)
        return self._convert_output(repaired, X)

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Fit to rows and repair them."""
        return self.fit(X, y).transform(X)

    def inverse_transform(self, Z: Any) -> Any:
        """Rows before their repair, (n, k) -> (n, d), where nothing was lost."""
        self._check_is_fitted()
        return self.applied_map_.inverse()(Z)

    @property
    def n_features_in_(self) -> int:
        """The number of columns d that it was fitted on."""
        self._check_is_fitted()
        return self.map_.width

    @property
    def _n_features_out(self) -> int:
        return self.map_.columns

    def save(self, folder: str | Path, *, overwrite: bool = False) -> None:
        """Write the fitted repair into a folder: safetensors and config.json, at once or not at all."""
        self._check_is_fitted()
        names = getattr(self, "feature_names_in_", None)
        rounding = self.query_rounding_
        facts = {
            "repair": self.name,
            "parameters": self.get_params(),
            "width": self.map_.width,
            "columns": self.map_.columns,
            "fitted_on": self.fitted_on_,
            "normalize": self.normalizes_,
            "query_rounding": None if rounding is None else rounding.to_dict(),
            "feature_names": None if names is None else list(names),
        }
        saved.write(folder, facts, self.arrays(), overwrite=overwrite)


#: What the command line calls parameters that have a longer name in Python.
_SHORT = {"dimensions": "n_components", "directions": "n_directions"}

_WORDS = {"true": True, "false": False, "none": None}

REPAIRS = Registry[type[Repair]]("repair")

T = TypeVar("T", bound=type[Repair])


def repair(name: str) -> Callable[[T], T]:
    """Register a kind of repair.

    Args:
        name: Its name on the command line.
    """

    def add(kind: T) -> T:
        kind.name = name
        REPAIRS.add(name, kind)
        return kind

    return add


def load_repair(folder: str | Path, *, width: int | None = None, model: str | None = None) -> Repair:
    """The repair that `save` wrote.

    Args:
        folder: where it was saved.
        width: of the rows that it is for; another is refused.
        model: whose rows it is for; another is warned of.
    """
    facts, arrays = saved.read(folder)
    try:
        with name_file(Path(folder)):
            return _restore(folder, facts, arrays, width, model)
    except (KeyError, TypeError, AttributeError, IndexError, OverflowError) as error:
        raise saved.make_damage_error(Path(folder)) from error


def _restore(
    folder: str | Path,
    facts: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
    width: int | None,
    model: str | None,
) -> Repair:
    if facts["repair"] == "affine":
        raise InputError(f"{str(folder)!r} holds a bare map; use Affine.load.")
    if width is not None and width != facts["width"]:
        raise InputError(
            f"the repair in {str(folder)!r} is for rows of width {facts['width']}, got rows of width {width}; "
            "fit one on these rows."
        )
    for source in facts["fitted_on"].get("sources", []):
        if model is not None and source.get("model") not in (None, model):
            warnings.warn(
                f"the repair in {str(folder)!r} was fitted on rows of {source['model']}, not of {model}", stacklevel=2
            )
    found = REPAIRS.get(facts["repair"])(**facts["parameters"])
    found.restore(arrays, facts["fitted_on"])
    found.normalizes_ = facts.get("normalize", "none")  # 0.1 never divided
    if rounding := facts.get("query_rounding"):
        found._query_rounding = QueryRounding(**rounding)
    if facts["feature_names"] is not None:
        found.feature_names_in_ = np.array(facts["feature_names"], dtype=object)
    return found


def named(text: str) -> Repair:
    """Make the unfitted repair of a name.

    Args:
        text: Name of the kind, then settings, each after a colon.

    Examples:
        >>> named("whitening:strength=0.5:dimensions=256")
        Whitening(n_components=256, strength=0.5)
    """
    name, *settings = text.split(":")
    repair = REPAIRS.get(name.strip())()
    known = repair.get_params()
    for setting in settings:
        word, given, value = setting.partition("=")
        parameter = word.strip() if word.strip() in known else _SHORT.get(word.strip(), "")
        if not given or parameter not in known:
            takes = ", ".join(known) or "no settings"
            raise InputError(f"{name} has no setting {setting!r}, expected name=value with one of: {takes}.")
        read = _parse_value(value.strip())
        if isinstance(read, str) != isinstance(known[parameter], str):
            kind = "a word" if isinstance(known[parameter], str) else "a number"
            raise InputError(f"{name} got {setting!r}, expected {kind} after the equals sign.")
        repair.set_params(**{parameter: read})
    return repair


def _parse_value(text: str) -> object:
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
