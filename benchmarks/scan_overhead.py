"""What a scan of all layers costs over the plain forward pass with hidden states, on the same batches.

Plain passes and scans alternate; the ratio of their medians is printed. Bars: 1.15 with moment and token measures,
1.30 with sequence measures and intervals too, for MiniLM at 32 × 32.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np

from isotrope.layers import Layer
from isotrope.pipeline import compute_findings, resolve_measures
from isotrope.sources.batch import Batch, Rows
from isotrope.sources.corpora.corpus import open_corpus
from isotrope.sources.models.hidden_states import compute_hidden_states
from isotrope.sources.models.load import Loaded, load
from isotrope.sources.source import Source
from isotrope.sources.text.tokenize import encode
from isotrope.statistics import Collection
from machine import describe, seconds


class Fixed(Source):
    """The Python manual as full batches of b sequences of t tokens, so that both sides run the very same batches."""

    unit = "texts"

    def __init__(self, loaded: Loaded, b: int, t: int, most: int) -> None:
        encoded = encode(loaded, list(open_corpus()), 512)
        stream = np.concatenate([e.tokens for e in encoded])
        count = min(most, len(stream) // (b * t))
        self.loaded = loaded
        self.ids = stream[: count * b * t].reshape(count, b, t)
        self.mask = np.ones((b, t), dtype=bool)
        states, _ = compute_hidden_states(loaded, self.ids[0], self.mask)
        self.layers: list[Layer] = list(range(len(states)))
        self.width = int(states[0].shape[2])

    @property
    def total(self) -> int:
        return self.ids.shape[0] * self.ids.shape[1]

    def plain(self) -> None:
        """The forward passes alone."""
        for ids in self.ids:
            compute_hidden_states(self.loaded, ids, self.mask)

    def batches(self, start: int = 0) -> Iterator[Batch]:
        for number, ids in islice(enumerate(self.ids), start, None):
            states, _ = compute_hidden_states(self.loaded, ids, self.mask)
            b, t = ids.shape
            known = Rows(
                sequence=np.repeat(np.arange(number * b, number * b + b, dtype=np.uint64), t),
                token=ids.reshape(-1),
                position=np.tile(np.arange(t), b),
                special=np.zeros(b * t, dtype=bool),
            )
            layers: dict[Layer, Any] = {i: s.reshape(-1, s.shape[2]) for i, s in enumerate(states)}
            yield Batch(layers, known, {"texts": b})

    def describe(self) -> dict[str, Any]:
        return {"kind": "benchmark", "model": self.loaded.name, "width": self.width}


def scan(source: Fixed, measures: str, sample: int) -> None:
    options = resolve_measures(measures, sample=sample)
    collection = source.reduce(Collection(options.wanted))
    compute_findings(collection, source, options, lambda *_: None)


KINDS = {
    "moments and tokens": ("moments,tokens", 0, 1.15),
    "and sequences and intervals": ("moments,tokens,sequences", 20_000, 1.30),
}


def measure(source: Fixed, rounds: int) -> dict[str, list[float]]:
    """Times of the plain pass and of each kind of scan, alternating."""
    times: dict[str, list[float]] = {"plain": [], **{kind: [] for kind in KINDS}}
    source.plain()
    for _ in range(rounds):
        times["plain"].append(seconds(source.plain))
        for kind, (measures, sample, _) in KINDS.items():
            times[kind].append(seconds(lambda m=measures, s=sample: scan(source, m, s)))
    return times


def bert_base() -> Any:
    """A model of the BERT-base shape with random weights: its time does not depend on them."""
    import torch
    from transformers import BertConfig, BertModel

    torch.manual_seed(0)
    return BertModel(BertConfig()).eval()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="MiniLM at 32 × 32 only")
    arguments = parser.parse_args()
    print(describe())
    minilm = load()
    base = Loaded(bert_base(), minilm.tokenizer, "BERT-base shape", None, "cpu", [])
    shapes = [(minilm, 32, 32, 200), (minilm, 32, 128, 20), (base, 32, 32, 12), (base, 32, 128, 4)]
    for loaded, b, t, most in shapes[: 1 if arguments.quick else None]:
        source = Fixed(loaded, b, t, most)
        times = measure(source, arguments.rounds if loaded is minilm else 1)
        plain = statistics.median(times["plain"])
        print(f"\n{loaded.name}, {b} × {t}, {len(source.ids)} batches, {len(source.layers)} layers of {source.width}")
        print(f"  plain forward with hidden states: {plain:.2f} s")
        for kind, (_, _, bar) in KINDS.items():
            ratio = statistics.median(times[kind]) / plain
            bars = f" (bar {bar:.2f}: {'met' if ratio <= bar else 'MISSED'})" if (loaded is minilm and t == 32) else ""
            print(f"  scan, {kind}: ratio {ratio:.3f}{bars}")


if __name__ == "__main__":
    main()
