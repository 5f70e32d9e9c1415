"""Tables as CSV: every text is quoted, numbers are not, and no cell is a formula to a spreadsheet."""

from __future__ import annotations

import csv
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

#: How a formula may begin, in half and full width; a tab or a line break before it is skipped by spreadsheets.
_FORMULA = re.compile(r"[=+\-@\t\r\n＝＋－＠]")

#: A text that is a plain number is none, whatever its sign.
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def csv_text(frame: pd.DataFrame) -> str:
    r"""Write a table as CSV with a header and without its index; an empty cell is a value that is missing.

    >>> import pandas as pd
    >>> print(csv_text(pd.DataFrame({"group": ["=1+1", "a\rb", None], "value": [-0.5, 2, 3]})).replace("\r", "<CR>"))
    "group","value"
    "'=1+1",-0.5
    "a<CR>b",2.0
    "",3.0
    <BLANKLINE>
    """
    safe = frame.rename(columns=neutralize_formula)
    for column, kind in enumerate(safe.dtypes):
        if kind.kind == "O":
            safe.isetitem(column, safe.iloc[:, column].map(neutralize_formula))
    text: str = safe.to_csv(index=False, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
    return text


def neutralize_formula(value: Any) -> Any:
    """Put an apostrophe before a text that a spreadsheet would run; all else stays as it is.

    >>> [neutralize_formula(v) for v in ("=1+1", "-2+3", "-2.5e3", "- item", -2.5, "plain")]
    ["'=1+1", "'-2+3", '-2.5e3', "'- item", -2.5, 'plain']
    """
    if isinstance(value, str) and _FORMULA.match(value) and not _NUMBER.fullmatch(value):
        return f"'{value}"
    return value
