"""Benchmark without labels: generated everyday sentences, and pairs of them whose similarity is known."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle, islice
from typing import NamedTuple

#: Kinds of sentences: slots with meanings that go together in any combination, each meaning in two wordings.
_KINDS: dict[str, tuple[tuple[str, ...], ...]] = {
    "scenes": (
        ("A woman|A lady", "An old man|An elderly man", "The cook|The chef", "A small child|A little kid",
         "A farmer|A man with a farm", "The doctor|A physician", "A police officer|A cop"),
        ("is washing the dishes|is cleaning the plates", "is carrying a heavy box|is lifting a big crate",
         "is talking on the phone|is making a call", "is riding a horse|sits on a galloping pony",
         "is playing the violin|is making music on a fiddle", "is cutting an apple|is slicing fruit",
         "is running|jogs", "is painting a wall|is putting colour on the side of a house"),
        ("near the station.|close to the train stop.", "in the garden.|outside among the flowers",
         "in the snow.|on a cold white field.", "in the kitchen.|beside the stove."),
    ),
    "headlines": (
        ("Oslo court|Norwegian judges", "Central bank|Monetary authority", "Teachers' union|School staff group",
         "Airline|Flight operator", "Mayor|Head of the city", "Car maker|Auto company"),
        ("rejects|turns down", "approves|gives green light to", "delays|puts off", "investigates|looks into",
         "criticises|attacks"),
        ("plan for new bridge|proposal to build river crossing", "pay rise for nurses|higher wages in hospitals",
         "deal with rival|agreement with competitor", "ban on plastic bags|end of shopping sacks made of plastic",
         "sale of stadium|offer for football ground"),
    ),
    "news": (
        ("The company said on Tuesday that|According to the firm,",
         "Officials confirmed that|Authorities acknowledged that",
         "Witnesses said that|People who saw it reported that", "A newspaper wrote that|One daily claimed that"),
        ("profits had fallen by a third|earnings dropped sharply",
         "two people were hurt|a pair of victims suffered injuries",
         "prices rose faster than expected|costs climbed more quickly than forecast",
         "the fire began in a warehouse|the blaze started in a storage building",
         "the minister will resign|the cabinet member is to step down"),
        ("last year.|twelve months ago.", "in the north.|in the northern region.",
         "after the storm.|once the gale was over."),
    ),
    "questions": (
        ("How do I|What is the way to", "Why can I not|What keeps me from being able to",
         "Is it safe to|Is there a risk if I",
         "When should I|What is the right time to"),
        ("reset my password|get a new login code", "store onions|keep onions fresh",
         "learn the piano|start playing keyboard music",
         "repair a bicycle tyre|fix a flat on my bike", "train a puppy|teach a young dog",
         "apply for a visa|ask for a travel permit"),
        ("at home?|in my own house?", "without help?|on my own?", "in winter?|during the cold months?"),
    ),
    "opinions": (
        ("I think|In my view", "Nobody doubts that|Everyone is sure that", "I fear|I am afraid that"),
        ("we should wait|it is better to be patient", "he was wrong|he made a mistake",
         "they will agree|they are going to say yes",
         "it costs too much|the price is too high", "the team played well|the side had a good match"),
        ("this time.|on this occasion.", "as always.|like every time.", "after all.|in the end."),
    ),
    "reviews": (
        ("The film|This movie", "The phone|This mobile", "The hotel|The place where we stayed",
         "Her album|The singer's record",
         "The book|This novel"),
        ("was a pleasant surprise|was better than I had expected", "is a waste of money|is not worth its price",
         "is very popular|is loved by many people", "was boring|was dull"),
        ("from the start.|right from the beginning.", "in every way.|in all respects.",
         "for families.|for people with children."),
    ),
    "definitions": (
        ("the act of|the process of", "a tool for|an instrument used in", "a place for|a building made for",
         "a rule about|a law on"),
        ("measuring water|finding out how deep a river is", "keeping bees|looking after hives",
         "moving goods|bringing cargo elsewhere", "joining wood|fastening boards together",
         "growing food|raising crops"),
        ("", "in large numbers|on a large scale", "by hand|without machines"),
    ),
    "findings": (
        ("The results show that|Our findings indicate that", "It is doubtful whether|We could not confirm that",
         "It is well known that|As many have observed,"),
        ("large groups decide slowly|big committees need long to choose",
         "metals expand with heat|warm iron grows in size",
         "memory fades with age|old people forget more",
         "rain feeds the river|the stream gets its water from showers",
         "exercise lowers weight|people who train become thinner"),
        (".", "in most cases.|as a rule.", "under stress.|when there is pressure."),
    ),
    "instructions": (
        ("Press the button|Push the switch", "Remove the cover|Take off the lid",
         "Mix the flour and the eggs|Stir both ingredients",
         "Save the file|Store the document", "Close the valve|Shut the tap"),
        ("and wait ten minutes|then be patient for a short while", "before you leave|prior to going away",
         "with great care|very carefully", "once a week|every seven days"),
        (".", "as shown below.|as the picture explains.", "at your own risk.|on your own responsibility."),
    ),
    "talk": (
        ("My brother|A brother of mine", "Our teacher|The woman who teaches us",
         "The boss|The head of the office", "A friend|A good pal"),
        ("bought a new car|got himself another automobile", "lost the keys|cannot find what opens the door",
         "moved to the coast|now lives by the sea", "quit smoking|gave up cigarettes",
         "won the race|came first in the run"),
        ("yesterday.|the day before today.", "in spring.|when winter was over.", "by chance.|without planning it."),
    ),
}  # fmt: skip


class BenchmarkPair(NamedTuple):
    """Two sentences and the share of slots with the same meaning, from 0 to 1."""

    first: str
    second: str
    similarity: float


@dataclass(frozen=True)
class Benchmark:
    """Everyday sentences to fit a repair on, and pairs of other sentences to evaluate it."""

    sentences: list[str]
    pairs: list[BenchmarkPair]


def make_benchmark(sentences: int = 1_500, pairs: int = 1_500, seed: int = 0) -> Benchmark:
    """Generate sentences of all kinds in equal number, and pairs of the same kind that share some of their slots.

    A shared slot has two different wordings as often as the same wording, so that common words alone do not give the
    similarity. A larger benchmark begins with the sentences and pairs of a smaller one.

    Args:
        sentences: number of sentences.
        pairs: number of pairs.
        seed: seed of the random choices.

    Examples:
        >>> make_benchmark(10, 2).sentences[1]
        'Flight operator delays ban on plastic bags'
    """
    sentence_rng, pair_rng = random.Random(2 * seed), random.Random(2 * seed + 1)
    return Benchmark(
        [_word(kind, _draw_meaning(kind, sentence_rng), sentence_rng) for kind in _cycle_kinds(sentences)],
        [_draw_pair(kind, pair_rng) for kind in _cycle_kinds(pairs)],
    )


def _cycle_kinds(count: int) -> Iterator[str]:
    return islice(cycle(_KINDS), count)


def _draw_meaning(kind: str, rng: random.Random) -> list[int]:
    return [rng.randrange(len(slot)) for slot in _KINDS[kind]]


def _word(kind: str, meaning: list[int], rng: random.Random) -> str:
    parts = [rng.choice(slot[i].split("|")) for slot, i in zip(_KINDS[kind], meaning, strict=True)]
    return " ".join(part for part in parts if part).replace(" .", ".")


def _draw_pair(kind: str, rng: random.Random) -> BenchmarkPair:
    slots = _KINDS[kind]
    first = _draw_meaning(kind, rng)
    changed = rng.sample(range(len(slots)), rng.randint(0, len(slots)))
    second = list(first)
    for slot in changed:
        second[slot] = (first[slot] + rng.randrange(1, len(slots[slot]))) % len(slots[slot])
    return BenchmarkPair(_word(kind, first, rng), _word(kind, second, rng), 1 - len(changed) / len(slots))
