"""What the geometry monitor costs: a probe of 256 sequences every 500 steps of 32, against the steps themselves.

MiniLM (6 × 384, real weights) with a head, sequences of 128 tokens, forward, backward and AdamW; the monitor reads all
moment measures of the last layer, or of all layers. Bar: less than 1 % for the last layer.
"""

from __future__ import annotations

import argparse
import statistics
from pydoc_data.topics import topics

import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from isotrope.nn import GeometryMonitor
from isotrope.sources.models.location import find_embedded_folder
from machine import describe, seconds

LENGTH, BATCH, PROBE, EVERY = 128, 32, 256, 500


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    print(f"{describe()}\n{torch.get_num_threads()} threads")
    folder = find_embedded_folder()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForSequenceClassification.from_pretrained(folder).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    words = " ".join(topics.values()).split()
    texts = [" ".join(words[i * LENGTH : (i + 1) * LENGTH]) for i in range(PROBE)]
    inputs = tokenizer(texts[:BATCH], truncation=True, max_length=LENGTH, padding="max_length", return_tensors="pt")

    def step() -> None:
        optimizer.zero_grad()
        model(**inputs, labels=torch.arange(BATCH) % 2).loss.backward()
        optimizer.step()

    monitors = {
        name: GeometryMonitor(texts, layers=layers, tokenizer=tokenizer, max_length=LENGTH)
        for name, layers in (("last layer", "-1"), ("all layers", "all"))
    }
    step()
    taken: dict[str, list[float]] = {"step": [], **{name: [] for name in monitors}}
    for monitor in monitors.values():
        monitor(model)
    for _ in range(arguments.rounds):
        taken["step"].append(seconds(step))
        for name, monitor in monitors.items():
            taken[name].append(seconds(lambda monitor=monitor: monitor(model)))
    medians = {name: statistics.median(times) for name, times in taken.items()}
    print(f"a step of {BATCH} × {LENGTH}: {medians['step']:.2f} s")
    for name in monitors:
        share = medians[name] / (EVERY * medians["step"])
        bar = f" (bar below 1 %: {'met' if share < 0.01 else 'MISSED'})" if name == "last layer" else ""
        print(f"a reading of {PROBE} sequences, {name}: {medians[name]:.2f} s, {share:.2%} of {EVERY} steps{bar}")


if __name__ == "__main__":
    main()
