"""Writes docs/validation.md from the JSON files beside this one. python docs/validation/page.py"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

HERE = Path(__file__).parent

#: By how many points a repair must have helped for its share to be counted, and the share that the advice should keep.
LARGE, SHARE = 3.0, 0.9

#: Points that following the advice may lose.
ALLOWED = 0.5

HEAD = """# Is the advice right?

`isotrope advise` needs no labels. Here it is tried where labels exist: every layer of models at hand, as if it were the
one that a user has, with two texts to fit on: the sentences of the sets themselves without their scores (own), and
WikiText (wiki). A number is the mean of Spearman × 100 over STS-B, STS12 and STS14, concatenated. The thresholds of
the rule were set by spaces of the first three models with mean pooling, so for those the table shows how well they
separate, not how well they generalise; noisy weights and the pooling `cls` were looked at afterwards. Other repairs are
fitted on 2,000 sentences of the text alone. SoftDecay is in the form `paper`.
Written by `docs/validation/page.py` from the files beside it, which `docs/validation/measure.py` made.
"""


class Space(NamedTuple):
    """One space of one model with one text to fit on."""

    model: str
    layers: str
    pooling: str
    text: str
    advice: str
    raw: float
    advised: float
    others: dict[str, float]

    @property
    def best(self) -> tuple[str, float]:
        """The best of everything that was tried."""
        every = {"none": self.raw, "advised": self.advised, **self.others}
        return max(every.items(), key=lambda item: item[1])

    @property
    def worst(self) -> float:
        """The worst that one of the other repairs does."""
        return min(self.others.values())

    @property
    def kept(self) -> float | None:
        """The share of the best gain that following the advice keeps, None where there is little to gain."""
        gain = self.best[1] - self.raw
        return (self.advised - self.raw) / gain if gain >= LARGE else None

    @property
    def wrong(self) -> bool:
        return self.advised < self.raw - ALLOWED or (self.kept is not None and self.kept < SHARE)


def spaces() -> list[Space]:
    """All that were measured."""
    found = []
    for path in sorted(HERE.glob("*.json")):
        document = json.loads(path.read_text())
        for line in document["spaces"]:
            mean = {name: float(np.mean(list(sets.values()))) for name, sets in line["scores"].items()}
            raw, advised = mean.pop("none"), mean.pop("advised")
            place = (document["model"], line["layers"], line["pooling"], line["text"])
            found.append(Space(*place, _short(line["advice"]), raw, advised, mean))
    return found


def _short(advice: dict[str, Any]) -> str:
    if advice["advice"] == "none":
        return "leave alone"
    return "repair, tokens weighted" if advice["weighted"] else "repair"


def table(found: list[Space]) -> list[str]:
    names = list(found[0].others)
    head = ["model", "layers", "pooling", "text", "raw", *names, "advice", "advised", "gain"]
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    for space in found:
        cells = [space.model, space.layers, space.pooling, space.text, f"{space.raw:.1f}"]
        cells += [f"{space.others[name]:.1f}" for name in names]
        cells += [space.advice, f"**{space.advised:.1f}**", f"{space.advised - space.raw:+.1f}"]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def main() -> None:
    found = spaces()
    wrong = [space for space in found if space.wrong]
    harmed = sorted(
        (s for s in found if min(s.others.values()) < s.raw - 1), key=lambda s: min(s.others.values()) - s.raw
    )
    large = [space for space in found if space.kept is not None]
    parts = [HEAD, "## Where the advice is wrong", ""]
    parts.append(
        f"Of {len(found)} spaces, following the advice loses more than {ALLOWED} points against no repair in "
        f"{sum(s.advised < s.raw - ALLOWED for s in found)}. In {len(large)} something gains {LARGE:g} points or more; "
        f"the advice keeps nine tenths of the best gain in {sum((s.kept or 0) >= SHARE for s in large)} of them."
    )
    parts += ["", *(table(wrong) if wrong else ["None."])]
    parts += ["", "## Where a repair without advice harms", ""]
    parts.append("The worst first; the advice leaves alone what it leaves alone for a reason.")
    parts += ["", *table(harmed), "", "## All spaces", "", *table(found), ""]
    limits = (HERE / "limits.md").read_text()
    (HERE.parent / "validation.md").write_text("\n".join(parts) + "\n" + limits)


if __name__ == "__main__":
    main()
