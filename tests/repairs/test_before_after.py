"""Every measure before and after a repair, against the measures of rows that were really repaired."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest

import isotrope
from isotrope.errors import InputError
from isotrope.measures import MEASURES, lsds
from isotrope.repairs import AllButTheTop, Centering, Repair, SoftDecay, Whitening, translate
from isotrope.repairs.effects.before_after import before_after
from isotrope.sources.vectors.source import ArraySource
from isotrope.statistics import Image

rng = np.random.default_rng(5)
#: Rows with a common mean and a falling spectrum, some of them repeated, one of zeros.
ROWS = rng.normal(size=(300, 6)) / np.arange(1, 7) + [1.0, 0.5, 0.0, 0.0, 0.2, 0.0]
ROWS[7] = 0.0

REPAIRS = [
    SoftDecay(),
    SoftDecay(alpha=-0.4, form="shifted"),
    Whitening(),
    Whitening(n_components=3, strength=0.5),
    AllButTheTop(n_directions=2),
    Centering(),
    Centering(scaled=True),
    SoftDecay(normalize=True),
]


def _name(repair: Repair) -> str:
    return repr(repair)


@pytest.mark.parametrize("repair", REPAIRS, ids=_name)
def test_each_line_is_the_measure_of_the_rows_before_and_after(repair: Repair) -> None:
    used = np.delete(ROWS, 7, axis=0)  # a row of zeros has no direction, before or after
    repair.fit(ROWS)
    after = repair.transform(used)
    table = before_after(repair, ROWS, "moments,spread,neighbours")
    assert (table.rows, table.sampled) == (299, 299)
    assert {c.measure for c in table.changes} == {
        m.name for m in MEASURES if m.group in ("moments", "spread", "neighbours") and m.needs in ("moments", "sample")
    }
    for c in table.changes:
        values = [isotrope.measure(rows, c.measure)[c.measure] for rows in (used, after)]
        for found, expected in zip((c.before, c.after), values, strict=True):
            assert found == pytest.approx(expected, rel=1e-7, abs=1e-9, nan_ok=True), c
        assert math.isfinite(c.after) or c.reason, c


def test_how_each_line_was_had() -> None:
    exact = {c.measure for c in before_after(Whitening().fit(ROWS), ROWS, sample=80).changes if c.by == "moments"}
    unit_rows = {"mean_cosine", "token_uniformity", "outlier_dimensions", "outlier_dimension_share"}
    assert exact == {m.name for m in MEASURES if m.needs == "moments"} - unit_rows
    assert before_after(Whitening().fit(ROWS), ROWS, "outlier_dimensions").changes[0].by == "sample"
    # Nothing follows from moments where the map is not affine in the row.
    scaled = before_after(Centering(scaled=True).fit(ROWS), ROWS, "moments")
    assert {c.by for c in scaled.changes} == {"sample"}


def test_exact_lines_are_of_all_rows_and_others_of_the_sample() -> None:
    repair = Whitening(form="zca", strength=0.7).fit(ROWS)
    table = before_after(repair, ROWS, "isoscore,mean_cosine,rbf_distance", sample=50, seed=3)
    whole = before_after(repair, ROWS, "isoscore,mean_cosine", sample=1_000)
    assert [(c.by, c.n) for c in table.changes] == [("moments", 299), ("sample", 50), ("sample", 50)]
    assert table.get("isoscore").after == pytest.approx(whole.get("isoscore").after, rel=1e-12)
    assert table.get("mean_cosine").after != whole.get("mean_cosine").after
    assert table == before_after(repair, ROWS, "isoscore,mean_cosine,rbf_distance", sample=50, seed=3)


def test_from_the_moments_alone() -> None:
    repair = AllButTheTop(n_directions=1).fit(ROWS)
    table = before_after(repair)
    after = repair.transform(np.delete(ROWS, 7, axis=0))
    assert table.get("isoscore").after == pytest.approx(isotrope.measure(after, "isoscore")["isoscore"], rel=1e-9)
    for name in ("mean_cosine", "token_uniformity"):
        line = table.get(name)
        assert math.isfinite(line.before)
        assert math.isnan(line.after)
        assert line.reason is not None
        assert "length" in line.reason
    outliers = before_after(repair, measures="outlier_dimension_share").changes[0]
    assert "length" in str(outliers.reason)
    assert table.cutoffs == []


def test_lsds_in_all_variants() -> None:
    repair = SoftDecay().fit(ROWS)
    used = np.delete(ROWS, 7, axis=0)
    table = before_after(repair, ROWS, "lsds")
    assert [c.variant for c in table.changes] == ["definition", "literal", "published"]
    for c in table.changes:
        assert c.before == pytest.approx(lsds(used, used, variant=c.variant), rel=1e-9)
        assert c.after == pytest.approx(lsds(used, repair.transform(used), variant=c.variant), rel=1e-9)


@pytest.mark.parametrize("n", [4, 5, 40, 41])
def test_cutoffs_let_as_many_pairs_through(n: int) -> None:
    rows = ROWS[10 : 10 + n]
    after = SoftDecay().fit(ROWS).transform(rows)
    pairs = list(combinations(range(n), 2))

    def cosines(x: np.ndarray) -> np.ndarray:
        return np.array([x[i] @ x[j] / np.linalg.norm(x[i]) / np.linalg.norm(x[j]) for i, j in pairs])

    old, new = cosines(rows), cosines(after)
    for c in translate(Image.of(rows, after), [-0.2, 0.5, 0.7, 0.9]):
        above = int((old >= c.before).sum())
        assert c.pairs == len(pairs)
        assert c.share == pytest.approx(above / len(pairs))
        if above:
            assert c.after == pytest.approx(np.sort(new)[-above])
            assert c.kept == pytest.approx(np.mean(new[old >= c.before] >= c.after - 1e-12))
        else:
            assert math.isnan(c.after)


def test_cutoffs_from_some_pairs_are_close_and_repeatable() -> None:
    rows = rng.normal(size=(1500, 5)) + 0.8
    image = Image.of(rows, Whitening().fit(rows).transform(rows))
    (whole,) = translate(image, [0.6], pairs=10**9)
    (some,), (again,), (other,) = (translate(image, [0.6], pairs=60_000, seed=s) for s in (1, 1, 2))
    assert whole.pairs == 1500 * 1499 // 2
    assert 55_000 < some.pairs < 65_000  # blocks of whole rows
    assert some.low < whole.after < some.high
    assert some == again != other
    assert some.after == pytest.approx(whole.after, abs=0.02)


def test_a_map_that_changes_nothing_keeps_the_cutoffs() -> None:
    for c in translate(Image.of(ROWS, ROWS * 3.0), [0.1, 0.5, 0.9]):
        assert 0 <= c.after - c.before < 0.01
        assert c.kept == 1.0


def test_all_measures_of_vectors_and_plain_data() -> None:
    table = before_after(Centering().fit(ROWS), ROWS, sample=80)
    kinds = {m.name for m in MEASURES if m.needs in ("moments", "sample", "cells", "image")}
    assert {c.measure for c in table.changes} == kinds
    data = table.to_dict()
    assert data["sampled"] == 80
    assert not [v for line in data["measures"] + data["cutoffs"] for v in line.values() if v != v]
    assert list(table.to_frame().columns[:5]) == ["measure", "before", "after", "by", "n"]


def test_rows_of_tokens_have_their_measures_too() -> None:
    from isotrope.sources.batch import Batch, Rows

    class Tokens(ArraySource):
        """Vectors as the tokens of sequences of ten."""

        def batches(self, start: int = 0):  # type: ignore[no-untyped-def]
            for batch in super().batches(start):
                at = batch.rows.sequence.astype(np.int64)
                known = Rows((at // 10).astype(np.uint64), token=at % 7, position=at % 10, special=at < 0)
                yield Batch(batch.layers, known, batch.counts)

    rows = np.delete(ROWS, 7, axis=0)[:290]
    repair = Whitening().fit(rows)
    table = before_after(repair, Tokens(rows, exact=True), "sequence_uniformity,self_similarity,isoscore")
    after = repair.transform(rows)
    unit = after / np.linalg.norm(after, axis=1, keepdims=True)
    within = [[unit[i] @ unit[j] for i, j in combinations(range(10 * s, 10 * s + 10), 2)] for s in range(29)]
    assert table.get("sequence_uniformity").after == pytest.approx(np.mean(within), rel=1e-9)
    assert math.isfinite(table.get("self_similarity").after)
    names = {c.measure for c in before_after(repair, Tokens(rows, exact=True), sample=100).changes}
    assert {"sequence_uniformity", "self_similarity", "sequence_spectral_median"} <= names


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda r: before_after(r, ROWS[:, :4]), ["width 4", "6"]),
        (lambda r: before_after(r, ROWS[:1]), ["one row"]),
        (lambda r: before_after(r, ROWS, "isoscor"), ["did you mean"]),
        (lambda r: before_after(r, ROWS, "isoscore", cutoffs=[2.0]), ["2.0", "between"]),
        (lambda r: before_after(r, measures="rbf_distance"), ["rbf_distance", "rows"]),
        (lambda r: before_after(Centering(scaled=True).fit(ROWS)), ["centering", "rows"]),
        (lambda r: before_after(Whitening(), ROWS), ["not fitted"]),
        (lambda r: before_after(r, ROWS, "isoscore").get("eee"), ["eee"]),
    ],
)
def test_refusals(call: object, words: list[str]) -> None:
    with pytest.raises(InputError) as error:
        call(Whitening().fit(ROWS))  # type: ignore[operator]
    for word in words:
        assert word in str(error.value)
