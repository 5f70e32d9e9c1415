"""Advice without labels: which layers, which repair and how strongly, or none."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from numpy.typing import NDArray

from isotrope.errors import InputError
from isotrope.evaluation.bending import bend
from isotrope.evaluation.everyday import yardstick
from isotrope.evaluation.geometry import Geometry, geometry
from isotrope.evaluation.halves import halves
from isotrope.evaluation.neighbourhoods import kept
from isotrope.evaluation.spaces import Spaces, encode_in
from isotrope.evaluation.trial import GAIN, Material, Trial, try_space, with_everyday
from isotrope.repairs import Centering
from isotrope.repairs.linear import LinearRepair
from isotrope.sources.batch import Source
from isotrope.sources.corpora import open_corpus
from isotrope.sources.inputs import Input
from isotrope.sources.models import Loaded
from isotrope.statistics import Moments, Sample, block

#: Fewer different texts, or rows, do not decide anything.
LEAST = 200

#: Texts that are looked at, and passages that are cut in two.
_MOST_TEXTS, _MOST_HALVES = 3_000, 600

#: Rows of vectors whose neighbours are looked at.
_MOST_ROWS = 2_000

Progress = Callable[[str, int, int | None], None]


@dataclass(frozen=True)
class Advice:
    """What to do with a space, and why. layers: the average of these, for a model. repair: fitted, or None.

    evidence: "yardstick" for a model and its text, "geometry" for vectors alone, which is weaker. reasons: sentences.
    trials: all spaces that were tried. geometry: of the rows as they are in the space that is advised.
    """

    layers: str | None
    pooling: str | None
    repair: LinearRepair | None
    evidence: str
    reasons: list[str]
    geometry: Geometry
    rows: int
    seed: int
    trials: list[Trial] = field(default_factory=list)

    @property
    def words(self) -> str:
        """The advice in a few words."""
        where = f"layers {self.layers}" if self.layers and "+" in self.layers else f"layer {self.layers}"
        what = "leave it alone" if self.repair is None else f"repair it by {self.repair!r}"
        return f"{where}: {what}" if self.layers else what

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "advice": "none" if self.repair is None else self.repair.name,
            "parameters": None if self.repair is None else self.repair.get_params(),
            "layers": self.layers,
            "pooling": self.pooling,
            "evidence": self.evidence,
            "reasons": self.reasons,
            "rows": self.rows,
            "seed": self.seed,
            "geometry": vars(self.geometry),
            "tried": [_trial(trial) for trial in self.trials],
        }


def _trial(trial: Trial) -> dict[str, Any]:
    def compared(found: Any) -> dict[str, Any] | None:
        if found is None:
            return None
        scores = {name: {"value": s.value, "low": s.low, "high": s.high} for name, s in found.scores.items()}
        gains = {
            name: {"value": d.value, "low": d.low, "high": d.high, "p": d.p} for name, d in found.differences.items()
        }
        return {"scores": scores, "gains": gains}

    return {
        "layers": trial.layers,
        "helps": trial.helps,
        "yardstick": compared(trial.likeness),
        "halves": compared(trial.finding),
        "geometry": vars(trial.geometry),
        "neighbours_kept": trial.kept,
    }


def advise(
    *,
    model: Any = None,
    text: Any = None,
    vectors: Any = None,
    layers: str | None = None,
    pooling: str = "mean",
    seed: int = 0,
    progress: Progress | None = None,
    **reading: Any,
) -> Advice:
    """Whether to repair a space, how strongly, and for a model in which layers; nothing needs a label.

    model and text, as for `isotrope.scan`, or vectors alone. layers: one choice such as "-1" or "1,-1" (averaged), by
    default the last layer or, where that is collapsed, the best of a few mixes. reading: more of `isotrope.scan`'s
    arguments, such as column or device.
    """
    tell = progress or (lambda *_: None)
    if vectors is not None:
        if model is not None or text is not None or layers is not None:
            raise InputError("got vectors and also a model, a text or layers; give the vectors alone.")
        return _of_vectors(Input(vectors=vectors, precision="fast", **reading), seed, tell)
    if text is None:
        raise InputError("got neither vectors nor a text; give one of them, the text with a model.")
    return _of_model(Input(model=model, text=text, pooling=pooling, **reading), layers, seed, tell)


def _of_vectors(reading: Input, seed: int, tell: Progress) -> Advice:
    moments, sample = _read(reading.open(), seed, tell)
    if moments.n < LEAST:
        raise InputError(f"got {moments.n:,} rows, expected at least {LEAST} to decide anything; give more rows.")
    if moments.constant:
        raise InputError(f"all {moments.n:,} rows are the same, so there is nothing to advise on.")
    seen = geometry(moments)
    wrong = seen.collapsed
    # Rows that lean to one side and are even otherwise need no more than their mean taken away.
    repair: LinearRepair = bend(moments) if seen.uneven or not wrong else Centering().fit(moments)
    same = kept(sample, repair.transform(sample))
    reasons = [
        f"{wrong[0].upper()}{wrong[1:]}: the space is collapsed."
        if wrong
        else f"Two rows have a cosine of {seen.mean_cosine:.2f} on average, three directions hold {seen.top:.0%} of "
        "the variance: the space is not collapsed.",
        f"A repair would keep {same:.0%} of each row's ten nearest neighbours.",
        "This is told from the shape of the rows alone, which is weaker than evidence from a model and its text.",
    ]
    return Advice(None, None, repair if wrong else None, "geometry", reasons, seen, moments.n, seed)


def _read(source: Source, seed: int, tell: Progress) -> tuple[Moments, NDArray[Any]]:
    """Moments of all rows, and 2,000 of the rows, in one pass."""
    moments, sample = Moments.empty(source.width), Sample.empty(source.width, _MOST_ROWS, seed)
    done = 0
    for batch in source.batches():
        (rows,) = batch.layers.values()
        usable = block(rows, batch.rows)
        moments += Moments.of(usable)
        sample.add(usable)
        done += len(rows)
        tell("reading rows", done, source.total)
    return moments, sample.values


def _of_model(reading: Input, layers: str | None, seed: int, tell: Progress) -> Advice:
    texts = _texts(reading, seed)
    material = _material(texts, seed)
    loaded = reading.load()
    reading = replace(reading, layers=_choices(reading, layers, loaded))
    spaces = encode_in(
        reading, loaded, [*material.texts, *texts], lambda done, total: tell("encoding texts", done, total)
    )
    material = _with_tokens(material, spaces)
    trials: list[Trial] = []
    for space in spaces.rows:
        tell(f"trying layer {space}", len(trials), len(spaces.rows))
        trials.append(try_space(str(space), partial(spaces.of, space), material, seed))
        if not trials[0].helps:
            break  # the first choice is healthy, so nothing better is looked for
    best = max(trials, key=lambda trial: trial.score)
    repair: LinearRepair | None = None
    if best.helps:
        space = list(spaces.rows)[trials.index(best)]
        every = spaces.of(space, [text for text in texts if text in spaces])
        repair = bend(with_everyday(every, spaces.of(space, material.yardstick.sentences)))
    reasons = _reasons(best, trials)
    return Advice(best.layers, reading.pooling, repair, "yardstick", reasons, best.geometry, len(texts), seed, trials)


def _texts(reading: Input, seed: int) -> list[str]:
    """Different texts of two words or more, at most 3,000, drawn by the seed."""
    corpus = open_corpus(reading.text, column=reading.column, split=reading.split, group_by=None, unit=reading.unit)
    given = [text.text for text in corpus]
    kept = [text for text in dict.fromkeys(given) if len(text.split()) >= 2]
    if len(kept) < LEAST:
        raise InputError(
            f"got {len(kept):,} different texts of two words or more (of {len(given):,}), expected at least {LEAST} to "
            "decide anything; give more text."
        )
    return kept if len(kept) <= _MOST_TEXTS else random.Random(seed).sample(kept, _MOST_TEXTS)


def _material(texts: Sequence[str], seed: int) -> Material:
    """Seven tenths of the texts to fit on, the halves of others, at most 600, and the yardstick."""
    shuffled = random.Random(seed).sample(list(texts), len(texts))
    cut = min(len(texts) * 3 // 10, _MOST_HALVES)
    pairs = [pair for pair in map(halves, shuffled[:cut]) if pair is not None]
    return Material(shuffled[cut:], pairs, yardstick())


def _with_tokens(material: Material, spaces: Spaces) -> Material:
    """Without the texts that have no token."""
    return replace(
        material,
        fitted=[text for text in material.fitted if text in spaces],
        halves=[pair for pair in material.halves if pair[0] in spaces and pair[1] in spaces],
    )


def _choices(reading: Input, layers: str | None, loaded: Loaded) -> str:
    """The layers asked for, as one mix, or the last one and mixes of it with the first and one a fifth of the way."""
    if layers is not None:
        return layers.replace(",", "+")
    last = len(replace(reading, layers="all").over(open_corpus(["a text"]), loaded).layers) - 1
    mixes = [str(last), f"1+{last}", f"1+{max(2, round(last / 5))}+{last}"]
    return ",".join(mixes if last >= 4 else mixes[: max(1, last)])


def _reasons(best: Trial, trials: Sequence[Trial]) -> list[str]:
    """Why, in plain sentences."""
    gains = best.likeness.differences
    name = max(("gentle", "firm"), key=lambda n: gains[n].value)
    before, gain = best.likeness.scores["none"], gains[name]
    after = before.value + gain.value
    sentences = [
        f"Cosines of everyday sentences agree with their known likeness by {before.value:.3f} as they are and by "
        f"{after:.3f} after bending, a gain of {gain.value:+.3f} ({gain.low:+.3f} to {gain.high:+.3f}); "
        + (
            f"{GAIN} and more has always paid."
            if best.helps
            else f"less than {GAIN} has never paid."
            if gain.value < GAIN
            else "but the space is even and centred, and no repair has helped such a one."
        )
    ]
    if best.finding is not None:
        raw, bent = best.finding.scores["none"], best.finding.scores["firm"]
        sentences.append(
            f"Of {raw.n:,} halves of your passages each finds the other at a rank of about {1 / raw.value:.1f} as they "
            f"are, {1 / bent.value:.1f} after bending."
        )
    wrong = best.geometry.collapsed
    sentences.append(
        (f"In your text {wrong}" if wrong else "The shape of your text's rows shows no collapse")
        + f"; a repair would keep {best.kept:.0%} of each row's ten nearest neighbours."
    )
    if len(trials) > 1:
        last = trials[0]
        sentences.append(f"Layer {last.layers} alone reaches {last.score:.3f}, {best.layers} {best.score:.3f}.")
    return sentences
