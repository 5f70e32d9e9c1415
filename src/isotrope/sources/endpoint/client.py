"""Requests to an OpenAI-compatible endpoint, tried again where the server is busy, fails or cannot be reached."""

from __future__ import annotations

import json
import random
import ssl
import threading
import time
from email.message import Message
from email.utils import parsedate_to_datetime
from http.client import HTTPException
from typing import Any, NamedTuple
from urllib.error import HTTPError, URLError
from urllib.request import HTTPRedirectHandler, Request, build_opener

from isotrope.errors import InputError, IsotropeError, describe_error
from isotrope.formats.printable import escape_line
from isotrope.sources.endpoint.address import KEY_VARIABLES, read_key, resolve_address
from isotrope.sources.endpoint.answer import Vector, parse_answer
from isotrope.storage.redaction import mask_secrets
from isotrope.version import __version__

#: Seconds after which a request without an answer is given up.
TIMEOUT = 120.0

#: How often a request is tried, and how often texts are asked for again that an answer leaves out.
TRIES, ASKS = 8, 3

#: Seconds before the second try, doubled for each further one, and the most that is waited, by itself or on request.
_FIRST_WAIT, _LONGEST_WAIT, _LONGEST_REQUESTED = 1.0, 60.0, 600.0

#: Statuses below 500 that mean "later".
_LATER = (408, 425, 429)

#: Bytes of a refusal that are read, and characters of the server's message that are shown.
_REFUSAL_BYTES, _SHOWN = 65_536, 200


class Fetched(NamedTuple):
    """Vectors by the number of their text, and why some are missing, None where all are there."""

    vectors: dict[int, Vector]
    error: IsotropeError | None = None


class Unavailable(Exception):
    """A request failed in a way that may pass.

    Attributes:
        seconds: How long the server asks to wait, None where it says nothing.
        reached: Whether there is a server at all.
    """

    def __init__(self, reason: str, *, seconds: float | None = None, reached: bool = True) -> None:
        super().__init__(reason)
        self.seconds, self.reached = seconds, reached


class _RefuseRedirects(HTTPRedirectHandler):
    """Follow no redirect: the key and the texts go to the URL that was given, and nowhere else."""

    def redirect_request(self, *_: Any) -> None:
        return None


