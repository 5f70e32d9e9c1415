"""One forward pass of a model: its hidden states, the state before its final norm, or the outputs of named modules."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotrope.errors import InputError, describe_error
from isotrope.layers import state_names
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
        sides: States = ([], [])
        for name in modules:
            sides[_decodes(loaded, name)].append(seen[name])
        return sides
    try:
        with torch.inference_mode():
            out = model(**tensors, output_hidden_states=True, return_dict=True)
    except _RUNNING as error:
        if "hidden_states" not in str(error) and loaded.config is not None:
            raise _not_run(loaded, tensors, error) from error
        raise _without_states(loaded) from error
    names = ("encoder_hidden_states", "decoder_hidden_states") if loaded.encoder_decoder else ("hidden_states",)
    found = [list(getattr(out, name, None) or ()) for name in names]
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
    return InputError(
        f"the model {loaded.name} ({type(loaded.model).__name__}) cannot be run on {' and '.join(tensors)} "
        f"({describe_error(error)}); "
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


def find_final_norm(loaded: Loaded, compute_states: Callable[[], States]) -> Any:
    """The norm after the model's last block: the module outside all blocks whose output is the last hidden state."""
    import torch

    modules = loaded.model.named_modules()
    norms = {name: module for name, module in modules if _is_norm(module) and not in_block(name)}
    with record_outputs(norms) as outputs:
        encoder, decoder = compute_states()
    last = (decoder or encoder)[-1]
    for name, out in outputs.items():
        if isinstance(out, torch.Tensor) and out.shape == last.shape and torch.equal(out, last):
            return norms[name]
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


def find_modules(model: Any, patterns: str) -> dict[str, Any]:
    """The modules that patterns such as "patch_embed,blocks.*" name, in the order of the patterns and of the model.

    A star stands for one part of a name, so that `blocks.*` is blocks.0 but not blocks.0.norm.

    >>> import torch
    >>> net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Sequential(torch.nn.ReLU()))
    >>> list(find_modules(net, "1.0,*"))
    ['1.0', '0', '1']
    """
    found: dict[str, Any] = {}
    modules = dict(model.named_modules())
    for pattern in (part.strip() for part in patterns.split(",")):
        named = {name: module for name, module in modules.items() if name and _matches(name, pattern)}
        if not named:
            raise InputError(f"no module of the model is named {pattern!r}; {suggest_hooks(model)}.")
        found |= {name: module for name, module in named.items() if name not in found}
    return found


def _matches(name: str, pattern: str) -> bool:
    names, patterns = name.split("."), pattern.split(".")
    return len(names) == len(patterns) and all(map(fnmatchcase, names, patterns))


def suggest_hooks(model: Any) -> str:
    """Which hook to name: the numbered blocks of a model, the most first, else its parts.

    >>> import torch
    >>> suggest_hooks(torch.nn.ModuleDict({"blocks": torch.nn.ModuleList([torch.nn.ReLU(), torch.nn.ReLU()])}))
    'name the modules whose outputs are its layers with --hook, such as blocks.* (2 modules)'
    """
    counts: dict[str, int] = {}
    for name, _ in model.named_modules():
        stem, _, last = name.rpartition(".")
        if last.isdigit() and not any(part.isdigit() for part in stem.split(".")):
            pattern = f"{stem}.*" if stem else "*"
            counts[pattern] = counts.get(pattern, 0) + 1
    if not counts:
        counts = {name: 1 for name, _ in model.named_children()}
    most = sorted(counts, key=lambda pattern: -counts[pattern])[:3]
    listed = " or ".join(f"{name} ({counts[name]} module{'s' if counts[name] > 1 else ''})" for name in most)
    return f"name the modules whose outputs are its layers with --hook, such as {listed or 'their names'}"


@contextmanager
def record_outputs(modules: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """What modules give while the context lasts, by name; the last time where one runs several times."""
    seen: dict[str, Any] = {}

    def keep(name: str) -> Any:
        return lambda _, __, out: seen.__setitem__(name, _tensor(out))

    hooks = [module.register_forward_hook(keep(name)) for name, module in modules.items()]
    try:
        yield seen
    finally:
        for hook in hooks:
            hook.remove()


def _tensor(out: Any) -> Any:
    """The output, or the first of several."""
    while not hasattr(out, "shape"):
        parts = list(out.values()) if isinstance(out, Mapping) else list(out or ())
        if not parts:
            return None
        out = parts[0]
    return out
