"""One way to write a repair for any other library, and each kind read where isotrope cannot be imported."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from safetensors.torch import load_file

from isotrope.errors import InputError, MissingExtra
from isotrope.integrations import KINDS, export
from isotrope.integrations.linear_map import estimate_rounding
from isotrope.repairs import Affine, AllButTheTop, Centering, Repair, SoftDecay, Whitening
from isotrope.repairs.linear import LinearRepair
from testkit.programs import run_without_isotrope

FILES = [name for name in KINDS.names() if not KINDS.get(name).of_model]


def test_every_kind_of_file_gives_what_transform_gives_where_isotrope_cannot_be_imported(
    rows: np.ndarray, tmp_path: Path
) -> None:
    repair = Whitening(8).fit(rows)
    for kind in FILES:
        export(repair, kind, tmp_path / kind)
    np.savez(tmp_path / "expected.npz", rows=rows, repaired=repair.transform(rows))
    run_without_isotrope(
        """
import numpy, safetensors.torch, onnxruntime, torch, faiss
given = numpy.load("expected.npz")
rows = given["rows"]
a = numpy.load("numpy")
linear = torch.nn.Linear(*a["weight"].shape)
linear.load_state_dict(safetensors.torch.load_file("torch"))
found = {
    "numpy": (rows - a["shift"]) @ a["weight"] + a["offset"],
    "torch": linear(torch.from_numpy(rows)).detach().numpy(),
    "onnx": onnxruntime.InferenceSession("onnx").run(None, {"rows": rows})[0],
    "faiss": faiss.read_VectorTransform("faiss").apply(rows),
}
index = faiss.IndexPreTransform(faiss.read_VectorTransform("faiss"), faiss.IndexFlatL2(8))
index.add(rows)
assert (index.search(given["rows"], 1)[1].ravel() == numpy.arange(len(rows))).all()
assert sorted(found) == """
        + repr(sorted(FILES))
        + """
for kind, repaired in found.items():
    error = abs(repaired - given["repaired"]).max()
    assert error <= 1e-5, (kind, error)
""",
        tmp_path,
    )


def test_torch_holds_what_to_torch_gives(repair: Repair, rows: np.ndarray, tmp_path: Path) -> None:
    export(repair, "torch", tmp_path / "linear.safetensors")
    for name, tensor in repair.affine_.to_torch().state_dict().items():
        assert torch.equal(tensor, load_file(tmp_path / "linear.safetensors")[name])


def test_numpy_holds_the_map_to_its_last_digit(repair: Repair, rows: np.ndarray, tmp_path: Path) -> None:
    export(repair, "numpy", tmp_path / "arrays")
    assert [path.name for path in tmp_path.iterdir()] == ["arrays"]
    loaded = Affine.from_arrays(np.load(tmp_path / "arrays"))
    wide = rows.astype(np.float64)
    assert_allclose(loaded(wide), repair.transform(wide), rtol=0, atol=0)


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize("repair", [Centering(scaled=True), SoftDecay(normalize=True)], ids=repr)
def test_maps_that_are_not_affine_are_refused(kind: str, repair: Repair, rows: np.ndarray, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"is not one affine map .*; save it with save and apply it with transform\.$"):
        export(repair.fit(rows), kind, tmp_path / "file")
    assert not list(tmp_path.iterdir())


def test_refusals(rows: np.ndarray, tmp_path: Path) -> None:
    repair = Centering().fit(rows)
    with pytest.raises(InputError, match=r"^there is no kind of export 'onx'; did you mean 'onnx'\?$"):
        export(repair, "onx", tmp_path / "file")
    with pytest.raises(InputError, match=r"^got a ndarray, expected a fitted repair or an Affine\.$"):
        export(rows, "numpy", tmp_path / "file")  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"^'sentence-transformers' folds a repair into a model; say which"):
        export(repair, "sentence-transformers", tmp_path / "model")
    with pytest.raises(InputError, match=r"^'onnx' takes no model and no options of one; leave them out\.$"):
        export(repair, "onnx", tmp_path / "file", model="all-MiniLM-L6-v2")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("kind", "package", "extra"), [("onnx", "onnx", "onnx"), ("faiss", "faiss", "quantize")], ids=["onnx", "faiss"]
)
def test_a_missing_extra_is_named(
    kind: str, package: str, extra: str, rows: np.ndarray, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtra, match=rf"pip install 'isotrope\[{extra}\]'\.$"):
        export(Centering().fit(rows), kind, tmp_path / "file")
    assert not list(tmp_path.iterdir())


def test_importing_the_table_imports_no_library() -> None:
    code = (
        "import sys, isotrope.integrations; "
        "found = {'torch', 'onnx', 'onnxruntime', 'faiss', 'sentence_transformers'} & set(sys.modules); "
        "assert not found, found"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    "repair", [Whitening(), Whitening(form="zca"), AllButTheTop(1), SoftDecay(-0.6), Centering()], ids=repr
)
@pytest.mark.parametrize("mean", [0, 1, 10, 100, 1_000])
def test_rounding_is_foretold(mean: float, repair: LinearRepair) -> None:
    """From the moments alone, within a factor of four, over four decades."""
    rng = np.random.default_rng(0)
    x = (rng.normal(size=(2000, 64)) / np.sqrt(np.arange(1, 65)) + mean).astype(np.float32)
    exact = repair.fit(x).transform(x.astype(np.float64))
    found = repair.affine_.to_torch()(torch.from_numpy(x)).detach().numpy()
    largest = (np.abs(found - exact) / np.linalg.norm(exact, axis=1, keepdims=True)).max()
    assert 0.25 < largest / estimate_rounding(repair) < 4


def test_a_mean_that_costs_digits_is_warned_of(rows: np.ndarray, tmp_path: Path) -> None:
    far = Whitening().fit(rows + 100)
    for kind in ("torch", "faiss"):
        with pytest.warns(UserWarning, match=r"shows rounding of about .e-0. of a row's length, because"):
            export(far, kind, tmp_path / kind)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        export(far, "onnx", tmp_path / "onnx")
        export(Whitening().fit(rows), "torch", tmp_path / "near")


def test_a_repair_fitted_on_zeros_changes_nothing(tmp_path: Path) -> None:
    export(SoftDecay().fit(np.zeros((3, 2))), "torch", tmp_path / "linear")
    assert load_file(tmp_path / "linear")["weight"].tolist() == [[1.0, 0.0], [0.0, 1.0]]


@pytest.mark.parametrize("kind", ["numpy", "torch", "faiss"])
def test_a_linear_map_without_the_division_by_length_is_warned_of(kind: str, rows: np.ndarray, tmp_path: Path) -> None:
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    with pytest.warns(
        UserWarning, match=f"the export '{kind}' holds the linear map alone; divide rows by their length after"
    ):
        export(Centering().fit(unit), kind, tmp_path / "one")
    with pytest.warns(UserWarning, match="length before and after it"):
        export(Centering().fit_unit_rows(rows), kind, tmp_path / "two")
