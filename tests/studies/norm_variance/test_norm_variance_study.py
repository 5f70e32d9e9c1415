"""The norm-variance study of small models: its numbers against numpy, and that a stopped one goes on."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy import stats

from isotrope.errors import StoreError
from isotrope.runs.saved_statistics import saved_summary
from isotrope.sources.input import Input
from isotrope.sources.models.load import Loaded
from isotrope.studies.norm_variance import norm_variance
from isotrope.studies.norm_variance.intervals import compute_share_intervals
from isotrope.studies.norm_variance.post_norm import find_layer_norms, find_norm_kind
from isotrope.studies.result import Study
from testkit.models import save_model, texts
from testkit.small_studies import TEXTS, drawn, rows_and_types

LONG = "the cat sat " * 22  # 66 words


class Done(NamedTuple):
    """A study of a small BERT and a small GPT-2, and what it was given."""

    study: Study
    given: dict[str, Any]
    said: list[str]


@pytest.fixture(scope="module")
def done(model: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Done]:
    folder = tmp_path_factory.mktemp("study")
    other = str(save_model(folder / "gpt", "gpt2"))
    given = {"models": [model, other], "text": [LONG, *TEXTS, *texts(20, seed=1)], "texts": len(TEXTS), "device": "cpu"}
    said: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("isotrope.studies.figures.KINDS", ("svg",))
        # Figures are drawn but not rendered, which takes most of the time; other tests look at their files.
        drawing = import_module("isotrope.figures.draw")  # whose name in the package is its function
        patch.setattr(drawing, "save", lambda _, path: path.write_text('<svg width="1pt"/>'))
        yield Done(norm_variance(output=folder / "s", say=said.append, **given), given | {"output": folder / "s"}, said)


def split(rows: np.ndarray, types: np.ndarray) -> tuple[float, float, float, float]:
    """Q, M, V_W and V_B of rows with these types, by the paper's Eqs. 4 to 11."""
    within = between = 0.0
    for t in np.unique(types):
        some = rows[types == t]
        within += ((some - some.mean(0)) ** 2).sum() / len(rows)
        between += len(some) / len(rows) * ((some.mean(0) - rows.mean(0)) ** 2).sum()
    return float((rows**2).sum(1).mean()), float(rows.mean(0) @ rows.mean(0)), within, between


def test_norm_variance(done: Done, model: str) -> None:
    study = done.study
    assert re.fullmatch(r"reading and measuring will take about [\d.]+ (seconds|minutes); .*", done.said[0])
    layers = study.table("small layers", "layers")
    assert layers["residual"].max() <= 1e-9
    rows, types = rows_and_types(model, 2)
    assert study.table("small frequency", "sizes")["tokens"][0] == len(rows)  # of the texts that are not cut off
    assert layers.loc[2, ["Q", "M", "V_W", "V_B"]].tolist() == pytest.approx(split(rows, types), rel=1e-6)
    many = [t for t in np.unique(types) if (types == t).sum() >= 10]
    means = [rows[types == t].mean(0) for t in many]
    m = np.array([mean @ mean for mean in means])
    v = np.array([((rows[types == t] - mean) ** 2).sum(1).mean() for t, mean in zip(many, means, strict=True)])
    slope = np.polyfit(m, v, 1)[0]
    trade_off = study.table("small layers", "trade_off")
    assert trade_off["variance_on_mean_slope"][2] == pytest.approx(slope, rel=1e-4)
    filters = study.table("small filters", "filters")
    chosen = filters[(filters["layer"] == 2) & (filters["types"] == "10 to 100,000")].iloc[0]
    assert chosen["slope"] == pytest.approx(slope, rel=1e-4)
    assert chosen["count"] == len(m)
    sizes = study.table("small sizes", "sizes")
    assert sorted(sizes["texts"].unique()) == [38, 75, 150]
    norms = study.table("small post-norm", "post_norm")
    assert norms["predicted Q"].notna().all()
    names = {"norm-variance", "token-clouds", "sequence-lengths", "text-lengths", "variance-shares-window", "frequency"}
    assert names | {"filters", "sizes", "words", "words-layers", "post_norm"} <= drawn(study)


def test_shares_are_over_the_types_in_the_window(done: Done, model: str) -> None:
    """Figs. 5, 6 and 18 to 20."""
    rows, types = rows_and_types(model, 2)
    kept = np.isin(types, [t for t in np.unique(types) if 10 <= (types == t).sum() <= 100_000])
    q, m, within, between = split(rows[kept], types[kept])
    window = done.study.table("small layers", "window").iloc[2]
    assert window[["Q_window", "M_window", "V_W_window", "V_B_window", "V_window"]].tolist() == pytest.approx(
        [q, m, within, between, within + between], rel=1e-5
    )
    shares = ["mean_share", "within_share", "between_share", "within_of_variance", "between_of_variance"]
    expected = [m / q, within / q, between / q, within / (within + between), between / (within + between)]
    assert window[[f"{name}_window" for name in shares]].tolist() == pytest.approx(expected, rel=1e-5)
    assert window["variance_share_window"] == pytest.approx(1 - m / q, rel=1e-5)


