"""What happened on a cluster, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

#: What could not be read is named up to this number.
_NAMED = 5


def engine_words(engine: Mapping[str, Any], source: Mapping[str, Any]) -> Iterator[str]:
    """What happened on a cluster, a line each; nothing where this process did it all.

    >>> list(engine_words({"name": "ray", "workers": 2, "retried_shards": 1, "skipped_shards": {}}, {}))
    ['read by 2 workers of Ray; 1 shard again, because its worker was lost']
    """
    if engine.get("name", "local") == "local":
        return
    count, again = engine["workers"], engine["retried_shards"]
    words = f"read by {count} worker{'s' * (count > 1)} of Ray"
    if again:
        words += f"; {again} shard{'s' * (again > 1)} again, because {'their' if again > 1 else 'its'} worker was lost"
    yield words
    bad = {**source.get("left_out", {}), **engine["skipped_shards"]}
    for name, reason in list(bad.items())[:_NAMED]:
        yield f"skipped {name}: {reason}"
    if len(bad) > _NAMED:
        yield f"and {len(bad) - _NAMED} more, named in findings.json"
