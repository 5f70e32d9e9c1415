"""Keeping what a scan has counted so far, and going on from there, only with the same input and options."""

from __future__ import annotations

import json
from typing import Any

from isotrope.errors import StoreError
from isotrope.findings import Findings
from isotrope.layers import Layer
from isotrope.runs.retention import compact_arrays
from isotrope.runs.run import Run
from isotrope.sources.source import Source
from isotrope.statistics import Collection, Summary, Wanted
from isotrope.storage.redaction import masked_facts

#: What runs of earlier versions did not say.
_BEFORE = {"engine": "local"}


def files(collection: Collection) -> dict[str, tuple[str | None, Layer]]:
    """A file name for each summary, and the group and layer it is of."""
    groups = collection.groups()
    return {
        f"layer_{layer}" if group is None else f"group_{groups.index(group)}_layer_{layer}": (group, layer)
        for group, layer in collection.summaries
    }


def arrays(collection: Collection) -> dict[str, dict[str, Any]]:
    """The whole state of each summary, by file name."""
    return {name: collection.summaries[key].arrays() for name, key in files(collection).items()}


def save(run: Run, findings: Findings, collection: Collection, keep: str) -> None:
    """Write a finished run, with as much of its statistics as `keep` says.

    With "none" the report still needs them: they are saved compact, and `Run.drop_statistics` removes them after it.
    """
    if keep == "all":
        run.save(findings, arrays(collection), files(collection), keep=keep)
        return
    compact = compact_arrays(collection)
    layers = {f"layer_{layer}": (None, layer) for _, layer in collection.summaries}
    run.save(findings, compact, {name: layers[name] for name in compact}, keep="summary")


def keep(run: Run, task: dict[str, Any], now: Collection) -> None:
    """Write a checkpoint."""
    done = {"batches": now.batches, "shards": now.shards, "counts": dict(now.counts)}
    done["skipped"] = list(now.skipped.items())
    run.checkpoint({"task": task, **done, "index": files(now)}, arrays(now))


def task_of(source: Source, settings: dict[str, Any]) -> dict[str, Any]:
    """What must be the same for a run to be continued, as plain data."""
    facts = masked_facts({"source": source.describe(), "settings": settings})
    task: dict[str, Any] = json.loads(json.dumps(facts))
    return task


def _refuse_other(run: Run, task: dict[str, Any], begun: dict[str, Any]) -> None:
    """Refuse to continue a run that was begun with another input or with other options."""
    differing = [
        name
        for part in ("source", "settings")
        for name in task[part]
        if task[part][name] != begun[part].get(name, _BEFORE.get(name))
    ]
    if differing:
        raise StoreError(
            f"the run in {str(run.folder)!r} was begun with other {', '.join(differing)}; "
            "resume with the same command, or choose another folder with -o."
        )


def finished(run: Run, task: dict[str, Any]) -> Findings:
    """The findings of a run that is whole already."""
    findings = run.findings()
    _refuse_other(run, task, {"source": findings.source, "settings": findings.provenance.get("settings", {})})
    return findings


def resumed(run: Run, task: dict[str, Any], wanted: Wanted) -> Collection:
    """What the last checkpoint holds; nothing yet where there is none."""
    found = run.last_checkpoint()
    if found is None:
        return Collection(wanted)
    state, saved = found
    try:
        _refuse_other(run, task, state["task"])
        collection = Collection(wanted, batches=int(state["batches"]), shards=int(state.get("shards", 0)))
        collection.counts.update(state["counts"])
        collection.skipped.update(state.get("skipped", ()))
        for name, (group, layer) in state["index"].items():
            collection.summaries[group, layer] = Summary.from_arrays(saved[name])
        return collection
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise StoreError(
            f"the checkpoint of the run in {str(run.folder)!r} cannot be used ({error!r}); "
            "delete its folder 'checkpoint' to begin anew."
        ) from error
