"""Claims of Yamagiwa and Shimodaira 2024, judged by the tables of the norm-variance study."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from isotrope.statistics.token_tables import FEWEST
from isotrope.studies.claims import depth_correlation
from isotrope.studies.result import Claim

if TYPE_CHECKING:
    import pandas as pd

#: The residual up to which the decomposition holds.
EXACT = 1e-9

#: Minimal slope and maximal R² over layers: "approximately −1" and "1" for BERT and RoBERTa, −0.2 and 0.5 for GPT-2.
_POST, _PRE = (-1.0, 1.0), (-0.2, 0.5)

#: How near "approximately" is.
_NEAR = 0.1


def judge_decomposition(frame: pd.DataFrame) -> list[Claim]:
    """The identity, and how the shares change with depth (Figs. 5 and 6)."""
    worst = float(frame["residual"].max())
    text = f"Q = M + V_W + V_B holds to {worst:.1e} of Q in every layer."
    claims = [Claim.judge(worst <= EXACT, text, "Eq. 13", worst, 0.0)]
    for column, what, where in (
        ("mean_share_window", "M/Q rises with depth", "Fig. 5"),
        ("within_of_variance_window", "V_W/V rises with depth", "Fig. 6"),
    ):
        values = frame[column]
        rho = depth_correlation(values)
        if math.isnan(rho):
            continue
        ends = f"from {values.iloc[0]:.3f} to {values.iloc[-1]:.3f}, rank correlation with depth {rho:.2f}"
        claims.append(Claim.judge(rho > 0.5, f"{what}: {ends}.", where, rho, 1.0))
    return claims


def judge_trade_off(frame: pd.DataFrame, *, post_norm: bool) -> list[Claim]:
    """The best layer's slope and R², with their intervals, and where the C.V. of Q is least (Fig. 4)."""
    usable = frame[frame["variance_on_mean_r2"].notna()]  # where types do not vary there is no R²
    if not len(usable):
        return [Claim("note", "too few frequent token types for a trade-off of V with M.", "Fig. 4")]
    kind = "post-LN (BERT, RoBERTa)" if post_norm else "pre-LN (GPT-2)"
    expected = _POST if post_norm else _PRE
    claims = []
    for name, word, value, lowest in (
        ("variance_on_mean_slope", "slope", expected[0], True),
        ("variance_on_mean_r2", "R²", expected[1], False),
    ):
        best = usable.iloc[int((usable[name] * (1 if lowest else -1)).to_numpy().argmin())]
        ours, low, high = best[name], best[f"{name}_low"], best[f"{name}_high"]
        agrees = low - _NEAR <= value <= high + _NEAR if low == low else abs(ours - value) <= _NEAR
        text = (
            f"{'lowest' if lowest else 'highest'} {word} of V on M is {ours:.3f} ({low:.3f} to {high:.3f}) in layer "
            f"{_format_layer(best)}; the paper finds about {value:g} for {kind} models, on BookCorpus."
        )
        claims.append(Claim.judge(agrees, text, "Figs. 2 and 4", float(ours), value))
    index = int(usable["squared_norm_variation"].to_numpy().argmin())
    inner = 0 < index < len(usable) - 1
    least = usable.iloc[index]
    value, layer = least["squared_norm_variation"], _format_layer(least)
    text = f"the C.V. of Q is least ({value:.3f}) in layer {layer} of {len(usable)}"
    claims.append(Claim.judge(inner, f"{text}; the paper: in the intermediate layers.", "Fig. 4"))
    return claims


def _format_layer(row: pd.Series[Any]) -> str:
    """The name of a layer, without the fraction that a row of numbers gave it."""
    return str(row["layer"]).removesuffix(".0")


def judge_frequency(frame: pd.DataFrame) -> list[Claim]:
    """M falls with frequency and V rises in all layers (Fig. 17)."""
    claims = []
    for letter, sign, word in (("M", -1, "falls"), ("V", 1, "rises")):
        usable = frame[frame[f"log_{letter}_slope"].notna()]
        against = usable[sign * usable[f"log_{letter}_slope"] < 0]
        layers = ", ".join(map(str, against["layer"]))
        text = f"log {letter} {word} with frequency in {len(usable) - len(against)} of {len(usable)} layers"
        text += f", not in {layers}." if layers else "."
        claims.append(Claim.judge(not layers, text, "Fig. 17"))
    return claims


def judge_words(frame: pd.DataFrame) -> list[Claim]:
    """Words of several tokens have smaller Q, less so in deep layers (Fig. 22)."""
    several = frame[frame["tokens"] == 2]
    if not len(several):
        which = "frequent word has two tokens or more" if len(frame) else f"word occurs {FEWEST} times or more"
        return [Claim("note", f"no {which}, so that there is no artefact to see.", "Fig. 22")]
    first, last = several["Q_ratio"].iloc[0], several["Q_ratio"].iloc[-1]
    text = (
        f"words of two tokens have {first:.2f} times the Q of words of one in the first layer, {last:.2f} times in the "
        "last; the paper: smaller, and less so in deep layers."
    )
    agrees = first < 1 and abs(1 - last) < abs(1 - first)
    return [Claim.judge(agrees, text, "Fig. 22", float(first))]


def judge_post_norm(frame: pd.DataFrame) -> list[Claim]:
    """Whether Q is the squared length that the norm of a layer gives, and how its C.V. falls (Appendix I)."""
    covered = frame[frame["predicted Q"].notna()]
    where = "Appendix I"
    if not len(covered):
        text = "no layer's rows come out of a norm, so that the post-LN argument does not apply."
        return [Claim("note", text, where)]
    ratio = covered["mean Q"] / covered["predicted Q"]
    far = float((ratio - 1).abs().max())
    what = (
        f"Q is {ratio.min():.3f} to {ratio.max():.3f} times ‖γ‖² + ‖β‖² in the {len(covered)} layers that a norm closes"
    )
    exponents = covered["exponent"].dropna()
    claims = [Claim.judge(far < 0.05, f"{what}; the paper expects about 1.", where, far, 0.0)]
    if len(exponents):
        mean = float(exponents.mean())
        falls = -0.65 < mean < -0.35
        text = (
            f"the C.V. of Q over types of n₀ occurrences or more goes with n₀ to the power {mean:.2f} on average over "
            f"these layers; the paper's bound falls with −0.5."
        )
        claims.append(Claim.judge(falls, text, where, mean, -0.5))
    return claims
