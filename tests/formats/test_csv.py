"""CSV that reads back as it was, and that no spreadsheet runs."""

from __future__ import annotations

import csv
import io

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isotrope.formats.printable import format_csv, neutralize_formula

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1)


@given(st.lists(st.tuples(TEXTS, st.floats(), st.integers(-(2**53), 2**53)), min_size=1, max_size=8))
def test_reads_back(rows: list[tuple[str, float, int]]) -> None:
    text = format_csv(pd.DataFrame(rows, columns=["text", "float", "int"]))
    header, *found = csv.reader(io.StringIO(text, newline=""))
    assert header == ["text", "float", "int"]
    assert [row[0] for row in found] == [neutralize_formula(row[0]) for row in rows]
    np.testing.assert_array_equal([float(row[1] or "nan") for row in found], [row[1] for row in rows])
    assert [int(row[2]) for row in found] == [row[2] for row in rows]
    # No cell that is quoted begins as a formula does, unless it is a number.
    assert not any(row[0][0] in "=+-@\t\r\n＝＋－＠" for row in found if not _is_number(row[0]))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("text", ["=1+1", "+1+1", "-1+1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "＝1", "-", "+x", "--1"])
def test_formulas_are_text(text: str) -> None:
    assert neutralize_formula(text) == f"'{text}"


@pytest.mark.parametrize("value", [-1.5, -3, None, True, "-1.5", "+3", "-1e-9", "-.5", "plain", "'quoted", "a=b", ""])
def test_the_rest_stays(value: object) -> None:
    assert neutralize_formula(value) is value


def test_headings_and_every_kind_of_column() -> None:
    frame = pd.DataFrame(
        {
            "=name": ["a", "=b"],
            "mixed": [-1.5, "=c"],
            "string": pd.array(["=d", None], dtype="string"),
            "category": pd.Categorical(["=e", "f"]),
            "yes": [True, False],
        }
    )
    assert format_csv(frame) == (
        '"\'=name","mixed","string","category","yes"\n"a",-1.5,"\'=d","\'=e",True\n"\'=b","\'=c","","f",False\n'
    )
    assert frame.columns[0] == "=name"  # the table itself is left as it was
    assert frame["string"][0] == "=d"
