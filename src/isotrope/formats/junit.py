"""Results of gates as JUnit XML, which GitHub, GitLab, Jenkins and others show."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple
from xml.etree import ElementTree

from isotrope.formats.printable import escape_line

#: What XML 1.0 cannot hold and `escape_line` leaves as it is.
_NO_CHARACTERS = re.compile("[\ufffe\uffff]")


class JunitCase(NamedTuple):
    """One test case.

    Args:
        name: What is tested.
        failure: Why it failed; None where it did not.
        error: Why it could not be decided; None where it could.
        passed: What was found where it passed.
    """

    name: str
    failure: str | None = None
    error: str | None = None
    passed: str | None = None


def format_junit(suite: str, cases: Sequence[JunitCase]) -> str:
    """Format test cases as one JUnit document with one suite.

    Args:
        suite: The name of the suite.
        cases: The test cases, in order.

    >>> text = format_junit("isotrope scan", [JunitCase("mean_cosine > 0.5", failure="mean_cosine is 0.8, above 0.5.")])
    >>> suite = ElementTree.fromstring(text).find("testsuite")
    >>> suite.get("tests"), suite.get("failures"), suite.find("testcase/failure").get("message")
    ('1', '1', 'mean_cosine is 0.8, above 0.5.')
    """
    failures, errors = sum(c.failure is not None for c in cases), sum(c.error is not None for c in cases)
    counts = {"tests": str(len(cases)), "failures": str(failures), "errors": str(errors), "time": "0"}
    root = ElementTree.Element("testsuites", {"name": "isotrope", **counts})
    parent = ElementTree.SubElement(root, "testsuite", {"name": _clean(suite), **counts, "skipped": "0"})
    for case in cases:
        made = {"classname": _clean(suite), "name": _clean(case.name), "time": "0"}
        element = ElementTree.SubElement(parent, "testcase", made)
        for tag, kind, words in (("failure", "gate", case.failure), ("error", "undecided", case.error)):
            if words is not None:
                found = ElementTree.SubElement(element, tag, {"message": _clean(words), "type": kind})
                found.text = _clean(words)
        if case.passed is not None:
            ElementTree.SubElement(element, "system-out").text = _clean(case.passed)
    ElementTree.indent(root)
    body = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{body}\n'


def _clean(text: str) -> str:
    """A text that XML can hold, on one line."""
    return _NO_CHARACTERS.sub(lambda found: f"\\u{ord(found[0]):04x}", escape_line(text))
