"""What must not be written down: passwords in addresses, tokens, and what secret variables of the environment hold."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from isotrope.formats.printable import escape_surrogates

_HIDDEN = "***"

#: Names of a URL's parameters that are short words: whole, or in compounds that are usual for secrets. `keyword`,
#: `sort_key`, `author` and `country_code` are none.
_PARAMETERS = (
    r"(?:[\w.-]*[_.-])?(?:pwd|jwt|auth|authorization)",
    r"(?:[\w.-]*[_.-])?(?:app|auth|client|encryption|function|functions|host|license|master|private|session|shared|signing"
    r"|storage|subscription)[_.-]?key",
    r"(?:[\w.-]*[_.-])?(?:access|auth|authorization|device|oauth|pass|verification)[_.-]?code",
    "key|code",
)

#: A user and password in an address, a token of the hub, the value of a field or option that is named as a secret.
#: A password may hold what an address may not (/ and @), so behind a colon all up to the last @ is taken for it.
_PATTERNS = (
    (re.compile(r"(?<=://)(?:[^/\s@:]*:\S*@|[^/\s@]*@)"), f"{_HIDDEN}@"),
    (re.compile(r"\bhf_[A-Za-z0-9]{16,}"), f"hf_{_HIDDEN}"),
    (
        re.compile(r"(?i)((?:token|password|passwd|secret|signature|credential|(?:api|access|account|secret)[_-]?key(?:[_-]?id)?|sig)=)[^&\s]+"),
        rf"\1{_HIDDEN}",
    ),
    (re.compile(rf"(?i)([?&;#](?:{'|'.join(_PARAMETERS)})=)[^&\s]+"), rf"\1{_HIDDEN}"),
)  # fmt: skip

#: The same in an argument, which is one address and nothing else: its password may hold spaces too.
_USER = re.compile(r"(?s)(?<=://)[^/\s@:]*:(.*)@")

#: Options whose value stands behind them.
_OPTIONS = re.compile(
    r"(?i)--?(?:[a-z0-9]+[-_])*(?:hf|auth|access)?(?:token|password|passwd|secret|(?:api|access|account|secret)[-_]?key(?:[-_]?id)?)"
)  # fmt: skip

#: Names of variables whose values are secret, and the length below which a value may stand anywhere by chance.
_VARIABLES = re.compile(r"(?i)TOKEN(?!IZ)|PASSWORD|PASSWD|SECRET|(API|ACCESS|ACCOUNT)_?KEY|CREDENTIAL")
_SHORTEST = 8

#: Passwords are often shorter; such a one is looked for as a whole word.
_PASSWORDS, _SHORTEST_PASSWORD = re.compile(r"(?i)(PASSWORD|PASSWD)$"), 4


def mask_secrets(text: str, arguments: Sequence[str] = ()) -> str:
    """A text without the secrets in it, nor the passwords that are in arguments which it may quote.

    >>> mask_secrets("postgresql://me:p@s/s@host/db?sslmode=require&password=word")
    'postgresql://***@host/db?sslmode=require&password=***'
    >>> mask_secrets("there is no file a:/me:pass word@host", ["postgresql://me:pass word@host"])
    'there is no file a:/me:***@host'
    """
    for argument in arguments:
        if (found := _USER.search(argument)) is not None:
            text = text.replace(f":{found[1]}@", f":{_HIDDEN}@")
    for name, value in os.environ.items():
        if _VARIABLES.search(name) and len(value) >= _SHORTEST:
            text = text.replace(value, _HIDDEN)
        elif _PASSWORDS.search(name) and len(value) >= _SHORTEST_PASSWORD:
            text = re.sub(rf"(?<!\w){re.escape(value)}(?!\w)", _HIDDEN, text)
    for pattern, instead in _PATTERNS:
        text = pattern.sub(instead, text)
    return escape_surrogates(text)  # the bytes of a name that is not UTF-8, which could not be written down


def mask_arguments(arguments: Sequence[str]) -> list[str]:
    """The same for the arguments of a command, where a secret may stand behind its option.

    >>> mask_arguments(["scan", "--token", "abc", "--token-weights", "w.safetensors"])
    ['scan', '--token', '***', '--token-weights', 'w.safetensors']
    """
    before = ["", *arguments[:-1]] if arguments else []
    pairs = zip(before, arguments, strict=True)
    return [
        _HIDDEN if _OPTIONS.fullmatch(option) else mask_secrets(_USER.sub(f"{_HIDDEN}@", argument))
        for option, argument in pairs
    ]


def mask_facts(facts: Any) -> Any:
    """The same for plain data of any depth; keys stay as they are.

    >>> mask_facts({"files": [{"path": "s3://key:word@bucket/a.npy"}], "rows": 3})
    {'files': [{'path': 's3://***@bucket/a.npy'}], 'rows': 3}
    """
    if isinstance(facts, str):
        return mask_secrets(facts)
    if isinstance(facts, Mapping):
        return {key: mask_facts(value) for key, value in facts.items()}
    if isinstance(facts, (list, tuple)):
        return [mask_facts(value) for value in facts]
    return facts
