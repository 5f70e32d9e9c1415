"""A calibration: what cosines of one space mean, small enough to keep beside an index."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotrope.errors import InputError, StoreError
from isotrope.formats.json import to_plain
from isotrope.search.background import ARRAYS, Background, CosineThreshold
from isotrope.search.labelled_scores import CertifiedThreshold
from isotrope.search.separation import Separation
from isotrope.statistics.cutoff_transfer import Cutoff
from isotrope.storage.files import add_checksum, has_valid_checksum, read_document, write_text

#: What a saved calibration says that it is, and the version of its layout.
_KIND, _VERSION = "isotrope calibration", 1


@dataclass(frozen=True, eq=False)
class Calibration:
    """What cosines of one space mean. Made by `isotrope.calibrate`.

    Attributes:
        background: Cosines of random pairs.
        asked: The threshold for the false-accept rate that was asked for.
        documents: How many documents one query is compared with.
        separation: Whether best scores separate from the background, None where there are too few documents.
        certified: Thresholds for a wanted precision or recall.
        labelled: Curves of labelled pairs, None without labels.
        transfer: A cut-off carried to another space, None where none was asked for.
        made_from: Rows, model or files, seed, date and version that it was made from.
    """

    background: Background
    asked: CosineThreshold
    documents: int
    separation: Separation | None = None
    certified: tuple[CertifiedThreshold, ...] = ()
    labelled: Mapping[str, Any] | None = None
    transfer: Cutoff | None = None
    made_from: Mapping[str, Any] = field(default_factory=dict)

    def threshold(self, false_accept: float = 1e-4, *, documents: int = 1) -> CosineThreshold:
        """The cosine that a share of random pairs reaches, with its interval.

        Args:
            false_accept: the chance of a false accept, for one comparison or for all documents.
            documents: how many documents one query is compared with: the chance p of one comparison is then such that
                1 − (1 − p)^documents is the false-accept rate.

        Raises:
            InputError: if the rows do not support so small a rate.
        """
        if documents < 1:
            raise InputError(f"got {documents} documents, expected at least one.")
        if documents > 1 and 0.0 < false_accept < 1.0:
            false_accept = -math.expm1(math.log1p(-false_accept) / documents)
        return self.background.find_threshold(false_accept)

    def percentile(self, cosine: Any) -> Any:
        """How many of 100 random pairs lie below a cosine, or each of an array of cosines."""
        return _like(cosine, 100.0 * (1.0 - self.background.compute_share(cosine)))

    def probability(self, cosine: Any) -> Any:
        """The probability that two texts of this cosine match, if matches are as frequent as in the labelled pairs."""
        if self.labelled is None:
            raise InputError("a probability needs labels; calibrate with pairs, or with queries and qrels.")
        curve = self.labelled["probability"]
        return _like(cosine, np.interp(np.asarray(cosine, dtype=np.float64), curve["cosines"], curve["probabilities"]))

    @property
    def query_false_accept(self) -> float:
        """The chance that a query without a match gets at least one false accept among all documents: 1 − (1 − p)^N."""
        return -math.expm1(self.documents * math.log1p(-self.asked.false_accept))

    def to_dict(self) -> dict[str, Any]:
        """Plain data without NaN."""
        plain: dict[str, Any] = to_plain(
            {
                "kind": _KIND,
                "version": _VERSION,
                "made_from": self.made_from,
                "threshold": self.asked.to_dict(),
                "query": {"documents": self.documents, "false_accept": self.query_false_accept},
                "separation": None if self.separation is None else self.separation.to_dict(),
                "certified": [asdict(each) for each in self.certified],
                "labelled": self.labelled,
                "transfer": self.transfer,
                "smallest_false_accept": self.background.smallest_rate,
                "background": self.background.to_dict(),
            }
        )
        return plain

    def save(self, path: str | Path) -> None:
        """Write the calibration as one JSON file, whole or not at all."""
        write_text(Path(path), add_checksum(self.to_dict()) + "\n")

    @classmethod
    def load(cls, path: str | Path) -> Calibration:
        """Read a calibration that `save` wrote."""
        damaged = StoreError(f"{str(path)!r} is no calibration, or is damaged; calibrate again.")
        document = read_document(Path(path), damaged)
        if document.get("kind") != _KIND:
            raise damaged
        if document.get("version") != _VERSION:
            raise StoreError(
                f"{str(path)!r} is a calibration of version {document.get('version')!r}, expected {_VERSION}; "
                "read it with the version of isotrope that wrote it, or calibrate again."
            )
        if not has_valid_checksum(document):
            raise damaged
        try:
            return cls._from_document(document)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise damaged from error

    @classmethod
    def _from_document(cls, document: Mapping[str, Any]) -> Calibration:
        separation = dict(document["separation"] or {})
        separation.pop("separates", None)
        transfer = document["transfer"]
        return cls(
            background=_read_background(document["background"]),
            asked=CosineThreshold(**document["threshold"]),
            documents=int(document["query"]["documents"]),
            separation=Separation(**separation) if separation else None,
            certified=tuple(CertifiedThreshold(**each) for each in document["certified"]),
            labelled=document["labelled"],
            transfer=None if transfer is None else Cutoff(**transfer),
            made_from=document["made_from"],
        )


def _read_background(saved: Mapping[str, Any]) -> Background:
    arrays: dict[str, NDArray[np.float64]] = {name: np.array(saved[name], dtype=np.float64) for name in ARRAYS}
    sizes = {name: len(values) for name, values in arrays.items()}
    falling = all((np.diff(values) <= 0.0).all() for name, values in arrays.items() if name in ("cosines", "largest"))
    if (
        sizes["cosines"] != sizes["shares"]
        or sizes["rates"] != sizes["effective"]
        or not (falling and all(sizes.values()))
    ):
        raise ValueError("the arrays of the background do not belong together")
    return Background(pairs=int(saved["pairs"]), rows=int(saved["rows"]), seed=int(saved["seed"]), **arrays)


def _like(asked: Any, values: NDArray[np.float64]) -> Any:
    """A number for a number, an array for an array."""
    return float(values) if np.ndim(asked) == 0 else values
