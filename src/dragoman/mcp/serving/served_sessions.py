"""Access to the served sessions of a store, and to no others."""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable, Sequence
from math import isfinite
from typing import Any, NamedTuple

from dragoman.errors import ConfigError, InvalidInputError, NotFound
from dragoman.history.chat import ChatHistory
from dragoman.history.identity import FIELDS, SessionIdentity
from dragoman.history.session_summaries import Listed, looked_at, sessions_with_digest
from dragoman.history.storage.protocol import EVERYTHING, Filter, Hit, Session, Storage
from dragoman.history.storage.sealed import SealedStorage
from dragoman.history.transfer import encrypted_sessions, every_session, scanned
from dragoman.model.jsontext import dumps, loads

_ID_DIGITS = 12  # digits of an id that are never taken for the start of a name
_MAX_SLASHES = 16  # slashes in a name that may separate agent and chat
_HINT = "`dragoman history list` shows all sessions"


class Pattern(NamedTuple):
    """A name with wildcards: of a chat or, with a slash, of an agent and its chats."""

    agent: re.Pattern[str] | None
    chat: re.Pattern[str]

    @classmethod
    def parse(cls, text: str) -> Pattern:
        """Parse a pattern: `*` is any text, `?` any character; the agent is before a slash."""
        agent, slash, chat = text.partition("/")
        return cls(_compiled(agent), _compiled(chat)) if slash else cls(None, _compiled(text))

    def takes(self, identity: SessionIdentity) -> bool:
        """Whether a session matches: each pattern must match the whole name."""
        if identity.chat is None or self.chat.fullmatch(identity.chat) is None:
            return False
        if self.agent is None:
            return True
        return identity.agent is not None and self.agent.fullmatch(identity.agent) is not None


def _compiled(text: str) -> re.Pattern[str]:
    wild = {"*": ".*", "?": "."}
    merged = re.sub(r"\*+", "*", text)  # `***…` would take exponential time
    return re.compile("".join(wild.get(c) or re.escape(c) for c in merged), re.DOTALL)


class Scope(NamedTuple):
    """The served sessions: those of a filter and, if some are named, only those."""

    which: Filter = EVERYTHING
    identities: frozenset[SessionIdentity] = frozenset()
    patterns: tuple[Pattern, ...] = ()

    @property
    def is_named(self) -> bool:
        """Whether the filter alone doesn't define the scope."""
        return bool(self.identities or self.patterns)

    def takes(self, identity: SessionIdentity) -> bool:
        """Whether a session is served."""
        if any(getattr(identity, field) != name for field, name in self.which.names().items()):
            return False
        if not self.is_named or identity in self.identities:
            return True
        return any(pattern.takes(identity) for pattern in self.patterns)


async def scope_of(
    storage: Storage, names: Iterable[str] = (), which: Filter = EVERYTHING
) -> Scope:
    """The scope for these names, patterns and fields; each name must match exactly one session.

    Names are resolved once: a session that gets the same name later is not served.
    """
    identities: set[SessionIdentity] = set()
    patterns: list[Pattern] = []
    for name in names:
        if "*" in name or "?" in name:
            patterns.append(Pattern.parse(name))
            continue
        found = [each.identity for each in await sessions_called(storage, name, Scope(which))]
        if len(found) != 1:
            raise ConfigError(_which(found))
        identities.add(found[0])
    return Scope(which, frozenset(identities), tuple(patterns))


def _which(found: list[SessionIdentity]) -> str:
    if found:
        ids = ", ".join(identity.digest[:_ID_DIGITS] for identity in found[:10])
        return f"{len(found)} sessions match a --session name; use an id instead: {ids}"
    return (
        "a --session matches no session; use a complete name (chat or agent/chat), an id or a"
        f" pattern such as 'support/*'; {_HINT}"
    )


async def sessions_called(storage: Storage, name: str, scope: Scope) -> list[Session]:
    """The served sessions with exactly this name, or whose id starts with these digits."""
    if len(name) >= _ID_DIGITS:
        found = await sessions_with_digest(storage, name, limit=2)
        if served := [session for session in found if scope.takes(session.identity)]:
            return served
    served = []
    for names in _readings(name):
        try:
            fields: dict[str, Any] = {**scope.which.names(), **names}
            which = Filter(**fields)
        except InvalidInputError:  # a lone surrogate, or too long: no session has this name
            return []
        found = await storage.sessions(which)
        served += [session for session in found if scope.takes(session.identity)]
    return served


def _readings(name: str) -> Iterable[dict[str, str]]:
    """Possible readings of a name: a chat, or an agent and its chat; both may have slashes."""
    yield {"chat": name}
    slashes = [place for place, character in enumerate(name) if character == "/"]
    for place in slashes[:_MAX_SLASHES]:
        yield {"agent": name[:place], "chat": name[place + 1 :]}


_NOT_FOUND = "no session with this name or id is served here; see list_sessions"
_DIGEST = 40
_MAX_HITS = 200  # maximum hits in one search over all sessions
_MAX_CHECKED = 20  # sessions to check for encryption if nothing was found
ENCRYPTED = "the conversation is encrypted: start `dragoman mcp` with its keys, --key-file ID=FILE"


class SessionPage(NamedTuple):
    """Some sessions, most recently written first, and the cursor of the next page."""

    sessions: list[Listed]
    next_cursor: str | None