class EndpointClient:
    """The embeddings of one model, by requests that can be made from several threads.

    The key is read from the environment; it is in no message and no attribute that is shown.

    Args:
        endpoint: The URL, see `address.resolve_address`.
        model: The name of the model, as the server knows it.
    """

    def __init__(self, endpoint: str, model: str) -> None:
        self.url, self.model = resolve_address(endpoint), model
        self._key = read_key()
        self._opener = build_opener(_RefuseRedirects)
        self._answered = False

    @property
    def name(self) -> str:
        """The URL without secrets."""
        return mask_secrets(self.url)

    def fetch(self, texts: list[str], stop: threading.Event) -> Fetched:
        """Fetch the vectors of texts; those that an answer leaves out are asked for again, alone.

        Args:
            texts: At least one.
            stop: Set to end waiting between tries.
        """
        found: dict[int, Vector] = {}
        try:
            for _ in range(ASKS):
                rest = [number for number in range(len(texts)) if number not in found]
                document = self._post_until_answered([texts[number] for number in rest], stop)
                found |= {rest[number]: vector for number, vector in self._parse(document, len(rest)).items()}
                if len(found) == len(texts):
                    return Fetched(found)
        except IsotropeError as error:
            return Fetched(found, error)
        first = next(text for number, text in enumerate(texts) if number not in found)
        missing = InputError(
            f"{self.name} gave no vector, or one with NaN or infinity, for {len(texts) - len(found):,} of "
            f"{len(texts):,} texts in {ASKS} answers, first for {self._clean(first, 60)!r}; leave such texts out, or "
            "check the server."
        )
        return Fetched(found, missing)

    def _parse(self, document: Any, count: int) -> dict[int, Vector]:
        try:
            return parse_answer(document, count)
        except InputError as error:
            raise InputError(f"{self.name} cannot be used: {error}{self._quote(_find_message(document))}.") from None

    def _post_until_answered(self, texts: list[str], stop: threading.Event) -> Any:
        """Post a request until there is an answer, at most so many times."""
        for number in range(1, TRIES + 1):
            try:
                document = self._post(texts)
            except Unavailable as failure:
                if not failure.reached and not self._answered:
                    raise InputError(
                        f"{self.name} cannot be reached ({failure}); start the server, or check the URL."
                    ) from None
                seconds = compute_wait(number) if failure.seconds is None else failure.seconds
                if number == TRIES or seconds > _LONGEST_REQUESTED or stop.is_set():
                    asks = f", and asks to wait {seconds:,.0f} seconds" if failure.seconds is not None else ""
                    tries = f"{number} {'try' if number == 1 else 'tries'}"
                    raise InputError(f"{self.name} gave no answer in {tries} ({failure}{asks})") from None
                pause(stop, seconds)
            else:
                self._answered = True
                return document
        raise AssertionError

    def _post(self, texts: list[str]) -> Any:
        """Post one request, and return the document of its answer."""
        body = json.dumps({"model": self.model, "input": texts, "encoding_format": "float"}).encode()
        headers = {"Content-Type": "application/json", "User-Agent": f"isotrope/{__version__}"}
        request = Request(self.url, data=body, headers=headers, method="POST")
        if self._key:
            request.add_unredirected_header("Authorization", f"Bearer {self._key}")
        try:
            with self._opener.open(request, timeout=TIMEOUT) as answer:
                text: bytes = answer.read()
        except HTTPError as error:
            raise self._explain_status(error, texts) from None
        except (OSError, HTTPException) as error:
            raise self._explain_failure(error) from None
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            if text.lstrip()[:1] == b"{":
                raise Unavailable("its answer was cut off") from None
            quote = self._quote(text[:_REFUSAL_BYTES].decode("utf-8", "replace"))
            raise InputError(f"{self.name} cannot be used: its answer is not JSON{quote}; check the URL.") from None

    def _explain_status(self, error: HTTPError, texts: list[str]) -> Exception:
        """What an answer with an error status means: to try again, or a sentence."""
        with error:
            try:
                body = error.read(_REFUSAL_BYTES).decode("utf-8", "replace")
            except (OSError, HTTPException):
                body = ""
        said = self._quote(_find_message(_parse_leniently(body)) or body)
        if error.code in _LATER or error.code >= 500:
            return Unavailable(f"HTTP {error.code}{said}", seconds=parse_retry_after(error.headers))
        if 300 <= error.code < 400:
            place = self._clean(str(error.headers.get("Location")), _SHOWN)
            return InputError(f"{self.name} redirects to {place!r}, which is not followed; give the URL to use.")
        if error.code in (401, 403):
            advice = f"set a valid key in the environment variable {KEY_VARIABLES[0]}"
        elif error.code in (404, 405):
            advice = "check the URL and the name of the model"
        else:
            longest = max(map(len, texts))
            advice = f"its {len(texts):,} texts have up to {longest:,} characters; try a smaller --batch-size"
            advice += ", or shorter texts"
        return InputError(f"{self.name} refused a request (HTTP {error.code}{said}); {advice}.")

    def _explain_failure(self, error: Exception) -> Exception:
        """What a failure below HTTP means."""
        reason = error.reason if isinstance(error, URLError) else error
        if isinstance(reason, ssl.SSLCertVerificationError):
            return InputError(f"{self.name} has a certificate that is not valid ({reason.verify_message}); check it.")
        # urllib wraps what goes wrong before the request has left.
        reached = not isinstance(error, URLError) or isinstance(reason, (ConnectionResetError, BrokenPipeError))
        if isinstance(reason, TimeoutError):
            advice = ", perhaps because --batch-size is too large" if reached else ""
            return Unavailable(f"nothing within {TIMEOUT:g} seconds{advice}", reached=reached)
        said = getattr(reason, "strerror", None) or (describe_error(error) if reason is error else str(reason))
        return Unavailable(self._clean(said, _SHOWN), reached=reached)

    def _quote(self, message: str) -> str:
        shown = self._clean(message, _SHOWN)
        return f": {shown}" if shown else ""

    def _clean(self, text: str, most: int) -> str:
        """A text of others on one line, shortened, and without the key."""
        text = text.replace(self._key, "***") if self._key else text
        line = " ".join(mask_secrets(text).split())
        return escape_line(line if len(line) <= most else f"{line[:most]}…").rstrip(".")


def pause(stop: threading.Event, seconds: float) -> None:
    """Wait between two tries, until there is a reason to stop."""
    stop.wait(seconds)


def compute_wait(number: int) -> float:
    """Seconds to wait after so many tries: twice as many each time, less a random part of up to a half."""
    return min(_FIRST_WAIT * 2.0 ** (number - 1), _LONGEST_WAIT) * random.uniform(0.5, 1.0)


def parse_retry_after(headers: Message) -> float | None:
    """Parse the header Retry-After, seconds or a date; None where there is none that can be read.

    >>> headers = Message()
    >>> headers["Retry-After"] = "2.5"
    >>> parse_retry_after(headers)
    2.5
    """
    given = str(headers.get("Retry-After", "")).strip()
    try:
        seconds = float(given)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(given).timestamp() - time.time()
        except (ValueError, TypeError, OverflowError):
            return None
    return max(seconds, 0.0) if seconds == seconds else None


def _parse_leniently(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _find_message(document: Any) -> str:
    """The server's message in a document, in any of the forms that servers use; empty where there is none."""
    for name in ("error", "message", "detail"):
        found = document.get(name) if isinstance(document, dict) else None
        if isinstance(found, dict):
            found = found.get("message")
        if isinstance(found, str):
            return found
    return ""
