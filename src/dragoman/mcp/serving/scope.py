"""Which sessions are served. Every read and write is checked here first."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from dragoman.errors import ConfigError, InvalidInputError
from dragoman.history.identity import SessionIdentity
from dragoman.history.session_summaries import sessions_with_digest
from dragoman.history.storage.protocol import EVERYTHING, Filter, Session, Storage

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
