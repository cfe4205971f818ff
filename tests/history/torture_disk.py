"""`python -m tests.history.torture_disk URL DIRECTORY WAY`: writes until there is no room.

`WAY` is `disk` (the directory is on a small disk, filled by a file that is removed later) or
`limit` (a resource limit on the file size). Prints the outcome as JSON.
"""

from __future__ import annotations

import json
import resource
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from dragoman import ChatHistory, Message, SessionIdentity
from dragoman.errors import StoreError

SESSION = SessionIdentity(chat="1")
LIMIT = 512 * 1024
_MOST = 10_000  # messages of 2 KB: many times what there is room for


def main(url: str, directory: str, way: str) -> None:
    """Fill it up, make room, continue."""
    history = ChatHistory.open_sync(SESSION, storage=url)
    acknowledged = [history.add(_message()).id]
    make_room = _tightened() if way == "limit" else _filled(Path(directory) / "ballast")
    refused, error = _until_full(acknowledged, history.add)
    again = _refusal(lambda: history.add(refused))
    while_full = _stored(url)
    make_room()
    acknowledged += [history.add(refused).id]
    acknowledged += [history.add(_message()).id for _ in range(20)]
    history.close()
    told = {"errors": [error, again], "acknowledged": acknowledged, "refused": refused.id}
    print(json.dumps({**told, "while_full": while_full, "stored": _stored(url)}))  # noqa: T201 - its answer


def _message() -> Message:
    return Message.user("x" * 2000)


def _until_full(
    acknowledged: list[str], add: Callable[[Message], Message]
) -> tuple[Message, str | None]:
    """The message that there was no room for, and the error."""
    for _ in range(_MOST):
        message = _message()
        error = _refusal(lambda message=message: acknowledged.append(add(message).id))  # type: ignore[misc]  # a default binds it
        if error is not None:
            return message, error
    msg = "there was always room"
    raise RuntimeError(msg)


def _refusal(action: Callable[[], object]) -> str | None:
    try:
        action()
    except StoreError as error:
        return str(error)
    return None


def _stored(url: str) -> list[str]:
    with ChatHistory.open_sync(SESSION, storage=url) as history:
        return [message.id for message in history]


def _tightened() -> Callable[[], None]:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # an error instead
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT, before[1]))
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, before)


def _filled(ballast: Path) -> Callable[[], None]:
    ballast.write_bytes(bytes(LIMIT))
    return ballast.unlink


if __name__ == "__main__":
    main(*sys.argv[1:])
