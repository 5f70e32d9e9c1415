"""Claims of Marbut, Chandler and Wheeler, judged by the tables of the latent-geometry study."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isotrope.studies.claims import rank_correlation
from isotrope.studies.latent_geometry.published import PATCHINESS_R2, TABLE_2
from isotrope.studies.latent_geometry.regression import PATCHINESS
from isotrope.studies.result import Claim, Outcome

if TYPE_CHECKING:
    import pandas as pd

#: How near ours must be to the printed numbers, which have three digits.
NEAR = 0.001 + 1e-9

#: Scored noisy models below which a correlation says nothing.
FEWEST = 6


def judge_noise(model: str, weights: pd.DataFrame) -> Claim:
    """Whether the mean score falls with the share of noise on the weights (Fig. 1)."""
    rho = rank_correlation(weights["level"], weights["glue"])
    scored = int(weights["glue"].count())
    text = (
        f"the mean score of {model} and the share of noise have a rank correlation of {rho:.2f} over {scored} models; "
        "the paper: it falls."
    )
    if scored < FEWEST:
        return Claim("note", f"{text} So few decide nothing.", "Fig. 1", rho, -1.0)
    return Claim.judge(rho < -0.5, text, "Fig. 1", rho, -1.0)


def judge_correlations(correlated: pd.DataFrame) -> list[Claim]:
    """Whether measures of our noisy models correlate with the mean score as in the paper (Table 2)."""
    claims = []
    for model, of_model in correlated.groupby("model", sort=False):
        by = of_model.set_index("measure")
        row = by.loc[PATCHINESS]
        text = (
            f"r of {PATCHINESS} with the mean score is {row['r']:.3f} ({row['low']:.3f} to {row['high']:.3f}) over "
            f"{row['n']:.0f} noisy models of {model}; the paper: 0.902 for BERT-small, 0.640 for RoBERTa. Levels of "
            "one seed share their noise, so that the interval is too narrow."
        )
        ours, printed = float(row["r"]), float(row["bert_small_printed"])
        outside = row["high"] < min(printed, row["roberta_printed"])  # an interval that holds both decides nothing
        outcome: Outcome = "agrees" if row["low"] > 0 else "contradicts" if outside else "note"
        claims.append(Claim(outcome, text, "Fig. 3", ours, printed))
        known = by.dropna(subset=["r"])
        same = int((known["r"] * known["bert_small_printed"] > 0).sum())
        best = known["r"].abs().idxmax() if len(known) else None
        strongest = f"; strongest is {best} with {known.loc[best, 'r']:.3f}" if best else ""
        text = f"{same} of {len(known)} measures of {model} have the sign of r that BERT-small has{strongest}."
        claims.append(Claim("note", text, "Table 2", float(same), float(len(known))))
    return claims


def judge_skill(fitted: pd.DataFrame, guesses: dict[str, float], models: pd.DataFrame) -> list[Claim]:
    """Whether regressions on noisy models predict those that are changed otherwise."""
    single = fitted[fitted["regression"].isin([f"{name} + architecture" for name in TABLE_2])].dropna(subset=["mse"])
    count = int(models["other"].sum())
    if not len(single) or not count:
        return []
    best = single.iloc[int(single["mse"].to_numpy().argmin())]
    better = int((single["mse"] < guesses["training mean"]).sum())
    text = (
        f"on the {count} non-standard models {better} of {len(single)} regressions beat the mean of the noisy ones as "
        f"a guess (MSE {guesses['training mean']:.4f}); the best, {best['regression']}, has {best['mse']:.4f}, "
        f"their own mean {guesses['their own mean']:.4f}."
    )
    return [Claim("note", text, "Fig. 5", float(best["mse"]), guesses["training mean"])]


def judge_patchiness(frame: pd.DataFrame) -> list[Claim]:
    """R² of the regressions on point patchiness (Fig. 4)."""
    by = frame.set_index("regression")["r2"]
    claims = []
    for name, expected, printed in zip(
        (PATCHINESS, f"{PATCHINESS} + architecture"), PATCHINESS_R2, ("0.3", "0.5"), strict=True
    ):
        ours = float(by[name])
        text = f"R² of the regression on {name} is {ours:.3f}; printed {printed}."
        claims.append(Claim.judge(abs(ours - expected) <= NEAR, text, "Fig. 4", ours, expected))
    return claims


def judge_published_skill(frame: pd.DataFrame, guesses: dict[str, float]) -> list[Claim]:
    """Whether the published regressions predict the 13 other models better than their mean."""
    single = frame[frame["regression"].isin([f"{name} + architecture" for name in TABLE_2])]
    best = single.iloc[int(single["mse"].to_numpy().argmin())]
    patchiness = float(single.set_index("regression")["mse"][f"{PATCHINESS} + architecture"])
    worse = int((single["mse"] > guesses["training mean"]).sum())
    text = (
        f"on the 13 other models {PATCHINESS} has an MSE of {patchiness:.3f}, worse than the training mean "
        f"({guesses['training mean']:.3f}), as {worse} of {len(single)} measures are; the best, {best['regression']}, "
        f"has {best['mse']:.3f}, worse than their own mean ({guesses['their own mean']:.3f})."
    )
    return [Claim("contradicts", f"{text} No measure predicts them.", "Table 2", patchiness, guesses["training mean"])]
