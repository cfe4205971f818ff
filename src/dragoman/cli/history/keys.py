"""Keys on the command line: each in a file of its own, by its id, and never itself an argument."""

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
_MOST = 1024  # bytes of a file that may be a key: /dev/urandom has no end
_HEX = re.compile(rb"[0-9a-fA-F]{64}")
_BASE64 = re.compile(rb"[A-Za-z0-9+/_-]{43}=?")
_FORM = "a key is given as ID=FILE, as in --key-file 2026=2026.key"
_IN_THE_OPEN = (
    "a key itself does not belong on the command line or into the environment, where others see"
    " it: put it into a file, and give that as ID=FILE"
)
NEEDED = "give the keys, each as --key-file ID=FILE"

key_options = (
    click.option("--key-file", "key_files", multiple=True, metavar="ID=FILE",
                 help=f"The file with a key of an encrypted store; also ${VARIABLE}."),
    click.option("--current-key", metavar="ID",
                 help="The key to encrypt with, if there are several."),
    click.option("--accept-plain", is_flag=True,
                 help="With keys: also accept messages that are not encrypted."),
)  # fmt: skip


def keys_given(options: Iterable[str]) -> dict[str, bytes]:
    """The keys by their ids: those of the environment, and those of the options before them."""
    around = filter(None, os.environ.get(VARIABLE, "").split(os.pathsep))
    files = {**dict(_named(around)), **dict(_named(options))}
    return {id: _read(id, file) for id, file in files.items()}


def current_key(keys: dict[str, bytes], option: str | None) -> str:
    """The id of the key that seals: the one that is named, or the only one."""
    named = option or os.environ.get(CURRENT)
    if named is None and len(keys) == 1:
        return next(iter(keys))
    if named is None:
        msg = f"which of the {len(keys)} keys encrypts what is written? Say --current-key ID"
        raise Ending(USAGE, msg)
    if named not in keys:
        raise Ending(USAGE, f"the current key is not among the keys: {NEEDED}")
    return named


def _named(pairs: Iterable[str]) -> Iterator[tuple[str, str]]:
    seen: set[str] = set()
    for pair in pairs:
        id, equals, file = pair.partition("=")
        # Whoever gives the key in place of its file must not find it in an error's text, and so
        # in a log: nothing of what was given is said before it turned out to be a file.
        if _is_key(pair) or _is_key(id):
            raise Ending(USAGE, _IN_THE_OPEN)
        if not (id and equals and file):
            raise Ending(USAGE, _FORM)
        if id in seen:
            raise Ending(USAGE, f"the key {id!r} is given twice")
        seen.add(id)
        yield id, file


def _read(id: str, file: str) -> bytes:
    try:
        with Path(file).expanduser().open("rb") as stream:
            mode = os.fstat(stream.fileno()).st_mode
            raw = stream.read(_MOST + 1)
    except (OSError, ValueError, RuntimeError) as error:  # a NUL in the name; a user without a home
        problem = getattr(error, "strerror", None) or "there is no such file"
    else:
        return _checked(id, file, raw, mode)
    if _is_key(file):
        raise Ending(USAGE, _IN_THE_OPEN)
    raise Ending(FILES, f"the file of the key {id!r} can't be read: {problem}")


def _checked(id: str, file: str, raw: bytes, mode: int) -> bytes:
    key = decoded(raw)
    if key is None:
        msg = (
            f"the file of the key {id!r} holds no key: {SIZE} bytes, as they are, in hexadecimal"
            " digits or in base64; `dragoman history keygen` makes one"
        )
        raise Ending(USAGE, msg)
    if os.name == "posix" and stat.S_ISREG(mode) and mode & 0o077:
        complain(f"warning: others may read the key {id!r}; chmod 600 {file}")
    return key


def decoded(raw: bytes) -> bytes | None:
    """The key in a file's content: as it is, in hexadecimal digits, or in base64."""
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
    """A key in a new file that only its owner can read; one that is there stays as it is."""
    path = Path(name)
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        handle = -1
    if handle < 0:
        raise Ending(FILES, f"{name}: there is a file of that name already; it was not touched")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(key.hex().encode() + b"\n")
            stream.flush()
            os.fsync(handle)
    except BaseException:
        path.unlink(missing_ok=True)  # half a key is none
        raise


def key_id_of(body: bytes) -> str | None:
    """The id of the key that a stored message is sealed with, as far as it tells."""
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
    """What to say of a message that can't be read without its key."""
    id = key_id_of(body)
    if not id:
        return f"it is encrypted: {NEEDED}"
    return f"it is encrypted with the key {id!r}: give it with --key-file {id}=FILE"
