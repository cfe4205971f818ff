"""Encryption keys on the command line: each in a file, by id; never as an argument itself."""

from __future__ import annotations

import os
import re
import stat
from base64 import urlsafe_b64decode
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import click

from dragoman.cli.exit_codes import FILES, USAGE, Ending, complain

VARIABLE = "DRAGOMAN_HISTORY_KEYS"
CURRENT = "DRAGOMAN_HISTORY_CURRENT_KEY"
SIZE = 32
_MAX_FILE_BYTES = 1024  # maximum bytes of a key file: /dev/urandom never ends
_HEX = re.compile(rb"[0-9a-fA-F]{64}")
_BASE64 = re.compile(rb"[A-Za-z0-9+/_-]{43}=?")
_FORM = "a key must be given as ID=FILE, as in --key-file 2026=2026.key"
_KEY_EXPOSED = (
    "don't put a key itself on the command line or in the environment, where others can see it:"
    " put it in a file, and pass that as ID=FILE"
)
NEEDED = "pass the keys, each with --key-file ID=FILE"

key_options = (
    click.option("--key-file", "key_files", multiple=True, metavar="ID=FILE",
                 help=f"Key file of an encrypted store; also ${VARIABLE}. Repeatable."),
    click.option("--current-key", metavar="ID",
                 help=f"Which of several keys encrypts new messages; also ${CURRENT}."),
    click.option("--accept-plain", is_flag=True,
                 help="With keys: also accept unencrypted messages."),
)  # fmt: skip


def keys_given(options: Iterable[str]) -> dict[str, bytes]:
    """The keys by id: from the environment, overridden by the options."""
    around = filter(None, os.environ.get(VARIABLE, "").split(os.pathsep))
    files = {**dict(_named(around)), **dict(_named(options))}
    return {id: _read(id, file) for id, file in files.items()}


def current_key(keys: dict[str, bytes], option: str | None) -> str:
    """The id of the key to encrypt with: the named one, or the only one."""
    named = option or os.environ.get(CURRENT)
    if named is None and len(keys) == 1:
        return next(iter(keys))
    if named is None:
        msg = f"there are {len(keys)} keys: choose the one to encrypt with, with --current-key ID"
        raise Ending(USAGE, msg)
    if named not in keys:
        raise Ending(USAGE, f"the current key is not among the keys: {NEEDED}")
    return named


def _named(pairs: Iterable[str]) -> Iterator[tuple[str, str]]:
    seen: set[str] = set()
    for pair in pairs:
        id, equals, file = pair.partition("=")
        # If the key itself is given instead of its file, it must not appear in an error message,
        # and so in a log: nothing is quoted until it turns out to be a file.
        if _is_key(pair) or _is_key(id):
            raise Ending(USAGE, _KEY_EXPOSED)
        if not (id and equals and file):
            raise Ending(USAGE, _FORM)
        if id in seen:
            raise Ending(USAGE, f"key {id!r} is given twice")
        seen.add(id)
        yield id, file


def _read(id: str, file: str) -> bytes:
    try:
        with Path(file).expanduser().open("rb") as stream:
            mode = os.fstat(stream.fileno()).st_mode
            raw = stream.read(_MAX_FILE_BYTES + 1)
    except (OSError, ValueError, RuntimeError) as error:  # a NUL in the name; a user without a home
        problem = getattr(error, "strerror", None) or "there is no such file"
    else:
        return _checked(id, file, raw, mode)
    if _is_key(file):
        raise Ending(USAGE, _KEY_EXPOSED)
    raise Ending(FILES, f"can't read the file of key {id!r}: {problem}")


def _checked(id: str, file: str, raw: bytes, mode: int) -> bytes:
    key = decoded(raw)
    if key is None:
        msg = (
            f"the file of key {id!r} is not a valid key: {SIZE} bytes, raw, in hexadecimal or in"
            " base64; `dragoman history keygen` creates one"
        )
        raise Ending(USAGE, msg)
    if os.name == "posix" and stat.S_ISREG(mode) and mode & 0o077:
        complain(f"warning: other users can read key {id!r}; run chmod 600 {file}")
    return key


def decoded(raw: bytes) -> bytes | None:
    """The key in a file's content: raw, hexadecimal or base64; None if it is none of these."""
    if len(raw) == SIZE:
        return raw
    text = raw.strip()
    if _HEX.fullmatch(text):
        return bytes.fromhex(text.decode())
    if _BASE64.fullmatch(text):
        standard = text.rstrip(b"=").translate(bytes.maketrans(b"+/", b"-_"))
        return urlsafe_b64decode(standard + b"=")
    return None


def _is_key(text: str) -> bool:
    raw = os.fsencode(text)
    return len(raw) != SIZE and decoded(raw) is not None


def write_key(name: str, key: bytes) -> None:
    """Write a key to a new file that only its owner can read; never overwrites one."""
    from dragoman.transport.atomic_files import AtomicFile

    try:
        with AtomicFile(Path(name), is_private=True, is_new=True) as file:
            file.write(key.hex().encode() + b"\n")
            file.keep(is_synced=True)
    except FileExistsError:
        raise Ending(FILES, f"{name}: the file already exists, and was not changed") from None


def key_id_of(body: bytes) -> str | None:
    """The id of the key that a stored message is encrypted with, if it can be read."""
    from dragoman.errors import InvalidInputError
    from dragoman.model.jsontext import loads

    try:
        whole: Any = loads(body)
    except InvalidInputError:
        return None
    value = whole.get("value") if isinstance(whole, dict) else None
    key = value.get("key") if isinstance(value, dict) else None
    return key if isinstance(key, str) else None


def needs_keys(body: bytes) -> str:
    """The message for a record that can't be read without its key."""
    id = key_id_of(body)
    if not id:
        return f"it is encrypted: {NEEDED}"
    return f"it is encrypted with key {id!r}: pass it with --key-file {id}=FILE"
