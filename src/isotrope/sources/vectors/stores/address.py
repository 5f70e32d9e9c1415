"""The address of vectors in a store: which store, where it is, and which table or collection of it."""

from __future__ import annotations

from dataclasses import dataclass, field

from isotrope.errors import InputError
from isotrope.storage.redaction import mask_secrets

#: How an address begins -> the store that it is of, and the beginning of the place in it.
_BEGINNINGS = {
    "lancedb:": ("lancedb", ""),
    "faiss:": ("faiss", ""),
    "qdrant:": ("qdrant", ""),
    "qdrant+http://": ("qdrant", "http://"),
    "qdrant+https://": ("qdrant", "https://"),
    "postgresql://": ("pgvector", "postgresql://"),
    "postgres://": ("pgvector", "postgresql://"),
}

#: Files that are known by their ending.
FAISS_ENDING = ".faiss"

#: What addresses look like, as help and messages show them.
FORMS = {
    "lancedb": "lancedb:FOLDER#TABLE",
    "faiss": "faiss:FILE",
    "qdrant": "qdrant:FOLDER#COLLECTION or qdrant+http://HOST:6333#COLLECTION",
    "pgvector": "postgresql://USER@HOST/DATABASE#TABLE",
}


@dataclass(frozen=True, slots=True)
class Address:
    """Where vectors are: as text it has no password, so that only `place` must go to the store alone.

    Attributes:
        kind: The store.
        place: Its folder, file or URL, perhaps with a password.
        name: The table or collection.
        shown: The address as text.
    """

    kind: str
    place: str = field(repr=False)
    name: str | None
    shown: str

    def __str__(self) -> str:
        return self.shown

    @property
    def named(self) -> str:
        """The name of the table or collection, which must be there."""
        if self.name is None:
            raise InputError(f"{self} names no table or collection, expected {FORMS[self.kind]}: put it behind a #.")
        return self.name

    @property
    def is_server(self) -> bool:
        """Whether the place is reached by a URL, or else is a folder or file of this machine."""
        return "://" in self.place


def parse(text: str) -> Address | None:
    """The address that a text is, None where it is none: a path, a model's id.

    The name stands behind the last #, so that folders and passwords may have one too.

    >>> parse("qdrant+http://localhost:6333#texts")
    Address(kind='qdrant', name='texts', shown='qdrant+http://localhost:6333#texts')
    >>> str(parse("postgresql://me:word@host/db#public.texts")), parse("vectors.npy")
    ('postgresql://***@host/db#public.texts', None)
    """
    for beginning, (kind, instead) in _BEGINNINGS.items():
        if text.startswith(beginning):
            rest, name = text[len(beginning) :], None
            if kind != "faiss" and "#" in rest:
                rest, _, name = rest.rpartition("#")
            if not rest:
                raise InputError(f"{mask_secrets(text)!r} names no place, expected {FORMS[kind]}.")
            user, _, host = rest.rpartition("@") if instead else ("", "", rest)
            shown = f"{beginning}{'***@' if user else ''}{host}" + (f"#{name}" if name else "")
            return Address(kind, instead + rest, name or None, mask_secrets(shown))
    return Address("faiss", text, None, mask_secrets(text)) if text.lower().endswith(FAISS_ENDING) else None


def format_address(text: str) -> str:
    """An address or a path, without secrets."""
    try:
        return str(parse(text) or mask_secrets(text))
    except InputError:  # it names no place
        return mask_secrets(text)


def begins_as_address(text: str) -> bool:
    """Whether a text can be nothing but an address: by how it begins, not by how a file ends."""
    return text.startswith(tuple(_BEGINNINGS))
