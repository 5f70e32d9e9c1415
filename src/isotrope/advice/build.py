"""An embedder from any language model: the advice taken, and written as a sentence-transformers folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from isotrope.advice.advice import Advice
from isotrope.advice.advise import advise
from isotrope.advice.trial import EVERYDAY
from isotrope.errors import InputError
from isotrope.sources.corpora.corpus import open_corpus
from isotrope.sources.models.onnx_layers import refuse_graph


def build(
    folder: str | Path,
    *,
    model: Any = None,
    text: Any = None,
    normalize: bool = True,
    overwrite: bool = False,
    **asked: Any,
) -> Advice:
    """Ask for advice on a model and a text, and write what it says as a folder for `SentenceTransformer(folder)`.

    The layer mix, token weights, pooling and repair become stock modules, so that it loads without isotrope; its card
    says what was done and measured. normalize: rows of length 1. asked: more of `isotrope.advise`'s arguments. Returns
    the advice that was taken; where that is to leave the space alone, the embedder has no repair.
    """
    # Said before minutes of work: what is missing, and what is there already.
    from isotrope.integrations.embedder import write_embedder
    from isotrope.integrations.sentence_transformers import refuse_occupied

    if text is None:
        raise InputError("got no text, and the advice needs one; give a text of the kind that will be embedded.")
    refuse_graph(model, "an embedder")
    refuse_occupied(Path(folder).absolute(), overwrite)
    asked["pooling"] = asked.get("pooling") or "mean"  # an embedder is made from layers, whatever the model is
    advice = advise(model=model, text=text, **asked)
    write_embedder(
        folder,
        advice.reading,
        repair=advice.repair,
        normalize=normalize,
        card=_card(advice),
        overwrite=overwrite,
    )
    return advice


def _card(advice: Advice) -> dict[str, Any]:
    """What was done and measured, for people who load the folder."""
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
        "What was tried": [_line(trial) for trial in advice.to_dict()["tried"]],
        "What it was told by": f"{fitted}. No label was used. Scores of tasks were not measured: the numbers above are "
        "the agreement of cosines with the known likeness of pairs of everyday sentences.",
    }


def _line(trial: dict[str, Any]) -> dict[str, Any]:
    gain = trial["yardstick"]["gain"]
    scores = trial["yardstick"]["scores"]
    line = {
        "layers": trial["layers"],
        "tokens": trial["tokens"],
        "likeness": f"{scores['none']['value']:.3f}",
        "repaired": f"{scores['bent']['value']:.3f}",
        "gain": f"{gain['value']:+.3f} ({gain['low']:+.3f} to {gain['high']:+.3f})",
        "mean cosine": f"{trial['geometry']['mean_cosine']:.2f}",
    }
    if trial["halves"] is not None:
        line |= {f"halves, {name}": f"{s['value']:.3f}" for name, s in trial["halves"]["scores"].items()}
    return line
