"""Ablations that Yan et al. 2022 mention in the text: other blocks, positions, time of SVD."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from isotrope.compute.p_values import holm
from isotrope.errors import InputError
from isotrope.sources.corpora.corpus import open_corpus
from isotrope.sources.text.encoder import Encoder
from isotrope.studies.finetuning_plan import FineTuning
from isotrope.studies.options import StudyOptions
from isotrope.studies.result import Claim, Table
from isotrope.studies.runner import Results
from isotrope.studies.transformer_block import count_blocks
from isotrope.studies.uniformity.sts import score_on_sts_b
from isotrope.studies.verdict import Outcome, judge_test

if TYPE_CHECKING:
    from isotrope.finetuning.tasks import TaskRows
    from isotrope.sources.models.load import Loaded

#: α of the layer that is put into a block, and the texts of a batch whose time is taken.
_ALPHA, _TIMED = -0.5, 32

#: How often each step is timed.
_ROUNDS = 5

#: Rows that a position's classifier is fitted to and scored on, at most, and its ridge as a share of the mean variance.
_FITTED, _SCORED, _RIDGE = 1000, 500, 0.1


def score_other_blocks(options: StudyOptions, model: str) -> Results:
    """Footnote 3 without training: STS-B by the last layer, with SoftDecay in each block in turn."""
    encoder = Encoder(options.input(model, layers="-1", pooling="mean"))
    try:
        rows, differences = score_on_sts_b(options, "softdecay", _attach_in_turn(encoder))
    except InputError as error:
        return Results.note(error, "footnote 3")
    corrected = holm([differences[row["softdecay"]].p for row in rows[1:]])
    for row, p in zip(rows[1:], corrected, strict=True):
        d = differences[row["softdecay"]]
        row |= {"gain": 100 * d.value, "gain_low": 100 * d.low, "gain_high": 100 * d.high, "p": d.p, "p_corrected": p}
    frame = pd.DataFrame(rows)
    title = f"Spearman × 100 on STS-B by the last layer with SoftDecay in one block or another, {model}"
    claim = judge_other_blocks(model, frame.iloc[1:-1], f"untrained, α {_ALPHA:g}, on STS-B")
    return Results([Table("other_blocks", title, frame)], [claim])


def judge_other_blocks(model: str, others: pd.DataFrame, how: str) -> Claim:
    """Judge the claim that SoftDecay gains nothing in a block that is not the last (footnote 3).

    One significant gain contradicts it. It agrees if each of the blocks loses significantly; that no gain is
    significant does not show that there is none.

    Args:
        model: the name of the model.
        others: a row for each of these blocks: gain and corrected p-value.
        how: how the layer was used, in words.
    """
    outcomes = [judge_test(-gain, p) for gain, p in zip(others["gain"], others["p_corrected"], strict=True)]
    outcome: Outcome = "undecided"
    if "contradicts" in outcomes:
        outcome = "contradicts"
    elif outcomes and set(outcomes) == {"agrees"}:
        outcome = "agrees"
    gained, lost = outcomes.count("contradicts"), outcomes.count("agrees")
    best = float(others["gain"].max()) if len(others) else math.nan
    text = (
        f"SoftDecay ({how}) in a block of {model} that is not the last gains {best:+.2f} points at most; of "
        f"{len(others)} such results {gained} are significant gains and {lost} significant losses; the paper: no "
        "significant gain elsewhere."
    )
    return Claim(outcome, text, "footnote 3", best, evidence="p-values corrected for all blocks", model=model)


def _attach_in_turn(encoder: Encoder) -> Iterator[tuple[str, Encoder]]:
    """The encoder as it is, and with SoftDecay in each block in turn."""
    import isotrope.nn as nn

    yield "none", encoder
    for block in range(count_blocks(encoder.loaded)):
        nn.attach(encoder.loaded.model, _ALPHA, trainable=False, block=block)
        yield f"block {block}", encoder
        nn.detach(encoder.loaded.model)


def time_svd(options: StudyOptions, model: str) -> Results:
    """Footnote 2: seconds of the model's forward pass, of an SVD of its last states, and of the SoftDecay layer."""
    import torch

    import isotrope.nn as nn
    from isotrope.finetuning.loop import encode

    loaded = options.input(model).load()
    texts = [(text.text,) for text in islice(open_corpus(options.limited_text), _TIMED)]
    batch = encode(loaded.tokenizer, texts, 128, loaded.pad, loaded.device).batch(range(len(texts)))
    layer = nn.SoftDecay(_ALPHA)
    with torch.inference_mode():
        network = _find_encoder(loaded)
        hidden = network(**batch).last_hidden_state.float()
        steps: dict[str, Callable[[], Any]] = {
            "forward pass": lambda: network(**batch),
            "SVD": lambda: torch.linalg.svd(hidden, full_matrices=False),
            "SoftDecay layer": lambda: layer(hidden, batch["attention_mask"]),
        }
        frame = time_steps(steps)
    total, alone = (float(frame[column][1]) for column in ("total of the forward pass", "of the forward pass"))
    text = (
        f"a forward pass of {model} with an SVD of its last states takes {total:.2f} times the pass alone (the SVD "
        f"{alone:.2f}, the SoftDecay layer {frame['of the forward pass'][2]:.2f}), medians of {_ROUNDS} rounds on this "
        "machine, which decide nothing; the paper: 1.5 times."
    )
    shape = "×".join(map(str, hidden.shape))
    title = f"Seconds of {_ROUNDS} rounds on states of {shape}, {model}"
    return Results([Table("svd_time", title, frame)], [Claim("note", text, "footnote 2", total, 1.5, model=model)])


