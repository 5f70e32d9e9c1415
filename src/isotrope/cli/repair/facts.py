"""What a fitted repair is, as plain data and in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

    from isotrope.repairs import Repair


def print_safety(out: Console, fitted: Repair) -> None:
    """Print what a repair does to lengths, how searches survive rounding, and what is risky, a line each."""
    from isotrope.repairs import find_risks

    words = {"input": "before the repair", "output": "after the repair", "both": "before and after the repair"}
    if fitted.normalizes_ in words:
        out.print(f"Rows are divided by their length {words[fitted.normalizes_]}.", soft_wrap=True)
    if fitted.query_rounding_ is not None:
        out.print(str(fitted.query_rounding_), soft_wrap=True)
    for risk in find_risks(fitted):
        out.print(f"Note: {risk}", soft_wrap=True)


def describe_repair(fitted: Repair) -> dict[str, Any]:
    """Describe a fitted repair as plain data."""
    from isotrope.repairs import Gains, find_risks
    from isotrope.repairs.linear import LinearRepair

    rounding = fitted.query_rounding_
    return {
        "repair": fitted.name,
        "parameters": fitted.get_params(),
        "width": fitted.map_.width,
        "columns": fitted.map_.columns,
        "fitted_on": fitted.fitted_on_,
        "normalize": fitted.normalizes_,
        "query_rounding": None if rounding is None else rounding.to_dict(),
        "gain_summary": Gains.of(fitted).to_dict() if isinstance(fitted, LinearRepair) else None,
        "risks": find_risks(fitted),
    }


def describe_fit(fitted_on: Mapping[str, Any]) -> str:
    """Describe in words what a repair was fitted on.

    >>> describe_fit({"rows": 5, "zero_rows": 2, "sources": [{"model": "bert", "pooling": "mean", "layers": [6]}]})
    'fitted on 5 rows (2 of zeros left out) of bert, layer 6, pooling mean'
    """
    words = f"fitted on {fitted_on['rows']:,} rows"
    left_out = {"of zeros": fitted_on.get("zero_rows"), "not finite": fitted_on.get("nonfinite_rows")}
    if any(left_out.values()):
        words += f" ({', '.join(f'{n:,} {what}' for what, n in left_out.items() if n)} left out)"
    return words + "".join(f" of {_describe_source(source)}" for source in fitted_on.get("sources", []))


def _describe_source(source: Mapping[str, Any]) -> str:
    if source.get("model") is None:
        return ", ".join(str(file.get("path", file)) for file in source.get("files", [])[:3]) or "vectors"
    over = f" over {source['corpus']['name']}" if "corpus" in source else ""
    layers = ", ".join(map(str, source.get("layers", [])))
    return f"{source['model']}{over}, layer {layers}, " + (
        f"pooling {source['pooling']}" if source.get("pooling") else "tokens as rows"
    )
