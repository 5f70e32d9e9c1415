"""Advice on a model from a text of its user: the last layer first, and more choices where that is collapsed."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial

from isotrope.advice.advice import Advice
from isotrope.advice.passage_halves import halves
from isotrope.advice.scale_free_softdecay import bend
from isotrope.advice.spaces import Space, Spaces, encode_in
from isotrope.advice.trial import GAIN, Material, Trial, try_space, with_everyday
from isotrope.advice.yardstick import Yardstick, yardstick
from isotrope.errors import InputError
from isotrope.repairs.linear import LinearRepair
from isotrope.sources.corpora.corpus import open_corpus
from isotrope.sources.input import Input
from isotrope.sources.models.load import Loaded
from isotrope.sources.text.encoder import Tell
from isotrope.sources.text.pooling import mean, parse
from isotrope.sources.text.sentence_model import ENCODED, has_pipeline
from isotrope.sources.text.source import TextSource
from isotrope.sources.text.token_weights import TokenWeights, sif_weights

#: Fewer different texts, or rows, do not decide anything.
LEAST = 200

#: Texts that are looked at, or twice a model's width where that is more; and passages that are cut in two.
_MOST_TEXTS, _MOST_HALVES = 2_000, 400

Progress = Callable[[str, int, int | None], None]

#: How rows are made, so that those who try many choices on the same texts need not make them again.
Encode = Callable[[Input, Loaded, Iterable[str], TokenWeights | None, Tell], Spaces]


def advise_model(
    reading: Input,
    layers: str | None,
    seed: int,
    tell: Progress,
    *,
    loaded: Loaded | None = None,
    encode: Encode = encode_in,
) -> Advice:
    """Advice from how well cosines of everyday sentences agree with what they say, before and after a repair.

    The text's own rows are what a repair is fitted on and whose shape is looked at. Where the first choice, the last
    layer, needs none, it is left alone. Otherwise its average with the first layer is tried as well, and with the
    pooling `mean` rare tokens count more (Arora, Liang and Ma 2017), unless the yardstick loses by that.
    """
    if layers is None and reading.pooling is None and has_pipeline(reading.model, reading.revision) and loaded is None:
        layers = ENCODED
    pooling = parse(reading.pooling or "mean")
    if pooling.layers:
        raise InputError(
            f"the pooling {pooling.name} names layers itself, and which ones to take is what is asked; give a plain "
            "pooling such as mean, and layers such as 1,-1 if they are settled."
        )
    given = _texts(reading)
    if layers != ENCODED:
        reading = replace(reading, pooling=reading.pooling or "mean")
    asked = replace(reading, layers=layers.replace(",", "+") if layers else "all")
    loaded = loaded or asked.load()
    source = asked.rows_over(open_corpus(given[:LEAST]), loaded)
    if layers and len(source.layers) > 1:
        raise InputError(f"got the layers {layers}, expected one or an average such as 1,-1: advice is on one space.")
    choices = _mixes(source) if isinstance(source, TextSource) and not layers else [str(source.layers[0])]
    reading = replace(reading, layers=",".join(choices), in_order=False)
    texts = _drawn(given, max(_MOST_TEXTS, 2 * source.width), seed)
    material = _material(texts, seed)
    weights = None
    if pooling.pool is mean and reading.token_weights is None and layers != ENCODED:
        drawn = replace(open_corpus(texts), name=f"{len(texts):,} texts")
        weights = sif_weights(loaded, drawn, max_length=reading.max_length)
    spaces = encode(
        reading, loaded, [*material.texts, *texts], weights, lambda done, total: tell("encoding texts", done, total)
    )
    material = _with_tokens(material, spaces, loaded.name)
    first, *others = spaces.rows
    trials = [_trial(spaces, first, material, seed, tell)]
    chosen = trials[0]
    if chosen.helps:
        trials += [_trial(spaces, space, material, seed, tell) for space in others]
        chosen = _best(trials)
    repair: LinearRepair | None = None
    if trials[0].helps:
        rows_of = partial(spaces.of, Space(chosen.layers, chosen.weighted))
        every = rows_of([text for text in texts if text in spaces])
        repair = bend(with_everyday(every, rows_of(material.yardstick.sentences)))
    advised = replace(reading, layers=chosen.layers)
    if chosen.weighted:
        advised = replace(advised, token_weights=weights)
    return Advice(advised, repair, "yardstick", _reasons(trials, chosen), chosen.geometry, len(texts), seed, trials)


def _trial(spaces: Spaces, space: Space, material: Material, seed: int, tell: Progress) -> Trial:
    tell(f"trying layer {space.layers}", 0, None)
    return try_space(space.layers, partial(spaces.of, space), material, weighted=space.weighted, seed=seed)


def _best(trials: Sequence[Trial]) -> Trial:
    """The one that the yardstick likes best, of those with weighted tokens if it does not lose by these."""
    alike = max((trial for trial in trials if not trial.weighted), key=lambda trial: trial.bent)
    weighted = max((trial for trial in trials if trial.weighted), key=lambda trial: trial.bent, default=None)
    return alike if weighted is None or weighted.bent <= alike.bent - GAIN else weighted


def _texts(reading: Input) -> list[str]:
    """Different texts of two words or more."""
    corpus = open_corpus(reading.text, column=reading.column, split=reading.split, group_by=None, unit=reading.unit)
    given = [text.text for text in corpus]
    kept = [text for text in dict.fromkeys(given) if len(text.split()) >= 2]
    if len(kept) < LEAST:
        raise InputError(
            f"got {len(kept):,} different texts of two words or more (of {len(given):,}), expected at least {LEAST} to "
            "decide anything; give more text."
        )
    return kept


def _drawn(texts: list[str], most: int, seed: int) -> list[str]:
    return texts if len(texts) <= most else random.Random(seed).sample(texts, most)


def _material(texts: Sequence[str], seed: int) -> Material:
    """Seven tenths of the texts or more to fit on, the halves of others, and the yardstick."""
    shuffled = random.Random(seed).sample(list(texts), len(texts))
    cut = min(len(texts) * 3 // 10, _MOST_HALVES)
    pairs = [pair for pair in map(halves, shuffled[:cut]) if pair is not None]
    return Material(shuffled[cut:], pairs, yardstick())


def _with_tokens(material: Material, spaces: Spaces, name: str) -> Material:
    """Without the texts that have no token."""
    given = material.yardstick
    pairs = [pair for pair in given.pairs if pair.first in spaces and pair.second in spaces]
    fitted = [text for text in material.fitted if text in spaces]
    if min(len(pairs), len(fitted)) < LEAST // 2:
        raise InputError(
            f"the tokenizer of {name} has tokens for {len(pairs):,} of {len(given.pairs):,} pairs of everyday English "
            f"sentences and {len(fitted):,} of the texts, expected at least {LEAST // 2} of each; give rows as vectors."
        )
    return Material(
        fitted,
        [pair for pair in material.halves if pair[0] in spaces and pair[1] in spaces],
        Yardstick([text for text in given.sentences if text in spaces], pairs),
    )


def _mixes(source: TextSource) -> list[str]:
    """The last layer, and its average with the first after the embedding (Su et al. 2021), where that is another.

    Of a model with a decoder beside its encoder, the encoder's.
    """
    last = sum(not source.is_decoder(choice) for choice in source.choices) - 1
    return [str(last), f"1+{last}"] if last > 1 else [str(last or len(source.layers) - 1)]


def _reasons(trials: Sequence[Trial], chosen: Trial) -> list[str]:
    """Why, in plain sentences. chosen: the space that is advised."""
    first = trials[0]
    before, gain = first.likeness.scores["none"], first.gain
    sentences = [
        f"Layer {first.layers}: cosines of everyday sentences agree with what they say by {before.value:.3f} as they "
        f"are and by {first.bent:.3f} after bending, a gain of {gain.value:+.3f} ({gain.low:+.3f} to "
        f"{gain.high:+.3f}).",
        _shape(first),
    ]
    if first.finding is not None:
        sentences.append(_found(first, alone=not first.helps))
    if chosen is not first:
        tokens = " with rare tokens counting more" if chosen.weighted else ""
        sentences.append(f"Layers {chosen.layers}{tokens} agree by {chosen.bent:.3f} after bending.")
    return sentences


def _shape(trial: Trial) -> str:
    wrong = trial.geometry.repairable
    if trial.geometry.healthy:
        return "The rows of your text are healthy (spread out and centred), and no repair has helped such a space."
    seen = f"In your text {wrong}" if wrong else "The rows of your text are neither collapsed nor in few directions"
    need = f"{seen}, and then a gain of {trial.least:g} is large enough to matter"
    return f"{need}; a repair keeps {trial.kept:.0%} of each row's ten nearest neighbours."


def _found(trial: Trial, *, alone: bool) -> str:
    assert trial.finding is not None
    raw, bent = trial.finding.scores["none"], trial.finding.scores["bent"]
    gain = trial.finding.differences["bent"]
    said = (
        f"Of {raw.n:,} halves of your passages each finds the other with a mean reciprocal rank of {raw.value:.3f} as "
        f"they are, {bent.value:.3f} after bending ({gain.value:+.3f}, {gain.low:+.3f} to {gain.high:+.3f})."
    )
    if alone and gain.low > 0:
        said += " If all you do is search long passages, a repair may gain a little: try isotrope evaluate retrieval."
    return said