class ServedSessions:
    """The store as seen by tools, resources and prompts."""

    def __init__(self, storage: Storage, scope: Scope) -> None:
        self.storage = storage
        self.scope = scope

    # --- listing

    async def all(self) -> list[Session]:
        """Every served session, most recently written first."""
        found = [
            session
            async for session in every_session(self.storage, self.scope.which)
            if self.scope.takes(session.identity)
        ]
        return sorted(found, key=_order)

    async def page(self, limit: int, cursor: str | None) -> SessionPage:
        """A page of sessions; the cursor is the end of the previous page."""
        start = None if cursor is None else _read_cursor(cursor)
        sessions = [s for s in await self.all() if start is None or _order(s) > start]
        shown = sessions[:limit]
        more = _cursor(shown[-1]) if shown and len(sessions) > limit else None
        return SessionPage(await looked_at(self.storage, shown), more)

    async def named(self, name: str) -> Session:
        """The only session with this name or id."""
        found = await sessions_called(self.storage, name, self.scope)
        if len(found) > 1:
            ids = ", ".join(session.identity.digest for session in found[:10])
            msg = f"{len(found)} sessions have this name; use an id instead: {ids}"
            raise InvalidInputError(msg)
        if not found:
            raise NotFound(_NOT_FOUND)
        return found[0]

    async def of_id(self, id: str) -> Session:
        """The session with this id, a complete digest."""
        found = await sessions_with_digest(self.storage, id, limit=1) if len(id) == _DIGEST else []
        if not found or not self.scope.takes(found[0].identity):
            raise NotFound(_NOT_FOUND)
        return found[0]

    def identity_of_new(self, name: str) -> SessionIdentity:
        """The identity for a new session of this name; raises if it would not be served.

        It gets the names that all served sessions have; the part before a slash is its agent.
        """
        agent, slash, chat = name.partition("/")
        own = {"agent": agent, "chat": chat} if slash else {"chat": name}
        identity = SessionIdentity(**{**self.scope.which.names(), **own})
        if not self.scope.takes(identity):
            msg = "a session with this name is outside the scope of this server"
            raise InvalidInputError(msg)
        return identity

    async def history(self, identity: SessionIdentity) -> ChatHistory:
        """The history of a served session."""
        if not self.scope.takes(identity):
            raise NotFound(_NOT_FOUND)
        return await ChatHistory.open(identity, self.storage)

    # --- messages

    async def search(self, text: str, limit: int, session: Session | None) -> list[Hit]:
        """The messages that contain all the words, most recent first."""
        if session is not None:
            hits = await self._found(text, _only(session.identity), limit)
        elif self.scope.is_named:
            hits = await self._found_in_scope(text, limit)
        else:
            hits = await self._found(text, self.scope.which, limit)
        if not hits:
            await self._expect_searchable(session)
        return [hit for hit in hits if self.scope.takes(hit.identity)]

    async def _found(self, text: str, which: Filter, limit: int) -> list[Hit]:
        if isinstance(self.storage, SealedStorage):  # it has no index, and we have the keys
            return await scanned(self.storage, text, which, limit)
        return await self.storage.search(text, which, limit=limit)

    async def _found_in_scope(self, text: str, limit: int) -> list[Hit]:
        """One search finds rare words; hits of common words could all be in other sessions."""
        if not isinstance(self.storage, SealedStorage):
            hits = await self.storage.search(text, self.scope.which, limit=_MAX_HITS)
            if len(hits) < _MAX_HITS:  # there are no more
                return [hit for hit in hits if self.scope.takes(hit.identity)][:limit]
        return await self._found_in_each(text, limit)

    async def _found_in_each(self, text: str, limit: int) -> list[Hit]:
        hits: list[Hit] = []
        for session in await self.all():
            if len(hits) == limit and hits[-1].row.at > session.updated_at:
                break  # the others were written to earlier
            hits += await self._found(text, _only(session.identity), limit)
            hits.sort(key=lambda hit: (hit.row.at, hit.row.seq), reverse=True)
            del hits[limit:]
        return hits

    async def _expect_searchable(self, session: Session | None) -> None:
        """Raise if nothing was found because nothing can be read."""
        if isinstance(self.storage, SealedStorage):
            return
        searched: Sequence[Session] = [] if session is None else [session]
        if session is None and self.scope.is_named:
            searched = await self.all()
        elif session is None:
            searched = await self.storage.sessions(self.scope.which, limit=_MAX_CHECKED)
        for each in searched[:_MAX_CHECKED]:
            if await encrypted_sessions(self.storage, _only(each.identity)):
                msg = f"some sessions can't be searched: {ENCRYPTED}"
                raise ConfigError(msg)


def _only(identity: SessionIdentity) -> Filter:
    return Filter(**{field: getattr(identity, field) for field in FIELDS})


# --- order of sessions, and cursors


def _order(session: Session) -> tuple[float, str]:
    at = session.updated_at  # a damaged store may contain any number
    return (-at if isfinite(at) else 0.0, session.identity.digest)


def _cursor(session: Session) -> str:
    return urlsafe_b64encode(dumps(_order(session))).decode()


def _read_cursor(text: str) -> tuple[float, str]:
    try:
        at, digest = loads(urlsafe_b64decode(text.encode()))
    except (ValueError, TypeError):  # whatever it is, it is not ours
        at = digest = None
    if isinstance(at, (int, float)) and isinstance(digest, str):
        return float(at), digest
    msg = "invalid cursor; omit it to start with the first page"
    raise InvalidInputError(msg)
