"""JUnit XML: counts, messages and hostile names."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from isotrope.formats.junit import JunitCase, format_junit

CASES = [
    JunitCase("mean_shift.p < 0.01", failure="gate tripped: mean_shift.p is 0.001, below 0.01."),
    JunitCase("change.mean_cosine > 0.05", passed="gate passed: change.mean_cosine is 0.01, not above 0.05."),
    JunitCase("now.hubness > 2", error="the gate 'now.hubness > 2' cannot be decided."),
    JunitCase("now.mean_cosine > 0.5", passed="gate passed."),
]


def test_counts_and_messages() -> None:
    root = ElementTree.fromstring(format_junit("isotrope compare a b", CASES))
    (suite,) = root
    for element in (root, suite):
        assert [element.get(name) for name in ("tests", "failures", "errors")] == ["4", "1", "1"]
    assert (root.tag, suite.tag, suite.get("name"), suite.get("skipped")) == (
        "testsuites",
        "testsuite",
        "isotrope compare a b",
        "0",
    )
    cases = list(suite)
    assert [case.tag for case in cases] == ["testcase"] * 4
    assert [case.get("name") for case in cases] == [case.name for case in CASES]
    assert all(case.get("classname") and case.get("time") is not None for case in cases)
    assert [[child.tag for child in case] for case in cases] == [["failure"], ["system-out"], ["error"], ["system-out"]]
    failure = cases[0][0]
    assert failure.get("message") == failure.text == CASES[0].failure
    assert failure.get("type") == "gate"
    assert cases[2][0].get("message") == CASES[2].error


@pytest.mark.parametrize(
    "name",
    [
        '<b a="1">&amp;',
        "]]><x/>",
        "a\nb\tc\rd",
        "\x00\x1b[31m\x07",
        "\udcff.npy",
        "\ufffe\uffff",
        "\u202eevil",
        "é 日本 😀",
    ],
)
def test_hostile_names_stay_text(name: str) -> None:
    text = format_junit(name, [JunitCase(name, failure=name, passed=None), JunitCase(name, error=name)])
    root = ElementTree.fromstring(text.encode("utf-8"))
    assert [element.tag for element in root.iter()] == [
        "testsuites",
        "testsuite",
        "testcase",
        "failure",
        "testcase",
        "error",
    ]
    shown = root[0].get("name") or ""
    assert shown.isprintable()
    if name.isprintable():
        assert shown == name
    assert root[0][0][0].text == shown


def test_no_case() -> None:
    assert ElementTree.fromstring(format_junit("empty", []))[0].get("tests") == "0"
