"""Checkpoints of a scan: what has been collected so far, continued only with the same input and options."""

from __future__ import annotations

import json
from typing import Any

from isotrope.errors import StoreError
from isotrope.findings import Findings
from isotrope.runs.retention import exact_arrays, name_files
from isotrope.runs.run import Run
from isotrope.sources.source import Source
from isotrope.statistics import Collection, Summary, Wanted
from isotrope.storage.redaction import mask_facts

#: What runs of earlier versions did not say.
_BEFORE = {"engine": "local"}


def save_checkpoint(run: Run, task: dict[str, Any], now: Collection) -> None:
    """Write what has been collected so far."""
    done = {"batches": now.batches, "shards": now.shards, "counts": dict(now.counts)}
    done["skipped"] = list(now.skipped.items())
    run.checkpoints.write({"task": task, **done, "index": name_files(now)}, exact_arrays(now))


def describe_task(source: Source, settings: dict[str, Any]) -> dict[str, Any]:
    """Describe, as plain data, what must be the same for a run to be continued."""
    facts = mask_facts({"source": source.describe(), "settings": settings})
    task: dict[str, Any] = json.loads(json.dumps(facts))
    return task


def _refuse_other(run: Run, task: dict[str, Any], started: dict[str, Any]) -> None:
    """Refuse to continue a run that was started with another input or with other options."""
    differing = [
        name
        for part in ("source", "settings")
        for name in task[part]
        if task[part][name] != started[part].get(name, _BEFORE.get(name))
    ]
    if differing:
        raise StoreError(
            f"the run in {str(run.folder)!r} was begun with other {', '.join(differing)}; "
            "resume with the same command, or choose another folder with -o."
        )


def load_finished(run: Run, task: dict[str, Any]) -> Findings:
    """Load the findings of a finished run; refuse one of another input or with other options."""
    findings = run.findings()
    _refuse_other(run, task, {"source": findings.source, "settings": findings.provenance.get("settings", {})})
    return findings


def load_checkpoint(run: Run, task: dict[str, Any], wanted: Wanted) -> Collection:
    """Load what the last checkpoint holds; an empty collection where there is none."""
    found = run.checkpoints.read_last()
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
