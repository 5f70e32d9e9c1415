"""A model that was trained and saved with a SoftDecay layer is read with that layer, by every command."""

from __future__ import annotations

import json
import shutil
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import spearmanr

import isotrope as library
from isotrope import nn
from isotrope.sources.input import Input
from isotrope.sources.models.load import Loaded, load
from testkit.command import Command, one_sentence
from testkit.models import save_model, texts

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

ALPHA = -0.83


def trained(folder: Path, family: str, **where: Any) -> tuple[Any, Any]:
    """A small model with a SoftDecay layer whose α has moved, saved to a folder; the live model and its tokenizer."""
    save_model(folder, family)
    model = transformers.AutoModel.from_pretrained(folder).eval()
    layer = nn.attach(model, -0.5, **where)
    with torch.no_grad():
        layer.raw_alpha.fill_(float(np.log(-ALPHA / (1 + ALPHA))))
    model.save_pretrained(folder)
    return model, transformers.AutoTokenizer.from_pretrained(folder)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any, Any]:
    folder = tmp_path_factory.mktemp("models") / "trained"
    return folder, *trained(folder, "bert")


@pytest.fixture
def text(tmp_path: Path) -> Path:
    (tmp_path / "texts.txt").write_text("\n".join(texts(60)))
    return tmp_path / "texts.txt"


def live_rows(model: Any, tokenizer: Any, sentences: list[str], layer: int) -> list[np.ndarray]:
    """The hidden states of each text by the live model, one text at a time: there is no padding to mistake."""
    rows = []
    for sentence in sentences:
        ids = torch.tensor([tokenizer(sentence)["input_ids"]])
        with torch.no_grad():
            out = model(input_ids=ids, attention_mask=torch.ones_like(ids), output_hidden_states=True)
        rows.append(out.hidden_states[layer][0].double().numpy())
    return rows


def mean_cosine(rows: np.ndarray) -> float:
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    n = len(unit)
    return float((np.square(unit.sum(0)).sum() - n) / (n * (n - 1)))


def test_a_scan_measures_the_trained_model(isotrope: Command, saved: Any, text: Path) -> None:
    folder, model, tokenizer = saved
    result = isotrope("scan", "--model", folder, "--text", text, "--measures", "mean_cosine", "--json")
    assert (result.code, result.err) == (0, "")
    found = {r["layer"]: r["value"] for r in result.json["readings"]}
    for layer in range(4):
        rows = np.concatenate(live_rows(model, tokenizer, text.read_text().splitlines(), layer))
        assert found[layer] == pytest.approx(mean_cosine(rows), abs=1e-6)
    layer = result.json["source"]["softdecay"]
    assert layer["alpha"] == pytest.approx(ALPHA, abs=1e-6)
    assert (layer["form"], layer["where"]) == ("shifted", "before encoder.layer.2.output.LayerNorm")
    plain = transformers.AutoModel.from_pretrained(folder).eval()  # as transformers alone loads it
    without = np.concatenate(live_rows(plain, tokenizer, text.read_text().splitlines(), 3))
    assert abs(mean_cosine(without) - found[3]) > 1e-3
    assert "Restored: the SoftDecay layer" in isotrope("scan", folder, "--text", text, "-o", "run").out


@pytest.mark.parametrize(
    ("family", "where"),
    [
        ("bert", {}),
        ("bert", {"block": 0}),
        ("albert", {"block": 1}),
        ("distilbert", {"form": "clipped"}),
        ("gpt2", {"block": 1}),
        ("llama", {}),
        ("llama", {"block": 0}),
        ("t5", {"at": "encoder.block"}),
        ("t5", {"at": "decoder.block"}),
        ("bart", {"at": "encoder.layers", "block": 0}),
    ],
)
def test_every_layer_is_that_of_the_live_model(family: str, where: dict[str, Any], tmp_path: Path) -> None:
    """Rows of a batch with padding equal those of single texts, in each layer."""
    model, tokenizer = trained(tmp_path / "model", family, **where)
    sentences = texts(12, longest=16)
    restored = Input(model=tmp_path / "model", text=sentences, layers="all", in_order=True).open()
    alive = Input(model=Loaded(model, tokenizer, "live"), text=sentences, layers="all", in_order=True, batch_size=1)
    assert restored.describe()["softdecay"] == alive.open().describe()["softdecay"] is not None
    found, expected = _by_layer(restored), _by_layer(alive.open())
    assert found.keys() == expected.keys()
    for layer in expected:
        assert_allclose(found[layer], expected[layer], rtol=0, atol=1e-5 * np.abs(expected[layer]).max())


