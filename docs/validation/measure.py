"""Tries the advice on every layer of a model and writes what came out as JSON, for docs/validation/page.py.

python docs/validation/measure.py NAME FOLDER --data DIR --text wiki=FILE -o docs/validation/NAME.json

DIR holds sts-b-test.csv and the like; a text is a file with a sentence a line. FOLDER is a model's, a GGUF file, or -
for the embedded one. --noise A adds noise of A times its own deviation to each weight matrix: models of a worse kind.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy import stats

from isotrope.advice.advice import Advice
from isotrope.advice.advise_model import advise_model
from isotrope.advice.candidate import cosines
from isotrope.advice.spaces import Space, Spaces, encode_spaces
from isotrope.evaluation.pairs import read_sets
from isotrope.repairs import AllButTheTop, SoftDecay, Whitening
from isotrope.sources.corpora.corpus import open_corpus
from isotrope.sources.input import Input
from isotrope.sources.models.load import Loaded
from isotrope.sources.text.token_weights import TokenWeights

#: What the advice might have chosen instead, fitted on the text alone.
OTHERS: dict[str, Any] = {
    "softdecay -0.2": lambda: SoftDecay(-0.2, "paper", tolerance=1e-5),
    "softdecay -0.6": lambda: SoftDecay(-0.6, "paper", tolerance=1e-5),
    "whitening 0.5": lambda: Whitening(strength=0.5, tolerance=1e-5),
    "whitening 1": lambda: Whitening(tolerance=1e-5),
    "all-but-the-top 3": lambda: AllButTheTop(3),
}

#: Sentences that other repairs are fitted on, at most.
MOST = 2_000

Sets = Mapping[str, Sequence[tuple[str, str, float]]]


class Cache:
    """Rows of texts in all layers of interest: each text is encoded once for each pooling and weighting."""

    def __init__(self, layers: Sequence[int]) -> None:
        self.layers = layers
        self.known: dict[Any, tuple[dict[str, int], dict[Space, np.ndarray]]] = {}

    def __call__(
        self,
        reading: Input,
        loaded: Loaded,
        texts: Iterable[str],
        weights: TokenWeights | None = None,
        tell: Any = None,
    ) -> Spaces:
        key = (reading.pooling, weights.describe()["sha256"] if weights else None)
        place, rows = self.known.setdefault(key, ({}, {}))
        missing = [text for text in dict.fromkeys(texts) if text not in place]
        if missing:
            found = encode_spaces(replace(reading, layers=",".join(map(str, self.layers))), loaded, missing, weights)
            shift = len(place)
            place.update({text: shift + i for text, i in found.numbers.items()})
            for space, part in found.rows.items():
                rows[space] = np.concatenate([rows[space], part]) if space in rows else part
        kinds = dict.fromkeys(space.weighted for space in rows)
        mixes = str(reading.layers).split(",")
        return Spaces(place, {Space(mix, kind): self._mix(rows, mix, kind) for kind in kinds for mix in mixes})

    def _mix(self, rows: Mapping[Space, np.ndarray], mix: str, kind: bool) -> np.ndarray:
        parts = [rows[Space(layer, kind)] for layer in mix.split("+")]
        return parts[0] if len(parts) == 1 else np.mean(parts, axis=0)


def scores(sets: Sets, spaces: Spaces, space: Space, repair: Any) -> dict[str, float]:
    """Spearman × 100 of each set's cosines with what people said."""
    done = {}
    for name, pairs in sets.items():
        rows = [spaces.of(space, [pair[side] for pair in pairs]) for side in (0, 1)]
        firsts, seconds = rows if repair is None else map(repair.transform, rows)
        done[name] = 100 * float(stats.spearmanr(cosines(firsts, seconds), [pair[2] for pair in pairs]).statistic)
    return done


def tried(advice: Advice, sets: Sets, text: Sequence[str], cache: Cache, loaded: Loaded, asked: str) -> dict[str, Any]:
    """The advice on one space, and what it, no repair and other repairs score."""
    every = [sentence for pairs in sets.values() for pair in pairs for sentence in pair[:2]]
    reading = replace(advice.reading, layers=asked, token_weights=None)
    spaces = cache(reading, loaded, [*every, *text[:MOST]], advice.token_weights)
    rows = spaces.of(Space(asked), text[:MOST])
    found = {"none": scores(sets, spaces, Space(asked), None)}
    for name, make in OTHERS.items():
        found[name] = scores(sets, spaces, Space(asked), make().fit(rows))
    if advice.repair is not None:
        advised = Space(asked, advice.token_weights is not None)
        found["advised"] = scores(sets, spaces, advised, advice.repair)
    return {
        "layers": asked,
        "pooling": advice.pooling,
        "advice": _short(advice),
        "scores": found | ({} if "advised" in found else {"advised": found["none"]}),
    }


def _short(advice: Advice) -> dict[str, Any]:
    """What was advised and by what evidence, without all that was tried."""
    first = advice.to_dict()["tried"][0]
    return {
        "advice": "none" if advice.repair is None else advice.repair.name,
        "weighted": advice.token_weights is not None,
        "gain": first["yardstick"]["gain"],
        "least_gain": first["least_gain"],
        "geometry": first["geometry"],
    }


def noisy(model: torch.nn.Module, level: float) -> None:
    """Add noise to each weight matrix, by a share of the deviation that it has."""
    draw = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for weight in model.parameters():
            if weight.ndim == 2:
                weight += level * weight.std() * torch.randn(weight.shape, generator=draw)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name")
    parser.add_argument("folder")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--text", action="append", default=[])
    parser.add_argument("--layers", help="numbers with commas between; all by default")
    parser.add_argument("--pooling", default="mean")
    parser.add_argument("--noise", type=float, default=0.0)
    parser.add_argument("-o", "--output", type=Path, required=True)
    given = parser.parse_args()

    sets: Sets = {
        found.name: [(pair.first, pair.second, pair.gold) for part in found.parts for pair in part.pairs]
        for found in read_sets(["sts-b", "sts12", "sts14"], given.data, "concatenated")
    }
    texts = {"own": sorted({sentence for pairs in sets.values() for pair in pairs for sentence in pair[:2]})}
    np.random.default_rng(0).shuffle(texts["own"])
    for named in given.text:
        name, _, path = named.partition("=")
        texts[name] = Path(path).read_text(encoding="utf-8").splitlines()

    reading = Input(model=None if given.folder == "-" else given.folder, text=["a b"], pooling=given.pooling)
    loaded = reading.load()
    noisy(loaded.model, given.noise)
    last = len(replace(reading, layers="all").over(open_corpus(["a b"]), loaded).layers) - 1
    layers = [int(n) for n in given.layers.split(",")] if given.layers else list(range(last + 1))
    cache, lines = Cache(layers), []
    for asked in [*map(str, layers), *([f"1+{last}"] if 1 in layers else [])]:
        for name, text in texts.items():
            advice = advise_model(
                replace(reading, text=list(text)), asked, 0, lambda *_: None, loaded=loaded, encode=cache
            )
            lines.append(tried(advice, sets, text, cache, loaded, asked) | {"text": name})
            mean = {key: round(float(np.mean(list(value.values()))), 1) for key, value in lines[-1]["scores"].items()}
            print(given.name, asked, name, advice.words, mean, flush=True)
            given.output.write_text(json.dumps({"model": given.name, "spaces": lines}, indent=1))


if __name__ == "__main__":
    main()
