"""The options of studies: models and texts, how much of them to read, and where to write.

The command line is built from the fields, so that only what `--help` needs is imported at the top.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import MISSING, dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from isotrope.errors import InputError
from isotrope.options import ScanOptions, option
from isotrope.sources import EMBEDDED
from isotrope.sources.input import Input

if TYPE_CHECKING:
    from isotrope.findings import Findings, Reading
    from isotrope.layers import Layer
    from isotrope.pipeline import Progress
    from isotrope.sources.models.load import Loaded
    from isotrope.sources.source import Source

#: Texts of a quick study.
QUICK_TEXTS = 1_000

#: What a sequence of a sampled text is: a line, or a sentence of a line.
Unit: TypeAlias = Literal["lines", "sentences"]

#: What its tokens are: those of scikit-learn's CountVectorizer, or words between spaces.
Tokens: TypeAlias = Literal["scikit-learn", "words"]


def to_file_name(name: str) -> str:
    """Convert the name of a model or an experiment to a file name.

    >>> to_file_name("org/model-1.gguf")
    'model-1.gguf'
    """
    return re.sub(r"[^A-Za-z0-9._=-]+", "-", Path(name).name).strip("-.") or "part"


#: Names of folders that say nothing about the model in them.
_GENERIC = {"model", "models", "checkpoint", "final", "best", "onnx"}

#: How the names of ONNX files begin that do not say which model they are of.
_ONNX_PARTS = ("model", "encoder", "decoder")


def name_model(reference: str) -> str:
    """The short name of a model: the last part of its hub id or path that says something.

    ONNX files are often named after the part of a model that they hold: these get the name of their folder.

    >>> [name_model(one) for one in ("org/bert-tiny", "/data/minilm/model/", "smol.gguf", "embedded")]
    ['bert-tiny', 'minilm', 'smol.gguf', 'embedded']
    >>> [name_model(one) for one in ("/data/minilm/onnx/model.onnx", "flan-t5-small/encoder.onnx", "e5.onnx")]
    ['minilm', 'flan-t5-small encoder', 'e5.onnx']
    """
    path = Path(reference)
    if path.suffix == ".onnx" and len(path.parts) > 1 and path.stem.startswith(_ONNX_PARTS):
        part = "" if path.stem == "model" else f" {path.stem}"
        return name_model(str(path.parent)) + part
    parts = [part for part in path.parts if part != "/"]
    while len(parts) > 1 and parts[-1].lower() in _GENERIC:
        parts.pop()
    return parts[-1] if parts else reference


def _name_reference(model: str | Path | Loaded) -> str:
    """The hub id or path of a model, without a slash at its end; the name of a loaded model."""
    return (str(model).rstrip("/") or "/") if isinstance(model, str | Path) else model.name


@dataclass(frozen=True, kw_only=True)
class StudyOptions:
    """The options of a study.

    Args:
        output: the folder for tables, figures and runs.
        models: hub ids, folders, GGUF or ONNX files, or loaded models; none for the embedded model.
        text: what text models read, as for a scan.
        images: what image models read, as for a scan.
        sounds: what audio models read, as for a scan.
        data: the folder of the data sets; None for ISOTROPE_DATA.
        texts: the most texts to read; None for all, or for QUICK_TEXTS in a quick study.
        tasks: tasks of GLUE; None for all that the data holds, an empty list for none.
        quick: minutes instead of hours: less of everything.
        seed: the seed of all that is random.
        resume: continue a study that was stopped.
        batch_size: texts in a batch; None for the default of a scan.
        device: the device of the models.
        progress: called with what is being done.
        say: called, before the study starts, with an estimate of how long it takes.
    """

    output: str | Path = option(MISSING, "Folder to write.", flags=("--output", "-o"), type=Path, shown="a new one")
    models: Sequence[str | Path | Loaded] = option(
        (), "Hub ids, folders or GGUF files, with commas between.", type=str, shown="embedded all-MiniLM-L6-v2"
    )
    text: str | Path | Sequence[str] | None = option(None, "Text file, folder, dataset id.", shown="Python manual")
    images: str | Path | None = option(None, "For models of images: folder, dataset.", shown="none")
    sounds: str | Path | None = option(None, "For models of sounds: folder, dataset.", shown="none")
    data: str | Path | None = option(None, "Folder of the data sets.", type=Path, shown="$ISOTROPE_DATA")
    texts: int | None = option(None, "At most so many texts.", type=int, shown="all")
    tasks: Sequence[str] | None = option(None, "Of GLUE, e.g. rte,cola, or none.", shown="all that the data holds")
    quick: bool = option(False, "Minutes instead of hours: less of everything.")
    seed: int = option(0, "Of all that is drawn.")
    resume: bool = option(False, "Go on with a stopped study.")
    batch_size: int | None = Input.batch_size
    device: str = Input.device
    progress: Progress | None = None
    say: Callable[[str], None] | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.seed < 2**31:
            raise InputError(f"the seed is {self.seed}, expected 0 to {2**31 - 1:,}.")
        if self.texts is not None and self.texts < 1:
            raise InputError(f"the number of texts is {self.texts}, expected 1 or more.")
        if len({to_file_name(name) for name in self.names}) < max(len(self.models), 1):
            given = ", ".join(map(_name_reference, self.models))
            raise InputError(f"the models {given} do not all have names of their own; rename or drop some.")
        if self.text == "-":
            raise InputError("a study reads its text several times, standard input can be read once; give a file.")

    @property
    def folder(self) -> Path:
        return Path(self.output)

    @cached_property
    def _references(self) -> dict[str, str | Loaded]:
        """Hub ids, folders or files of the models, or loaded models, by their short names."""
        given = {_name_reference(model): model for model in self.models or [EMBEDDED]}
        return {name_model(name): name if isinstance(model, str | Path) else model for name, model in given.items()}

    @property
    def names(self) -> list[str]:
        """The short names of the models."""
        return list(self._references)

    def reference(self, model: str) -> str | Loaded | None:
        """The hub id, folder or file of a model, or the loaded model, as functions that read one take it.

        It is None for the embedded model.

        Args:
            model: a short name, or itself such a reference.
        """
        given = self._references.get(model, model)
        return None if isinstance(given, str) and given == EMBEDDED else given

    def path(self, model: str) -> str | None:
        """As `reference`, for experiments that load the model again and again; a loaded model is refused."""
        given = self.reference(model)
        if given is None or isinstance(given, str):
            return given
        raise InputError(f"{model} is a loaded model, and this study loads its models itself; give a hub id or folder.")

    def settings(self) -> dict[str, Any]:
        """The settings that must not change when a study is resumed."""
        return {
            "models": [_name_reference(model) for model in self._references.values()],
            "text": None if self.text is None else str(self.text) if isinstance(self.text, (str, Path)) else "a list",
            "data": None if self.data is None else str(self.data),
            "texts": self.texts,
            "quick": self.quick,
            "seed": self.seed,
        }

    @property
    def _most(self) -> int | None:
        return self.texts if self.texts is not None else QUICK_TEXTS if self.quick else None

    @cached_property
    def limited_text(self) -> Any:
        """The text, limited to the number of texts to read."""
        if self._most is None:
            return self.text
        from isotrope.sources.corpora.corpus import open_corpus

        return [text.text for text in islice(open_corpus(self.text), self._most)]

    def modality(self, model: str) -> str:
        """What a model reads; text, if it reads several things."""
        from isotrope.sources.models.load import can_read

        can = can_read(self.reference(model))
        return "text" if "text" in can else can[0]

    def _limit_media(self, model: str, modality: str) -> Any:
        """The images or sounds for a model, limited as the text is."""
        from isotrope.sources.media.corpus import open_media
        from isotrope.sources.models.modality import WORDS

        option = {"image": "images", "audio": "sounds"}[modality]
        given = getattr(self, option)
        if given is None:
            raise InputError(f"the model {model} reads {WORDS[modality]} and got none; name a folder with --{option}.")
        if self._most is None:
            return given
        return [item.data for item in islice(open_media(given, modality), self._most)]

    def input(self, model: str, **more: Any) -> Input:
        """The input of a model and the text."""
        given = {"text": self.limited_text, "device": self.device, "batch_size": self.batch_size} | more
        return Input(model=self.reference(model), **given)

    def source(self, model: str, **more: Any) -> Source:
        """The rows of a model over what it reads: text, images or sounds."""
        modality = self.modality(model)
        if modality != "text":
            more = {"text": self._limit_media(model, modality)} | more
        return self.input(model, **more).open()

    def scan(
        self, name: str, source: Source, measures: str, *, sample: int = 20_000, checkpoints: bool = True
    ) -> Findings:
        """Scan into the folder `runs/NAME` of the study, or resume such a scan from its checkpoints.

        All statistics are kept: later experiments of the study are computed from them.
        """
        from isotrope.readings.selected_measures import resolve_measures
        from isotrope.runs.run import Run
        from isotrope.scanner import scan_source

        run = Run(self.run_folder(name))
        run.prepare(resume=True)
        run.remove_leftovers()  # under the lock of the study
        selected = resolve_measures(measures, sample=sample, seed=self.seed)
        seconds = 60.0 if checkpoints else math.inf
        options = ScanOptions(resume=True, keep="all", checkpoint_every=seconds)
        return scan_source(source, selected, run, options, self.progress)

    def announce(self, measures: str, times: float, *, sample: int = 20_000, **reading: Any) -> None:
        """Estimate how long the scans take from the first batches of each model, and say so.

        All models and the text are opened even if nobody listens: what cannot be read raises an error here.

        Args:
            measures: the measures of a scan.
            times: the number of scans of each model.
            sample: the sampled rows of each layer.
            reading: further arguments of the input.
        """
        from isotrope.plan import plan
        from isotrope.readings.cost import format_duration
        from isotrope.readings.selected_measures import resolve_measures

        if self.resume:
            return
        wanted = resolve_measures(measures, sample=sample, seed=self.seed)
        sources = (self.source(model, **reading) for model in self.names)
        if self.say is None:
            for _ in sources:
                pass
            return
        seconds = times * sum(plan(source, wanted.measures, wanted.wanted).seconds for source in sources)
        self.say(f"reading and measuring will take about {format_duration(seconds)}; what is done stays done")

    def run_folder(self, name: str) -> Path:
        return self.folder / "runs" / to_file_name(name)

    @property
    def data_root(self) -> str | Path | None:
        """The folder of the data sets, None where none is named."""
        return self.data if self.data is not None else os.environ.get("ISOTROPE_DATA")

    def data_folder(self, name: str) -> Path:
        """A folder of the data: `data` itself, or the one of this name in it or in ISOTROPE_DATA."""
        root = self.data_root
        if root is None:
            raise InputError(f"the study needs the folder {name} of the data sets; name it with --data.")
        below = Path(root) / name
        found = below if below.is_dir() else Path(root)
        if not found.is_dir():
            raise InputError(f"there is no folder {str(root)!r}; name that of the data sets with --data.")
        return found


def iterate_layers(findings: Findings) -> Iterator[tuple[Layer, dict[str, Reading]]]:
    """Give each layer with its readings over all rows, by measure."""
    for layer in findings.layers:
        yield layer, {r.measure: r for r in findings.readings if r.layer == layer and r.group is None}
