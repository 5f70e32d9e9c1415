"""Token uniformity, its repair and what that gains: the protocol of Yan et al. 2022 (SoftDecay)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from isotrope.errors import InputError
from isotrope.evaluation.pairs import PROTOCOLS
from isotrope.finetuning.settings import Training
from isotrope.sources.corpora.corpus import open_corpus
from isotrope.sources.models.onnx import check_has_weights, is_graph
from isotrope.studies.finetuning_plan import FineTuning
from isotrope.studies.options import StudyOptions
from isotrope.studies.result import Claim, Study
from isotrope.studies.runner import Results, repeat_for_models, run_study
from isotrope.studies.uniformity import simcse, training
from isotrope.studies.uniformity.ablations import score_other_blocks, score_positions, time_svd
from isotrope.studies.uniformity.all_models import join_models
from isotrope.studies.uniformity.case_study import study_bound
from isotrope.studies.uniformity.cls_uniformity import tabulate_cls_uniformity
from isotrope.studies.uniformity.disabled_parts import measure_without_parts
from isotrope.studies.uniformity.full_rank import measure_rank
from isotrope.studies.uniformity.generation import compare_generation
from isotrope.studies.uniformity.layers import BY_LAYER, measure_layers
from isotrope.studies.uniformity.published import MISPRINTS
from isotrope.studies.uniformity.rank_bound import measure_bound
from isotrope.studies.uniformity.repaired import measure_repairs
from isotrope.studies.uniformity.sentence_spectra import measure_sentence_spectra
from isotrope.studies.uniformity.sts import score_sts
from isotrope.studies.uniformity.transformation import study_transformation

PAPER = "Yan et al. 2022, Addressing Token Uniformity in Transformers via Singular Value Transformation"


def uniformity(
    *,
    output: str | Path,
    data: str | Path | None = None,
    texts: int | None = None,
    tasks: Sequence[str] | None = None,
    seeds: int = 5,
    train_rows: int | None = None,
    epochs: int = Training.epochs,
    learning_rate: float = Training.learning_rate,
    fit_text: str | Path | Sequence[str] | None = None,
    softdecay_form: str = Training.softdecay_form,
    pretraining_text: str | None = None,
    pretraining_epochs: int = Training.pretraining_epochs,
    simcse_text: str | None = None,
    simcse_triplets: str | None = None,
    **common: Any,
) -> Study:
    """Spectra and uniformity by layer, the theorem's bound, STS by both protocols, repairs, GLUE, ablations.

    Args:
        output: the folder for tables, figures and runs.
        data: the folder of the STS sets and of GLUE; without it those experiments are left out.
        texts: the most texts to read.
        tasks: tasks of GLUE; None for all that the data holds, an empty list for none.
        seeds: the number of seeds of fine-tuning.
        train_rows: the most training rows of a task.
        epochs: the most epochs of fine-tuning.
        learning_rate: of fine-tuning.
        fit_text: a text that flow and whitening are fitted on in rows of their own of Table 1, as for a scan: the paper
            fits them on sentences of NLI. A file whose name holds "nli" gives the rows their printed names.
        softdecay_form, pretraining_text, pretraining_epochs: of fine-tuning, see `evaluate_glue`.
        simcse_text: a text of one sentence a line that SimCSE learns from; None for the sentences of the study's text.
        simcse_triplets: a file of NLI triplets that supervised SimCSE learns from, with the columns sent0, sent1 and
            hard_neg; None for those of MNLI, where the data holds it.
        common: the options of every study, see `isotrope.studies.options.StudyOptions`. A quick study reads STS-B alone
            and one task, with fewer repairs and methods.

    References:
        Yan et al. 2022, Addressing Token Uniformity in Transformers via Singular Value Transformation.
    """
    options = StudyOptions(output=output, data=data, texts=texts, tasks=tasks, **common)
    if seeds < 1:
        raise InputError(f"got {seeds} seeds, expected at least one.")
    _check_text(fit_text)
    trained = Training(
        train_rows=train_rows,
        epochs=epochs,
        learning_rate=learning_rate,
        softdecay_form=softdecay_form,
        pretraining_text=pretraining_text,
        pretraining_epochs=pretraining_epochs,
    )
    plan = FineTuning.plan(options, trained)
    contrastive = {"simcse": simcse_text, "simcse-nli": simcse_triplets}
    experiments: dict[str, Callable[[], Results]] = {
        "misprints": lambda: Results((), [Claim("misprint", text) for text in MISPRINTS]),
        "printed Table 5": lambda: Results((), simcse.judge_printed()),
        "transformation": study_transformation,
        "case study": partial(study_bound, options),
    }
    experiments |= repeat_for_models(options, _list_experiments(options, plan, seeds, fit_text, contrastive))
    if options.data_root is not None:
        experiments["all models"] = partial(join_models, options)
    lacking = [name for name, there in (("STS", options.data_root is not None), ("GLUE", bool(plan.data))) if not there]
    if lacking:
        text = f"without data or tasks (--data, --tasks) there are no tables of {' and '.join(lacking)}."
        experiments["without data"] = lambda: Results.note(text, "Tables 1 and 2")
    # Those that are not named are left out, so that a study of version 0.1 can be resumed.
    named = {f"trained by {method}": source for method, source in contrastive.items() if source is not None}
    settings = {"seeds": seeds, "fit_text": _describe_text(fit_text)} | plan.settings() | named
    return run_study("uniformity", PAPER, experiments, options, settings, partial(_announce, options, plan, seeds))


def _list_experiments(
    options: StudyOptions,
    plan: FineTuning,
    seeds: int,
    fit_text: str | Path | Sequence[str] | None,
    contrastive: Mapping[str, str | None],
) -> dict[str, Callable[..., Results]]:
    """The experiments with each model that the data allow; contrastive: what SimCSE learns from, by method."""
    experiments: dict[str, Callable[..., Results]] = {
        "layers": measure_layers,
        "bound": partial(measure_bound, measures=",".join(BY_LAYER)),
        "rank": partial(measure_rank, measures=",".join(BY_LAYER)),
        "parts off": measure_without_parts,
        "cls": tabulate_cls_uniformity,
        "svd time": _explain_refusal(time_svd, "footnote 2"),
        "generation": compare_generation,
    }
    if options.data_root is not None:
        score = partial(score_sts, fit_text=fit_text)
        experiments |= {f"sts {protocol}": partial(score, protocol=protocol) for protocol in PROTOCOLS}
        experiments |= {"repaired": measure_repairs, "sentence spectra": measure_sentence_spectra}
        experiments["other blocks"] = score_other_blocks
        for method, source in contrastive.items():
            run = partial(simcse.score_simcse, method=method, seeds=seeds, source=source)
            experiments[method] = _explain_refusal(run, "Table 5")
    if plan.data:
        how: dict[str, Any] = {"plan": plan, "seeds": seeds}
        experiments["positions"] = _explain_refusal(partial(score_positions, plan=plan), "Section 1, PoWER-BERT")
        experiments["glue"] = _explain_refusal(partial(training.compare_methods, **how), "Table 2")
        experiments["glue sizes"] = _explain_refusal(partial(training.compare_sizes, **how), "Fig. 8")
        if not options.quick:
            experiments["glue blocks"] = _explain_refusal(partial(training.compare_blocks, **how), "footnote 3")
    return experiments


def _explain_refusal(run: Callable[..., Results], where: str) -> Callable[..., Results]:
    """Make a note of it where an experiment runs or trains a network and a model has none, such as an ONNX file.

    One model of several must not end a study.

    Args:
        run: the experiment, a function of the options and a model.
        where: the part of the paper that stays open.
    """

    def run_or_explain(options: StudyOptions, model: str) -> Results:
        try:
            check_has_weights(options.path(model), "this experiment")
            return run(options, model)
        except InputError as error:
            return Results.note(f"{model} is left out here: {error}", where)

    return run_or_explain


def _check_text(text: str | Path | Sequence[str] | None) -> None:
    """Raise an error for a text that cannot be read, or not several times."""
    if text == "-":
        raise InputError("repairs are fitted several times, standard input can be read once; give a file.")
    if text is not None:
        open_corpus(text)


def _describe_text(text: str | Path | Sequence[str] | None) -> str | None:
    """A text as a setting."""
    return None if text is None else str(text) if isinstance(text, (str, Path)) else "a list"


def _announce(options: StudyOptions, plan: FineTuning, seeds: int) -> None:
    """Say how long reading, measuring and fine-tuning will take."""
    options.announce(",".join(BY_LAYER), 5.0)  # once whole, and with parts disabled
    times = training.count_runs(options) * (1 if options.quick else seeds) + 2
    trained = [model for model in options.names if not is_graph(options.path(model))]
    plan.announce(lambda model: options.input(model).load(), dict.fromkeys(trained, times))
