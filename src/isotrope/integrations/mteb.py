"""A repaired model for `mteb.evaluate`: any reading of isotrope, or a sentence-transformers model."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotrope.errors import InputError, MissingExtra
from isotrope.integrations.sentence_transformers import insert_repair
from isotrope.repairs import Repair, load_repair
from isotrope.sources.input import Input
from isotrope.sources.text.encoder import Encoder
from isotrope.storage.redaction import mask_facts

try:
    from mteb.models import ModelMeta, SentenceTransformerEncoderWrapper
    from mteb.models.abs_encoder import AbsEncoder
    from mteb.models.model_meta import ScoringFunction
    from sentence_transformers import SentenceTransformer
except ImportError:
    raise MissingExtra("mteb", "evaluate", "a model for mteb") from None


#: What of a reading does not change the rows.
_WITHOUT_EFFECT = (
    *("model", "revision", "device", "batch_size", "trust_remote_code", "in_order"),
    *("concurrency", "keep_vectors", "run_folder"),
)


def mteb_model(
    model: Any = None,
    repair: Repair | str | Path | None = None,
    *,
    rows: str = "pooled",
    prompts: Mapping[str, str] | None = None,
    **reading: Any,
) -> AbsEncoder:
    """A model with a repair, or without, for `mteb.evaluate` (Muennighoff et al. 2023, arXiv:2210.07316).

    mteb keeps results by name, and gives them back where it meets the name again. This name holds layers, pooling and
    the fitted repair, so that no result is taken for another's.

    Args:
        model: what `isotrope.scan` takes, or a loaded SentenceTransformer, which has its own layers, pooling and
            prompts.
        repair: a fitted one or its folder.
        rows: what of a SentenceTransformer the repair was fitted on, see
            `isotrope.integrations.sentence_transformers.fold`.
        prompts: what to put before texts, by mteb's names: "query", "document", a task or a type of tasks.
        reading: layers, pooling and the other options of `isotrope.scan`.

    Examples:
        >>> model = mteb_model(layers="1,-1", pooling="mean")
        >>> model.mteb_model_meta.name, model.mteb_model_meta.experiment_name
        ('isotrope/all-MiniLM-L6-v2', 'layers_1,-1__pooling_mean')
    """
    fitted = load_repair(repair) if isinstance(repair, str | Path) else repair
    if not isinstance(model, SentenceTransformer):
        return ReadingEncoder(Encoder(Input(model=model, **reading)), fitted, dict(prompts) if prompts else None)
    if asked := [*reading, *(["prompts"] if prompts else [])]:
        raise InputError(f"a SentenceTransformer has its own way to read texts; leave out {', '.join(asked)}.")
    raw = SentenceTransformerEncoderWrapper(model)
    if fitted is None:
        return raw
    wrapped = SentenceTransformerEncoderWrapper(insert_repair(model, fitted, rows=rows))
    wrapped.mteb_model_meta = raw.mteb_model_meta.model_copy(update=_describe_experiment(fitted, None, rows=rows))
    return wrapped


class ReadingEncoder(AbsEncoder):  # type: ignore[misc]  # mteb's types are not read
    """A reading of isotrope (model, layers, pooling) and a repair as mteb wants a model; similarity is the cosine.

    Texts are encoded in batches of the reading's own size. A blank text gets a row of zeros, which is like no other.
    """

    def __init__(self, encoder: Encoder, repair: Repair | None, prompts: dict[str, str] | None) -> None:
        self.encoder, self.repair = encoder, repair
        self.model_prompts = self.validate_task_to_prompt_name(prompts)
        loaded, pooled = encoder.loaded, encoder.pooled
        here = pooled.endpoint is None
        changed = {f.name: getattr(pooled, f.name) for f in fields(pooled) if getattr(pooled, f.name) != f.default}
        how = {name: value for name, value in changed.items() if name not in _WITHOUT_EFFECT} | {
            "layers": encoder.layers
        }
        digest = hashlib.sha256(json.dumps(loaded.files, sort_keys=True).encode()).hexdigest()[:16]
        hub = re.fullmatch(r"[\w.-]+/[\w.-]+", loaded.name) and not loaded.files
        self.mteb_model_meta = ModelMeta.create_empty(
            overwrites={
                "name": loaded.name if hub else f"isotrope/{Path(loaded.name).name}",
                "revision": loaded.revision or digest,
                "framework": ["PyTorch" if here else "API"],
                "n_parameters": sum(p.numel() for p in loaded.model.parameters()) if here else None,
                "similarity_fn_name": ScoringFunction.COSINE,
            }
            | _describe_experiment(repair, prompts, **mask_facts(how))
        )

    def encode(
        self, inputs: Any, *, task_metadata: Any, prompt_type: Any = None, precision: str | None = None, **_: Any
    ) -> NDArray[Any]:
        """One row for each text that mteb's loader gives, (n, d), float32."""
        if precision not in (None, "float32"):
            raise InputError(f"got the precision {precision!r}, expected float32; leave it out.")
        prompt = (self.model_prompts or {}).get(self.get_prompt_name(task_metadata, prompt_type) or "", "")
        texts = [prompt + text for batch in inputs for text in batch["text"]]
        filled = [i for i, text in enumerate(texts) if text.strip()]
        found = self.encoder([texts[i] for i in filled])
        found = found if self.repair is None else self.repair.transform(found)
        rows = np.zeros((len(texts), found.shape[1]), np.float32)
        rows[filled] = found
        return rows


def _describe_experiment(repair: Repair | None, prompts: dict[str, str] | None, **how: Any) -> dict[str, Any]:
    """What tells a model from others of its name, as mteb keeps it."""
    if prompts:
        how["prompts"] = prompts
    if repair is not None:
        digest = hashlib.sha256()
        for name, array in sorted(repair.arrays().items()):
            digest.update(name.encode() + np.ascontiguousarray(array).tobytes())
        how |= {"repair": repr(repair), "fitted": digest.hexdigest()[:16], "columns": repair.map_.columns}
    return {"experiment_kwargs": how or None}
