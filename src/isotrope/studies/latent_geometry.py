"""Whether the shape of a space foretells GLUE: the protocol of Marbut, Chandler and Wheeler."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from isotrope.errors import InputError
from isotrope.sources.corpora import open_corpus
from isotrope.sources.models import Loaded
from isotrope.studies.carrying_out import Made, Task, carry_out, finished
from isotrope.studies.glue_prediction import CORPUS, ROWS, last_layer
from isotrope.studies.glue_regression import pearson
from isotrope.studies.options import Options
from isotrope.studies.published.latent_geometry import TABLE_2
from isotrope.studies.published_models import correlations, read_models, regressions, table_2
from isotrope.studies.representative_sample import SEQUENCES, Representative, representative, sequences
from isotrope.studies.result import Claim, Study, Table
from isotrope.studies.space_measures import space_measures
from isotrope.studies.weight_noise import noisy, noisy_rows, shuffled_embeddings, untrained

if TYPE_CHECKING:
    import pandas as pd

PAPER = "Marbut, Chandler and Wheeler, Exploring the Latent Geometry of Transformer Models (GLUE from geometry)"

#: Shares of noise of the study, and of a quick one.
ALPHAS = (0.0, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.35, 0.5, 1.0)
_QUICK_ALPHAS = (0.0, 0.05, 0.2, 1.0)

#: Sequences and rows of a quick study.
_QUICK_SEQUENCES, _QUICK_ROWS = 300, 3_000

#: Gives samples of the text, drawn once.
Draw: TypeAlias = Callable[[], list[Representative]]

#: Scores of a model by task, shares of 1, given a loaded model and a seed: a fine-tuning on GLUE tasks.
Score: TypeAlias = Callable[[Loaded, int], Mapping[str, float]]


def latent_geometry(
    *,
    output: str | Path,
    models: Sequence[str | Path] = (),
    text: str | Path | Sequence[str] | None = None,
    data: str | Path | None = None,
    alphas: Sequence[float] | None = None,
    seeds: int = 3,
    score: Score | None = None,
    quick: bool = False,
    seed: int = 0,
    batch_size: int | None = None,
    device: str = "auto",
    resume: bool = False,
    progress: Any = None,
    say: Any = None,
) -> Study:
    """Table 2 from the authors' files, and the models with more and more noise on their weights, measured again.

    data: a folder with `latent_geometry/`. text: of the sequences. alphas: shares of noise; seeds: so many from `seed`
    on, of which the median is shown. score: gives GLUE scores of each noisy model; without it there are only measures.
    """
    chosen = tuple(alphas) if alphas is not None else _QUICK_ALPHAS if quick else ALPHAS
    if seeds < 1:
        raise InputError(f"got {seeds} seeds, expected at least one.")
    options = Options.among(locals())
    folder = options.data_folder("latent_geometry")
    drawn = cache(partial(_drawn, options))
    tasks = [
        Task("published table 2", lambda: table_2(read_models(folder))),
        Task("published regressions", lambda: regressions(read_models(folder))),
        Task("published correlations", lambda: correlations(read_models(folder))),
        Task("sample", partial(_sample, drawn)),
    ]
    cases = _cases(chosen, 1 if quick else seeds, seed)
    for model in options.names:
        tasks += [
            Task(_name(model, *case), partial(_measured, options, drawn, model, *case, score=score)) for case in cases
        ]
        names = [_name(model, *case) for case in cases]
        tasks.append(Task(f"{model} noise", partial(_joined, options, model, names)))
    settings = options.settings(alphas=list(chosen), seeds=seeds, scored=score is not None)
    first = partial(options.announce, ",".join(TABLE_2), len(cases), sample=_QUICK_ROWS if quick else ROWS, layers="-1")
    return carry_out(
        "latent-geometry", PAPER, tasks, settings, options.folder, resume=resume, progress=progress, first=first
    )


def _cases(alphas: Sequence[float], seeds: int, first: int) -> list[tuple[str, float, int]]:
    """Kind of change, share of noise and seed: noise on weights and on rows, shuffled embeddings, untrained."""
    numbers = range(first, first + seeds)
    made = [("weights", alpha, n) for alpha in alphas for n in (numbers if alpha else numbers[:1])]
    made += [("rows", alpha, first) for alpha in alphas if alpha]
    return [*made, ("shuffled embeddings", math.nan, first), ("untrained", math.nan, first)]


def _name(model: str, kind: str, alpha: float, seed: int) -> str:
    share = "" if alpha != alpha else f" {alpha:g}"
    return f"{model} {kind}{share} seed {seed}"


def _drawn(options: Options) -> list[Representative]:
    """Ten samples of the text's sequences; without a text that of WikiText-2, where the data has it."""
    root, text = options.data_root, options.text
    if text is None and root is not None and (Path(root) / CORPUS).is_file():
        text = Path(root) / CORPUS
    every = sequences(one.text for one in open_corpus(text))
    count = min(_QUICK_SEQUENCES if options.quick else SEQUENCES, len(every))
    return representative(every, count, seed=options.seed)


