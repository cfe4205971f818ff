"""Attachments of a question: files, URLs and standard input, as message parts."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urljoin, urlsplit

import click

from dragoman.cli.exit_codes import BROKEN, FILES, PROVIDER, USAGE, Ending
from dragoman.cli.provider_status import shown_address

if TYPE_CHECKING:
    from dragoman.model.content import AnyPart
    from dragoman.transport.http import HttpReply, HttpTransport

MAX_BYTES = 50_000_000
"""Maximum size of all attachments, or of standard input: no provider accepts larger requests."""

STDIN = "standard input"
_MAX_REDIRECTS = 5
_TIMEOUT = 60.0


def is_address(name: str) -> bool:
    """Whether the name is an HTTP URL."""
    return name.lower().startswith(("http://", "https://"))


def shown_name(name: str) -> str:
    """A name for messages: URLs without the parts that may be secret."""
    if is_address(name):
        return shown_address(name) or "the address"
    return STDIN if name == "-" else name


def expect_files(names: tuple[str, ...]) -> None:
    """Exit if a file doesn't exist, before anything else is done."""
    for name in names:
        if name != "-" and not is_address(name) and not is_there(name):
            problem = "is a directory" if Path(name).is_dir() else "there is no such file"
            raise Ending(USAGE, f"{name}: {problem}")


def is_there(name: str) -> bool:
    """Whether the name can be read: a file, or a pipe made by the shell."""
    try:
        return not stat.S_ISDIR(Path(name).stat().st_mode)
    except (OSError, ValueError):
        return False


def attached(names: tuple[str, ...]) -> list[AnyPart]:
    """The files and URLs as message parts."""
    left = MAX_BYTES
    parts: list[AnyPart] = []
    for name in names:
        content = _fetched(name, left) if is_address(name) else read(name, left)
        left -= len(content)
        if not content:
            raise Ending(USAGE, f"{shown_name(name)}: is empty")
        parts.append(_part(content, name))
    return parts


def read(name: str, most: int | None = None) -> bytes:
    """The content of a file or of standard input."""
    most = MAX_BYTES if most is None else most
    with click.open_file(name, "rb") as file:
        content: bytes = file.read(most + 1)
    if len(content) > most:
        raise _too_large(name)
    return content


def _too_large(name: str) -> Ending:
    from dragoman.cli.screen import size_of

    return Ending(FILES, f"{shown_name(name)}: exceeds the limit of {size_of(MAX_BYTES)}")


def text_of(content: bytes, name: str) -> str:
    """The content as UTF-8 text; exits if it isn't."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        hint = "; --attach - sends it as a file" if name == STDIN else ""
    raise Ending(BROKEN, f"{name}: is not text in UTF-8{hint}")


def _part(content: bytes, name: str) -> AnyPart:
    """The content as the part its first bytes, its text or its name indicate."""
    from dragoman.model.media import Audio, File, Image, Video, mime_of, sniff
    from dragoman.model.parts import Text

    label = _label(name)
    if sniff(content) is None and (text := _as_text(content)) is not None:
        # As text, which every model accepts; only some accept files.
        return Text(f"{label}:\n\n{text}" if label else text)
    mime = mime_of(content, label)
    kinds: dict[str, Any] = {"image": Image, "audio": Audio, "video": Video}
    kind = kinds.get((mime or "").partition("/")[0], File)
    part: AnyPart = kind.from_bytes(content, mime, name=label or None)
    return part


def _label(name: str) -> str:
    if is_address(name):
        parts = urlsplit(name)
        return unquote(parts.path.rpartition("/")[2]) or (parts.hostname or "")
    return "" if name == "-" else Path(name).name


def _as_text(content: bytes) -> str | None:
    if b"\x00" in content:
        return None
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None


# --- URLs


def _fetched(url: str, most: int) -> bytes:
    """The content of a URL; exits if it can't be fetched.

    Fetched here, since not all providers fetch URLs, and none can reach the user's private network.
    """
    from dragoman.cli.provider_errors import run

    try:
        is_named = bool(urlsplit(url).hostname)
    except ValueError:
        is_named = False
    if not is_named:
        raise Ending(USAGE, f"{shown_name(url)}: is not a valid URL")
    return run(_download(url, most), shown_name(url))


async def _download(url: str, most: int) -> bytes:
    from dragoman.cli.screen import progress
    from dragoman.transport.http import HttpTransport

    transport = HttpTransport()
    try:
        reply = await _reply(transport, url)
        size = reply.headers.get("Content-Length", "")
        total = int(size) if size.isdecimal() else None
        if total is not None and total > most:
            raise _too_large(url)
        pieces: list[bytes] = []
        with progress(total) as advance:
            async for piece in reply.chunks():
                pieces.append(piece)
                most -= len(piece)
                if most < 0:
                    raise _too_large(url)
                advance(len(piece))
        return b"".join(pieces)
    finally:
        await transport.close()


async def _reply(transport: HttpTransport, url: str) -> HttpReply:
    """The reply after all redirects."""
    from dragoman.transport.protocol import HttpRequest, Timeouts

    limits = Timeouts(first_byte=_TIMEOUT, between_chunks=_TIMEOUT)
    place = url
    for _ in range(_MAX_REDIRECTS + 1):
        headers = {"User-Agent": "dragoman", "Accept": "*/*"}
        request = HttpRequest(url=place, method="GET", headers=headers)
        reply = await transport.open(request, limits)
        target = reply.headers.get("Location")
        if reply.status not in {301, 302, 303, 307, 308} or target is None:
            break
        await reply.close()
        place = urljoin(place, target)
        if not is_address(place) or (url.lower().startswith("https:") and place[:6] != "https:"):
            raise Ending(PROVIDER, f"{shown_name(url)}: redirects to a less secure URL")
    else:
        raise Ending(PROVIDER, f"{shown_name(url)}: redirects too many times")
    if reply.status != 200:  # noqa: PLR2004 - OK
        raise Ending(PROVIDER, f"{shown_name(url)}: the server returned status {reply.status}")
    return reply
