"""A sentence-transformers model from any text model, made of stock modules alone: it loads without isotrope."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotrope.errors import InputError, MissingExtra
from isotrope.integrations.linear_map import (
    ALLOWED,
    compute_shift_weight_offset,
    compute_weight_and_bias,
    estimate_rounding,
    find_divisions,
    resolve_affine,
)
from isotrope.integrations.model_card import describe_embedder, find_hub_name, format_model_card, shorten_name
from isotrope.integrations.sentence_transformers import (
    add_module,
    add_normalization,
    build_dense,
    check_model_folder,
    open_model,
)
from isotrope.integrations.transformer_module import drop_blocks, write_transformer
from isotrope.layers import Choice
from isotrope.repairs import Affine, Repair
from isotrope.repairs.linear import LinearRepair
from isotrope.sources.batch import Batch
from isotrope.sources.corpora.corpus import open_corpus
from isotrope.sources.input import Input
from isotrope.sources.models.environment import silence_transformers
from isotrope.sources.models.hidden_states import Ids, Mask
from isotrope.sources.models.load import Loaded
from isotrope.sources.models.onnx import check_has_weights
from isotrope.sources.text.pooling import by_position, cls, last, maximum, mean
from isotrope.sources.text.source import TextSource
from isotrope.sources.text.token_weights import vocabulary
from isotrope.sources.text.tokenize import encode, pad_texts
from isotrope.storage.files import write_folder, write_text

try:
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import (
        Module,
        Pooling,
        WeightedLayerPooling,
        WordWeights,
    )

    from isotrope.softdecay.attach import check_no_layer
except ImportError:
    raise MissingExtra("sentence-transformers", "sentence-transformers", "a sentence-transformers model") from None

#: What sentence-transformers calls our poolings.
_MODES = {mean: "mean", cls: "cls", last: "lasttoken", maximum: "max", by_position: "weightedmean"}

#: Tokens of the texts that a written model is tried on.
_LENGTHS = (1, 3, 9, 27)

#: By how much of their length its rows may be off: more is no rounding.
_SAME = 1e-4


def write_embedder(
    folder: str | Path,
    reading: Input,
    *,
    repair: Repair | Affine | None = None,
    normalize: bool = True,
    card: Mapping[str, Any] | None = None,
    overwrite: bool = False,
) -> None:
    """Write the rows that a model over a text gives, repaired, as a folder for `SentenceTransformer(folder)`.

    The weights are written in float32, those of a GGUF file dequantised, without the blocks after the last layer that
    is wanted. Rows of the written model are compared with ours before the folder appears.

    Args:
        folder: where the model is written.
        reading: the model, one layer or mix of layers, pooling, token weights, special tokens and max_length; its text
            is not read.
        repair: a linear one, fitted on such rows.
        normalize: whether rows are divided by their length at the end.
        card: more sections of the model card, see `isotrope.integrations.model_card`.
        overwrite: whether a model that is there may be replaced.

    Examples:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_embedder(f"{folder}/first", Input(layers="1", pooling="mean"))
        ...     model = SentenceTransformer(f"{folder}/first", device="cpu")
        >>> [type(module).__name__ for module in model], len(model[0].model.encoder.layer)
        (['Transformer', 'Pooling', 'Normalize'], 1)
    """
    target = Path(folder).absolute()
    check_has_weights(reading.model, "an embedder")
    check_model_folder(target, overwrite)
    affine = None if repair is None else resolve_affine(repair)
    normalize = normalize or (repair is not None and find_divisions(repair)[1])
    loaded = replace(reading, device="cpu", precision=None).load()
    source = replace(reading, in_order=True).over(open_corpus(_draw_texts(loaded)), loaded)
    _check_width(affine, source)
    choice, mode, weights = _check_choice(source), _find_mode(source), _find_token_weights(source)
    texts, rows = _read_rows(source)
    final = drop_blocks(loaded, max(choice.states), *_tokenize(source))
    check_no_layer(loaded.model, "a model of stock sentence-transformers modules")
    mixed = choice.states != (final,)

    before: list[Module] = [_build_layer_mix(choice, final, source.width)] if mixed else []
    if weights is not None:
        before.append(_build_word_weights(weights))
    before.append(Pooling(source.width, mode))
    after = add_normalization([] if repair is None else _build_dense_modules(repair), repair, at_end=normalize)

    def fill(beside: Path) -> None:
        write_transformer(beside, loaded, max_length=source.max_length, every_layer=mixed, unpad=weights is None)
        for module in (*before, *after):
            add_module(beside, module)
        made_of, hub_name = describe_embedder(source, repair, normalize), find_hub_name(loaded)
        readme = format_model_card(shorten_name(loaded), made_of, card, base_model=hub_name)
        write_text(beside / "README.md", readme)
        with silence_transformers():
            written = open_model(beside, trust_remote_code=reading.trust_remote_code)
        _check_rows(list(written)[: 1 + len(before)], texts, rows, loaded)

    write_folder(target, fill)


def _check_width(affine: Affine | None, source: TextSource) -> None:
    if affine is not None and affine.width != source.width:
        raise InputError(
            f"the repair is for rows of width {affine.width}, those of {source.loaded.name} have {source.width}; "
            "fit one on these."
        )


def _draw_texts(loaded: Loaded) -> list[str]:
    """Texts of tokens drawn from all over the vocabulary: each tokenizer knows its own, whatever its language."""
    draw, count = np.random.default_rng(0), vocabulary(loaded)
    drawn = (draw.integers(count, size=length).tolist() for length in _LENGTHS)
    return [loaded.tokenizer.decode(ids, skip_special_tokens=True) for ids in drawn]


def _check_choice(source: TextSource) -> Choice:
    """The one layer or mix of layers, if sentence-transformers can give it."""
    if source.pooling is None:
        raise InputError("an embedder gives one row for each text; name a pooling, such as mean.")
    if len(source.choices) > 1:
        layers = ", ".join(map(str, source.layers))
        raise InputError(f"got the layers {layers}, expected one or a mix such as 1+-1: a text has one row.")
    (choice,) = source.choices
    if choice.before_norm:
        raise InputError(f"sentence-transformers cannot read the state {choice.label}; name another layer.")
    if source.is_decoder(choice):
        raise InputError(f"sentence-transformers runs the encoder of {source.loaded.name} alone; name a layer of it.")
    return choice


def _find_mode(source: TextSource) -> str:
    assert source.pooling is not None
    if source.pooling.pool not in _MODES:
        raise InputError(f"sentence-transformers has no module for the pooling {source.pooling.name}; name another.")
    return _MODES[source.pooling.pool]


def _find_token_weights(source: TextSource) -> NDArray[np.float32] | None:
    """Weights by token id, zero for those that the tokenizer adds where they are dropped; None where all are one."""
    dropped = source.special_tokens == "drop"
    if source.token_weights is None and not dropped:
        return None
    if _find_mode(source) != "mean":
        raise InputError("sentence-transformers can leave special tokens out of the pooling mean alone; keep them.")
    given = source.token_weights
    weights = np.ones(vocabulary(source.loaded), np.float32) if given is None else given.values.copy()
    if dropped:
        empty = source.loaded.tokenizer("", return_special_tokens_mask=True)
        weights[np.compress(empty["special_tokens_mask"], empty["input_ids"]).astype(np.int64)] = 0.0
    return weights


def _read_rows(source: TextSource) -> tuple[list[str], NDArray[Any]]:
    """The texts that have a row, and their rows."""
    batches = list(source.map(Batch.to_numpy))
    texts = {text.id: text.text for text in source.corpus}
    (label,) = source.layers
    ids = np.concatenate([batch.rows.sequence for batch in batches]).tolist()
    return [texts[i] for i in ids], np.concatenate([batch.layers[label] for batch in batches])


def _tokenize(source: TextSource) -> tuple[Ids, Mask]:
    """Tokens of the texts, to try a model on."""
    return pad_texts(encode(source.loaded, list(source.corpus), source.max_length), source.loaded.pad)


def _build_layer_mix(choice: Choice, final: int, width: int) -> WeightedLayerPooling:
    """The average of layers; those of the others in between weigh nothing."""
    first = min(choice.states)
    weights = torch.bincount(torch.tensor(choice.states) - first, minlength=final + 1 - first)
    return WeightedLayerPooling(width, final, first, torch.nn.Parameter(weights.float()))


def _build_word_weights(weights: NDArray[np.float32]) -> WordWeights:
    """Weights by token id: the module asks for words, so that each id is one. Those of one go without saying."""
    named = {str(i): float(weight) for i, weight in enumerate(weights) if weight != 1.0}
    return WordWeights([str(i) for i in range(len(weights))], named, unknown_word_weight=1.0)


def _build_dense_modules(repair: Repair | Affine) -> list[Module]:
    """One `Dense`, or where that would round too much beside a large mean, one that takes the mean away and another."""
    if not isinstance(repair, LinearRepair) or estimate_rounding(repair) <= ALLOWED:
        return [build_dense(*compute_weight_and_bias(repair))]
    shift, weight, offset = compute_shift_weight_offset(repair)
    return [
        build_dense(np.eye(len(shift), dtype=np.float32), -shift),
        build_dense(np.ascontiguousarray(weight.T), offset),
    ]


def _check_rows(modules: Sequence[Module], texts: list[str], rows: NDArray[Any], loaded: Loaded) -> None:
    """Refuse a written model whose pooled rows are not ours."""
    kind = type(loaded.model).__name__
    try:
        found = SentenceTransformer(modules=modules, device="cpu").encode(texts, show_progress_bar=False)
    except Exception as error:
        raise InputError(f"sentence-transformers cannot run {loaded.name} ({kind}): {error}") from error
    off = np.linalg.norm(found - rows, axis=1) / np.linalg.norm(rows, axis=1)
    if not (off <= _SAME).all():
        raise InputError(
            f"sentence-transformers gives other rows for {loaded.name} ({kind}), off by {off.max():.0e} of their "
            "length, so such a model cannot be written."
        )
