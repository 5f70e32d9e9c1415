"""A repair inside a real sentence-transformers model, loaded again with and without isotrope."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from pydoc_data.topics import topics

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Dense

from isotrope.errors import InputError, MissingExtra, StoreError
from isotrope.integrations import export
from isotrope.integrations.sentence_transformers import RepairModule, fold
from isotrope.repairs import Affine, Centering, SoftDecay, Whitening
from isotrope.sources.models.location import find_embedded_folder
from testkit.programs import run_without_isotrope

#: Lines of the Python manual: short, so that they are quickly encoded, and of many kinds.
LINES = [line.strip() for text in topics.values() for line in text.splitlines() if 30 < len(line.strip()) < 60]
TEXTS = LINES[:: len(LINES) // 256][:256]


def unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.fixture(scope="module")
def model() -> SentenceTransformer:
    """MiniLM: a transformer, mean pooling, and division by the length."""
    return SentenceTransformer(find_embedded_folder(), device="cpu")


@pytest.fixture(scope="module")
def pooled_model(model: SentenceTransformer) -> SentenceTransformer:
    return SentenceTransformer(modules=[model[0], model[1]], device="cpu")


@pytest.fixture(scope="module")
def pooled(pooled_model: SentenceTransformer) -> np.ndarray:
    return np.asarray(pooled_model.encode(TEXTS))


def test_a_folded_model_gives_what_transform_gives_where_isotrope_cannot_be_imported(
    model: SentenceTransformer, pooled_model: SentenceTransformer, pooled: np.ndarray, tmp_path: Path
) -> None:
    bent = SoftDecay(-0.6, tolerance=1e-5).fit(pooled)
    shifted = SoftDecay(-0.6, form="shifted").fit(pooled)
    encoded = Whitening(64).fit(unit(pooled))
    fold(find_embedded_folder(), bent, tmp_path / "normalized")  # from a folder
    fold(pooled_model, shifted, tmp_path / "as it is")  # from a model that has no Normalize, in memory
    export(encoded, "sentence-transformers", tmp_path / "last", model=model, rows="encoded")  # by the one entry point
    expected = {
        "normalized": unit(bent.transform(pooled[:64])),
        "as it is": shifted.transform(pooled[:64]),
        "last": encoded.transform(unit(pooled[:64])),
    }
    np.savez(tmp_path / "expected.npz", **expected)
    (tmp_path / "texts.json").write_text(json.dumps(TEXTS[:64]))
    run_without_isotrope(
        """
import json, numpy
from sentence_transformers import SentenceTransformer
texts = json.load(open("texts.json"))
for name, expected in numpy.load("expected.npz").items():
    found = SentenceTransformer(name, device="cpu").encode(texts)
    assert found.dtype == numpy.float32
    error = abs(found - expected).max()
    assert error <= 1e-5, (name, error)
