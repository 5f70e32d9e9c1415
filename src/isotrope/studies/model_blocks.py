"""Blocks to experiment with: a fresh one as BERT's, and those of a trained model of text, images or sound.

A block of a model is given what it is given in a pass of its model, such as a mask, rotations or a position bias, and
any rows. A decoder is run without an encoder, so that its cross-attention is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from isotrope.errors import InputError, describe_error
from isotrope.studies.options import name_model
from isotrope.studies.transformer_block import TransformerBlock, catch_arguments, find_blocks

if TYPE_CHECKING:
    from isotrope.sources.models.load import Loaded

#: The longest sequence of a model whose positions have no end.
_LONGEST = 512


def check_block_width(width: int) -> None:
    """Raise an error for a width that is no multiple of heads of 64, unless one smaller head takes it."""
    if width < 1 or (width > 64 and width % 64):
        raise InputError(f"the width of the fresh block is {width}, expected 1 to 64, or a multiple of 64.")


def make_fresh_block(width: int = 768, seed: int = 0, vocabulary: int = 30_522) -> TransformerBlock:
    """A block and an embedding table built and initialised as BERT's (Devlin et al. 2019)."""
    import torch
    from transformers import BertConfig, BertModel

    check_block_width(width)
    heads = max(1, width // 64)
    config = BertConfig(
        hidden_size=width,
        num_attention_heads=heads,
        intermediate_size=4 * width,
        num_hidden_layers=1,
        vocab_size=vocabulary,
        attn_implementation="eager",
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = BertModel(config, add_pooling_layer=False).eval()
    table = model.get_input_embeddings().weight.detach()[1:]  # the first is for padding, and zero
    block = model.encoder.layer[0]
    arguments = catch_arguments(block, partial(_run_text, model))
    return TransformerBlock(f"fresh, seed {seed}", block, table, heads, config.max_position_embeddings, arguments)


def list_sides(loaded: Loaded) -> list[str]:
    """The stacks of blocks of a model: encoder and decoder, or one without a name."""
    return ["encoder", "decoder"] if loaded.encoder_decoder else [""]


def check_blocks(loaded: Loaded, numbers: Iterable[int]) -> None:
    """Raise an error for blocks that a model does not have; one that is no transformer has none to be put to use."""
    for side in list_sides(loaded):
        for number in numbers:
            _check_number(loaded, number, count_side(loaded, side))


def _find_stack(loaded: Loaded, side: str) -> Any:
    if not loaded.encoder_decoder:
        return loaded.model
    return loaded.model.get_decoder() if side == "decoder" else loaded.model.get_encoder()


def _check_number(loaded: Loaded, number: int, count: int) -> None:
    if not -count <= number < count:
        raise InputError(f"there is no block {number}: {loaded.name} has blocks 0 to {count - 1}.")


def count_side(loaded: Loaded, side: str) -> int:
    """How many blocks a stack of a model has."""
    return len(find_blocks(_find_stack(loaded, side))[1])


def choose_blocks(loaded: Loaded, side: str) -> list[int]:
    """The first and the middle block of a stack."""
    return sorted({0, count_side(loaded, side) // 2})


def take_block(loaded: Loaded, number: int, side: str = "", table: Any = None) -> TransformerBlock:
    """Take a block of a loaded model.

    Args:
        loaded: the model.
        number: of the block, negative ones from the end.
        side: "encoder" or "decoder" of a model that has both; the encoder by default.
        table: rows that inputs are drawn from, (v, d); None for the input embeddings, which text models have.

    Returns:
        The block, with the name of the model, its side and its number.
    """
    model = _find_stack(loaded, side)
    if loaded.encoder_decoder:
        side = side or "encoder"
        model.config.use_cache = False  # a decoder has a config of its own, and would remember earlier rows
    blocks = find_blocks(model)[1]
    count = len(blocks)
    _check_number(loaded, number, count)
    if hasattr(loaded.model, "set_attn_implementation"):
        loaded.model.set_attn_implementation("eager")  # the others do not show their scores
    rows = _embed_all(loaded) if table is None else table
    name = f"{name_model(loaded.name)}, {f'{side} ' if side else ''}block {number % count}"
    return _check_block(loaded, _make_block(name, loaded, model, blocks[number % count], rows, side))


def _embed_all(loaded: Loaded) -> Any:
    """The input embeddings of all tokens, scaled where the module does so itself."""
    import torch

    embeddings = loaded.model.get_input_embeddings()
    with torch.inference_mode():
        return embeddings(torch.arange(len(embeddings.weight), device=embeddings.weight.device)).clone()


def _make_block(name: str, loaded: Loaded, model: Any, block: Any, table: Any, side: str) -> TransformerBlock:
    config = loaded.config
    heads = int(
        getattr(config, "decoder_attention_heads" if side == "decoder" else "", 0) or config.num_attention_heads
    )
    if loaded.modality == "text" or side == "decoder":
        longest = getattr(
            config, "max_target_positions" if loaded.modality == "audio" else "max_position_embeddings", 0
        )
        arguments = catch_arguments(block, partial(_run_text, model))
        return TransformerBlock(name, block, table, heads, int(longest or _LONGEST), arguments)
    run, longest = _SPECIAL[loaded.modality](model)
    arguments = catch_arguments(block, run)
    shortest = longest if loaded.modality == "image" else 1
    return TransformerBlock(name, block, table, heads, longest, arguments, shortest)


def _check_block(loaded: Loaded, block: TransformerBlock) -> TransformerBlock:
    """Try the block on rows of its table; an error says why it cannot be taken alone."""
    rows = block.table[[0] * max(block.min_rows, min(8, block.max_rows))].float()
    reason = "it gives rows of another shape"
    try:
        if block(rows).output.shape == rows.shape:
            return block
    except (RuntimeError, TypeError, ValueError, AttributeError, IndexError) as error:
        reason = describe_error(error)
    raise InputError(
        f"the blocks of {loaded.name} cannot be given {rows.shape[1]}-dimensional rows of its own input ({reason}); "
        "name another model."
    )


def _run_text(model: Any, length: int) -> None:
    import torch

    device = next(model.parameters()).device
    ids = torch.zeros((1, length), dtype=torch.long, device=device)
    model(input_ids=ids, attention_mask=torch.ones_like(ids))


def _run_images(model: Any) -> tuple[Callable[[int], Any], int]:
    """How a model of images is run, and the number of its rows, which the size of its images sets."""
    import torch

    size = model.config.image_size
    height, width = (size, size) if isinstance(size, int) else size
    pixels = next(model.parameters()).new_zeros((1, getattr(model.config, "num_channels", 3), height, width))
    with torch.inference_mode():
        length = int(model(pixel_values=pixels).last_hidden_state.shape[1])
    return lambda _: model(pixel_values=pixels), length


def _run_sounds(model: Any) -> tuple[Callable[[int], Any], int]:
    """How a model of sounds is run on so many frames, and the most frames."""
    config, first = model.config, next(model.parameters())
    if hasattr(config, "max_source_positions"):  # Whisper, which reads one length alone and whose blocks read any
        features = first.new_zeros((1, config.num_mel_bins, 2 * config.max_source_positions))
        return lambda _: model(input_features=features), int(config.max_source_positions)

    def run(length: int) -> None:
        for kernel, stride in zip(reversed(config.conv_kernel), reversed(config.conv_stride), strict=True):
            length = (length - 1) * stride + kernel
        model(input_values=first.new_zeros((1, length)))

    return run, _LONGEST


_SPECIAL = {"image": _run_images, "audio": _run_sounds}
