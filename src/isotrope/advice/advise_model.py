"""Advice on a model and a text: the last layer first, and more candidates where a repair helps it."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial

from isotrope.advice.advice import Advice
from isotrope.advice.benchmark_pairs import Benchmark, make_benchmark
from isotrope.advice.candidate import (
    BASELINE,
    GAIN,
    REPAIRED,
    Candidate,
    CandidateTexts,
    add_everyday,
    cut_into_halves,
    evaluate_candidate,
)
from isotrope.advice.spaces import Space, Spaces, encode_spaces
from isotrope.errors import InputError
from isotrope.evaluation.significance import PairedComparison
from isotrope.repairs.linear import LinearRepair
from isotrope.repairs.softdecay import fit_scale_free_softdecay
from isotrope.sources.corpora.corpus import open_corpus
from isotrope.sources.input import Input
from isotrope.sources.models.load import Loaded
from isotrope.sources.text.encoder import Tell
from isotrope.sources.text.pooling import Pooling, mean, parse
from isotrope.sources.text.sentence_model import ENCODED
from isotrope.sources.text.source import TextSource
from isotrope.sources.text.token_weights import TokenWeights, sif_weights

#: The minimum number of different texts, or rows.
LEAST = 200

#: The maximum number of texts, or twice the width of the model where that is more; and of passages cut into halves.
_MOST_TEXTS, _MOST_HALVES = 2_000, 400

Progress = Callable[[str, int, int | None], None]

#: How texts are encoded; a caller with many candidates on the same texts may cache their rows.
Encode = Callable[[Input, Loaded, Iterable[str], TokenWeights | None, Tell], Spaces]


def advise_model(
    reading: Input,
    layers: str | None,
    seed: int,
    tell: Progress,
    *,
    loaded: Loaded | None = None,
    encode: Encode = encode_spaces,
) -> Advice:
    """Advise from the correlation of cosines with the known similarity of sentences, before and after a repair.

    The repair is fitted on the rows of the text, and their geometry counts as well. The first candidate is the last
    layer. Where it needs no repair, it is left alone. Otherwise its average with the first layer is evaluated as well,
    and with the pooling `mean` rare tokens get higher weights, unless the benchmark loses by that.

    Args:
        reading: model and text.
        layers: the layers to advise on, None for the candidates above.
        seed: seed of all random choices.
        tell: called with a stage, what is done and the total.
        loaded: the model, where it is loaded already.
        encode: encodes texts in several spaces.

    References:
        Arora, Liang and Ma 2017 (token weights), Su et al. 2021 (average of first and last layer)
    """
    if reading.endpoint is not None and layers not in (None, ENCODED):
        raise InputError(f"an endpoint has one layer, got {layers!r}; leave the layers out.")
    if layers is None and reading.pooling is None and reading.has_own_encoding() and loaded is None:
        layers = ENCODED
    pooling = _check_pooling(reading)
    given = _read_texts(reading)
    if layers != ENCODED:
        reading = replace(reading, pooling=reading.pooling or "mean")
    asked = replace(reading, layers=layers.replace(",", "+") if layers else "all")
    loaded = loaded or asked.load()
    source = asked.rows_over(open_corpus(given[:LEAST]), loaded)
    if layers and len(source.layers) > 1:
        raise InputError(f"got the layers {layers}, expected one or an average such as 1,-1: advice is on one space.")
    choices = _list_mixes(source) if isinstance(source, TextSource) and not layers else [str(source.layers[0])]
    reading = replace(reading, layers=",".join(choices), in_order=False)
    sampled = _sample_texts(given, max(_MOST_TEXTS, 2 * source.width), seed)
    texts = _split_texts(sampled, seed)
    weights = None
    if pooling.pool is mean and reading.token_weights is None and layers != ENCODED:
        corpus = replace(open_corpus(sampled), name=f"{len(sampled):,} texts")
        weights = sif_weights(loaded, corpus, max_length=reading.max_length)
    spaces = encode(
        reading, loaded, [*texts.all, *sampled], weights, lambda done, total: tell("encoding texts", done, total)
    )
    texts = _select_encoded(texts, spaces, loaded.name)
    candidates = _evaluate_candidates(spaces, texts, seed, tell)
    best = _select_best(candidates)
    repair: LinearRepair | None = None
    if candidates[0].helps:
        rows_of = partial(spaces.of, Space(best.layers, best.weighted))
        rows = rows_of([text for text in sampled if text in spaces])
        repair = fit_scale_free_softdecay(add_everyday(rows, rows_of(texts.benchmark.sentences)))
    token_weights = weights if best.weighted else reading.token_weights
    advised = replace(reading, layers=best.layers, token_weights=token_weights)
    reasons = _list_reasons(candidates, best)
    return Advice(advised, repair, "yardstick", reasons, best.geometry, len(sampled), seed, candidates)


def _check_pooling(reading: Input) -> Pooling:
    """Check that the pooling does not name layers, and resolve it."""
    pooling = parse(reading.pooling or "mean")
    if pooling.layers:
        raise InputError(
            f"the pooling {pooling.name} names layers itself, and which ones to take is what is asked; give a plain "
            "pooling such as mean, and layers such as 1,-1 if they are settled."
        )
    return pooling


def _evaluate_candidates(spaces: Spaces, texts: CandidateTexts, seed: int, tell: Progress) -> list[Candidate]:
    """Evaluate the first space, and the others where a repair helps the first."""
    candidates: list[Candidate] = []
    for space in spaces.rows:
        if candidates and not candidates[0].helps:
            break
        tell(f"trying layer {space.layers}", 0, None)
        rows_of = partial(spaces.of, space)
        candidates.append(evaluate_candidate(space.layers, rows_of, texts, weighted=space.weighted, seed=seed))
    return candidates


def _select_best(candidates: Sequence[Candidate]) -> Candidate:
    """Select the best candidate after a repair; one with weighted tokens, unless the benchmark loses by them."""

    def best_of(weighted: bool) -> Candidate | None:
        choices = (candidate for candidate in candidates if candidate.weighted is weighted)
        return max(choices, key=lambda candidate: candidate.repaired_score, default=None)

    alike, weighted = best_of(weighted=False), best_of(weighted=True)
    assert alike is not None
    if weighted is None or weighted.repaired_score <= alike.repaired_score - GAIN:
        return alike
    return weighted


def _read_texts(reading: Input) -> list[str]:
    """Read the different texts of two words or more."""
    corpus = open_corpus(reading.text, column=reading.column, split=reading.split, group_by=None, unit=reading.unit)
    given = [text.text for text in corpus]
    usable = [text for text in dict.fromkeys(given) if len(text.split()) >= 2]
    if len(usable) < LEAST:
        raise InputError(
            f"got {len(usable):,} different texts of two words or more (of {len(given):,}), expected at least {LEAST} "
            "to decide anything; give more text."
        )
    return usable


def _sample_texts(texts: list[str], most: int, seed: int) -> list[str]:
    return texts if len(texts) <= most else random.Random(seed).sample(texts, most)


def _split_texts(texts: Sequence[str], seed: int) -> CandidateTexts:
    """Split texts: seven tenths or more to fit on, and halves of the others."""
    shuffled = random.Random(seed).sample(list(texts), len(texts))
    cut = min(len(texts) * 3 // 10, _MOST_HALVES)
    pairs = [pair for pair in map(cut_into_halves, shuffled[:cut]) if pair is not None]
    return CandidateTexts(shuffled[cut:], pairs, make_benchmark())


def _select_encoded(texts: CandidateTexts, spaces: Spaces, name: str) -> CandidateTexts:
    """Select the texts that have tokens."""
    benchmark = texts.benchmark
    pairs = [pair for pair in benchmark.pairs if pair.first in spaces and pair.second in spaces]
    fitted = [text for text in texts.fitted if text in spaces]
    if min(len(pairs), len(fitted)) < LEAST // 2:
        raise InputError(
            f"the tokenizer of {name} has tokens for {len(pairs):,} of {len(benchmark.pairs):,} pairs of everyday "
            f"English sentences and {len(fitted):,} of the texts, expected at least {LEAST // 2} of each; give rows as "
            "vectors."
        )
    return CandidateTexts(
        fitted,
        [pair for pair in texts.halves if pair[0] in spaces and pair[1] in spaces],
        Benchmark([text for text in benchmark.sentences if text in spaces], pairs),
    )


def _list_mixes(source: TextSource) -> list[str]:
    """List the last layer, and its average with the first after the embedding where that is another layer.

    Of a model with encoder and decoder, these are layers of the encoder.
    """
    last = sum(not source.is_decoder(choice) for choice in source.choices) - 1
    return [str(last), f"1+{last}"] if last > 1 else [str(last or len(source.layers) - 1)]


def _list_reasons(candidates: Sequence[Candidate], best: Candidate) -> list[str]:
    """List the reasons of the advice in plain sentences. best: the space that is advised."""
    first = candidates[0]
    before, gain = first.similarity.scores[BASELINE], first.gain
    sentences = [
        f"Layer {first.layers}: cosines of everyday sentences agree with what they say by {before.value:.3f} as they "
        f"are and by {first.repaired_score:.3f} after the repair, a gain of {gain.value:+.3f} ({gain.low:+.3f} to "
        f"{gain.high:+.3f}).",
        _describe_shape(first),
    ]
    if first.halves is not None:
        sentences.append(_describe_halves(first.halves, search_only=not first.helps))
    if best is not first:
        tokens = " with rare tokens counting more" if best.weighted else ""
        sentences.append(f"Layers {best.layers}{tokens} agree by {best.repaired_score:.3f} after the repair.")
    return sentences


def _describe_shape(candidate: Candidate) -> str:
    defect = candidate.geometry.repairable
    if candidate.geometry.healthy:
        return "The rows of your text are healthy (spread out and centred), and no repair has helped such a space."
    seen = f"In your text {defect}" if defect else "The rows of your text are neither collapsed nor in few directions"
    need = f"{seen}, and then a gain of {candidate.required_gain:g} is large enough to matter"
    return f"{need}; a repair keeps {candidate.neighbours_kept:.0%} of each row's ten nearest neighbours."


def _describe_halves(halves: PairedComparison, *, search_only: bool) -> str:
    """Describe how well halves of passages find each other. search_only: whether the repair helps nothing else."""
    raw, repaired = halves.scores[BASELINE], halves.scores[REPAIRED]
    gain = halves.differences[REPAIRED]
    sentence = (
        f"Of {raw.n:,} halves of your passages each finds the other with a mean reciprocal rank of {raw.value:.3f} as "
        f"they are, {repaired.value:.3f} after the repair ({gain.value:+.3f}, {gain.low:+.3f} to {gain.high:+.3f})."
    )
    if search_only and gain.low > 0:
        sentence += (
            " If all you do is search long passages, a repair may gain a little: try isotrope evaluate retrieval."
        )
    return sentence