def test_intervals_of_shares_are_a_jackknife_over_sequences(done: Done) -> None:
    summary = saved_summary(done.given["output"] / "runs" / "small", 2)
    assert summary.sample is not None
    assert summary.tokens is not None
    rows, token = summary.sample.values.astype(np.float64), summary.sample.rows.token
    assert token is not None
    window = [t for t, n in zip(summary.tokens.types, summary.tokens.n, strict=True) if 10 <= n <= 100_000]
    _, sequence = np.unique(summary.sample.rows.sequence, return_inverse=True)
    order = {first: i for i, first in enumerate(dict.fromkeys(sequence.tolist()))}
    group = np.array([order[s] % 20 for s in sequence.tolist()])
    without = []
    for g in range(20):
        keep = (group != g) & np.isin(token, window)
        q, m, *_ = split(rows[keep], token[keep])
        without.append(m / q)
    error = np.sqrt(19 / 20 * np.sum((np.array(without) - np.mean(without)) ** 2))
    low, high = compute_share_intervals(summary, ["mean_share"])["mean_share"]
    assert high - low == pytest.approx(2 * stats.t.ppf(0.975, 19) * error, rel=1e-5)
    value = done.study.table("small layers", "window")["mean_share_window"][2]
    assert (low + high) / 2 == pytest.approx(value)


def test_tokens_of_table_2(done: Done, model: str) -> None:
    """n, Q, M and V of the chosen tokens, the most frequent first, by a loop over the rows of the middle layer."""
    table = done.study.table("small layers", "tokens")
    rows, types = rows_and_types(model, 2)
    ids = Input(model=model, device="cpu").load().tokenizer.get_vocab()
    assert len(table) >= 10
    assert table["n"].is_monotonic_decreasing
    for row in table.to_dict("records"):
        x = rows[types == ids[row["token"]]]
        mean = x.mean(0)
        expected = (len(x), (x**2).sum(1).mean(), mean @ mean, ((x - mean) ** 2).sum(1).mean())
        assert (row["n"], row["Q"], row["M"], row["V"]) == pytest.approx(expected, rel=1e-5)
        assert len(row["token"]) >= 3


def test_words_of_the_texts_are_counted(done: Done) -> None:
    """Fig. 9, by str.split; texts of 64 words or more are left out."""
    lengths = done.study.table("texts", "lengths")
    found = dict(zip(lengths["words"], lengths["texts"], strict=True))
    expected = [len(text.split()) for text in TEXTS]
    assert found == {length: expected.count(length) for length in set(expected)}
    row = done.study.table("texts", "texts").iloc[0]
    assert (row["texts"], row["left out by max words"], row["printed"]) == (150, 1, 739_106)


def test_all_models_are_drawn_over_each_other(done: Done) -> None:
    """Tables 1 and 3, and Figs. 4 to 6 and 17 to 20: the curves are those of the parts."""
    study = done.study
    curves = study.table("all models", "curves")
    for name in ("small", "gpt"):
        here = curves[curves["model"] == name]
        for table, column in (
            *(("trade_off", c) for c in ("squared_norm_variation", "variance_on_mean_slope", "variance_on_mean_r2")),
            *(("window", c) for c in ("mean_share_window", "within_of_variance_window", "Q_window", "V_B_window")),
        ):
            assert here[column].tolist() == study.table(f"{name} layers", table)[column].tolist()
        slopes = study.table(f"{name} frequency", "frequency")
        assert here["log_Q_slope"].tolist() == slopes["log_Q_slope"].tolist()
    (part,) = [part for part in study.parts if part.name == "all models"]
    assert [figure.name for figure in part.figures] == ["trade-off", "shares", "within", "slopes", "norms", "variances"]
    for model, row in zip(done.given["models"], study.table("all models", "models").to_dict("records"), strict=True):
        loaded = Input(model=model, device="cpu").load().model
        assert row["parameters"] == sum(weights.numel() for weights in loaded.parameters())
        assert (row["layers"], row["width"]) == (4, 16)
    assert study.table("all models", "models")["norm"].tolist() == ["post-LN", "pre-LN"]
    sizes = study.table("all models", "sizes")
    assert sizes["printed types"].tolist() == [24_149, 24_718]
    assert sizes["printed tokens"].tolist() == [12_384_011, 12_238_028]


