"""Encoder and decoder of a speech model: the decoder reads what the model itself hears."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotrope.sources.models.load import Loaded
from isotrope.sources.text.model_source import KnownTokens

#: Tokens that a decoder hears in one window at most.
MOST = 128


#: Hidden states of encoder and decoder, and the tokens that the decoder hears, None where it is not run.
Heard = tuple[list[Any], list[Any], KnownTokens | None]


def listen(loaded: Loaded, tensors: dict[str, Any], *, decoder: bool = True, most: int = MOST) -> Heard:
    """The states of a model over features; without `decoder` only the encoder is run.

    The decoder is given its start and then, token by token, what it finds likeliest; its states are those of one pass
    over the whole.
    """
    import torch

    with torch.inference_mode():
        encoded = loaded.model.get_encoder()(**tensors, output_hidden_states=True, return_dict=True)
        if not decoder:
            return list(encoded.hidden_states), [], None
        ids, count = _likeliest(loaded, encoded, most)
        out = loaded.model(encoder_outputs=encoded, decoder_input_ids=ids, output_hidden_states=True, return_dict=True)
    found = ids.cpu().numpy()
    mask = np.arange(found.shape[1]) < count[:, None]
    special = np.broadcast_to(np.arange(found.shape[1]) < len(_start(loaded)), found.shape)
    return list(encoded.hidden_states), list(out.decoder_hidden_states), KnownTokens(found, special, mask)


def _start(loaded: Loaded) -> list[int]:
    """The tokens that a decoder begins with, and those that it is forced to go on with."""
    settings = [getattr(loaded.model, "generation_config", None), loaded.model.config]
    starts = (getattr(s, "decoder_start_token_id", None) for s in settings)
    first = next((s for s in starts if s is not None), loaded.model.config.bos_token_id or 0)
    forced: list[Any] = next((f for s in settings if (f := getattr(s, "forced_decoder_ids", None))), [])
    return [int(first), *(int(token) for _, token in sorted(forced, key=lambda pair: pair[0]) if token is not None)]


def _likeliest(loaded: Loaded, encoded: Any, most: int) -> tuple[Any, NDArray[np.int64]]:
    """Token ids (b, t) and how many of them each clip has."""
    import torch

    model = loaded.model
    end = getattr(model.config, "eos_token_id", None)
    ends = set(end if isinstance(end, list) else [end])
    room = getattr(model.config, "max_target_positions", None) or MOST
    start = _start(loaded)
    ids = torch.tensor([start] * len(encoded[0]), device=encoded[0].device)
    count = np.full(len(ids), len(start))
    going = np.ones(len(ids), dtype=bool)
    read, memory = ids, None  # what was read before is remembered, and with it all that was heard
    while going.any() and ids.shape[1] < min(most + len(start), room):
        out = model(
            encoder_outputs=encoded, decoder_input_ids=read, past_key_values=memory, use_cache=True, return_dict=True
        )
        memory = out.past_key_values
        likeliest = out.logits[:, -1].argmax(-1)
        going &= np.array([token not in ends for token in likeliest.tolist()])
        if going.any():
            read = likeliest[:, None]
            ids = torch.cat([ids, read], dim=1)
            count += going
    return ids, count
