"""One forward pass of a model: its hidden states, and the state before its final norm."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotrope.errors import InputError
from isotrope.layers import state_names
from isotrope.sources.models.hooks import find_modules, record_outputs, suggest_hooks
from isotrope.sources.models.load import Loaded

Ids = NDArray[np.int64]
Mask = NDArray[np.bool_]

#: What a forward raises that does not take what it is given, or takes it in another shape.
_RUNNING = (TypeError, ValueError, AttributeError, RuntimeError)

#: Hidden states of the encoder (or only) stack, and of the decoder.
States = tuple[list[Any], list[Any]]


def compute_hidden_states(loaded: Loaded, ids: Ids, mask: Mask) -> States:
    """Hidden states of the encoder (or only) stack and of the decoder, each (b, t, d).

    ids: (b, t), padded. mask: (b, t), true where there is no padding.
    """
    import torch

    inputs = {"input_ids": ids, "attention_mask": mask.astype(np.int64)}
    if loaded.encoder_decoder:
        inputs["decoder_input_ids"] = shift_right(loaded, ids)
        inputs["decoder_attention_mask"] = inputs["attention_mask"]
    tensors = {name: torch.from_numpy(values).to(loaded.device) for name, values in inputs.items()}
    try:
        return run_model(loaded, tensors)
    except IndexError as error:  # of an embedding
        raise InputError(
            f"the model {loaded.name} does not know all token ids up to {ids.max():,} or all places up to "
            f"{ids.shape[1]:,}; check that the tokenizer is its own, or give a smaller max_length."
        ) from error


def run_model(loaded: Loaded, tensors: dict[str, Any]) -> States:
    """The hidden states that a model gives itself, or the outputs of the modules that its hooks name."""
    import torch

    model = loaded.model
    if loaded.hooks is not None:
        modules = find_modules(model, loaded.hooks)
        with torch.inference_mode(), record_outputs(modules) as seen:
            try:
                model(**tensors) if loaded.config is not None else model(*tensors.values())
            except _RUNNING as error:
                raise _not_run(loaded, tensors, error) from error
        silent = [name for name in modules if seen.get(name) is None]
        if silent:
            raise InputError(f"the module {silent[0]} of {loaded.name} gives no tensor; {suggest_hooks(model)}.")
        return [seen[name] for name in modules if not _decodes(loaded, name)], [
            seen[name] for name in modules if _decodes(loaded, name)
        ]
    try:
        with torch.inference_mode():
            out = model(**tensors, output_hidden_states=True, return_dict=True)
    except _RUNNING as error:
        if "hidden_states" not in str(error) and loaded.config is not None:
            raise _not_run(loaded, tensors, error) from error
        raise _without_states(loaded) from error
    sides = ("encoder_hidden_states", "decoder_hidden_states") if loaded.encoder_decoder else ("hidden_states",)
    found = [list(getattr(out, side, None) or ()) for side in sides]
    if not all(found):
        raise _without_states(loaded)
    last = getattr(out, "last_hidden_state", None)
    if last is not None and last.shape == found[-1][-1].shape:
        found[-1][-1] = last  # after the final norm, which some classes leave out of their hidden states
    elif last is not None and loaded.modality != "text" and last.ndim > 2:
        found[-1].append(last)  # of another width, or with the tokens that its maps leave out: one more layer
    return found[0], found[1] if loaded.encoder_decoder else []


def _without_states(loaded: Loaded) -> InputError:
    kind = type(loaded.model).__name__
    return InputError(f"the model {loaded.name} ({kind}) gives no hidden states; {suggest_hooks(loaded.model)}.")


def _not_run(loaded: Loaded, tensors: dict[str, Any], error: Exception) -> InputError:
    kind, reason = type(loaded.model).__name__, " ".join(str(error).split()).rstrip(".")[:200]
    return InputError(
        f"the model {loaded.name} ({kind}) cannot be run on {' and '.join(tensors)} ({reason}); "
        "check that its files belong together and that its forward takes them."
    )


def name_states(loaded: Loaded, encoder: int, decoder: int = 0) -> list[str]:
    """What the states of a model are called: numbers, or the modules that its hooks name."""
    if loaded.hooks is None:
        return state_names(encoder, decoder)
    return sorted(find_modules(loaded.model, loaded.hooks), key=lambda name: _decodes(loaded, name))


def _decodes(loaded: Loaded, name: str) -> bool:
    """Whether a module belongs to the decoder of a model that has an encoder too."""
    return loaded.encoder_decoder and "decoder" in name.split(".")


def shift_right(loaded: Loaded, ids: Ids) -> Ids:
    """What a decoder reads: the text one place to the right, after the model's start token."""
    start = getattr(loaded.config, "decoder_start_token_id", None)
    first = np.full((len(ids), 1), loaded.pad if start is None else start, ids.dtype)
    return np.concatenate([first, ids[:, :-1]], axis=1)


def find_final_norm(loaded: Loaded, ids: Ids, mask: Mask) -> Any:
    """The norm after a text model's last block."""
    return find_norm_after(loaded, partial(compute_hidden_states, loaded, ids, mask))


def find_norm_after(loaded: Loaded, states: Callable[[], States]) -> Any:
    """The norm after the model's last block: the module outside all blocks whose output is the last hidden state."""
    import torch

    outputs: list[tuple[Any, Any]] = []
    outside = [module for name, module in loaded.model.named_modules() if _is_norm(module) and not in_block(name)]
    hooks = [m.register_forward_hook(lambda module, _, out: outputs.append((module, out))) for m in outside]
    try:
        encoder, decoder = states()
    finally:
        for hook in hooks:
            hook.remove()
    last = (decoder or encoder)[-1]
    for module, out in outputs:
        if isinstance(out, torch.Tensor) and out.shape == last.shape and torch.equal(out, last):
            return module
    raise InputError(
        f"the model {loaded.name} ({type(loaded.model).__name__}) has no norm after its last block, "
        "so there is no state before it; leave .before_norm out."
    )


def _is_norm(module: Any) -> bool:
    return "norm" in type(module).__name__.lower()


def in_block(name: str) -> bool:
    """Whether a module is part of a numbered block, such as `encoder.layer.5.output.LayerNorm`."""
    return any(part.isdigit() for part in name.split("."))


@contextmanager
def record_input(module: Any) -> Iterator[list[Any]]:
    """A list that receives what goes into a module while the context lasts; empty for None."""
    seen: list[Any] = []
    hook = None if module is None else module.register_forward_pre_hook(lambda _, args: seen.append(args[0]))
    try:
        yield seen
    finally:
        if hook is not None:
            hook.remove()
