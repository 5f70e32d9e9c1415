"""Claims of Yan et al. 2022, judged by the tables of the uniformity study."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from isotrope.evaluation.sts import MEAN
from isotrope.evaluation.treatments import RAW
from isotrope.studies.claims import depth_correlation, judge_gain, rank_correlation
from isotrope.studies.result import Claim
from isotrope.studies.uniformity.published import FIXED, WHITENING

if TYPE_CHECKING:
    import pandas as pd

#: What each row of α's best is called: chosen on the very scores that it is then shown with, as the paper does.
BEST = "softdecay, best α"

#: Rounding of a bound that is met exactly.
_EXACT = 1 + 1e-6


def judge_depth(model: str, frame: pd.DataFrame) -> list[Claim]:
    """Skewness and uniformity rise with depth, the median singular value falls (Fig. 2)."""
    claims = []
    for name, sign in (
        ("sequence_spectral_skewness", 1),
        ("sequence_spectral_median", -1),
        ("sequence_uniformity", 1),
        ("cls_uniformity", 1),
    ):
        values = frame[name]
        rho = depth_correlation(values)
        if math.isnan(rho):
            continue
        word = "rises" if sign > 0 else "falls"
        text = (
            f"{name} of {model} goes from {values.iloc[0]:.3f} to {values.iloc[-1]:.3f}, rank correlation with depth "
            f"{rho:.2f}; the paper: {word} in BERT."
        )
        claims.append(Claim.judge(sign * rho > 0.5, text, "Fig. 2", rho, float(sign)))
    return claims


def judge_bound(frame: pd.DataFrame) -> list[Claim]:
    """No token is further than the bound, and how loose it is."""
    worst, low, high = frame["tightest"].max(), frame["slack"].min(), frame["slack"].max()
    text = (
        f"the furthest token reaches {worst:.3f} of the theorem's bound; on average over sequences "
        f"{low:.0%} to {high:.0%} of the bound are slack."
    )
    return [Claim.judge(worst <= _EXACT, text, "Theorem", float(worst), 1.0)]


def select_best_alpha(scores: pd.DataFrame) -> pd.DataFrame:
    """A row for each set with the best of SoftDecay's α's, where there are several."""
    candidates: pd.DataFrame = scores[scores["repair"].str.startswith("softdecay:")]
    if candidates["repair"].nunique() < 2:
        none: pd.DataFrame = candidates.head(0)
        return none
    best: pd.DataFrame = candidates.sort_values("spearman", ascending=False).drop_duplicates("set").assign(repair=BEST)
    return best


def judge_sts(model: str, protocol: str, differences: pd.DataFrame) -> list[Claim]:
    """Whether whitening and SoftDecay gain over no repair, and SoftDecay over whitening, as Table 1 has it.

    differences: set, metric, repair, against, and points with their interval.
    """
    over = MEAN if (differences["set"] == MEAN).any() else str(differences["set"].iloc[0])
    here = differences[(differences["set"] == over) & (differences["metric"] == "spearman")]
    claims = []
    for row in here.to_dict("records"):
        if row["repair"] not in (FIXED, WHITENING):
            continue
        text = (
            f"{row['repair']} is {row['difference']:+.2f} points ({row['low']:+.2f} to {row['high']:+.2f}) from "
            f"{'raw rows' if row['against'] == RAW else row['against']} on {over}, protocol {protocol}, {model}; "
            "the paper: ahead on all of its models."
        )
        claims.append(Claim(judge_gain(row["low"], row["high"]), text, "Table 1", float(row["difference"])))
    return claims


def judge_glue(model: str, differences: pd.DataFrame) -> list[Claim]:
    """Whether SoftDecay gains in fine-tuning (Table 2)."""
    claims = []
    first = differences[(differences["against"] == "base") & differences["method"].str.startswith("softdecay")]
    for (task, metric), some in first.groupby(["task", "metric"], sort=False):
        row = some.iloc[0]
        spread = f"({row['low']:+.2f} to {row['high']:+.2f})" if row["n"] > 1 else "(no interval)"
        text = (
            f"{row['method']} changes {model} on {task}, {metric}, by {row['difference']:+.2f} points {spread}, seeds: "
            f"{row['n']}; the paper: gains, most of them on small sets."
        )
        claims.append(Claim(judge_gain(row["low"], row["high"]), text, "Table 2", float(row["difference"])))
    return claims


def judge_sizes(model: str, frame: pd.DataFrame) -> list[Claim]:
    """Whether more training rows make the rows of a sequence more alike (Section 5.2)."""
    claims = []
    for task, some in frame.groupby("task", sort=False):
        first, last = some.iloc[0], some.iloc[-1]
        falls = bool(last["reach trained"] < first["reach trained"])
        rho = rank_correlation(some["rows"], some["reach trained"])
        text = (
            f"ΔL of {model} after training on {task} is {first['reach trained']:.3f} with {first['rows']:,} rows and "
            f"{last['reach trained']:.3f} with {last['rows']:,}; the paper: more training rows, more alike."
        )
        claims.append(Claim.judge(falls, text, "Section 5.2", rho, -1.0))
    return claims
