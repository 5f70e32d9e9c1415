"""What Yan et al. 2022 say of whitened and decayed sentences (Section 5.1, Appendix C), judged set by set."""

from __future__ import annotations

import pandas as pd

from isotrope.evaluation.treatments import RAW
from isotrope.studies.result import Claim
from isotrope.studies.uniformity.published import ABNORMAL_SETS, FIXED, WHITENING
from isotrope.studies.verdict import format_p, format_range, judge_all, judge_equal, judge_exact, judge_test

#: The paper prints a TokenUni of zero for whitened rows: to two decimals.
_NEAR_ZERO = 0.01

#: Rounding of the least possible share of the strongest direction.
_EXACT = 1e-6


def judge_lsds(model: str, compared: pd.DataFrame) -> list[Claim]:
    """Whether SoftDecay has a lower LSDS than whitening on every set.

    Args:
        model: its name.
        compared: a row for each set: `lsds_difference`, SoftDecay minus whitening, and its corrected p-value.
    """
    outcomes = [
        judge_test(*pair) for pair in zip(-compared["lsds_difference"], compared["lsds_p_corrected"], strict=True)
    ]
    lower, higher = (outcomes.count(outcome) for outcome in ("agrees", "contradicts"))
    worst = float(compared["lsds_difference"].max())
    text = (
        f"LSDS of SoftDecay is below that of whitening on {lower} of {len(compared)} sets and above on {higher}, "
        f"{model} (largest difference {worst:+.3f}); the paper: lower on all seven. The definition normalises the "
        "weights of the neighbours; without that, as Eq. 6 is printed, the order may be reversed (column lsds_literal; "
        "lsds_published is by the authors' code)."
    )
    evidence = f"largest {format_p(compared['lsds_p_corrected'].max())}"
    return [Claim(judge_all(outcomes), text, "Section 5.1, Fig. 6", worst, evidence=evidence, model=model)]


def judge_whitening(model: str, frame: pd.DataFrame, compared: pd.DataFrame) -> list[Claim]:
    """Whether whitening has a TokenUni of zero, the smallest RBF_dis and the lowest EV_1.

    Args:
        model: its name.
        frame: a row for each set and repair: `explained_variance_1` and the `width` of the rows.
        compared: a row for each set: the cosine of whitened rows with its interval, and the difference of RBF_dis.
    """
    where = "Section 5.1"
    ends = compared[["whitened_cosine_low", "whitened_cosine_high"]]
    near = [judge_equal(low, high, published=0.0, tolerance=_NEAR_ZERO) for low, high in ends.to_numpy()]
    text = (
        f"the mean cosine of whitened sentences of {model} is "
        f"{format_range(compared['whitened_cosine'], '.4f')} over the sets; the paper: zero (read as: less than "
        f"{_NEAR_ZERO:g} from it; n rows whose directions cancel have −1/(n − 1))."
    )
    evidence = f"95 % intervals within {ends.min().min():.4f} to {ends.max().max():.4f}"
    claims = [Claim(judge_all(near), text, where, float(compared["whitened_cosine"].mean()), 0.0, evidence, model)]
    outcomes = [judge_test(*pair) for pair in zip(compared["rbf_difference"], compared["rbf_p_corrected"], strict=True)]
    text = (
        f"RBF_dis of whitened sentences of {model} is below that of SoftDecay on {outcomes.count('agrees')} of "
        f"{len(compared)} sets and above on {outcomes.count('contradicts')}; the paper: the smallest."
    )
    evidence = f"largest {format_p(compared['rbf_p_corrected'].max())}, on disjoint pairs of sentences"
    claims.append(Claim(judge_all(outcomes), text, where, evidence=evidence, model=model))
    by = frame.pivot(index="set", columns="repair", values="explained_variance_1")
    width = int(frame["width"].iloc[0])
    least = bool((by[WHITENING] <= (1 + _EXACT) / width).all())
    text = (
        f"the strongest direction of whitened sentences of {model} has a share of {by[WHITENING].max():.4f} "
        f"(SoftDecay {format_range(by[FIXED], '.4f')}, raw {format_range(by[RAW], '.4f')}); "
        f"the paper: the lowest. No rows of {width} columns have less than 1/{width}."
    )
    outcome = judge_exact(least) if least else "undecided"
    return [*claims, Claim(outcome, text, where, float(by[WHITENING].max()), 1 / width, "closed form", model)]


def judge_abnormal(model: str, compared: pd.DataFrame) -> list[Claim]:
    """Whether whitened rows have heavier tails than normal ones on the sets where the paper sees abnormal points.

    Args:
        model: its name.
        compared: a row for each set: Mardia's `kurtosis` over that of normal rows, its corrected p-value, and the
            number of `abnormal` rows.
    """
    claims = []
    for row in compared[compared["set"].isin(ABNORMAL_SETS)].to_dict("records"):
        text = (
            f"whitened sentences of {row['set']} by {model} have {row['kurtosis']:.2f} times the kurtosis of normal "
            f"rows, and {row['abnormal']} of {row['n']:,} are too far from the mean; the paper: not a unit Gaussian, "
            "because of abnormal points."
        )
        outcome = judge_test(row["kurtosis"] - 1, row["kurtosis_p_corrected"])
        evidence = format_p(row["kurtosis_p_corrected"])
        claims.append(Claim(outcome, text, "Appendix C.2, Fig. 7", row["kurtosis"], 1.0, evidence, model))
    return claims