def test_a_stopped_study_goes_on(done: Done) -> None:
    folder = done.given["output"] / "parts"
    before = {p: p.stat().st_mtime_ns for p in folder.rglob("*.json")}
    again = norm_variance(resume=True, **done.given)
    assert before == {p: p.stat().st_mtime_ns for p in folder.rglob("*.json")}
    assert again.to_dict()["tables"] == done.study.to_dict()["tables"]
    for other in ({"share": 0.5}, {"max_words": 0}, {"merge_types": False}):
        with pytest.raises(StoreError, match=f"begun with other {next(iter(other))}"):
            norm_variance(resume=True, **done.given, **other)


def test_norms_of_layers(model: str, tmp_path: Path) -> None:
    loaded = Input(model=model, device="cpu").load()
    found = find_layer_norms(loaded)
    assert list(found) == [0, 1, 2, 3]
    norm = loaded.model.encoder.layer[1].output.LayerNorm
    parts = [float((p.detach() ** 2).sum()) for p in (norm.weight, norm.bias)]
    assert found[2].predicted == pytest.approx(sum(parts), rel=1e-6)
    llama = Input(model=str(save_model(tmp_path / "llama", "llama")), device="cpu").load()
    assert list(find_layer_norms(llama)) == [3]  # only the last is behind a norm
    assert find_norm_kind(loaded, {str(i): str(i) for i in range(4)}, found) == "post-LN"
    assert find_norm_kind(llama, {str(i): str(i) for i in range(4)}, [3]) == "pre-LN"
    # Marian adds places to its embeddings and norms nothing before the first block of either stack.
    names = {"0": "encoder.0", "1": "encoder.1", "2": "decoder.0", "3": "decoder.1"}
    assert find_norm_kind(loaded, names, [1, 3]) == "post-LN"
    assert find_norm_kind(loaded, names, [1]) == "pre-LN"


def test_an_onnx_file_does_not_show_its_norms() -> None:
    graph = Loaded(SimpleNamespace(), None, "model.onnx")
    assert find_layer_norms(graph) == {}
    assert find_norm_kind(graph, {"0": "0", "1": "1"}, []) is None


@pytest.mark.usefixtures("svg_alone")
def test_depth_of_an_encoder_decoder_is_that_of_each_stack(tmp_path: Path) -> None:
    folder = save_model(tmp_path / "bart", "bart")
    study = norm_variance(output=tmp_path / "s", models=[folder], text=texts(60, seed=1), device="cpu", quick=True)
    shares = [claim for claim in study.claims if claim.text.startswith("V_W/Q goes")]
    assert [claim.model for claim in shares] == ["bart encoder", "bart decoder"]
    window = study.table("bart layers", "window")["within_share_window"]
    assert f"from {window[0]:.3f} to {window[3]:.3f}" in shares[0].text  # three blocks
    assert f"from {window[4]:.3f} to {window[6]:.3f}" in shares[1].text  # two
    assert study.table("all models", "models")["norm"].tolist() == ["post-LN"]


@pytest.mark.long
@pytest.mark.usefixtures("svg_alone")
def test_groups_are_studied_apart(model: str, tmp_path: Path) -> None:
    """The numbers of a group are those of a study of its texts alone."""
    by_language = {"de": texts(60, seed=2), "fr": texts(60, seed=3)}
    lines = [{"text": t, "language": name} for pair in zip(*by_language.values(), strict=True) for name, t in
             zip(by_language, pair, strict=True)]  # fmt: skip
    (tmp_path / "both.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    given: dict[str, Any] = {"models": [model], "device": "cpu", "quick": True}
    both = norm_variance(
        output=tmp_path / "both", text=tmp_path / "both.jsonl", column="text", group_by="language", **given
    )
    assert set(both.table("all models", "curves")["model"]) == {"small de", "small fr"}
    assert both.table("texts", "texts")["texts"].tolist() == [60, 60]
    for name, alone in by_language.items():
        one = norm_variance(output=tmp_path / name, text=alone, **given)
        for part, table in (("layers", "window"), ("frequency", "frequency"), ("words", "words")):
            found, expected = both.table(f"small {name} {part}", table), one.table(f"small {part}", table)
            assert found.drop(columns="layer").to_numpy(float) == pytest.approx(
                expected.drop(columns="layer").to_numpy(float), nan_ok=True, rel=1e-6, abs=1e-9
            )


@pytest.mark.long
def test_norm_variance_of_words_that_hardly_repeat(model: str, tmp_path: Path) -> None:
    study = norm_variance(output=tmp_path / "s", models=[model], text=TEXTS[:3], device="cpu", quick=True)
    (words,) = [part for part in study.parts if part.name.endswith("words")]
    assert [claim.text for claim in words.claims] == [
        "no word occurs 10 times or more, so that there is no artefact to see."
    ]
    assert [drawn.reason for drawn in words.figures] == [
        "the table has no row, so that there is no Q / Q of one token to draw",
        "fewer than three words occur 10 times or more, so that there is nothing to draw",
    ]
    assert list(words.tables[0].frame.columns)[:3] == ["layer", "tokens", "words"]
    assert len(study.table("small layers", "tokens")) == 0