def time_steps(steps: Mapping[str, Callable[[], Any]]) -> pd.DataFrame:
    """Time steps over several rounds, the first of them being the one that others are compared with.

    Returns:
        A row for each step: median, least and most seconds, the median as a multiple of the first one's, and that of
        both together.
    """
    rows = []
    for name, step in steps.items():
        times = []
        for _ in range(_ROUNDS):
            begin = time.perf_counter()
            step()
            times.append(time.perf_counter() - begin)
        rows.append({"step": name, "seconds": statistics.median(times), "least": min(times), "most": max(times)})
    frame: pd.DataFrame = pd.DataFrame(rows)
    frame["rounds"] = _ROUNDS
    frame["of the forward pass"] = frame["seconds"] / frame["seconds"][0]
    frame["total of the forward pass"] = 1.0 + frame["of the forward pass"].where(frame.index > 0, 0.0)
    return frame


def score_positions(options: StudyOptions, model: str, plan: FineTuning) -> Results:
    """After PoWER-BERT (Goyal et al. 2020): a linear classifier on the last row at one position or another."""
    loaded, rows = options.input(model).load(), []
    for data in plan.data:
        if data.task.classes < 2:
            continue
        scored = next(iter(data.validation.values()))
        order = np.random.default_rng(options.seed).permutation(len(data.train))[:_FITTED].tolist()
        train, test = data.train.take(order), scored.take(range(min(len(scored), _SCORED)))
        fitted, held_out = (_read_states(loaded, part, plan.training.max_length) for part in (train, test))
        labels, gold = (np.asarray(part.labels, dtype=np.int64) for part in (train, test))
        most = float(np.bincount(gold).max() / len(gold))
        for position in fitted:
            predicted = _classify(fitted[position], labels, held_out[position])
            row = {"task": data.task.name, "position": position, "accuracy": float((predicted == gold).mean())}
            rows.append(row | {"largest class": most, "n": len(gold)})
    frame = pd.DataFrame(rows)
    title = f"Accuracy of a ridge classifier on the untrained model's last row at one position, {model}"
    text = "positions that are as good as [CLS] say that tokens have become alike; the models here are not fine-tuned."
    return Results([Table("positions", title, frame)], [Claim("note", text, "Section 1, PoWER-BERT")])


def _find_encoder(loaded: Loaded) -> Any:
    """The network that reads the text: of an encoder-decoder, the encoder."""
    return loaded.model.get_encoder() if loaded.encoder_decoder else loaded.model


def _read_states(loaded: Loaded, rows: TaskRows, max_length: int) -> dict[str, Any]:
    """Read the last hidden states of each text at some positions, (n, d) each."""
    import torch

    from isotrope.finetuning.loop import encode

    encoded = encode(loaded.tokenizer, rows.texts, max_length, loaded.pad, loaded.device)
    network = _find_encoder(loaded)
    found: dict[str, list[Any]] = {}
    for start in range(0, len(rows), _TIMED):
        batch = encoded.batch(range(start, min(start + _TIMED, len(rows))))
        with torch.inference_mode():
            states = network(**batch).last_hidden_state.float().cpu()
        mask = batch["attention_mask"].cpu()
        end, each = mask.sum(1) - 1, torch.arange(len(mask))
        positions = {"first": 0 * end, "second": (0 * end + 1).minimum(end), "middle": end // 2, "last": end}
        for name, position in positions.items():
            found.setdefault(name, []).append(states[each, position])
        mean = (states * mask[:, :, None]).sum(1) / mask.sum(1, keepdim=True)
        found.setdefault("mean of all", []).append(mean)
    return {name: torch.cat(parts).double().numpy() for name, parts in found.items()}


def _classify(rows: Any, labels: Any, others: Any) -> Any:
    """Predict the classes of other rows, (m,), by ridge regression on ±1 for each class."""
    mean, deviation = rows.mean(0), rows.std(0) + 1e-12
    x, z = (rows - mean) / deviation, (others - mean) / deviation
    sides = np.where(labels[:, None] == np.arange(labels.max() + 1), 1.0, -1.0)
    centre = sides.mean(0)
    gram = x.T @ x + _RIDGE * len(x) * np.eye(x.shape[1])
    return (z @ np.linalg.solve(gram, x.T @ (sides - centre)) + centre).argmax(1)
