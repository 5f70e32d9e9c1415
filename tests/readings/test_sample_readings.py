"""What a scan says of measures of the sample: values, intervals, and what to know about them."""

from __future__ import annotations

import math

import numpy as np
import pytest

import isotrope
from isotrope.errors import InputError
from isotrope.measures import MEASURES, select

ROWS = np.random.default_rng(0).standard_normal((1500, 8)) + 0.4
GROUPS = "spread,neighbours"


def test_a_scan_reads_all_of_them_beside_interval_and_null() -> None:
    found = isotrope.scan(vectors=ROWS, measures=GROUPS)
    assert {r.measure for r in found.readings} == {m.name for m in select(GROUPS)}
    for m in select(GROUPS):
        r = found.get(m.name)
        assert r.n == 1500
        assert math.isfinite(r.value)
        assert math.isfinite(r.null)
        assert math.isfinite(r.low) == m.estimate, m.name
        assert r.value == pytest.approx(m(ROWS), rel=1e-9)


def test_the_default_of_vectors_is_moments_and_search() -> None:
    groups = {MEASURES.get(r.measure).group for r in isotrope.scan(vectors=ROWS).readings}
    assert groups == {"moments", "search"}


def test_what_compares_two_spaces_is_refused_and_left_out() -> None:
    with pytest.raises(InputError, match=r"isotrope\.measures\.lsds\(X, Z\)"):
        isotrope.scan(vectors=ROWS, measures="lsds")
    with pytest.raises(InputError, match=r"isotrope\.measures\.lsds\(X, Z\)"):
        isotrope.measure(ROWS, "lsds")
    names = {r.measure for r in isotrope.scan(vectors=ROWS[:200], measures="all").readings}
    assert "lsds" not in names
    assert {"vrm", "hubness"} <= names


def test_a_sample_says_of_how_many_rows_it_is() -> None:
    found = isotrope.scan(vectors=ROWS, measures="rbf_distance,outlier_dimension_share", sample=1200)
    assert "on 1,200 sampled rows of 1,500" in str(found.get("rbf_distance").note)
    assert (found.get("rbf_distance").n, found.get("outlier_dimension_share").n) == (1200, 1500)


def test_without_a_sample_there_is_a_reason() -> None:
    found = isotrope.scan(vectors=ROWS, measures="vrm,outlier_dimensions", sample=0)
    assert "--sample 0" in str(found.get("vrm").reason)
    assert found.get("outlier_dimensions").reason is None


def test_too_few_rows_are_said() -> None:
    found = isotrope.scan(vectors=ROWS[:60], measures=GROUPS)
    for name in ("vrm", "hubness", "intrinsic_dimension_twonn", "intrinsic_dimension_mle"):
        assert "only 60 rows" in str(found.get(name).note)
    assert isotrope.scan(vectors=ROWS, measures="vrm").get("vrm").note != found.get("vrm").note
    few = isotrope.scan(vectors=ROWS[:8], measures=GROUPS)
    assert "found 8" in str(few.get("intrinsic_dimension_mle").reason)
    assert "found 8" in str(few.get("hubness").reason)


def test_repeated_and_nearly_repeated_rows_are_said() -> None:
    rows = np.vstack([ROWS, ROWS[:100], ROWS[:30] + 1e-8])
    found = isotrope.scan(vectors=rows, measures=GROUPS)
    for name in ("intrinsic_dimension_twonn", "intrinsic_dimension_mle_error"):
        assert "100 rows repeat others" in str(found.get(name).note)
        assert "60 of 1,530 rows have a near-duplicate" in str(found.get(name).note)
    assert "100 rows point the same way" in str(found.get("hubness").note)


def test_rows_are_measured_by_name_from_python() -> None:
    names = [m.name for m in select(GROUPS)]
    found = isotrope.measure(ROWS, names)
    assert found == pytest.approx({name: MEASURES.get(name)(ROWS) for name in names}, rel=1e-9)
    assert isotrope.measure(ROWS, "spread").keys() == {m.name for m in select("spread")}
    some = [isotrope.measure(ROWS, ["vrm"], sample=500, seed=seed)["vrm"] for seed in (0, 0, 1)]
    assert some[0] == some[1] != some[2]
    assert some[0] > found["vrm"]  # fewer rows, more bias


@pytest.mark.parametrize("scale", [1e-30, 2400.0, 1e30])
def test_lengths_do_not_matter_but_to_the_partition_function(scale: float) -> None:
    rows = scale * ROWS[:300] / np.linalg.norm(ROWS[:300], axis=1, keepdims=True)
    found = isotrope.scan(vectors=rows, measures=GROUPS)
    for m in select(GROUPS):
        r = found.get(m.name)
        assert math.isfinite(r.value), m.name
        if "scale" in m.invariant:
            assert r.value == pytest.approx(m(ROWS[:300] / np.linalg.norm(ROWS[:300], axis=1, keepdims=True)), rel=1e-6)
