"""What the tables of the uniformity study say about the paper's claims."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scipy import stats

from isotrope.evaluation.sts import MEAN
from isotrope.evaluation.treatments import RAW
from isotrope.studies.result import Claim, Outcome

if TYPE_CHECKING:
    import pandas as pd

#: What each row of α's best is called: chosen on the very scores that it is then shown with, as the paper does.
BEST = "softdecay, best α"

#: The repairs that claims are about: whitening, and SoftDecay with the α of Appendix B.
WHITENING, FIXED = "whitening", "softdecay:alpha=-0.6:form=paper"

#: Rounding of a bound that is met exactly.
_EXACT = 1 + 1e-6


def gains(low: float, high: float) -> Outcome:
    """What a difference with this interval says about a paper's gain: nothing where zero is within, or no interval.

    >>> gains(0.1, 0.9), gains(-0.9, -0.1), gains(-0.1, 0.1)
    ('agrees', 'contradicts', 'note')
    """
    return "agrees" if low > 0 else "contradicts" if high < 0 else "note"


def depth_claims(model: str, frame: pd.DataFrame) -> list[Claim]:
    """Skewness and uniformity rise with depth, the median singular value falls (Fig. 2)."""
    claims = []
    for name, sign in (
        ("sequence_spectral_skewness", 1),
        ("sequence_spectral_median", -1),
        ("sequence_uniformity", 1),
        ("cls_uniformity", 1),
    ):
        values = frame[name]
        if values.isna().any() or len(values) < 3 or values.nunique() < 2:
            continue
        rho = float(stats.spearmanr(range(len(values)), values).statistic)
        word = "rises" if sign > 0 else "falls"
        text = (
            f"{name} of {model} goes from {values.iloc[0]:.3f} to {values.iloc[-1]:.3f}, rank correlation with depth "
            f"{rho:.2f}; the paper: {word} in BERT."
        )
        claims.append(Claim("agrees" if sign * rho > 0.5 else "contradicts", text, "Fig. 2", rho, float(sign)))
    return claims


def bound_claims(frame: pd.DataFrame) -> list[Claim]:
    """No token is further than the bound, and how loose it is."""
    worst, low, high = frame["tightest"].max(), frame["slack"].min(), frame["slack"].max()
    text = (
        f"the furthest token reaches {worst:.3f} of the theorem's bound; on average over sequences "
        f"{low:.0%} to {high:.0%} of the bound are slack."
    )
    return [Claim("agrees" if worst <= _EXACT else "contradicts", text, "Theorem", float(worst), 1.0)]


def best_alpha(scores: pd.DataFrame) -> pd.DataFrame:
    """A row for each set with the best of SoftDecay's α's, where there are several."""
    tried: pd.DataFrame = scores[scores["repair"].str.startswith("softdecay:")]
    if tried["repair"].nunique() < 2:
        none: pd.DataFrame = tried.head(0)
        return none
    best: pd.DataFrame = tried.sort_values("spearman", ascending=False).drop_duplicates("set").assign(repair=BEST)
    return best


def sts_claims(model: str, protocol: str, differences: pd.DataFrame) -> list[Claim]:
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
        claims.append(Claim(gains(row["low"], row["high"]), text, "Table 1", float(row["difference"])))
    return claims
