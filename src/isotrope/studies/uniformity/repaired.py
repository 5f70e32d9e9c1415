"""What repairs do to the sentences of STS: Table 4, Figs. 4, 6 and 7 of Yan et al. 2022."""

from __future__ import annotations

import math
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from isotrope.compute.arrays import to_unit_rows
from isotrope.compute.p_values import holm
from isotrope.drawing.style import COLUMN_WIDTH, GREY, ORANGE, SKY
from isotrope.evaluation.metrics import Mean
from isotrope.evaluation.pairs import PairSet, read_sets
from isotrope.evaluation.significance import PairedComparison, compare
from isotrope.evaluation.treatments import OWN, RAW, parse_treatments
from isotrope.measures import get
from isotrope.measures.lsds import compute_discrepancies
from isotrope.sources.text.encoder import Encoder
from isotrope.statistics import Image
from isotrope.studies.figures import make_figure
from isotrope.studies.options import StudyOptions
from isotrope.studies.result import Claim, Table
from isotrope.studies.runner import Results
from isotrope.studies.uniformity.pair_maps import make_maps, project_pairs
from isotrope.studies.uniformity.published import FIXED, WHITENING, find_uniformity
from isotrope.studies.uniformity.repaired_claims import judge_abnormal, judge_lsds, judge_whitening
from isotrope.studies.uniformity.sts import list_sets, make_encoder

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Matrix = NDArray[np.float64]

#: The measures of Table 4, and the columns of ours.
_UNIFORMITY = ("explained_variance_1", "rbf_distance", "token_uniformity")
_COLUMNS = ["set", "repair", *(f"{name}{end}" for name in _UNIFORMITY for end in ("", "_printed"))]
_COLUMNS += ["lsds", "lsds_low", "lsds_high", "lsds_literal", "lsds_published", "n", "width"]

#: The kernel of RBF_dis, see `isotrope.measures.rbf_distance`.
_T = 0.5

#: Rows that are unusual at this level, corrected for their number, are abnormal.
_LEVEL = 0.05


def measure_repairs(options: StudyOptions, model: str) -> Results:
    """Table 4, Figs. 4, 6 and 7: uniformity before and after, what is left of neighbourhoods, and maps of the pairs."""
    encoder, measured, compared, planes = make_encoder(options, model), [], [], []
    drawable = find_spec("openTSNE") is not None
    for pairs in read_sets(list_sets(options), options.data_root, "concatenated"):
        sentences = list(dict.fromkeys(pairs.sentences))
        images = _treat(encoder, pairs, sentences, options.seed)
        rows, comparison = measure_set(images, options.seed)
        for row in rows:
            row |= {f"{name}_printed": find_uniformity(model, pairs.name, name, row["repair"]) for name in _UNIFORMITY}
            measured.append({"set": pairs.name} | row)
        compared.append({"set": pairs.name} | comparison)
        if drawable:
            planes.append(project_pairs(options, pairs, sentences, images))
    frame, comparisons = pd.DataFrame(measured)[_COLUMNS], _correct(pd.DataFrame(compared))
    tables = [
        Table(
            "repaired", f"Uniformity of sentences without and with repairs (Table 4) and LSDS (Fig. 6), {model}", frame
        ),
        Table(
            "compared",
            f"SoftDecay minus whitening on each set, and whether whitened rows are normal, {model}",
            comparisons,
        ),
    ]
    claims = [
        *judge_lsds(model, comparisons),
        *judge_whitening(model, frame, comparisons),
        *judge_abnormal(model, comparisons),
    ]
    caption = (
        "LSDS of whitening and of SoftDecay on each set, with 95 % intervals (Fig. 6): lower keeps more neighbours."
    )
    figures = [make_figure("lsds", caption, partial(_draw_lsds, frame), width=max(COLUMN_WIDTH, 0.8 * len(compared)))]
    if drawable:
        maps = pd.concat(planes, ignore_index=True)
        tables.append(Table("tsne", f"t-SNE of sentence pairs of each set, {model}", maps, shown=False))
        figures += make_maps(maps, frame)
    else:
        text = "openTSNE is not installed, so that there is no projection; pip install 'isotrope[figures]'."
        claims.append(Claim("note", text, "Figs. 4 and 7"))
    return Results(tables, claims, figures)


def _treat(encoder: Encoder, pairs: PairSet, sentences: list[str], seed: int) -> dict[str, Matrix]:
    """The sentences of a set, raw and repaired, by the name of the repair, which is fitted on all of them."""
    raw = np.asarray(encoder(sentences), dtype=np.float64)
    treatments = parse_treatments([WHITENING, FIXED], seed=seed)
    return {one.name: np.asarray(one.fit(raw, OWN, pairs.name)(raw), dtype=np.float64) for one in treatments}