def _by_layer(source: Any) -> dict[Any, np.ndarray]:
    found: dict[Any, list[np.ndarray]] = {}
    for batch in source.batches():
        for layer, rows in batch.layers.items():
            found.setdefault(layer, []).append(np.asarray(rows))
    return {layer: np.concatenate(rows) for layer, rows in found.items()}


def test_from_python_in_float64_and_by_hooks(saved: Any, text: Path) -> None:
    folder, model, tokenizer = saved
    sentences = text.read_text().splitlines()
    expected = mean_cosine(np.concatenate(live_rows(model, tokenizer, sentences, 3)))
    for options in ({}, {"precision": "exact"}, {"hooks": "encoder.layer.*"}):
        found = library.scan(model=str(folder), text=str(text), measures=["mean_cosine"], **options)
        assert found.readings[-1].value == pytest.approx(expected, abs=1e-6)


def test_a_model_with_a_head_and_a_named_place(tmp_path: Path) -> None:
    save_model(tmp_path, "bert")
    model = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path)
    layer = nn.attach(model, -0.7, at="bert.encoder.layer", block=1)
    model.save_pretrained(tmp_path)
    assert load(tmp_path).softdecay == {
        "alpha": layer.alpha,
        "form": "shifted",
        "where": "before encoder.layer.1.output.LayerNorm",
    }


def test_evaluation_encodes_with_the_layer(isotrope: Command, saved: Any, tmp_path: Path) -> None:
    folder, model, tokenizer = saved
    sets = tmp_path / "sets"
    sets.mkdir()
    gold, sides = np.random.default_rng(3).integers(0, 6, 30), (texts(30, seed=1), texts(30, seed=2))
    lines = [f"PAD\tPAD\tPAD\tPAD\t{g}\t{a}\t{b}\n" for g, a, b in zip(gold, *sides, strict=True)]
    (sets / "sts-b-test.csv").write_text("".join(lines))
    result = isotrope("evaluate", "sts", "--model", folder, "--data", sets, "--layers", "-1", "--json")
    assert result.code == 0, result.err
    pooled = [np.stack([rows.mean(0) for rows in live_rows(model, tokenizer, side, 3)]) for side in sides]
    unit = [rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in pooled]
    expected = spearmanr((unit[0] * unit[1]).sum(1), gold).statistic
    (score,) = [s for s in result.json["scores"] if s["set"] == "sts-b"]
    assert score["spearman"] == pytest.approx(100 * expected, abs=1e-6)


def test_an_embedder_is_built_from_layers_before_it_alone(saved: Any, tmp_path: Path) -> None:
    pytest.importorskip("sentence_transformers")
    from sentence_transformers import SentenceTransformer

    from isotrope.integrations.embedder import write_embedder

    folder, model, tokenizer = saved
    with pytest.raises(library.errors.InputError, match=r"cannot hold the SoftDecay layer .*isotrope.nn.restore"):
        write_embedder(tmp_path / "last", Input(model=folder, layers="-1", pooling="mean"))
    assert not (tmp_path / "last").exists()
    write_embedder(tmp_path / "first", Input(model=folder, layers="1", pooling="mean"), normalize=False)
    sentences = texts(5)
    expected = np.stack([rows.mean(0) for rows in live_rows(model, tokenizer, sentences, 1)])
    found = SentenceTransformer(str(tmp_path / "first"), device="cpu").encode(sentences)
    assert_allclose(found, expected, rtol=0, atol=1e-5)
    assert "isotrope_softdecay" not in json.loads((tmp_path / "first" / "config.json").read_text())


def test_build_refuses_in_one_sentence(isotrope: Command, saved: Any, text: Path) -> None:
    text.write_text("\n".join(texts(260)))
    result = isotrope("build", saved[0], "--text", text, "--layers", "-1", "-o", "built")
    assert "cannot hold the SoftDecay layer" in one_sentence(result)
    assert not Path("built").exists()


