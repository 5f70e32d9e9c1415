"""One self-contained HTML file from the data of a page."""

from __future__ import annotations

import base64
import hashlib
import json
from functools import cache
from importlib import resources
from typing import Any

from isotrope.formats.printable import escape_controls, escape_data

#: The scripts in the order in which they stand in the page; each holds one idea.
SCRIPTS = (
    "data",
    "elements",
    "format",
    "download",
    "scale",
    "tooltip",
    "chart",
    "table",
    "measures",
    "repair_formulas",
    "spectrum_measures",
    "state",
    "theme",
    "layers",
    "readings",
    "repair_controls",
    "spectrum",
    "cloud",
    "map",
    "norm_variance",
    "coordinates",
    "sequences",
    "tokens",
    "across",
    "quantized",
    "groups",
    "cosines",
    "rows",
    "advice",
    "comparison",
    "provenance",
    "main",
)

#: Characters that could end a script element, or a line of one, inside a string.
_ESCAPES = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}


def render_page(data: dict[str, Any], title: str) -> str:
    """The whole page: words in HTML, numbers as JSON, and a policy that forbids every request."""
    from markupsafe import Markup

    data = escape_data(data)
    style, script = read_style_sheet(), _script()
    page_json = Markup(script_json(data))  # nosec B704  # nothing in it can end the element
    look, run = Markup(style), Markup(script)  # nosec B704  # files of this package
    return render(
        _read_file("report.html"),
        title=title,
        policy=make_policy(style, script),
        style=look,
        script=run,
        data=page_json,
        kind=data["kind"],
        version=data["version"],
        runs=data["runs"],
        thresholds=data["thresholds"],
    )


def render(template: str, **values: Any) -> str:
    """A page from its template: what is put in is escaped, and a name that is missing is an error."""
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    def show(value: Any) -> Any:
        return escape_controls(value) if isinstance(value, str) and not isinstance(value, Markup) else value

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, finalize=show
    )
    return environment.from_string(template).render(**values)


def make_policy(style: str, script: str | None = None) -> str:
    """A content security policy: nothing is fetched, and nothing runs but this style and this script."""
    run = "" if script is None else f"script-src '{_digest(script)}'; "
    return (
        f"default-src 'none'; {run}style-src '{_digest(style)}'; img-src data: blob:; base-uri 'none'; "
        "form-action 'none'"
    )


def read_style_sheet() -> str:
    """The look that every page has."""
    return _read_file("report.css")


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode('utf-8')).digest()).decode('ascii')}"


@cache
def _script() -> str:
    """All scripts as one, which leaves no name behind."""
    parts = "\n".join(_read_file(f"scripts/{name}.js") for name in SCRIPTS)
    return f'(() => {{\n"use strict";\n{parts}\n}})();'


@cache
def _read_file(name: str) -> str:
    return (resources.files("isotrope.report") / "page" / name).read_text("utf-8")


def script_json(data: Any) -> str:
    """JSON that may stand inside a script element: nothing in it can end the element.

    >>> script_json({"a": "</script>"})
    '{"a":"\\\\u003c/script\\\\u003e"}'
    """
    return json.dumps(data, separators=(",", ":"), allow_nan=False).translate(_ESCAPES)
