"""Which sessions are served. Everything that reads or writes one asks here first."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from dragoman.errors import ConfigError, InvalidInputError
from dragoman.history.identity import SessionIdentity
from dragoman.history.session_summaries import sessions_with_digest
from dragoman.history.storage.protocol import EVERYTHING, Filter, Session, Storage

_CERTAIN = 12  # digits of an id that nobody means as the beginning of another
_MOST_SLASHES = 16  # of a name, each of which may end an agent's
_LOOK = "`dragoman history list` shows what there is"


class Pattern(NamedTuple):
    """A name with wildcards: of a chat or, with a slash, of an agent and its chats."""

    agent: re.Pattern[str] | None
    chat: re.Pattern[str]

    @classmethod
    def parse(cls, text: str) -> Pattern:
        """`*` is any text, `?` any character; what stands before the first slash is the agent's."""
        agent, slash, chat = text.partition("/")
        return cls(_compiled(agent), _compiled(chat)) if slash else cls(None, _compiled(text))

    def takes(self, identity: SessionIdentity) -> bool:
        """Whether a session has such names: each pattern is for one name, and for all of it."""
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
    """The sessions that are served: those of a filter and, if some are named, only those."""

    which: Filter = EVERYTHING
    identities: frozenset[SessionIdentity] = frozenset()
    patterns: tuple[Pattern, ...] = ()

    @property
    def is_named(self) -> bool:
        """Whether a filter is not enough to say what is served."""
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
    """The scope that these names, patterns and fields mean; a name must be that of one session.

    Names are looked up once: a session that takes the same name later is not served.
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
        ids = ", ".join(identity.digest[:_CERTAIN] for identity in found[:10])
        return f"{len(found)} sessions have the name of a --session; say which by its id: {ids}"
    return (
        "a --session names no session; it takes a whole name (chat or agent/chat), an id or a"
        f" pattern such as 'support/*'; {_LOOK}"
    )


async def sessions_called(storage: Storage, name: str, scope: Scope) -> list[Session]:
    """The served sessions of exactly that name, or whose id begins with these digits."""
    if len(name) >= _CERTAIN:
        found = await sessions_with_digest(storage, name, limit=2)
        if served := [session for session in found if scope.takes(session.identity)]:
            return served
    served = []
    for names in _readings(name):
        try:
            fields: dict[str, Any] = {**scope.which.names(), **names}
            which = Filter(**fields)
        except InvalidInputError:  # half a surrogate pair, or too long: no session is called so
            return []
        found = await storage.sessions(which)
        served += [session for session in found if scope.takes(session.identity)]
    return served


def _readings(name: str) -> Iterable[dict[str, str]]:
    """What a name may mean: a chat, or an agent and its chat; either may hold slashes."""
    yield {"chat": name}
    slashes = [place for place, character in enumerate(name) if character == "/"]
    for place in slashes[:_MOST_SLASHES]:
        yield {"agent": name[:place], "chat": name[place + 1 :]}
