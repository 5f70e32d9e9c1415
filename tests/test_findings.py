"""Findings: JSON and DataFrame out, and back."""

from __future__ import annotations

import json
import math

import pytest

from isotrope.errors import InputError, StoreError
from isotrope.findings import FORMAT, Findings, Reading, Statement, Verdict

FINDINGS = Findings(
    readings=[
        Reading(0, "isoscore", 0.5, 0.4, 0.6, n=100, null=0.9, seed=3),
        Reading("1+6", "isoscore", 0.25, n=100, note="biased"),
        Reading(None, "drift_correlation_pearson", math.nan, reason="needs three layers", group="de"),
    ],
    layers=[0, "1+6"],
    layer_names={"0": "0"},
    verdict=Verdict("leaning", (Statement(1, "Leaning: …", (0, "1+6"), sure=False),)),
    source={"model": "some/model", "revision": "abc", "width": 8},
    counts={"rows": 100},
    provenance={"command": "isotrope scan"},
)


def test_round_trip() -> None:
    text = FINDINGS.to_json()
    again = Findings.from_json(text)
    assert again.to_json() == text
    assert again.verdict == FINDINGS.verdict
    assert repr(again.readings) == repr(FINDINGS.readings)
    assert math.isnan(again.readings[2].value)


def test_json_has_no_nan() -> None:
    document = json.loads(FINDINGS.to_json(), parse_constant=lambda name: pytest.fail(name))
    assert document["readings"][2] == {
        "layer": None,
        "measure": "drift_correlation_pearson",
        "value": None,
        "low": None,
        "high": None,
        "n": 0,
        "null": None,
        "variant": "definition",
        "seed": 0,
        "reason": "needs three layers",
        "note": None,
        "group": "de",
    }
    assert (document["format"], document["model"], document["revision"]) == (FORMAT, "some/model", "abc")


@pytest.mark.parametrize(
    ("model", "title"),
    [("some/model", "some/model"), ("./model", "./model"), ("/disk/of/mine/some.gguf", "some.gguf"), (None, "vectors")],
)
def test_titles_leave_out_where_a_model_lies(model: str | None, title: str) -> None:
    assert Findings([], source={"model": model}).title == title


def test_infinity_is_undefined_too() -> None:
    assert '"value": null' in Findings([Reading(0, "x", math.inf)]).to_json()


def test_frame_is_tidy() -> None:
    frame = FINDINGS.to_frame()
    assert " ".join(frame.columns) == (
        "model revision layer measure value low high n null variant seed reason note group"
    )
    assert frame["layer"].tolist()[:2] == ["0", "1+6"]
    assert frame["layer"].isna().tolist() == [False, False, True]
    assert set(frame["model"]) == {"some/model"}
    assert frame["value"].dtype == float
    assert list(Findings([]).to_frame().columns) == list(frame.columns)


def test_get() -> None:
    assert FINDINGS.get("isoscore").layer == "1+6"
    assert FINDINGS.get("isoscore", 0).value == 0.5
    assert FINDINGS.get("isoscore", -2).value == 0.5
    assert FINDINGS.get("drift_correlation_pearson", None, group="de").reason
    with pytest.raises(InputError, match="no layer -3"):
        FINDINGS.get("isoscore", -3)
    with pytest.raises(InputError, match="no reading of 'eee' for layer 0"):
        FINDINGS.get("eee", 0)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"format": FORMAT + 1}, f"format {FORMAT + 1}"),
        ({"format": None}, "format None"),
        ({"readings": [{"unheard": 1}]}, "damaged"),
        ({"readings": 3}, "damaged"),
        ({"verdict": {}}, "damaged"),
        ({"layers": None}, "damaged"),
        ({"layers": [0, 0]}, "a layer is there twice"),
        ({"layers": [10**400]}, "damaged"),
        ({"counts": {"rows": 10**30}}, "damaged"),
        ({"readings": [{"layer": 0, "measure": "isoscore", "value": 10**400}]}, "value is 1000"),
        ({"readings": [{"layer": 0, "measure": "isoscore", "value": 0.5, "n": 2**63}]}, "n is 9223372036854775808"),
        ({"verdict": {"word": "", "statements": []}}, "the verdict has no word"),
        ({"verdict": {"word": "healthy", "statements": [{"level": 7, "text": "", "layers": []}]}}, "level 7"),
        ({"source": {"corpus": {}}}, "name is None"),
        ({"source": {"corpus": "text"}}, "corpus is 'text'"),
        ({"source": {"rows_are": "tokens", "class": "Bert", "modality": "smell"}}, "modality is 'smell'"),
        ({"source": {"rows_are": "tokens"}}, "class is None"),
        ({"source": {"files": ["a.npy"]}}, "a file is 'a.npy'"),
        ({"source": {"files": None}}, "files is None"),
        ({"provenance": {"settings": {"seed": "x"}}}, "seed is 'x'"),
        ({"provenance": {"engine": {"name": "ray", "workers": 2}}}, "retried_shards is None"),
    ],
)
def test_refused(change: dict, word: str) -> None:
    with pytest.raises(StoreError, match=word):
        Findings.from_dict({**FINDINGS.to_dict(), **change})
