"""What every study is asked: which models and texts, how much of them, and where to write."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

from isotrope.errors import InputError
from isotrope.findings import Findings
from isotrope.pipeline import Progress, choose, scan_source
from isotrope.plan import plan
from isotrope.readings.cost import duration
from isotrope.runs.run import Run
from isotrope.sources import EMBEDDED
from isotrope.sources.corpora.corpus import open_corpus
from isotrope.sources.input import Input
from isotrope.sources.media.corpus import open_media
from isotrope.sources.models.load import can_read
from isotrope.sources.models.modality import WORDS
from isotrope.sources.source import Source
from isotrope.studies.runner import slug

#: Texts of a quick study.
QUICK_TEXTS = 1_000


@dataclass(frozen=True, kw_only=True)
class Options:
    """models: hub ids, folders or GGUF files, none for the embedded one. text: as for a scan. data: folder of sets.

    images, sounds: for models that read those, as for a scan.

    texts: at most so many of the text's; None for all, or for QUICK_TEXTS in a quick study. say: is told about how long
    the study will take, before it starts.
    """

    output: str | Path
    models: Sequence[str | Path] = ()
    text: str | Path | Sequence[str] | None = None
    images: str | Path | None = None
    sounds: str | Path | None = None
    data: str | Path | None = None
    texts: int | None = None
    quick: bool = False
    seed: int = 0
    batch_size: int | None = None
    device: str = "auto"
    resume: bool = False
    progress: Progress | None = None
    say: Callable[[str], None] | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.seed < 2**31:
            raise InputError(f"the seed is {self.seed}, expected 0 to {2**31 - 1:,}.")
        if self.texts is not None and self.texts < 1:
            raise InputError(f"the number of texts is {self.texts}, expected 1 or more.")
        if len({slug(name) for name in self.names}) < len(self.names):
            raise InputError(
                f"the models {', '.join(self.names)} do not all have names of their own; rename or drop some."
            )
        if self.text == "-":
            raise InputError("a study reads its text several times, standard input can be read once; give a file.")

    @classmethod
    def among(cls, given: Mapping[str, Any]) -> Options:
        """The options that are among the given arguments of a function."""
        return cls(**{f.name: given[f.name] for f in fields(cls) if f.name in given})

    @property
    def folder(self) -> Path:
        return Path(self.output)

    @property
    def names(self) -> list[str]:
        """The models' names, without the slash that may end a folder's; the embedded one has its own."""
        return [str(model).rstrip("/") or "/" for model in self.models] or [EMBEDDED]

    def settings(self, **more: Any) -> dict[str, Any]:
        """What must be the same for a study to be continued."""
        return {
            "models": self.names,
            "text": None if self.text is None else str(self.text) if isinstance(self.text, (str, Path)) else "a list",
            "data": None if self.data is None else str(self.data),
            "texts": self.texts,
            "quick": self.quick,
            "seed": self.seed,
        } | more

    @property
    def _most(self) -> int | None:
        return self.texts if self.texts is not None else QUICK_TEXTS if self.quick else None

    @cached_property
    def reading(self) -> Any:
        """The text, cut where it is to be."""
        if self._most is None:
            return self.text
        return [text.text for text in islice(open_corpus(self.text), self._most)]

    def modality(self, model: str) -> str:
        """What a model reads; one that reads several things gets text."""
        can = can_read(None if model == EMBEDDED else model)
        return "text" if "text" in can else can[0]

    def _media(self, model: str, modality: str) -> Any:
        """The images or sounds for a model, cut as the text is."""
        option = {"image": "images", "audio": "sounds"}[modality]
        given = getattr(self, option)
        if given is None:
            raise InputError(f"the model {model} reads {WORDS[modality]} and got none; name a folder with --{option}.")
        if self._most is None:
            return given
        return [item.data for item in islice(open_media(given, modality), self._most)]

    def input(self, model: str, **more: Any) -> Input:
        """How a model's rows over the text are read."""
        given = {"text": self.reading, "device": self.device, "batch_size": self.batch_size} | more
        return Input(model=None if model == EMBEDDED else model, **given)

    def source(self, model: str, **more: Any) -> Source:
        """The rows that a model makes of what it reads; for scans of layers the one place to ask."""
        modality = self.modality(model)
        if modality != "text":
            more = {"text": self._media(model, modality)} | more
        return self.input(model, **more).open()

    def scan(
        self, name: str, source: Source, measures: str, *, sample: int = 20_000, checkpoints: bool = True
    ) -> Findings:
        """A scan into the study's folder `runs/NAME`, which goes on where it was stopped if it has checkpoints.

        All statistics are kept: the study's later parts are worked out from them.
        """
        run = Run(self.run_folder(name))
        run.prepare(resume=True)
        run.remove_leftovers()  # under the lock of the study
        options = choose(measures, sample=sample, seed=self.seed)
        every = 60.0 if checkpoints else math.inf
        return scan_source(
            source, options, run=run, resume=True, keep="all", checkpoint_every=every, progress=self.progress
        )

    def announce(self, measures: str, times: float, *, sample: int = 20_000, **reading: Any) -> None:
        """Say about how long scans take, so many times one of each model, by the models' first batches.

        All models and the text are opened for it, whether or not anybody listens: what cannot be read is refused here.
        """
        if self.resume:
            return
        wanted = choose(measures, sample=sample, seed=self.seed)
        sources = (self.source(model, **reading) for model in self.names)
        if self.say is None:
            for _ in sources:
                pass
            return
        seconds = times * sum(plan(source, wanted.measures, wanted.wanted).seconds for source in sources)
        self.say(f"reading and measuring will take about {duration(seconds)}; what is done stays done")

    def run_folder(self, name: str) -> Path:
        return self.folder / "runs" / slug(name)

    @property
    def data_root(self) -> str | Path | None:
        """The folder of the data sets, None where none is named."""
        return self.data if self.data is not None else os.environ.get("ISOTROPE_DATA")

    def data_folder(self, name: str) -> Path:
        """A folder of the data: `data` itself, or the one of this name in it or in ISOTROPE_DATA."""
        root = self.data_root
        if root is None:
            raise InputError(f"the study needs the folder {name} of the data sets; name it with --data.")
        place = Path(root) / name
        found = place if place.is_dir() else Path(root)
        if not found.is_dir():
            raise InputError(f"there is no folder {str(root)!r}; name that of the data sets with --data.")
        return found
