"""What would be sent to an endpoint, before anything is."""

from __future__ import annotations

from dataclasses import dataclass

from isotrope.sources.endpoint.kept_vectors import hash_text
from isotrope.sources.endpoint.source import BATCH_SIZE, Endpoint
from isotrope.sources.input import Input


@dataclass(frozen=True, slots=True)
class RequestEstimate:
    """What reading a corpus by an endpoint takes.

    Attributes:
        endpoint: The URL.
        model: The name of the model.
        texts: Texts of the corpus.
        repeated: Those that are the same as one before.
        kept: Those of the others that were answered before.
        sent: Those that would be sent.
        requests: Requests with these.
        characters: Characters of the texts that would be sent.
    """

    endpoint: str
    model: str
    texts: int
    repeated: int
    kept: int
    sent: int
    requests: int
    characters: int


def estimate_requests(reading: Input) -> RequestEstimate:
    """Count the texts and requests that a reading by an endpoint takes; nothing is sent."""
    corpus, batch_size = reading.open_corpus(), reading.batch_size or BATCH_SIZE
    endpoint: Endpoint = reading.load().model
    seen: set[bytes] = set()
    texts = kept = sent = characters = 0
    for text in corpus:
        texts += 1
        key = hash_text(text.text)
        if key in seen:
            continue
        seen.add(key)
        if key in endpoint.kept:
            kept += 1
            continue
        sent += 1
        characters += len(text.text)
    return RequestEstimate(
        endpoint=endpoint.client.name,
        model=endpoint.client.model,
        texts=texts,
        repeated=texts - len(seen),
        kept=kept,
        sent=sent,
        requests=_count_requests(sent, batch_size, known_width=endpoint.kept.width is not None),
        characters=characters,
    )


def _count_requests(sent: int, batch_size: int, *, known_width: bool) -> int:
    """How many requests so many texts take; the first text goes alone, to learn the width of the vectors.

    >>> [_count_requests(65, 32, known_width=known) for known in (True, False)]
    [3, 3]
    """
    alone = int(not known_width and sent > 0)
    return alone - (alone - sent) // batch_size
