"""Measures by name, by group, and by the parameters that a name stands for."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import replace

from isotrope.errors import InputError
from isotrope.measures.record import MEASURES, Measure
from isotrope.quantization import check_settings

#: The groups that `--measures` accepts.
GROUPS = ("moments", "tokens", "sequences", "search", "spread", "neighbours", "quantized")

#: Settings of a quantizer at the end of a name: codebooks and cells of each.
_SETTINGS = re.compile(r"(\w+)_(\d+)x(\d+)")


def get(name: str) -> Measure:
    """Get the measure of a name; a family takes its parameters from the name.

    Args:
        name: Name of the measure. A quantized measure without the name of its quantizer uses the additive one.

    Examples:
        >>> get("explained_variance_7").parameters
        {'k': 7}
        >>> get("point_patchiness").name, get("point_patchiness").parameters["kind"]
        ('point_patchiness', 'additive')
        >>> get("point_patchiness_product_8x64").parameters
        {'kind': 'product', 'codebooks': 8, 'size': 64}
        >>> get("isoscor")
        Traceback (most recent call last):
        isotrope.errors.InputError: there is no measure 'isoscor'; did you mean 'isoscore'?
    """
    if found := _SETTINGS.fullmatch(name):
        base = get(found[1])
        if base.needs == "cells":
            check_settings(codebooks=int(found[2]), size=int(found[3]))
            settings = {**base.parameters, "codebooks": int(found[2]), "size": int(found[3])}
            return replace(base, name=f"{base.name}_{found[2]}x{found[3]}", parameters=settings)
    if name not in MEASURES and f"{name}_additive" in MEASURES:
        return replace(MEASURES.get(f"{name}_additive"), name=name)
    stem, _, number = name.rpartition("_")
    family = f"{stem}_1"
    if name not in MEASURES and number.isdigit() and int(number) > 0 and family in MEASURES:
        base = MEASURES.get(family)
        return replace(base, name=name, parameters={"k": int(number)}, title=base.title.replace("1", number))
    return MEASURES.get(name)


def select(names: str | list[str] | None) -> list[Measure]:
    """Select measures by their names or groups.

    Args:
        names: Names and groups; None or "all" for every group.

    Examples:
        >>> [m.name for m in select("isoscore, eee")]
        ['isoscore', 'eee']
        >>> len(select("quantized")), len(select("quantized_8x64"))
        (16, 16)
    """
    parts = ["all"] if names is None else names.split(",") if isinstance(names, str) else list(names)
    chosen: dict[str, Measure] = {}
    for part in (p.strip() for p in parts if p.strip()):
        if part == "all":
            found = [m for m in MEASURES if m.group is not None]
        elif part in GROUPS:
            found = [m for m in MEASURES if m.group == part]
        elif (of := _SETTINGS.fullmatch(part)) and of[1] == "quantized":
            found = [get(f"{m.name}_{of[2]}x{of[3]}") for m in select("quantized")]
        elif part not in MEASURES and (close := difflib.get_close_matches(part, GROUPS, n=1, cutoff=0.8)):
            raise InputError(f"there is no group of measures {part!r}; did you mean {close[0]!r}?")
        else:
            found = [get(part)]
        chosen |= {m.name: m for m in found}
    if not chosen:
        raise InputError(f"no measure was named; known groups: {', '.join(GROUPS)}.")
    return list(chosen.values())


def select_variants(measures: Iterable[Measure], variant: str) -> list[Measure]:
    """Select the measures that have another definition of this name, by that definition.

    Args:
        measures: what was selected.
        variant: the name of the definition, such as "published"; "definition" selects none.
    """
    if variant == "definition":
        return []
    known = sorted({name for m in MEASURES for name in m.variants})
    if variant not in known:
        raise InputError(
            f"there is no variant {variant!r} of any measure; expected one of: definition, {', '.join(known)}."
        )
    found = [m.as_variant(variant) for m in measures if variant in m.variants]
    if not found:
        raise InputError(
            f"none of the selected measures has a variant {variant!r}; isotrope catalogue NAME lists them."
        )
    return found


def check_no_images(chosen: Iterable[Measure]) -> None:
    """Refuse measures that compare rows with their image under a repair."""
    for m in chosen:
        if m.needs == "image":
            raise InputError(
                f"{m.name} compares rows with their image under a repair, and there is none here; "
                f"call isotrope.measures.{m.name}(X, Z)."
            )
