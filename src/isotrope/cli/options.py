"""Parameters of commands, derived from the options that dataclasses declare."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import wraps
from inspect import Parameter, Signature, signature
from itertools import count
from pathlib import Path
from typing import Annotated, Any, TypeAlias, TypeVar, get_origin, get_type_hints

import typer

from isotrope.engines.engine import Engine
from isotrope.errors import InputError, StoreError
from isotrope.options import list_options
from isotrope.sources.input import Input

#: The heading that options on the rows of one space stand under.
ROWS = "Rows"

_Number = TypeVar("_Number", int, float)

#: Options as keyword arguments of the function that a command calls.
Keywords: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class OptionGroup:
    """Options of a command: fields of a dataclass, for use in `Annotated`.

    Args:
        kind: The dataclass.
        names: The fields, in the order of `--help`; by default all that are options.
        panel: A heading in place of the fields' own.
        changes: What this command says differently, by the field's name: `default`, `flags` or arguments of
            `isotrope.options.option`.
    """

    kind: type
    names: str = ""
    panel: str | None = None
    changes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def parameters(self) -> dict[str, Parameter]:
        """The typer parameter of each field."""
        known = list_options(self.kind)
        return {name: self._parameter(name, known[name]) for name in self.names.split() or known}

    def _parameter(self, name: str, declared: Any) -> Parameter:
        facts = {"default": declared.default, **declared.metadata}
        facts |= ({"panel": self.panel} if self.panel else {}) | dict(self.changes.get(name, {}))
        default = facts["default"]
        kind = facts["type"] or (str if default is None else type(default))
        flags = facts["flags"] or ((f"--{name.replace('_', '-')}",) if kind is bool else ())
        info = typer.Option(
            *flags, help=facts["help"], show_default=facts["shown"] or True, rich_help_panel=facts["panel"]
        )
        annotation = Annotated[kind | None if default is None else kind, info]  # type: ignore[valid-type]
        return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


ENGINE = OptionGroup(Engine)

Json: TypeAlias = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Rows: TypeAlias = Annotated[str | None, typer.Argument(help="Vectors, a text, or a model; found out from its kind.")]

#: What options on the rows of one space say differently from those of a scan.
SPACE_CHANGES: dict[str, dict[str, Any]] = {
    "model": {"help": "Hub id, folder, GGUF or ONNX file, with --text.", "shown": None},
    "text": {"help": "Text file, folder, dataset id, or - for stdin."},
    "pooling": {"help": "One row per text: mean, cls, last, max, weightedmean, first+last, mean:1+-1."},
    "layers": {"default": None, "flags": ("--layer",), "help": "One layer, e.g. 6 or -2.", "shown": "last"},
    "batch_size": {"help": "Texts, or rows, at a time.", "shown": "32 texts"},
}

#: The options on a model behind a URL.
ENDPOINT = "endpoint concurrency keep_vectors"

#: The options of commands on one space.
SPACE = (
    f"model {ENDPOINT} revision text vectors column split pooling layers max_length batch_size device trust_remote_code"
)

#: The default pooling of a text's row.
OWN_POOLING = "mean, or a sentence model's own"


def make_space_options(names: str, **changes: Mapping[str, Any]) -> OptionGroup:
    """Make the options on the rows of one space.

    Args:
        names: The fields of `Input`, in the order of `--help`.
        changes: What one command says differently from others, by the field's name.
    """
    return OptionGroup(Input, names, ROWS, {**SPACE_CHANGES, **changes})


def make_advice_options(names: str, **pooling: Any) -> OptionGroup:
    """Make the options on the space that advice is asked on; pooling: what is said of that option."""
    layers = {"default": None, "help": "Only these, averaged, e.g. -1 or 1,-1.", "shown": "last, or a mix"}
    names = f"{names} layers pooling max_length batch_size device trust_remote_code"
    return make_space_options(names, layers=layers, pooling={"shown": OWN_POOLING, **pooling})


def derive_options(
    command: Callable[..., None] | None = None, *, after: Mapping[str, str] | None = None
) -> Callable[..., Any]:
    """Replace each parameter of a command that is annotated with an `OptionGroup` by one parameter for each option.

    The command gets an instance of the annotated dataclass, or a dictionary where it is annotated with `Keywords`.

    Args:
        command: The command.
        after: Options that stand behind another one in `--help`, which is the value.
    """
    if command is None:
        return lambda function: derive_options(function, after=after)
    hints = get_type_hints(command, include_extras=True)
    parameters: dict[str, Parameter] = {}
    groups: dict[str, tuple[OptionGroup, dict[str, Parameter]]] = {}
    for name, parameter in signature(command).parameters.items():
        found = [part for part in getattr(hints[name], "__metadata__", ()) if isinstance(part, OptionGroup)]
        if found:
            groups[name] = found[0], found[0].parameters()
            parameters |= groups[name][1]
        else:
            parameters[name] = parameter.replace(kind=Parameter.KEYWORD_ONLY, annotation=hints[name])

    @wraps(command)
    def run(**values: Any) -> None:
        for name, (options, derived) in groups.items():
            chosen = {option: values.pop(option) for option in derived}
            by_name = get_origin(hints[name].__origin__) is dict
            values[name] = chosen if by_name else options.kind(**chosen)
        command(**values)

    del run.__wrapped__  # typer would read the parameters of the command itself
    ordered = _place_after(parameters, after or {})
    run.__signature__ = Signature(ordered)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in ordered}
    return run


def _place_after(parameters: Mapping[str, Parameter], after: Mapping[str, str]) -> list[Parameter]:
    names = [name for name in parameters if name not in after]
    for name, before in after.items():
        names.insert(names.index(before) + 1, name)
    return [parameters[name] for name in names]


def name_new_folder(parent: str, name: str) -> Path:
    """Name a folder for results that is not taken yet, by the time, even if the clock was set back; it is not made."""
    first = Path(parent) / f"{name}-{datetime.now():%Y%m%d-%H%M%S}"
    others = (first.with_name(f"{first.name}-{number}") for number in count(2))
    return first if not first.exists() else next(other for other in others if not other.exists())


def check_new(path: Path | None, what: str) -> None:
    """Raise an error where `--output` names something that is there; what: "file" or "folder"."""
    if path is not None and path.exists():
        raise StoreError(f"{str(path)!r} is there already, and is never written over; give a new {what} with -o.")


def parse_names(text: str) -> list[str]:
    """Parse names with commas between.

    >>> parse_names("softdecay, whitening")
    ['softdecay', 'whitening']
    """
    return [part.strip() for part in text.split(",") if part.strip()]


def parse_numbers(text: str, what: str, kind: type[_Number]) -> list[_Number]:
    """Parse numbers with commas between; what: the name of the option in an error.

    >>> parse_numbers("0,3,-1", "the blocks", int)
    [0, 3, -1]
    """
    error = InputError(f"got {what} {text!r}, expected numbers with commas between.")
    try:
        numbers = [kind(part) for part in parse_names(text)]
    except ValueError:
        raise error from None
    if not numbers:
        raise error
    return numbers