""",
        tmp_path,
    )


def modules(folder: Path) -> list[str]:
    entries = json.loads((folder / "modules.json").read_text())
    assert [(e["idx"], e["name"]) for e in entries] == [(i, str(i)) for i in range(len(entries))]
    return [entry["type"].rpartition(".")[2] for entry in entries]


def test_where_the_dense_comes(model: SentenceTransformer, tmp_path: Path) -> None:
    affine = Affine(np.zeros(384), np.eye(384)[:, :7])
    before = list(model)
    fold(model, affine, tmp_path / "pooled")
    fold(model, affine, tmp_path / "encoded", rows="encoded")
    assert list(model) == before
    assert modules(tmp_path / "pooled") == ["Transformer", "Pooling", "Dense", "Normalize"]
    assert modules(tmp_path / "encoded") == ["Transformer", "Pooling", "Normalize", "Dense"]
    again = SentenceTransformer(str(tmp_path / "pooled"), device="cpu")
    assert again.get_embedding_dimension() == 7
    fold(tmp_path / "pooled", Affine(np.zeros(7), np.eye(7)), tmp_path / "twice")
    assert modules(tmp_path / "twice") == ["Transformer", "Pooling", "Dense", "Dense", "Normalize"]


def test_a_repair_of_unit_rows_ends_in_a_normalize(
    model: SentenceTransformer, pooled_model: SentenceTransformer, pooled: np.ndarray, tmp_path: Path
) -> None:
    of_unit, any_length = Whitening(16).fit(unit(pooled)), Whitening(16).fit_unit_rows(pooled)
    fold(model, of_unit, tmp_path / "encoded", rows="encoded")
    fold(pooled_model, any_length, tmp_path / "pooled")
    assert modules(tmp_path / "encoded") == ["Transformer", "Pooling", "Normalize", "Dense", "Normalize"]
    assert modules(tmp_path / "pooled") == ["Transformer", "Pooling", "Normalize", "Dense", "Normalize"]
    fold(model, any_length, tmp_path / "both")
    assert modules(tmp_path / "both") == ["Transformer", "Pooling", "Normalize", "Dense", "Normalize"]
    expected = of_unit.transform(unit(pooled[:20]))
    for name in ("encoded", "pooled", "both"):
        found = SentenceTransformer(str(tmp_path / name), device="cpu").encode(TEXTS[:20])
        assert_allclose(found, expected, rtol=0, atol=1e-5)


def test_a_saved_model_keeps_its_files(tmp_path: Path) -> None:
    fold(find_embedded_folder(), Affine(np.zeros(384), np.eye(384)), tmp_path / "model")
    source = Path(find_embedded_folder())
    for path in source.rglob("*"):
        if path.is_file() and path.name != "modules.json":
            assert (tmp_path / "model" / path.relative_to(source)).read_bytes() == path.read_bytes()


@pytest.mark.parametrize("repair", [Whitening(16), Centering(scaled=True), SoftDecay(normalize=True)], ids=repr)
def test_a_module_of_any_repair(
    repair: Whitening, pooled_model: SentenceTransformer, pooled: np.ndarray, tmp_path: Path
) -> None:
    fitted = repair.fit(pooled)
    repaired = SentenceTransformer(modules=[*pooled_model, RepairModule(fitted)], device="cpu")
    expected = fitted.transform(pooled[:20])
    assert repaired.get_embedding_dimension() == expected.shape[1]
    assert_allclose(repaired.encode(TEXTS[:20]), expected, rtol=0, atol=1e-5)
    repaired.save_pretrained(str(tmp_path))
    again = SentenceTransformer(str(tmp_path), device="cpu", trust_remote_code=True)
    assert_allclose(again.encode(TEXTS[:20]), expected, rtol=0, atol=1e-5)
    assert repr(again[2].repair) == repr(fitted)
    assert again[2].repair.fitted_on_ == fitted.fitted_on_


def test_a_repair_of_other_rows_is_refused(model: SentenceTransformer, pooled: np.ndarray, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"rows of length 1, which this model has only after its Normalize; say rows="):
        fold(model, Centering().fit(unit(pooled)), tmp_path / "model")
    with pytest.raises(InputError, match=r"other lengths than 1, and this model encodes to length 1; say"):
        fold(model, Centering().fit(pooled), tmp_path / "model", rows="encoded")
    with pytest.raises(InputError, match=r"^the repair is for rows of width 3, the model's have 384; fit one on these"):
        fold(model, Affine(np.zeros(3), np.eye(3)), tmp_path / "model")
    with pytest.raises(InputError, match="is not one affine map"):
        fold(model, Centering(scaled=True).fit(pooled), tmp_path / "model")
    with pytest.raises(InputError, match=r"^there are no rows 'raw'; say pooled or encoded\.$"):
        fold(model, Centering().fit(pooled), tmp_path / "model", rows="raw")
    assert not list(tmp_path.iterdir())


def test_nothing_is_written_over_unless_asked(model: SentenceTransformer, pooled: np.ndarray, tmp_path: Path) -> None:
    repair, target = Centering().fit(pooled), tmp_path / "model"
    target.mkdir()
    (target / "mine.txt").write_text("mine")
    with pytest.raises(StoreError, match="holds other files; give a new folder for the model"):
        fold(model, repair, target, overwrite=True)
    with pytest.raises(StoreError, match="is a file; give a folder for the model"):
        fold(model, repair, target / "mine.txt")
    (target / "mine.txt").unlink()
    fold(model, repair, target)
    with pytest.raises(StoreError, match="already holds a model; choose another, or say overwrite=True"):
        fold(model, repair, target)
    fold(target, repair, target, overwrite=True)
    assert modules(target).count("Dense") == 2
    with pytest.raises(StoreError, match="lies inside the model that would be copied there; give a folder elsewhere"):
        fold(target, repair, target / "inside")
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_what_is_no_model_is_refused(pooled: np.ndarray, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"cannot be loaded by sentence-transformers \(.*\); check the name or folder"):
        fold(tmp_path / "empty", Centering().fit(pooled), tmp_path / "model")
    assert [path.name for path in tmp_path.iterdir()] == ["empty"]


def test_a_missing_extra_is_named(pooled: np.ndarray, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "isotrope.integrations.sentence_transformers")
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(MissingExtra, match=r"pip install 'isotrope\[sentence-transformers\]'\.$"):
        export(Centering().fit(pooled), "sentence-transformers", tmp_path / "model", model="some")


def test_a_dense_is_plain(model: SentenceTransformer, pooled: np.ndarray, tmp_path: Path) -> None:
    fold(model, Centering().fit(pooled), tmp_path / "model")
    dense = SentenceTransformer(str(tmp_path / "model"), device="cpu")[2]
    assert type(dense) is Dense
    assert type(dense.activation_function).__name__ == "Identity"