def measure_set(images: dict[str, Matrix], seed: int) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Measure the sentences of one set.

    TokenUni and RBF_dis are means over pairs of rows. Their differences are judged on disjoint pairs, drawn at random,
    which are independent of each other.

    Args:
        images: rows, (n, d), by the name of the repair: none, whitening and SoftDecay.
        seed: of the pairs and the resamples.

    Returns:
        A record of the measures for each repair, and one that compares SoftDecay with whitening.
    """
    raw, white, soft = (images[name] for name in (RAW, WHITENING, FIXED))
    kept = {name: compute_discrepancies(Image.of(raw, image)) for name, image in ((WHITENING, white), (FIXED, soft))}
    lsds = compare({name: Mean(values) for name, values in kept.items()}, seed=seed, items="lsds")
    rows: list[dict[str, Any]] = []
    for name, image in images.items():
        row: dict[str, Any] = {"repair": name, "n": len(image), "width": image.shape[1]}
        row |= {one: get(one)(image) for one in _UNIFORMITY}
        score = lsds.scores.get(name)
        row |= {"lsds": score.value, "lsds_low": score.low, "lsds_high": score.high} if score else {"lsds": math.nan}
        for variant in ("literal", "published"):
            row[f"lsds_{variant}"] = get("lsds")(raw, image, variant=variant) if score else math.nan
        rows.append(row)
    order = np.random.default_rng(seed).permutation(len(raw))
    half = len(order) // 2
    cosines = {
        name: _compute_cosines(images[name], order[:half], order[half : 2 * half]) for name in (WHITENING, FIXED)
    }
    kernel = {name: np.exp(-(2 - 2 * values) / _T) for name, values in cosines.items()}
    uniformity = compare({name: Mean(values) for name, values in cosines.items()}, seed=seed, items="pairs")
    rbf = compare({name: Mean(values) for name, values in kernel.items()}, seed=seed, items="pairs")
    whitened = uniformity.scores[WHITENING]
    comparison = _describe("lsds", lsds) | _describe("rbf", rbf)
    comparison |= {"whitened_cosine": whitened.value, "whitened_cosine_low": whitened.low}
    comparison |= {"whitened_cosine_high": whitened.high, "n": len(raw)} | compute_kurtosis(white)
    return rows, comparison


def _compute_cosines(rows: Matrix, first: NDArray[np.int64], second: NDArray[np.int64]) -> Matrix:
    units = to_unit_rows(rows)
    return np.asarray(np.einsum("ij,ij->i", units[first], units[second]))


def _describe(name: str, found: PairedComparison) -> dict[str, float]:
    """The difference of SoftDecay from whitening."""
    d = found.differences[FIXED]
    return {f"{name}_difference": d.value, f"{name}_low": d.low, f"{name}_high": d.high, f"{name}_p": d.p}


def compute_kurtosis(rows: Matrix) -> dict[str, float]:
    """Test whether rows, (n, d), are normal by Mardia's kurtosis, and count those that are too far from the mean.

    Returns:
        `kurtosis`, the mean of the fourth power of the Mahalanobis distance over its expectation for normal rows, which
        is 1; `kurtosis_p`, two-sided; and `abnormal` rows, whose squared distance a χ² variable of d degrees exceeds
        with a probability of at most 0.05/n.

    References:
        Mardia 1970, Measures of multivariate skewness and kurtosis with applications.
    """
    n, d = rows.shape
    centred = rows - rows.mean(axis=0)
    distance = np.einsum("ij,ij->i", centred @ np.linalg.pinv(centred.T @ centred / n, hermitian=True), centred)
    found, expected = float(np.mean(distance**2)), d * (d + 2) * (n - 1) / (n + 1)
    p = float(2 * stats.norm.sf(abs(found - expected) / math.sqrt(8 * d * (d + 2) / n)))
    far = int((distance > stats.chi2.isf(_LEVEL / n, d)).sum())
    return {"kurtosis": found / expected, "kurtosis_p": p, "abnormal": far}


def _correct(frame: pd.DataFrame) -> pd.DataFrame:
    """p-values of each kind corrected for the number of sets."""
    names = ("lsds", "rbf", "kurtosis")
    found: pd.DataFrame = frame.assign(**{f"{name}_p_corrected": holm(frame[f"{name}_p"].tolist()) for name in names})
    return found


def _draw_lsds(frame: pd.DataFrame, figure: Figure) -> None:
    axes, sets = figure.subplots(), list(dict.fromkeys(frame["set"]))
    for number, (repair, colour, label) in enumerate(((WHITENING, SKY, "whitening"), (FIXED, ORANGE, "SoftDecay"))):
        rows = frame[frame["repair"] == repair].set_index("set").loc[sets]
        at = np.arange(len(sets)) + 0.38 * (number - 0.5)
        axes.bar(at, rows["lsds"].astype(float), width=0.36, color=colour, label=label)
        axes.vlines(at, rows["lsds_low"].astype(float), rows["lsds_high"].astype(float), color=GREY, linewidth=1.0)
    axes.set_xticks(range(len(sets)), sets)
    axes.set_ylabel("LSDS")
    figure.legend(loc="outside lower center", ncols=2)
