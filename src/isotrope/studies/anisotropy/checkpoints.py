"""Drift, queries, keys and the sharpness of attention over checkpoints of one run: Section 5 of Godey et al. 2023.

The paper leaves open whether representations drift as attention becomes sharper in training. Each checkpoint reads the
same texts, and each of its blocks is measured on its own rows. Texts are in groups, over which the interval of a change
is computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from isotrope.drawing.style import BLUE, GREY, PAGE_WIDTH
from isotrope.errors import InputError
from isotrope.measures import get
from isotrope.sources.corpora.corpus import open_corpus
from isotrope.sources.models.hidden_states import compute_hidden_states
from isotrope.studies.anisotropy.block_claims import describe_interval
from isotrope.studies.figures import make_figure
from isotrope.studies.model_blocks import count_side, list_sides, take_block
from isotrope.studies.options import StudyOptions, name_model
from isotrope.studies.result import Claim, Table
from isotrope.studies.runner import Results
from isotrope.studies.transformer_block import Activations, TransformerBlock
from isotrope.studies.verdict import Outcome, judge_interval, seeds_interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from isotrope.sources.models.load import Loaded

#: Texts of an experiment and of a quick one, groups of them, and the most tokens of a text.
_TEXTS, _QUICK_TEXTS, _GROUPS, _TOKENS = 200, 40, 10, 128

#: The quantities, with the names of their axes.
QUANTITIES = {
    "drift_norm": "norm of the mean row",
    "mean_cosine": "mean cosine of rows",
    "query_norm": "norm of queries",
    "key_norm": "norm of keys",
    "query_cosine": "mean cosine of queries",
    "key_cosine": "mean cosine of keys",
    "softmax_max": "largest weight",
}


def name_checkpoints(references: Sequence[str | Path]) -> dict[str, str]:
    """Hub ids or folders of checkpoints by short names of their own; an error for fewer than two."""
    named = {name_model(str(reference)): str(reference) for reference in references}
    if len(named) < 2 or len(named) < len(references):
        given = ", ".join(map(str, references))
        raise InputError(f"the checkpoints {given} are not two or more of different names; rename or add some.")
    return named


def measure_checkpoints(options: StudyOptions, references: Sequence[str | Path]) -> Results:
    """Follow drift and attention over checkpoints.

    Args:
        options: of the study.
        references: hub ids or folders of text models of one architecture, in the order of training.
    """
    count = _QUICK_TEXTS if options.quick else _TEXTS
    texts = [text.text for text in islice(open_corpus(options.limited_text), count)]
    rows = []
    for name, reference in name_checkpoints(references).items():
        loaded = options.input(reference).load()
        rows += [{"checkpoint": name} | record for record in measure_blocks_on_texts(loaded, texts)]
    frame = pd.DataFrame(rows)
    means = frame.drop(columns="group").groupby(["checkpoint", "block"], sort=False).mean().reset_index()
    title = "Drift, queries, keys and largest weight of attention by checkpoint and block, on the model's own rows"
    tables = [Table("checkpoints", title, means), Table("checkpoints_groups", f"{title}, by group of texts", frame)]
    figure = make_figure("checkpoints", f"{title}.", partial(_draw_checkpoints, means), width=PAGE_WIDTH, height=4.6)
    return Results(tables, [judge_checkpoints(frame)], [figure])


def measure_blocks_on_texts(loaded: Loaded, texts: Sequence[str]) -> list[dict[str, Any]]:
    """A record for each block of a model, or of its encoder, and each group of texts."""
    side = list_sides(loaded)[0]
    blocks = [take_block(loaded, number, side) for number in range(count_side(loaded, side))]
    states = [_find_states(loaded, text) for text in texts]
    records = []
    for number, block in enumerate(blocks):
        for group in range(min(_GROUPS, len(states))):
            mine = [state[number][0] for state in states[group::_GROUPS]]
            records.append({"block": number, "group": group} | _measure_group(block, mine))
    return records


def _find_states(loaded: Loaded, text: str) -> list[Any]:
    """The hidden states of one text, of the encoder where there is one."""
    ids = np.array([loaded.tokenizer(text, truncation=True, max_length=_TOKENS)["input_ids"]])
    return compute_hidden_states(loaded, ids, np.ones(ids.shape, dtype=bool))[0]


def _measure_group(block: TransformerBlock, sequences: Sequence[Any]) -> dict[str, float]:
    """The quantities of a block over sequences of rows (t, d)."""
    passes = [block(rows) for rows in sequences]
    rows = np.concatenate([one.numpy() for one in sequences]).astype(np.float64)
    record = {"drift_norm": float(np.linalg.norm(rows.mean(axis=0))), "mean_cosine": get("mean_cosine")(rows)}
    for kind in ("query", "key"):
        record |= _measure_heads(passes, kind)
    shown = [float(one.softmax.amax(-1).mean()) for one in passes if one.softmax is not None]
    return record | {"softmax_max": float(np.mean(shown)) if shown else float("nan")}


def _measure_heads(passes: Sequence[Activations], kind: str) -> dict[str, float]:
    """Mean norm and mean cosine of queries or keys, each head apart, then averaged."""
    if any(getattr(one, kind) is None for one in passes):
        return {f"{kind}_norm": float("nan"), f"{kind}_cosine": float("nan")}
    heads = np.concatenate([getattr(one, kind).numpy() for one in passes], axis=1).astype(np.float64)
    norms = np.linalg.norm(heads, axis=2).mean()
    cosine = np.mean([get("mean_cosine")(head) for head in heads])
    return {f"{kind}_norm": float(norms), f"{kind}_cosine": float(cosine)}


def judge_checkpoints(frame: pd.DataFrame) -> Claim:
    """Whether attention becomes sharper from the first to the last checkpoint as rows drift further.

    Args:
        frame: a row for each checkpoint, block and group of texts.
    """
    names = list(dict.fromkeys(frame["checkpoint"]))
    means = frame.groupby(["checkpoint", "group"], sort=False)[["drift_norm", "softmax_max"]].mean()
    change = means.loc[names[-1]] - means.loc[names[0]]
    drift, sharpness = (seeds_interval(change[column]) for column in ("drift_norm", "softmax_max"))
    outcome = judge_interval(*sharpness)
    if (drifted := judge_interval(*drift)) == "contradicts":  # rows drift less, so that attention is to be less sharp
        outcome = judge_interval(-sharpness[1], -sharpness[0])
    decided: Outcome = "undecided" if drifted == "undecided" else outcome
    average = means.groupby("checkpoint", sort=False).mean()
    first, last = average.loc[names[0]], average.loc[names[-1]]
    text = (
        f"from {names[0]} to {names[-1]} the norm of the mean row goes from {first['drift_norm']:.3g} to "
        f"{last['drift_norm']:.3g} and the largest weight of attention from {first['softmax_max']:.3g} "
        f"to {last['softmax_max']:.3g}, on average of blocks; the paper's hypothesis: attention sharpens as rows drift."
    )
    shown = (describe_interval(*ends, len(change)) for ends in (drift, sharpness))
    evidence = "; ".join(f"{what}: {one}" for what, one in zip(("drift", "weight"), shown, strict=True))
    return Claim(decided, text, "Section 5", evidence=evidence.replace("draws", "groups of texts"))


def _draw_checkpoints(means: pd.DataFrame, figure: Figure) -> None:
    """A panel for each quantity: grey lines are blocks, the blue one is their mean."""
    names = list(dict.fromkeys(means["checkpoint"]))
    panels = figure.subplots(2, 4).flat
    for (column, label), axes in zip(QUANTITIES.items(), panels, strict=False):
        table = means.pivot(index="checkpoint", columns="block", values=column).loc[names]
        axes.plot(range(len(names)), table.to_numpy(), color=GREY, linewidth=0.6)
        axes.plot(range(len(names)), table.mean(axis=1), color=BLUE, marker=".")
        axes.set_xticks(range(len(names)), names, rotation=45, ha="right")
        axes.set_ylabel(label)
    for axes in list(panels):
        axes.set_axis_off()
