"""Finds a session by digest, by name, or by a prefix of either."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from dragoman.cli.exit_codes import USAGE, Ending
from dragoman.cli.history.stores import called, filter_of, sessions_of, shown
from dragoman.cli.screen import clipped, harmless_line

if TYPE_CHECKING:
    from dragoman.history.identity import SessionIdentity
    from dragoman.history.storage.protocol import Session, Storage

_MIN_DIGITS = 4  # minimum digits of a digest
_DIGITS = 12  # digits shown by `list`: never taken for the start of a name
_MAX_SHOWN = 10  # maximum sessions in a message
_MAX_COMPARED = 100  # characters of a name compared with the typed text
_MIN_SIMILARITY = 0.75
_HINT = "`dragoman history list` shows all sessions"


async def session_named(storage: Storage, name: str) -> Session:
    """The session with this name, or the only one whose name or digest starts with it."""
    found = await _with_digest(storage, name)
    if not (found and len(name) >= _DIGITS):
        found = await _called(storage, name) or await _beginning(storage, name, found)
    if len(found) == 1:
        return found[0]
    raise Ending(USAGE, _which(found) if found else await _none(storage, name))


async def session_called(storage: Storage, name: str) -> Session | None:
    """The session with this digest, or with this AGENT/CHAT; None if there is none.

    Unlike `session_named`, it takes no prefix and no chat name alone: others start a new chat.
    """
    from dragoman.history.storage.protocol import Filter

    found = await _with_digest(storage, name) if len(name) >= _DIGITS else []
    for place in (place for place, character in enumerate(name) if character == "/"):
        which = Filter(agent=name[:place], chat=name[place + 1 :])
        found += await storage.sessions(which, limit=_MAX_SHOWN + 1)
    if len(found) > 1:
        raise Ending(USAGE, _which(found))
    return found[0] if found else None


async def session_shown(storage: Storage, name: str | None, options: dict[str, Any]) -> Session:
    """The named or selected session; by default the most recently written."""
    from dragoman.history.storage.protocol import EVERYTHING

    if name is not None or filter_of(options) != EVERYTHING:
        return await session_meant(storage, name, options)
    found = await sessions_of(storage, EVERYTHING)
    if not found:
        raise Ending(USAGE, "there are no sessions yet; `dragoman ask` and `chat` create them")
    return found[0]


async def session_meant(storage: Storage, name: str | None, options: dict[str, Any]) -> Session:
    """The session with this name, or the one selected by the options."""
    from dragoman.history.storage.protocol import EVERYTHING

    which = filter_of(options)
    if (name is None) is (which == EVERYTHING):
        raise Ending(USAGE, f"name a session, or select one with an option such as --chat; {_HINT}")
    if name is not None:
        return await session_named(storage, name)
    found = await storage.sessions(which, limit=_MAX_SHOWN + 1)
    if len(found) == 1:
        return found[0]
    raise Ending(USAGE, _which(found) if found else f"no session matches these options; {_HINT}")


# --- search


async def _with_digest(storage: Storage, text: str) -> list[Session]:
    from dragoman.history.session_summaries import sessions_with_digest

    if len(text) < _MIN_DIGITS:
        return []
    return await sessions_with_digest(storage, text, limit=_MAX_SHOWN + 1)


async def _called(storage: Storage, name: str) -> list[Session]:
    """The sessions whose chat has exactly this name."""
    from dragoman.history.storage.protocol import Filter

    return await storage.sessions(Filter(chat=name), limit=_MAX_SHOWN + 1)


async def _beginning(storage: Storage, text: str, others: list[Session]) -> list[Session]:
    """The sessions with exactly this name; else those with a name that starts with it."""
    from dragoman.history.transfer import every_session

    if not text:
        return []
    exact: list[Session] = []
    begun = {session.identity: session for session in others}
    async for session in every_session(storage):
        names = list(names_for(session.identity))
        if text in names:
            exact.append(session)
        elif len(begun) <= _MAX_SHOWN and any(name.startswith(text) for name in names):
            begun[session.identity] = session
    return exact or list(begun.values())


def names_for(identity: SessionIdentity) -> Iterator[str]:
    """The names that a session can be selected by, besides its digest."""
    if identity.chat is not None:
        yield identity.chat
        if identity.agent is not None:
            yield f"{identity.agent}/{identity.chat}"
    yield called(identity)
    yield shown(identity)
    yield identity.key


# --- messages for several matches, or none


def _which(found: list[Session]) -> str:
    lines = [
        f"  {session.identity.digest[:_DIGITS]}  {clipped(harmless_line(shown(session.identity)))}"
        for session in found[:_MAX_SHOWN]
    ]
    more = len(found) > _MAX_SHOWN
    many = f"more than {_MAX_SHOWN}" if more else str(len(found))
    rest = [f"  … and more: {_HINT}"] if more else []
    return "\n".join((f"{many} sessions match; choose one:", *lines, *rest))


async def _none(storage: Storage, text: str) -> str:
    close = await _closest(storage, text)
    hint = f" (did you mean {harmless_line(clipped(close))}?)" if close else ""
    return f"no session has this name{hint}; {_HINT}"


async def _closest(storage: Storage, text: str) -> str | None:
    """The name or digest most similar to the typed text."""
    from difflib import get_close_matches

    from dragoman.history.transfer import every_session

    wanted = text[:_MAX_COMPARED].casefold()
    close: dict[str, str] = {}  # by normalised form
    async for session in every_session(storage):
        identity = session.identity
        names = (*names_for(identity), identity.digest[:_DIGITS])
        compared = {name[:_MAX_COMPARED].casefold(): name for name in reversed(names)}
        for match in get_close_matches(wanted, compared, n=1, cutoff=_MIN_SIMILARITY):
            close[match] = compared[match]
    best = get_close_matches(wanted, close, n=1, cutoff=_MIN_SIMILARITY)
    return close[best[0]] if best else None
