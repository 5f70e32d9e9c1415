"""The conventions of scikit-learn, followed without needing it: parameters, clone, pipelines, names, set_output."""

from __future__ import annotations

import inspect
import sys
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from isotrope.compute.arrays import to_float64
from isotrope.errors import InputError
from isotrope.sources.source import Source

if TYPE_CHECKING:
    from typing_extensions import Self

_OUTPUTS = ("default", "pandas", "polars")


class NotFitted(InputError, AttributeError):
    """A repair is used before it was fitted."""


class Estimator:
    """Parameters are the arguments of `__init__`, which only stores them; what `fit` finds ends in `_`.

    It has the protocol of scikit-learn's `BaseEstimator` and `TransformerMixin`, not the classes: repairs are the same
    with and without scikit-learn, and importing them does not import it.
    """

    @classmethod
    def _defaults(cls) -> dict[str, Any]:
        given = inspect.signature(cls).parameters
        return {name: parameter.default for name, parameter in given.items()}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name; deep: scikit-learn's, of no consequence here."""
        return {name: getattr(self, name) for name in self._defaults()}

    def set_params(self, **params: Any) -> Self:
        """Change parameters by name; they count from the next fit on."""
        for name in params:
            if name not in self._defaults():
                known = ", ".join(self._defaults()) or "none"
                raise InputError(f"{type(self).__name__} has no parameter {name!r}; it has: {known}.")
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        defaults = self._defaults()
        changed = {k: v for k, v in self.get_params().items() if repr(v) != repr(defaults[k])}
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in changed.items())})"

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import Tags, TargetTags, TransformerTags

        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=False),
            transformer_tags=TransformerTags(preserves_dtype=["float64", "float32"]),
        )

    def __sklearn_is_fitted__(self) -> bool:
        raise NotImplementedError

    @property
    def n_features_in_(self) -> int:
        """The number of columns d that it was fitted on."""
        raise NotImplementedError

    @property
    def _n_features_out(self) -> int:
        raise NotImplementedError

    def _check_is_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            raise _make_error_class()(f"this {type(self).__name__} is not fitted yet; call fit with rows first.")

    def set_output(self, *, transform: str | None = None) -> Self:
        """What `transform` returns: "default" (an array), "pandas" or "polars"; None changes nothing."""
        if transform is None:
            return self
        if transform not in _OUTPUTS:
            raise InputError(f"there is no output {transform!r}; say {', '.join(_OUTPUTS)}.")
        self._sklearn_output_config = {"transform": transform}  # the name under which clone looks for it
        return self

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """A name for each column of the output, (k,): the class's in small letters, and a number."""
        self._check_is_fitted()
        if input_features is not None and len(input_features) != self.n_features_in_:
            raise InputError(
                f"input_features should have length equal to the number of features ({self.n_features_in_}), "
                f"got {len(input_features)}."
            )
        stem = type(self).__name__.lower()
        return np.array([f"{stem}{i}" for i in range(self._n_features_out)], dtype=object)

    def _convert_output(self, out: Any, given: Any) -> Any:
        """Output rows, (n, k), in the container that `set_output` or scikit-learn's configuration asks for."""
        chosen: str = getattr(self, "_sklearn_output_config", {}).get("transform", "")
        if not chosen:  # a configuration can only exist where scikit-learn is imported already
            sklearn = sys.modules.get("sklearn")
            chosen = "default" if sklearn is None else sklearn.get_config().get("transform_output", "default")
        if chosen == "default":
            return out
        names = [str(name) for name in self.get_feature_names_out()]
        values = out if isinstance(out, np.ndarray) else to_float64(out)
        if chosen == "polars":
            import polars

            return polars.DataFrame(values, schema=names, orient="row")
        import pandas as pd

        return pd.DataFrame(values, columns=names, index=given.index if isinstance(given, pd.DataFrame) else None)

    def _store_names(self, given: Any) -> None:
        """Remember the names of columns that rows came with."""
        names = find_column_names(given)
        if names is not None:
            self.feature_names_in_ = names
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _check_names(self, given: Any) -> None:
        """Refuse columns with other names than at fit; warn where only one of both had names."""
        fitted, found = getattr(self, "feature_names_in_", None), find_column_names(given)
        kind = type(self).__name__
        if fitted is None and found is None:
            return
        if found is None:
            warnings.warn(
                f"X does not have valid feature names, but {kind} was fitted with feature names", stacklevel=3
            )
        elif fitted is None:
            warnings.warn(f"X has feature names, but {kind} was fitted without feature names", stacklevel=3)
        elif list(fitted) != list(found):
            at = next((i for i, (a, b) in enumerate(zip(fitted, found, strict=False)) if a != b), None)
            where = f"{len(found)} columns" if at is None else f"{found[at]!r} as column {at}"
            raise InputError(
                f"got {where}, expected the {len(fitted)} columns that {kind} was fitted on, in their order."
            )


def find_column_names(given: Any) -> NDArray[Any] | None:
    """The names of a table's columns where all are strings, else None, (d,).

    >>> import pandas as pd
    >>> find_column_names(pd.DataFrame({"a": [1.0], "b": [2.0]}))
    array(['a', 'b'], dtype=object)
    """
    columns = None if isinstance(given, Source) else getattr(given, "columns", None)  # a source is no table
    if columns is None or not all(isinstance(name, str) for name in columns):
        return None
    return np.array(list(columns), dtype=object)


def _make_error_class() -> type[NotFitted]:
    """Our error, which is also scikit-learn's where that is in use."""
    if sys.modules.get("sklearn") is None:
        return NotFitted
    from sklearn.exceptions import NotFittedError

    return type("NotFitted", (NotFitted, NotFittedError), {})