def test_a_saved_sentence_transformers_model(saved: Any, tmp_path: Path) -> None:
    sentence_transformers = pytest.importorskip("sentence_transformers")
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

    from isotrope.integrations.sentence_transformers import open_model

    save_model(tmp_path / "bare", "bert")
    modules = [Transformer(str(tmp_path / "bare")), Pooling(16, "mean")]
    model = sentence_transformers.SentenceTransformer(modules=modules, device="cpu")
    nn.attach(model, -0.7)
    model.save(str(tmp_path / "saved"))
    sentences = texts(40)
    expected = model.encode(sentences)
    assert_allclose(open_model(tmp_path / "saved").encode(sentences), expected, rtol=0, atol=1e-6)
    found = library.scan(model=str(tmp_path / "saved"), text=sentences, layers="encoded", measures=["mean_cosine"])
    assert found.readings[0].value == pytest.approx(mean_cosine(expected.astype(float)), abs=1e-6)
    assert found.source["softdecay"]["alpha"] == pytest.approx(-0.7, abs=1e-6)


def test_a_head_for_fine_tuning_keeps_it(saved: Any) -> None:
    from isotrope.finetuning.task_training import add_head
    from isotrope.finetuning.tasks import TASKS
    from isotrope.studies.latent_geometry.changed_models import reset_weights

    loaded = load(saved[0])
    ids = torch.tensor([[2, 5, 6, 7, 3]])
    model = add_head(loaded, TASKS["rte"]).eval()
    with torch.no_grad():
        inside = model.base_model(input_ids=ids, attention_mask=torch.ones_like(ids)).last_hidden_state
        expected = loaded.model(input_ids=ids, attention_mask=torch.ones_like(ids)).last_hidden_state
    assert torch.equal(inside, expected)
    assert reset_weights(loaded, 0).softdecay == loaded.softdecay is not None


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        (True, "damaged or of another version (True)"),
        ({"alpha": -0.5}, "damaged or of another version ({'alpha': -0.5})"),
        ({"alpha": "x"}, "damaged or of another version (alpha='x')"),
        ({"alpha": 0.5}, "alpha is 0.5, expected −1 < alpha < 0"),
        ({"form": "steep"}, "there is no form 'steep' of SoftDecay"),
        ({"block": 77}, "there is no block 77"),
        ({"at": "nowhere"}, "has no module 'nowhere'"),
        ({"strength": 2}, "damaged or of another version"),
    ],
)
def test_a_damaged_entry_is_refused(isotrope: Command, saved: Any, text: Path, entry: Any, said: str) -> None:
    folder = Path(shutil.copytree(saved[0], "model"))
    config = json.loads((folder / "config.json").read_text())
    if isinstance(entry, dict) and entry != {"alpha": -0.5}:
        entry = config["isotrope_softdecay"] | entry
    (folder / "config.json").write_text(json.dumps(config | {"isotrope_softdecay": entry}))
    assert said in one_sentence(isotrope("scan", folder, "--text", text))


def test_damaged_weights_are_refused(isotrope: Command, saved: Any, text: Path) -> None:
    from safetensors.torch import load_file, save_file

    folder = Path(shutil.copytree(saved[0], "model"))
    weights = load_file(folder / "model.safetensors")
    (name,) = [name for name in weights if name.endswith("raw_alpha")]
    for value in (torch.tensor([np.nan]), torch.zeros(3), torch.zeros(1, dtype=torch.int64)):
        save_file(weights | {name: value.to(value.dtype)}, folder / "model.safetensors", {"format": "pt"})
        assert "is damaged" in one_sentence(isotrope("scan", folder, "--text", text))
    del weights[name]
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    assert "hold no SoftDecay layer" in one_sentence(isotrope("scan", folder, "--text", text))


@pytest.mark.parametrize(("kind", "content"), [("ONNX", b""), ("GGUF", b"GGUF" + struct.pack("<IQQ", 3, 0, 0))])
def test_files_that_cannot_hold_it_are_refused(
    isotrope: Command, saved: Any, text: Path, kind: str, content: bytes
) -> None:
    pytest.importorskip({"ONNX": "onnxruntime", "GGUF": "gguf"}[kind])
    path = Path(shutil.copytree(saved[0], "model")) / f"model.{kind.lower()}"
    path.write_bytes(content)
    said = one_sentence(isotrope("scan", path, "--text", text))
    assert f"which the {kind} file {path.name} does not hold; give the folder of its weights" in said
    (path.parent / "config.json").unlink()
    assert "SoftDecay" not in one_sentence(isotrope("scan", path, "--text", text))
