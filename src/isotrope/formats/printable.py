"""Text from data, made safe: control characters are shown, never obeyed, and no cell of a table is a formula."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

#: What a reader cannot see: C0 and C1 controls, the soft hyphen, bidirectional and zero-width controls, line and
#: paragraph separators, halves of surrogate pairs, marks of annotations, shorthand, music and tags.
_HIDDEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e007f]"
)

#: Bytes of a file name that are not UTF-8 arrive in Python as these.
_LONE_BYTE = range(0xDC80, 0xDD00)

#: How a formula may begin, in half and full width; a tab or a line break before it is skipped by spreadsheets.
_FORMULA = re.compile(r"[=+\-@\t\r\n＝＋－＠]")

#: A text that is a plain number is none, whatever its sign.
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def escape_controls(text: str, *, keep: str = "\n") -> str:
    r"""Write every character that cannot be seen as an escape sequence.

    Args:
        text: Any text.
        keep: Control characters that stay as they are.

    >>> print(escape_controls("\x1b[31mred\u202e \x9b \udcff \u200b"))
    \x1b[31mred\u202e \x9b \xff \u200b
    """
    if text.isascii() and text.isprintable():  # the usual case, and long texts in base64
        return text
    return _HIDDEN.sub(lambda found: found[0] if found[0] in keep else _escape(found[0]), text)


def escape_line(text: str) -> str:
    r"""Do the same for a text that must stay on one line, such as the cell of a table.

    >>> print(escape_line("a\nb\tc"))
    a\nb\tc
    """
    return escape_controls(text, keep="")


def escape_data(data: Any) -> Any:
    r"""Do the same for every text in plain data of any depth, keys included.

    >>> escape_data({"groups": ["a\u202eb", 3]})
    {'groups': ['a\\u202eb', 3]}
    """
    if isinstance(data, str):
        return escape_controls(data)
    if isinstance(data, Mapping):
        return {escape_data(key): escape_data(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [escape_data(value) for value in data]
    return data


def escape_json(text: str) -> str:
    r"""Write what cannot be seen in a JSON document as JSON's own escapes: the document means the same.

    >>> print(escape_json('{"a": "\u202e \x7f \U000e0001"}'))
    {"a": "\u202e \u007f \udb40\udc01"}
    """
    if text.isascii() and "\x7f" not in text:
        return text
    return _HIDDEN.sub(lambda found: found[0] if found[0] in "\n\r\t" else _json_escape(found[0]), text)


def escape_surrogates(text: str) -> str:
    r"""Write halves of surrogate pairs, which no file in UTF-8 can hold, as the bytes that they stand for.

    >>> print(escape_surrogates("\udcff.npy"))
    \xff.npy
    """
    return re.sub("[\ud800-\udfff]", lambda found: _escape(found[0]), text)


def format_csv(frame: pd.DataFrame) -> str:
    r"""Write a table as CSV with a header and without its index; an empty cell is a value that is missing.

    >>> import pandas as pd
    >>> print(format_csv(pd.DataFrame({"group": ["=1+1", "a\rb", None], "value": [-0.5, 2, 3]})).replace("\r", "<CR>"))
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


_NAMED = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}


def _escape(character: str) -> str:
    code = ord(character)
    if character in _NAMED:
        return _NAMED[character]
    if code in _LONE_BYTE:
        code -= 0xDC00
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _json_escape(character: str) -> str:
    code = ord(character)
    if code < 0x10000:
        return f"\\u{code:04x}"
    code -= 0x10000
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"
