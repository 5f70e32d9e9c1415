"""A repair as an ONNX file: checked, run by onnxruntime, and what it says of itself."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.testing import assert_allclose

from isotrope.errors import InputError, StoreError
from isotrope.integrations import export
from isotrope.integrations.export import IR_VERSION, OPSET, to_onnx
from isotrope.repairs import Affine, Centering, Repair, SoftDecay, Whitening


def run(path: Path, rows: np.ndarray) -> np.ndarray:
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return session.run(["repaired"], {"rows": rows})[0]


def test_it_gives_what_transform_gives(repair: Repair, rows: np.ndarray, tmp_path: Path) -> None:
    path = tmp_path / "repair.onnx"
    export(repair, "onnx", path)
    onnx.checker.check_model(str(path), full_check=True)
    found = run(path, rows)
    assert found.dtype == np.float32
    assert_allclose(found, repair.transform(rows), rtol=0, atol=1e-5)


@pytest.mark.parametrize("n", [0, 1, 7])
def test_any_number_of_rows(n: int, rows: np.ndarray, tmp_path: Path) -> None:
    repair = Centering().fit(rows)
    export(repair, "onnx", tmp_path / "repair.onnx")
    assert_allclose(run(tmp_path / "repair.onnx", rows[:n]), repair.transform(rows[:n]), atol=1e-6)


def test_it_says_what_it_asks_of_a_runtime(rows: np.ndarray) -> None:
    model = to_onnx(Affine(np.zeros(3), np.eye(3)[:, :2]))
    assert [(o.domain, o.version) for o in model.opset_import] == [("", OPSET)]
    assert model.ir_version == IR_VERSION
    assert onnx.helper.find_min_ir_version_for(list(model.opset_import)) == IR_VERSION
    shapes = [
        [dim.dim_param or dim.dim_value for dim in value.type.tensor_type.shape.dim]
        for value in (*model.graph.input, *model.graph.output)
    ]
    assert shapes == [["n", 3], ["n", 2]]


def test_a_mean_far_larger_than_the_spread_costs_no_digits(tmp_path: Path) -> None:
    """Mean 1,000, spread 0.1: with the mean folded into a bias the product would be off by a hundred times as much."""
    rng = np.random.default_rng(0)
    x = (1_000 + 0.1 * rng.normal(size=(100, 64))).astype(np.float32)
    affine = Affine(x.mean(axis=0, dtype=np.float64), np.linalg.qr(rng.normal(size=(64, 64)))[0])
    export(affine, "onnx", tmp_path / "repair.onnx")
    assert_allclose(run(tmp_path / "repair.onnx", x), affine(x.astype(np.float64)), rtol=0, atol=1e-6)


def test_nor_where_the_repair_keeps_the_mean(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x = (1_000 * rng.normal(size=64) + rng.normal(size=(500, 64))).astype(np.float32)
    repair = SoftDecay(-0.6).fit(x)
    export(repair, "onnx", tmp_path / "repair.onnx")
    exact = repair.transform(x.astype(np.float64))
    assert_allclose(run(tmp_path / "repair.onnx", x), exact, rtol=0, atol=1e-6 * np.linalg.norm(exact, axis=1).min())


def test_nothing_is_written_over_unless_asked(rows: np.ndarray, tmp_path: Path) -> None:
    path = tmp_path / "repair.onnx"
    path.write_text("mine")
    repair = Centering().fit(rows)
    with pytest.raises(StoreError, match=r"is there already; choose another name, or say overwrite=True\.$"):
        export(repair, "onnx", path)
    assert path.read_text() == "mine"
    export(repair, "onnx", path, overwrite=True)
    onnx.checker.check_model(str(path))
    with pytest.raises(StoreError, match="is a folder; give the name of a file"):
        export(repair, "onnx", tmp_path, overwrite=True)
    with pytest.raises(InputError, match="not fitted yet"):
        export(Centering(), "onnx", tmp_path / "other.onnx")
    assert [p.name for p in tmp_path.iterdir()] == ["repair.onnx"]


def test_lengths_are_divided_where_the_repair_does_so(rows: np.ndarray, tmp_path: Path) -> None:
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    for name, repair, given in (
        ("of-unit", Whitening().fit(unit), unit),
        ("any", Whitening().fit_unit_rows(rows), rows),
    ):
        export(repair, "onnx", tmp_path / name)
        found = run(tmp_path / name, given)
        assert_allclose(found, repair.transform(given), rtol=0, atol=1e-5)
        assert_allclose(np.linalg.norm(found, axis=1), 1.0, atol=1e-6)
        assert np.isfinite(run(tmp_path / name, np.zeros((1, 24), np.float32))).all()
