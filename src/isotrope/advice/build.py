"""Build of an embedder from any language model: follow the advice, and write a sentence-transformers folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from isotrope.advice.advice import Advice
from isotrope.advice.advise import advise
from isotrope.advice.candidate import EVERYDAY
from isotrope.errors import InputError
from isotrope.sources.corpora.corpus import open_corpus
from isotrope.sources.models.onnx import check_has_weights


def build(
    folder: str | Path,
    *,
    model: Any = None,
    text: Any = None,
    normalize: bool = True,
    overwrite: bool = False,
    **asked: Any,
) -> Advice:
    """Ask for advice on a model and a text, and write the advised embedder as a `SentenceTransformer` folder.

    Layers, token weights, pooling and repair become stock modules, so that the folder loads without isotrope. Its model
    card says what was done and measured.

    Args:
        folder: folder to write.
        model: as for `isotrope.scan`.
        text: a text of the kind that will be embedded.
        normalize: whether rows get length 1.
        overwrite: whether a folder with a model is replaced.
        asked: more arguments of `isotrope.advise`.

    Returns:
        The advice that was followed; where it is to leave the space alone, the embedder has no repair.
    """
    # Errors about missing packages and existing folders come before minutes of work.
    from isotrope.integrations.embedder import write_embedder
    from isotrope.integrations.sentence_transformers import check_model_folder

    if text is None:
        raise InputError("got no text, and the advice needs one; give a text of the kind that will be embedded.")
    check_has_weights(model, "an embedder")
    check_model_folder(Path(folder).absolute(), overwrite)
    asked["pooling"] = asked.get("pooling") or "mean"  # an embedder is made from layers, whatever the model is
    advice = advise(model=model, text=text, **asked)
    write_embedder(
        folder,
        advice.reading,
        repair=advice.repair,
        normalize=normalize,
        card=_make_card(advice),
        overwrite=overwrite,
    )
    return advice


def _make_card(advice: Advice) -> dict[str, Any]:
    """Sections of the model card: what was done and measured."""
    reading = advice.reading
    name = open_corpus(reading.text, column=reading.column, split=reading.split, group_by=None, unit=reading.unit).name
    fitted = f"{advice.rows:,} texts of {Path(name).name}"
    if advice.repair is not None:
        fitted += (
            f", and everyday sentences of many kinds that weigh {EVERYDAY:.0%}: a repair that knows only one kind of "
            "text magnifies what that text never does"
        )
    return {
        "Why it is made like this": [f"{advice.words[0].upper()}{advice.words[1:]}.", *advice.reasons],
        "What was tried": [candidate.format_cells() for candidate in advice.trials],
        "What it is based on": f"{fitted}. No label was used. Scores of tasks were not measured: the numbers above are "
        "the agreement of cosines with the known likeness of pairs of everyday sentences.",
    }
