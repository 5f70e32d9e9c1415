"""Rows are compared with those of the fit: no alarm for rows like them, few or many, and one for rows unlike them."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from isotrope.errors import InputError, StoreError
from isotrope.repairs import (
    AllButTheTop,
    Centering,
    ClusterIsotropy,
    Flow,
    Repair,
    SoftDecay,
    Whitening,
    apply_to_file,
    load_repair,
)
from isotrope.repairs import persistence as saved
from isotrope.repairs.fit_check import Lengths
from isotrope.sources.vectors.source import ArraySource

RNG = np.random.default_rng(0)

#: Rows of a collapsed space of length about 35, with a mean cosine of 0.8.
LONG = RNG.normal(size=(1_500, 20)) * 3.5 + 7.0
LONG *= (35 * np.exp(0.05 * RNG.normal(size=1_500)) / np.linalg.norm(LONG, axis=1))[:, None]
UNIT = LONG / np.linalg.norm(LONG, axis=1, keepdims=True)

KINDS: list[Repair] = [
    SoftDecay(),
    Whitening(),
    AllButTheTop(),
    Centering(),
    Centering(scaled=True),
    ClusterIsotropy(3, 1),
    Flow(steps=1, hidden=4, epochs=1),
]
every_kind = pytest.mark.parametrize("repair", KINDS, ids=repr)


def test_lengths_are_a_value_with_a_sum() -> None:
    lengths = RNG.lognormal(size=300)
    whole = Lengths.of(lengths)
    for cut in (0, 1, 120, 300):
        parts = Lengths.of(lengths[:cut]) + Lengths.of(lengths[cut:])
        assert (parts.rows, parts.least, parts.greatest) == (300, lengths.min(), lengths.max())
        assert parts.mean_log == pytest.approx(np.log(lengths).mean())
        assert parts.scatter_log == pytest.approx(np.log(lengths).var() * 300)
    assert Lengths.from_dict(whole.to_dict()) == whole
    assert Lengths.from_dict(None) == Lengths()
    assert not whole.unit
    assert Lengths.of(np.array([1.0, 0.9993, 1.0004])).unit


@every_kind
def test_rows_of_another_length_are_found(repair: Repair, tmp_path: Path) -> None:
    repair.fit(LONG)
    repair.save(tmp_path / "saved")
    for fitted in (repair, load_repair(tmp_path / "saved")):
        assert fitted.find_mismatch(LONG) is None
        for other in (UNIT, UNIT[:1], 3 * LONG, torch.from_numpy(UNIT).float()):
            assert "median length" in str(fitted.find_mismatch(other))
        with pytest.warns(UserWarning, match=r"unlike those that .* was fitted on: their median length is 1"):
            fitted.transform(UNIT)


@every_kind
@pytest.mark.parametrize("rows", [LONG, UNIT], ids=["long", "unit"])
def test_rows_like_those_of_the_fit_raise_no_alarm(repair: Repair, rows: np.ndarray) -> None:
    repair.fit(rows[:1_000])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for size in (1, 2, 5, 100):
            for begin in range(1_000, 1_500 - size + 1, max(size, 10)):
                assert repair.find_mismatch(rows[begin : begin + size]) is None
        repair.transform(rows[1_000:])
        repair.transform(np.zeros((3, 20)))


def test_heavy_tails_raise_no_alarm_for_single_rows() -> None:
    rows = RNG.normal(size=(3_000, 8)) * RNG.lognormal(sigma=1.0, size=(3_000, 1))
    repair = Whitening().fit(rows[:1_500])
    assert [i for i in range(1_500, 3_000) if repair.find_mismatch(rows[i : i + 1])] == []


def test_rows_with_another_mean_are_found_from_a_few_rows_on() -> None:
    repair = Whitening().fit(LONG)
    turned = LONG * np.where(np.arange(20) % 2, 1, -1)  # the same lengths, another direction
    assert "their mean lies" in str(repair.find_mismatch(turned))
    assert "their mean lies" in str(repair.find_mismatch(turned[:20]))
    assert repair.find_mismatch(turned[:1]) is None  # one row says nothing of a mean


@pytest.mark.parametrize("suffix", ["npy", "parquet", "safetensors"])
def test_a_file_of_other_rows_is_refused_before_anything_is_written(suffix: str, tmp_path: Path) -> None:
    repair = SoftDecay().fit(LONG)
    target = tmp_path / f"out.{suffix}"
    late = np.concatenate([LONG[:512], UNIT[:512]])  # the other rows come later
    for rows, at in ((UNIT, "number 0"), (late, "number 512")):
        with pytest.raises(InputError, match=f"rows from {at} on are unlike those that the repair was fitted on"):
            apply_to_file(repair, ArraySource(rows, batch_rows=256), target)
        assert list(tmp_path.iterdir()) == []
    assert apply_to_file(repair, ArraySource(UNIT), target, allow_mismatch=True) == 1_500


def test_a_repair_saved_by_the_first_version_still_loads_and_applies(tmp_path: Path) -> None:
    repair = Whitening().fit(UNIT)
    expected = repair.affine_(UNIT)
    repair.save(tmp_path / "new")
    facts, arrays = saved.read(tmp_path / "new")
    for name in ("normalize", "query_rounding", "saved", "isotrope", "format"):
        facts.pop(name)
    for name in ("storage", "lengths"):
        facts["fitted_on"].pop(name)
    arrays.pop("left_alone")
    saved.write(tmp_path / "old", facts, arrays)
    assert "normalize" not in json.loads((tmp_path / "old" / "config.json").read_text())
    old = load_repair(tmp_path / "old")
    assert (old.normalizes_, old.fit_check_, old.query_rounding_) == ("none", None, None)
    np.testing.assert_array_equal(old.transform(UNIT), expected)
    assert apply_to_file(old, ArraySource(5 * UNIT), tmp_path / "out.npy") == 1_500
    assert old.partial_fit(UNIT).transform(UNIT).shape == UNIT.shape


@pytest.mark.parametrize(
    ("repair", "damage"),
    [
        (ClusterIsotropy(), {"lengths": {"{}": 1}}),
        (ClusterIsotropy(), {"lengths": {"rows": "many"}}),
        (Whitening(), {"lengths": {"{}": 1}}),
        (Whitening(), {"lengths": [1]}),
        (ClusterIsotropy(), {"spread": "wide"}),
        (ClusterIsotropy(), {"spread": None}),
    ],
    ids=repr,
)
def test_damaged_facts_of_the_fit_are_refused_when_loaded(repair: Any, damage: dict[str, Any], tmp_path: Path) -> None:
    repair.fit(np.random.default_rng(0).normal(size=(200, 4))).save(tmp_path / "r")
    config = json.loads((tmp_path / "r" / saved.CONFIG).read_text())
    config["fitted_on"] |= damage
    del config["checksum"]
    config["checksum"] = saved._checksum(config, tmp_path / "r" / saved.ARRAYS)
    (tmp_path / "r" / saved.CONFIG).write_text(json.dumps(config))
    with pytest.raises(StoreError, match="fit and save it again"):
        load_repair(tmp_path / "r")