def _sample(drawn: Draw) -> Made:
    """Fig. 2: how near ten samples are to the corpus."""
    import pandas as pd

    samples = drawn()
    count = len(samples[0].texts)
    rows = [{"words": s.words, "pairs": s.pairs, "lengths": s.lengths, "all": s.distance} for s in samples]
    title = f"Total variation distance of ten samples of {count:,} sequences to all of the text (Fig. 2)"
    text = f"the samples are of {count:,} sequences; the paper draws {SEQUENCES:,}."
    claims = [Claim("note", text, "Section 3.2")] if count != SEQUENCES else []
    return Made([Table("sample", title, pd.DataFrame(rows))], claims)


def _measured(
    options: Options, drawn: Draw, model: str, kind: str, alpha: float, seed: int, *, score: Score | None
) -> Made:
    """One changed model: its measures and, where there is a way to score it, its GLUE scores."""
    import pandas as pd

    reading = options.input(model, layers="-1")
    loaded, told = reading.load(), options.progress or (lambda *_: None)
    changed = {
        "weights": lambda: noisy(loaded, alpha, seed),
        "rows": lambda: loaded,
        "shuffled embeddings": lambda: shuffled_embeddings(loaded, seed),
        "untrained": lambda: untrained(loaded, seed),
    }[kind]()
    rows = last_layer(reading, changed, drawn()[0].texts, _QUICK_ROWS if options.quick else ROWS, told)
    if kind == "rows":
        rows = noisy_rows(rows, alpha, seed)
    row: dict[str, Any] = {"model": model, "kind": kind, "alpha": alpha, "seed": seed, "n": len(rows)}
    row |= space_measures(rows, seed=options.seed)
    if score is not None and kind != "rows":
        scores = score(changed, seed)
        row |= {f"score_{name}": value for name, value in scores.items()}
        row["glue"] = sum(scores.values()) / len(scores)
    return Made([Table("measured", "One changed model: its measures and scores", pd.DataFrame([row]))])


def _joined(options: Options, model: str, names: Sequence[str]) -> Made:
    """All changed models of one, the median over seeds, and r of each measure with α and with the scores."""
    import pandas as pd

    every = pd.concat([finished(options.folder, name).tables[0].frame for name in names], ignore_index=True)
    weights = every[every["kind"] == "weights"]
    numbers = [name for name in (*TABLE_2, "glue") if name in every]
    median = weights.groupby("alpha")[numbers].median().reset_index()
    tables = [
        Table("models", f"Changed models of {model}: every measure", every),
        Table("medians", f"Medians over seeds by share of noise on the weights, {model}", median),
        Table("with_alpha", f"Rank correlation of each measure with the share of noise, {model}", _with_alpha(weights)),
    ]
    if "glue" in every:
        rows = [{"measure": name} | pearson(weights, name) for name in TABLE_2]
        tables.append(
            Table("with_scores", f"Pearson's r of each measure with the mean score, {model}", pd.DataFrame(rows))
        )
    return Made(tables)


def _with_alpha(weights: pd.DataFrame) -> pd.DataFrame:
    import pandas as pd
    from scipy import stats

    rows = []
    for name in TABLE_2:
        usable = weights.dropna(subset=[name])
        varied = len(usable) > 2 and usable[name].nunique() > 1 and usable["alpha"].nunique() > 1
        rho = float(stats.spearmanr(usable["alpha"], usable[name]).statistic) if varied else math.nan
        rows.append({"measure": name, "rank correlation": rho, "n": len(usable)})
    frame: pd.DataFrame = pd.DataFrame(rows)
    return frame
