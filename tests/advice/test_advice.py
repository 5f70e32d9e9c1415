"""Advice without labels: right on spaces whose answer is known, and silent where there is too little to tell."""

from __future__ import annotations

import json
import random
from pathlib import Path
from pydoc_data.topics import topics

import numpy as np
import pytest
from scipy import stats
from sentence_transformers import SentenceTransformer

from isotrope.advice.advise import advise
from isotrope.advice.advise_model import LEAST
from isotrope.advice.benchmark_pairs import make_benchmark
from isotrope.advice.build import build
from isotrope.advice.candidate import cosines, cut_into_halves, reciprocal_ranks
from isotrope.advice.geometry import compute_geometry, compute_neighbours_kept
from isotrope.errors import InputError, StoreError
from isotrope.evaluation.pairs import read_sets
from isotrope.repairs.fit_data import collect
from isotrope.repairs.softdecay import fit_scale_free_softdecay
from isotrope.sources.text.encoder import Encoder
from testkit.models import save_model, smollm2_file, texts
from testkit.paths import SHARED_DATA

DATA = SHARED_DATA


def isotropic(n: int, d: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, d))


def drift(n: int, d: int, seed: int) -> np.ndarray:
    return isotropic(n, d, seed) + 5.0


def dominant(n: int, d: int, seed: int) -> np.ndarray:
    rows = isotropic(n, d, seed)
    rows[:, :3] *= np.sqrt(d)
    return rows


