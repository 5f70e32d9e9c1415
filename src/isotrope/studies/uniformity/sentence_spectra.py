"""Singular values of the sentences of STS by layer, before and after SoftDecay: Fig. 3 of Yan et al. 2022.

The matrix of a layer has one row for each sentence of a set, the mean of its tokens. SoftDecay is applied to that of
the last layer.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from isotrope.compute.arrays import to_numpy
from isotrope.drawing.layers import add_layer_bar, layer_colours
from isotrope.drawing.style import ORANGE, PAGE_WIDTH, SMALL_FONT_SIZE
from isotrope.evaluation.pairs import read_sets
from isotrope.evaluation.treatments import RAW
from isotrope.layers import Layer
from isotrope.measures.spectrum import skewness
from isotrope.softdecay.formula import decay, find_violation
from isotrope.studies.figures import StudyFigure, make_figure
from isotrope.studies.options import StudyOptions
from isotrope.studies.result import Claim, Table
from isotrope.studies.runner import Results
from isotrope.studies.uniformity.published import FIXED
from isotrope.studies.uniformity.sts import list_sets
from isotrope.studies.verdict import LEVEL, format_interval, format_range, judge_all, judge_interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Vector = NDArray[np.float64]

#: −α of SoftDecay in `FIXED`.
_A = 0.6

#: Sentences of a set in a quick study.
_QUICK_SENTENCES = 1_000

#: Groups of sentences that are left out in turn for intervals.
_GROUPS = 20


def measure_sentence_spectra(options: StudyOptions, model: str) -> Results:
    """Fig. 3: the spectra of a set's sentences in every layer, and in the last one by SoftDecay."""
    values, shapes = [], []
    for pairs in read_sets(list_sets(options), options.data_root, "concatenated"):
        sentences = list(dict.fromkeys(pairs.sentences))[: _QUICK_SENTENCES if options.quick else None]
        grams = _read_grams(options, model, sentences)
        spectra = {(layer, RAW): compute_spectrum(sum(parts)) for layer, parts in grams.items()}
        last = next(reversed(grams))
        spectra[last, FIXED] = bend_spectrum(spectra[last, RAW])
        for (layer, repair), spectrum in spectra.items():
            columns = {"set": pairs.name, "layer": str(layer), "repair": repair, "number": range(1, len(spectrum) + 1)}
            values.append(pd.DataFrame(columns | {"value": spectrum / spectrum[0]}))
        shapes.append({"set": pairs.name} | compare_spectra(list(grams.values())))
    frame, shape = pd.concat(values, ignore_index=True), pd.DataFrame(shapes)
    title = f"Skewness of the last layer's spectrum of STS sentences, and how far apart layers are, {model}"
    tables = [
        Table("shape", title, shape),
        Table("spectra", f"Singular values / largest of the sentences of each STS set by layer, {model}", frame, False),
    ]
    caption = (
        "Cumulative distribution of the singular values of each set's sentences, divided by the largest, by layer, "
        "before (above) and after (below) SoftDecay with α −0.6 in the last layer (Fig. 3)."
    )
    return Results(tables, [judge_flatter(model, shape)], [make_spectra_figure(caption, frame, "set")])


def _read_grams(options: StudyOptions, model: str, sentences: Sequence[str]) -> dict[Layer, list[Any]]:
    """XᵀX of the sentence vectors of each layer, in groups of sentences, (d, d) each."""
    source = options.input(model, layers="all", pooling="mean", text=sentences).open()
    grams: dict[Layer, list[Any]] = {}
    for batch in source.batches():
        group = batch.rows.sequence.astype(np.int64) % _GROUPS
        for layer, states in batch.layers.items():
            rows = np.asarray(to_numpy(states), dtype=np.float64)
            parts = grams.setdefault(layer, [np.zeros((rows.shape[1],) * 2) for _ in range(_GROUPS)])
            for number in np.unique(group):
                parts[number] += rows[group == number].T @ rows[group == number]
    return grams


def compute_spectrum(gram: Any) -> Vector:
    """Singular values of rows X by XᵀX, (d, d) -> (d,), the largest first."""
    return np.sqrt(np.maximum(np.linalg.eigvalsh(gram)[::-1], 0.0))


def bend_spectrum(spectrum: Vector) -> Vector:
    """Singular values after SoftDecay with α −0.6 in the form of the paper, the largest kept; NaN out of its domain."""
    if find_violation(spectrum[0], spectrum[-1], _A, "paper") is not None:
        return np.full(len(spectrum), np.nan)
    bent = np.sort(np.abs(decay(spectrum, _A, "paper", np)))[::-1]
    return np.asarray(bent * spectrum[0] / bent[0])


def compute_distance(spectra: Sequence[Vector]) -> float:
    """Mean over pairs of spectra of the largest difference between their cumulative distributions, (d,) each.

    Args:
        spectra: singular values, which are divided by the largest of each.
    """
    scaled = [np.sort(spectrum / spectrum[0]) for spectrum in spectra]
    found = []
    for one, two in itertools.combinations(scaled, 2):
        at = np.concatenate([one, two])
        shares = (np.searchsorted(values, at, side="right") / len(values) for values in (one, two))
        found.append(np.abs(np.subtract(*shares)).max())
    return float(np.mean(found)) if found else float("nan")


