"""What goes along with a question: files, addresses and standard input, as parts of a message."""

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

MOST_BYTES = 50_000_000
"""Of all attachments, or of standard input: more no provider takes in a request."""

STDIN = "standard input"
_REDIRECTS = 5
_SECONDS = 60.0


def is_address(name: str) -> bool:
    """Whether a name is that of something on the network."""
    return name.lower().startswith(("http://", "https://"))


def shown_name(name: str) -> str:
    """A name as people are told it: without what may be secret in an address."""
    if is_address(name):
        return shown_address(name) or "the address"
    return STDIN if name == "-" else name


def expect_files(names: tuple[str, ...]) -> None:
    """End the command where one of them is not there, before anything else is done."""
    for name in names:
        if name != "-" and not is_address(name) and not is_there(name):
            problem = "is a folder" if Path(name).is_dir() else "there is no such file"
            raise Ending(USAGE, f"{name}: {problem}")


def is_there(name: str) -> bool:
    """Whether a name is that of something to read: a file, or a pipe that a shell has made."""
    try:
        return not stat.S_ISDIR(Path(name).stat().st_mode)
    except (OSError, ValueError):
        return False


def attached(names: tuple[str, ...]) -> list[AnyPart]:
    """Files and addresses as the parts that they are sent as."""
    left = MOST_BYTES
    parts: list[AnyPart] = []
    for name in names:
        content = _fetched(name, left) if is_address(name) else read(name, left)
        left -= len(content)
        if not content:
            raise Ending(USAGE, f"{shown_name(name)}: is empty")
        parts.append(_part(content, name))
    return parts


def read(name: str, most: int | None = None) -> bytes:
    """What a file holds, or standard input."""
    most = MOST_BYTES if most is None else most
    with click.open_file(name, "rb") as file:
        content: bytes = file.read(most + 1)
    if len(content) > most:
        raise _too_large(name)
    return content


def _too_large(name: str) -> Ending:
    from dragoman.cli.screen import size_of

    return Ending(FILES, f"{shown_name(name)}: no more than {size_of(MOST_BYTES)} can be sent")


def text_of(content: bytes, name: str) -> str:
    """A content that has to be text."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        hint = "; --attach - sends it as a file" if name == STDIN else ""
    raise Ending(BROKEN, f"{name}: is not text in UTF-8{hint}")


def _part(content: bytes, name: str) -> AnyPart:
    """A file as what it is: its first bytes tell, or that it is text, or its name."""
    from dragoman.model.media import Audio, File, Image, Video, mime_of, sniff
    from dragoman.model.parts import Text

    label = _label(name)
    if sniff(content) is None and (text := _as_text(content)) is not None:
        # As text, which every model takes; as a file only some would.
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


# --- addresses


def _fetched(url: str, most: int) -> bytes:
    """What is at an address; ends the command where that can't be had.

    It is fetched here: not all providers fetch, and none of them from where only the user gets.
    """
    from dragoman.cli.provider_errors import run

    try:
        is_named = bool(urlsplit(url).hostname)
    except ValueError:
        is_named = False
    if not is_named:
        raise Ending(USAGE, f"{shown_name(url)}: is no address that can be fetched")
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
    """The reply at the end of all redirects."""
    from dragoman.transport.protocol import HttpRequest, Timeouts

    limits = Timeouts(first_byte=_SECONDS, between=_SECONDS)
    place = url
    for _ in range(_REDIRECTS + 1):
        headers = {"User-Agent": "dragoman", "Accept": "*/*"}
        request = HttpRequest(url=place, method="GET", headers=headers)
        reply = await transport.open(request, limits)
        target = reply.headers.get("Location")
        if reply.status not in {301, 302, 303, 307, 308} or target is None:
            break
        await reply.close()
        place = urljoin(place, target)
        if not is_address(place) or (url.lower().startswith("https:") and place[:6] != "https:"):
            raise Ending(PROVIDER, f"{shown_name(url)}: leads to somewhere less safe")
    else:
        raise Ending(PROVIDER, f"{shown_name(url)}: leads from one address to the next")
    if reply.status != 200:  # noqa: PLR2004 - OK
        raise Ending(PROVIDER, f"{shown_name(url)}: the server said {reply.status}")
    return reply