def outlier(n: int, d: int, seed: int) -> np.ndarray:
    rows = isotropic(n, d, seed)
    rows[:, d // 2] = 3 * np.sqrt(d) * rows[:, d // 2] + 20
    return rows


def falling(n: int, d: int, seed: int) -> np.ndarray:
    """A spectrum as gentle as that of a healthy sentence model."""
    return isotropic(n, d, seed) / np.arange(1, d + 1) ** 0.25


@pytest.mark.parametrize(
    ("space", "repaired_from"),
    # Three strong directions are few of 64, and not few of 8.
    [(isotropic, None), (falling, None), (drift, 8), (dominant, 64), (outlier, 8)],
)
@pytest.mark.parametrize(
    ("n", "d"),
    [(500, 8), (500, 64), (500, 384), (5_000, 8), (5_000, 64), pytest.param(5_000, 384, marks=pytest.mark.long)],
)
@pytest.mark.parametrize("seed", [0, 1])
def test_vectors_whose_answer_is_known(space, repaired_from: int | None, n: int, d: int, seed: int) -> None:  # type: ignore[no-untyped-def]
    advice = advise(vectors=space(n, d, seed))
    repaired = repaired_from is not None and d >= repaired_from
    assert (advice.repair is not None) is repaired, advice.geometry
    assert advice.evidence == "geometry"
    assert any("weaker" in reason for reason in advice.reasons)
    if advice.repair is not None:
        rows = space(n, d, seed + 100)  # rows never seen
        after = compute_geometry(collect(advice.repair.transform(rows)).moments)
        before = compute_geometry(collect(rows).moments)
        assert after.mean_cosine <= max(before.mean_cosine - 0.2, 0.05)
        assert after.repairable is None or after.isoscore_share > 2 * before.isoscore_share


@pytest.mark.validation
@pytest.mark.parametrize(("space", "repaired"), [(isotropic, False), (drift, True), (dominant, True), (outlier, True)])
def test_many_rows_say_the_same(space, repaired: bool) -> None:  # type: ignore[no-untyped-def]
    assert (advise(vectors=space(20_000, 768, 0)).repair is not None) is repaired


def test_softdecay_is_the_formula_at_the_scale_of_the_rows() -> None:
    rows = dominant(2_000, 12, 0)
    singular = np.linalg.svd(rows, compute_uv=False) * np.sqrt(3_000 / len(rows))
    repair = fit_scale_free_softdecay(rows, 5.0)
    expected = np.log1p(5.0 * singular / np.median(singular))
    np.testing.assert_allclose(repair.gains_, expected / singular * singular[0] / expected[0], rtol=1e-6)
    for scale in (1e-4, 1e4):
        np.testing.assert_allclose(fit_scale_free_softdecay(scale * rows, 5.0).gains_, repair.gains_, rtol=1e-6)
    np.testing.assert_allclose(fit_scale_free_softdecay(np.tile(rows, (4, 1)), 5.0).gains_, repair.gains_, rtol=1e-6)
    with pytest.raises(InputError, match="spread in 1 directions"):
        fit_scale_free_softdecay(np.outer(np.arange(1, 9), np.ones(3)))


def test_halves_are_cut_at_a_sentence_and_found_by_rank() -> None:
    assert cut_into_halves("one two three four five") is None
    assert cut_into_halves("a b c d e f g h") == ("a b c d", "e f g h")
    assert cut_into_halves("a b c. d e f g h i") == ("a b c.", "d e f g h i")
    first = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    second = np.array([[1.0, 0.1], [1.0, 0.9], [0.2, 1.0]])
    # Cosines by hand: 0.995, 0.743, 0.196; 0.100, 0.669, 0.981; 0.774, 0.999, 0.832.
    np.testing.assert_allclose(reciprocal_ranks(first, second), [1, 1 / 2, 1 / 2, 1, 1 / 3, 1 / 2])
    assert reciprocal_ranks(np.ones((4, 2)), np.ones((4, 2))).tolist() == [0.25] * 8
    np.testing.assert_allclose(cosines(first, second), [1 / np.sqrt(1.01), 0.9 / np.sqrt(1.81), 1.2 / np.sqrt(2.08)])


def test_neighbours_that_stay() -> None:
    angles = np.linspace(0, np.pi, 40)
    rows = np.column_stack([np.cos(angles), np.sin(angles)])
    assert compute_neighbours_kept(rows, 7 * rows) == 1.0
    turned = np.column_stack([rows, np.zeros(40)]) @ np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    assert compute_neighbours_kept(rows, turned) == 1.0
    assert compute_neighbours_kept(rows, np.random.default_rng(0).permutation(rows)) < 0.5


def test_the_benchmark_is_always_the_same_and_its_similarity_is_not_that_of_words() -> None:
    given = make_benchmark()
    assert given == make_benchmark()
    assert given != make_benchmark(seed=1)
    assert (len(given.sentences), len(given.pairs)) == (1_500, 1_500)
    fewer = make_benchmark(30, 20)
    assert (fewer.sentences, fewer.pairs) == (given.sentences[:30], given.pairs[:20])
    levels = np.array([pair.similarity for pair in given.pairs])
    assert sorted(set(levels.round(3))) == [0, 0.333, 0.667, 1]
    # Pairs that say the same in other words, and pairs that share words and say something else, are both there.
    words = [(set(p.first.lower().split()), set(p.second.lower().split())) for p in given.pairs]
    shared = np.array([len(a & b) / len(a | b) for a, b in words])
    assert (shared[levels == 1] < 0.3).sum() > 20
    assert 0.3 < np.corrcoef(shared, levels)[0, 1] < 0.85


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"vectors": np.ones((100, 4))}, f"got 100 rows, expected at least {LEAST}"),
        ({"vectors": np.ones((300, 4))}, "all 300 rows are the same"),
        ({"text": ["the same words"] * 500}, "got 1 different texts of two words or more (of 500)"),
        ({"text": [f"word{i}" for i in range(500)]}, "got 0 different texts of two words or more (of 500)"),
        ({"text": [f"two words{i}" for i in range(50)]}, f"expected at least {LEAST}"),
        ({}, "neither vectors nor a text"),
        ({"vectors": np.ones((300, 4)), "text": ["a b"]}, "give the vectors alone"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_too_little_to_tell(given: dict[str, object], says: str) -> None:
    with pytest.raises(InputError) as refused:
        advise(**given)  # type: ignore[arg-type]
    assert says in str(refused.value)


def manual(count: int) -> list[str]:
    """Sentences of the Python manual, which every Python has."""
    lines = (" ".join(part.split()) for text in topics.values() for part in text.split("\n\n"))
    return list(dict.fromkeys(line for line in lines if 6 <= len(line.split()) <= 30))[:count]


@pytest.mark.long
def test_a_healthy_model_is_left_alone() -> None:
    advice = advise(text=manual(300))
    assert (advice.repair, advice.layers, advice.token_weights) == (None, "6", None), advice.reasons
    assert (advice.evidence, advice.rows, len(advice.trials)) == ("yardstick", 300, 1)
    document = json.loads(json.dumps(advice.to_dict(), allow_nan=False))
    assert (document["advice"], document["tried"][0]["helps"]) == ("none", False)


def test_a_pooling_that_settles_layers_is_refused() -> None:
    with pytest.raises(InputError, match="first\\+last names layers itself"):
        advise(text=manual(300), pooling="first+last")


@pytest.mark.long
def test_a_collapsed_layer_is_built_into_an_embedder_as_advised(tmp_path: Path) -> None:
    advice = build(tmp_path / "first", text=manual(300), layers="1")
    assert advice.repair is not None, advice.reasons
    assert [(candidate.layers, candidate.weighted) for candidate in advice.trials] == [("1", False), ("1", True)]
    assert advice.trials[0].helps
    document = json.loads(json.dumps(advice.to_dict(), allow_nan=False))
    assert document["advice"] == "softdecay"
    assert document["token_weights"]["kind"] == "sif"
    texts = ["A cat sat on the mat.", "Profits fell by a third last year.", "How do I reset my password?"]
    rows = advice.repair.transform(Encoder(advice.reading)(texts))
    model = SentenceTransformer(str(tmp_path / "first"), device="cpu")
    np.testing.assert_allclose(model.encode(texts), rows / np.linalg.norm(rows, axis=1, keepdims=True), atol=1e-5)
    card = (tmp_path / "first" / "README.md").read_text()
    assert all(reason in card for reason in advice.reasons)
    assert "300 texts" in card
    assert "| 1 | weighted |" in card
    with pytest.raises(StoreError, match="already holds a model"):
        build(tmp_path / "first", text=manual(300))
    with pytest.raises(InputError, match="got no text"):
        build(tmp_path / "second")


@pytest.mark.parametrize(
    ("family", "last"),
    [pytest.param("gpt2", 3, marks=pytest.mark.long), ("t5", 2), pytest.param("bart", 3, marks=pytest.mark.long)],
)
def test_any_kind_of_model_is_advised_on_and_of_two_stacks_the_encoder(family: str, last: int, tmp_path: Path) -> None:
    folder = str(save_model(tmp_path / family, family))
    advice = advise(model=folder, text=texts(400))
    assert advice.layers in (str(last), f"1+{last}")
    assert advice.trials[0].layers == str(last)
    with pytest.raises(InputError, match="got the layers all, expected one or an average"):
        advise(model=folder, text=texts(400), layers="all")


def test_a_tokenizer_without_english_is_told(tmp_path: Path) -> None:
    folder = save_model(tmp_path / "bert", "bert")
    letters = "абвгдежзик"
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    tokenizer["model"] = {"type": "BPE", "vocab": {letter: i for i, letter in enumerate(letters)}, "merges": []}
    tokenizer["post_processor"], tokenizer["added_tokens"] = None, []
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    russian = [f"{a}{b} {c}{d}" for a in letters for b in letters for c in "абв" for d in letters]
    with pytest.raises(InputError, match="has tokens for 0 of 1,500 pairs of everyday English sentences"):
        advise(model=str(folder), text=russian)


@pytest.mark.validation
@pytest.mark.parametrize(("layers", "repaired"), [(None, False), ("3", True)])
@pytest.mark.parametrize(("n", "seed"), [(500, 1), (900, 2)])
def test_the_advice_is_the_same_for_few_texts_and_many(layers: str | None, repaired: bool, n: int, seed: int) -> None:
    texts = random.Random(seed).sample(manual(100_000), n)
    assert (advise(text=texts, layers=layers, seed=seed).repair is not None) is repaired


@pytest.mark.validation
def test_smollm2_becomes_an_embedder_by_the_advice_alone(tmp_path: Path) -> None:
    """STS-B from 36.9 to 67 and more, fitted on the sets' own sentences without their scores."""
    if not (DATA / "sts" / "sts-b-test.csv").exists():
        pytest.skip(f"there is no sts/sts-b-test.csv in {DATA}; set ISOTROPE_DATA to the folder of the data sets.")
    sentences = [sentence for found in read_sets(None, DATA, "concatenated") for sentence in found.sentences]
    build(tmp_path / "smollm2", model=smollm2_file(), text=sentences)
    model = SentenceTransformer(str(tmp_path / "smollm2"), device="cpu")
    (pairs,) = read_sets(["sts-b"], DATA, "concatenated")[0].parts
    firsts, seconds = (model.encode([pair[side] for pair in pairs.pairs]) for side in (0, 1))
    assert 100 * stats.spearmanr((firsts * seconds).sum(axis=1), pairs.gold).statistic >= 67.0
