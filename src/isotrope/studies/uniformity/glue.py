"""SoftDecay in fine-tuning: the GLUE tables of Yan et al. 2022, where the layer goes, and how many rows train."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from scipy import stats

from isotrope.finetuning.glue import evaluate_glue
from isotrope.finetuning.methods import ALPHAS, METHODS, family
from isotrope.finetuning.result import GlueEvaluation
from isotrope.sources import EMBEDDED
from isotrope.studies.finetuning_plan import FineTuning
from isotrope.studies.options import Options
from isotrope.studies.result import Claim, Table
from isotrope.studies.runner import Made, slug
from isotrope.studies.transformer_block import number_of_blocks
from isotrope.studies.uniformity.claims import gains
from isotrope.studies.uniformity.figures import glue_picture, sizes_picture
from isotrope.studies.uniformity.published import table_model
from isotrope.studies.uniformity.published_glue import ROWS, TABLES_2_AND_6

if TYPE_CHECKING:
    import pandas as pd

#: What a study compares, and a quick one: the α's that SoftDecay begins with are the paper's, or the middle one.
_METHODS, _QUICK_METHODS = [name for name in METHODS if name != "base"], ["softdecay"]
_QUICK_ALPHAS = (-0.5,)

#: Shares of the training rows.
_SHARES, _QUICK_SHARES = (0.125, 0.25, 0.5, 1.0), (0.25, 1.0)


def runs_per_seed(options: Options) -> int:
    """How many models each seed trains on a task."""
    methods, alphas = (_QUICK_METHODS, _QUICK_ALPHAS) if options.quick else (_METHODS, ALPHAS)
    return 1 + sum(len(alphas) if METHODS[name].softdecay else 1 for name in methods)


def tables(options: Options, plan: FineTuning, seeds: int, model: str) -> Made:
    """Tables 2 and 6: all methods on all tasks over seeds, beside what is printed."""
    quick = options.quick
    found = _evaluated(
        options,
        plan,
        model,
        "methods",
        methods=_QUICK_METHODS if quick else _METHODS,
        alphas=_QUICK_ALPHAS if quick else ALPHAS,
        seeds=1 if quick else seeds,
    )
    scores = found.to_frame()
    scores["printed"] = [
        _printed(model, *row) for row in zip(scores["task"], scores["metric"], scores["method"], strict=True)
    ]
    differences = found.to_frame("differences")
    made = [
        Table(
            "scores",
            f"Scores × 100 on GLUE's validation rows over seeds, {model}",
            scores.drop(columns=["seeds", "values"]),
        ),
        Table("differences", f"Points that methods gain, with intervals and p-values, {model}", differences),
        Table("alphas", f"Where α of SoftDecay goes in training, {model}", found.to_frame("alphas")),
        Table(
            "spectra",
            f"CDF of singular values of sequences before and after training, {model}",
            found.to_frame("spectra"),
        ),
    ]
    return Made(made, _claims(model, differences), [glue_picture(scores)])


def _evaluated(options: Options, plan: FineTuning, model: str, what: str, **more: Any) -> GlueEvaluation:
    given = asdict(plan.training) | {"seed": options.seed} | more
    return evaluate_glue(
        model=None if model == EMBEDDED else model,
        data=options.data_root,
        tasks=plan.names,
        output=options.folder / "glue" / slug(f"{model} {what}"),
        resume=True,
        device=options.device,
        progress=options.progress,
        **given,
    )


def _printed(model: str, task: str, metric: str, method: str) -> float:
    row = TABLES_2_AND_6.get(table_model(model) or "", {}).get(family(method))
    return math.nan if row is None or (task, metric) not in ROWS else row[ROWS.index((task, metric))]


def _claims(model: str, differences: pd.DataFrame) -> list[Claim]:
    claims = []
    first = differences[(differences["against"] == "base") & differences["method"].str.startswith("softdecay")]
    for (task, metric), some in first.groupby(["task", "metric"], sort=False):
        row = some.iloc[0]
        spread = f"({row['low']:+.2f} to {row['high']:+.2f})" if row["n"] > 1 else "(no interval)"
        text = (
            f"{row['method']} changes {model} on {task}, {metric}, by {row['difference']:+.2f} points {spread}, seeds: "
            f"{row['n']}; the paper: gains, most of them on small sets."
        )
        claims.append(Claim(gains(row["low"], row["high"]), text, "Table 2", float(row["difference"])))
    return claims


def blocks(options: Options, plan: FineTuning, model: str) -> Made:
    """Footnote 3: SoftDecay in each block in turn, in training, one seed and one α."""
    import pandas as pd

    count, rows = number_of_blocks(options.input(model).load()), []
    for block in range(count):
        more = {"methods": ["softdecay"], "alphas": _QUICK_ALPHAS, "seeds": 1, "softdecay_block": block}
        for score in _evaluated(options, plan, model, f"block {block}", **more).scores:
            rows.append(
                {
                    "block": block,
                    "task": score.task,
                    "metric": score.metric,
                    "method": score.method,
                    "score": score.mean,
                }
            )
    frame = pd.DataFrame(rows)
    title = f"Scores × 100 with SoftDecay in one block or another, one seed, {model}"
    text = f"with one seed a difference between blocks of {model} is no proof; the paper saw none that was significant."
    return Made([Table("blocks", title, frame)], [Claim("note", text, "footnote 3")])


def sizes(options: Options, plan: FineTuning, model: str) -> Made:
    """Section 5.2 and Fig. 8: whether more training rows make rows of a sequence more alike (a smaller ΔL)."""
    import pandas as pd

    rows = []
    for share in _QUICK_SHARES if options.quick else _SHARES:
        for data in plan.data:
            whole = min(len(data.train), plan.training.train_rows or len(data.train))
            count = max(3, round(share * whole))
            one = FineTuning([data], plan.training)
            found = _evaluated(options, one, model, f"{count} rows", methods=(), seeds=1, train_rows=count)
            (run,) = [run for run in found.runs if run.task == data.task.name]
            reach = {f"reach {when}": run.spectra[when]["reach"] for when in ("pretrained", "trained")}
            score = next(score.mean for score in found.scores if score.task == data.task.name)
            rows.append({"task": data.task.name, "rows": count, "score": score} | reach)
    frame = pd.DataFrame(rows)
    title = f"ΔL (σ/σ₁ below which four fifths of the singular values lie) after training on so many rows, {model}"
    return Made([Table("sizes", title, frame)], _size_claims(model, frame), [sizes_picture(frame)])


def _size_claims(model: str, frame: pd.DataFrame) -> list[Claim]:
    claims = []
    for task, some in frame.groupby("task", sort=False):
        first, last = some.iloc[0], some.iloc[-1]
        falls = bool(last["reach trained"] < first["reach trained"])
        rho = float(stats.spearmanr(some["rows"], some["reach trained"]).statistic) if len(some) > 2 else math.nan
        text = (
            f"ΔL of {model} after training on {task} is {first['reach trained']:.3f} with {first['rows']:,} rows and "
            f"{last['reach trained']:.3f} with {last['rows']:,}; the paper: more training rows, more alike."
        )
        claims.append(Claim("agrees" if falls else "contradicts", text, "Section 5.2", rho, -1.0))
    return claims