def compare_spectra(layers: Sequence[Sequence[Any]]) -> dict[str, float]:
    """Describe the spectra of all layers with intervals by leaving groups of sentences out in turn.

    Args:
        layers: XᵀX of each group of sentences, (d, d), by layer.

    Returns:
        Skewness of the last layer `before` and `after` SoftDecay, their difference `change`, and how far `apart` the
        distributions of two blocks' outputs are; each with its 95 % interval.
    """

    def describe(kept: Sequence[Any], share: float) -> Vector:
        spectra = [compute_spectrum(gram / share) for gram in kept]
        before, after = skewness(spectra[-1] / spectra[-1][0]), skewness(bend_spectrum(spectra[-1]) / spectra[-1][0])
        return np.array([before, after, after - before, compute_distance(spectra[1:])])

    whole = [sum(parts) for parts in layers]
    return _jackknife(whole, layers, describe)


def _jackknife(
    whole: Sequence[Any], layers: Sequence[Sequence[Any]], describe: Callable[[Sequence[Any], float], Vector]
) -> dict[str, float]:
    """The numbers of all sentences, with intervals by the delete-a-group jackknife (Shao and Tu 1995)."""
    groups = len(layers[0])
    left = [
        describe([total - parts[number] for total, parts in zip(whole, layers, strict=True)], 1 - 1 / groups)
        for number in range(groups)
    ]
    found, drawn = describe(whole, 1.0), np.array(left)
    error = np.sqrt((groups - 1) / groups * ((drawn - drawn.mean(axis=0)) ** 2).sum(axis=0))
    half = stats.t.ppf(1 - LEVEL / 2, groups - 1) * error
    names = ("before", "after", "change", "apart")
    ends = {"": found, "_low": found - half, "_high": found + half}
    return {f"{name}{end}": float(values[i]) for i, name in enumerate(names) for end, values in ends.items()}


def judge_flatter(model: str, shape: pd.DataFrame) -> Claim:
    """Whether SoftDecay makes the spectrum of the last layer less skewed on every set.

    Args:
        model: its name.
        shape: a row for each set, as `compare_spectra` returns.
    """
    outcomes = [judge_interval(*ends) for ends in zip(-shape["change_high"], -shape["change_low"], strict=True)]
    text = (
        f"SoftDecay changes the skewness of the last layer's spectrum of STS sentences of {model} by "
        f"{format_range(shape['change'], '+.2f')} over the sets; the paper: less skewed after it."
    )
    ends = shape["change_low"].min(), shape["change_high"].max()
    mean, evidence = float(shape["change"].mean()), f"all within the {format_interval(*ends)}"
    return Claim(judge_all(outcomes), text, "Section 5.1, Fig. 3", mean, evidence=evidence, model=model)


def make_spectra_figure(caption: str, frame: pd.DataFrame, by: str) -> StudyFigure:
    """Make a figure of cumulative curves, one for each layer: before above, and after SoftDecay below.

    Args:
        caption: what it shows.
        frame: `layer`, `repair`, `value`, and the column that tells panels apart.
        by: that column.
    """
    count = frame[by].nunique()
    width = min(max(1.9 * count + 0.9, 3.25), 2 * PAGE_WIDTH)
    return make_figure("sentence_spectra", caption, partial(_draw_spectra, frame, by), width=width, height=4.2)


def _draw_spectra(frame: pd.DataFrame, by: str, figure: Figure) -> None:
    names = list(dict.fromkeys(frame[by]))
    panels = figure.subplots(2, len(names), sharex=True, sharey=True, squeeze=False)
    most: list[str] = []
    for column, name in enumerate(names):
        here = frame[frame[by] == name]
        layers = list(dict.fromkeys(here["layer"]))
        most = max(most, layers, key=len)
        for axes, last in zip(panels[:, column], (RAW, FIXED), strict=True):
            for layer, colour in zip(layers, layer_colours(len(layers)), strict=True):
                bent = layer == layers[-1] and last == FIXED
                rows = here[(here["layer"] == layer) & (here["repair"] == (FIXED if bent else RAW))]
                _draw_curve(axes, rows["value"].to_numpy(np.float64), ORANGE if bent else colour)
            axes.set_title(f"{name}, {'before' if last == RAW else 'after'}", fontsize=SMALL_FONT_SIZE)
    for axes in panels[-1]:
        axes.set_xlabel("singular value / largest")
    for axes in panels[:, 0]:
        axes.set_ylabel("share of singular values")
    add_layer_bar(figure, panels, most)


def _draw_curve(axes: Axes, values: Vector, colour: Any) -> None:
    """Draw the share of values, (d,), at or below each; nothing where they are NaN."""
    known = np.sort(values[np.isfinite(values)])
    if len(known):
        share = np.arange(1, len(known) + 1) / len(known)
        axes.step(np.append(0.0, known), np.append(0.0, share), where="post", color=colour, linewidth=1.1)
