"""The names of keys. Of a session's names, only the digest is part of one."""

from __future__ import annotations

import re

from dragoman.errors import InvalidInputError

_COMMITTED = 7
_PREFIX = re.compile(r"[A-Za-z0-9_.:-]{1,100}")


class Keys:
    """The keys of a store."""

    def __init__(self, prefix: str) -> None:
        if not _PREFIX.fullmatch(prefix):
            msg = "a key prefix must be up to 100 ASCII letters, digits, '_', '-', '.' and ':'"
            raise InvalidInputError(msg)
        self._prefix = prefix
        self._last: tuple[str, list[str]] = "", []  # most calls are about the same session again
        self.sessions = f"{prefix}:sessions"
        self.asides = f"{prefix}:asides"
        self.feed = f"{prefix}:feed"
        self.feed_last = f"{prefix}:feed:last"

    def of(self, digest: str, what: str) -> str:
        """One key of a session; the braces put all of them into one slot."""
        return f"{self._prefix}:{{{digest}}}:{what}"

    def written(self, digest: str) -> list[str]:
        """The keys for a script: those of a session, and those of the store."""
        if digest == self._last[0]:
            return self._last[1]
        own = [self.of(digest, what) for what in ("session", "records", "ids")]
        later = (self.of(digest, what) for what in ("done", "head", "rows", "aside"))
        keys = [*own, self.sessions, self.feed, self.feed_last, *later, self.asides]
        self._last = digest, keys
        return keys

    def committed(self, digest: str) -> list[str]:
        """The first of these, for a commit."""
        return self.written(digest)[:_COMMITTED]

    def heads(self) -> list[str]:
        """Patterns that match all heads."""
        return [f"{self._prefix}:{{*}}:session"]

    def digest_of(self, head: str) -> str:
        """The digest in the name of a head."""
        return head[len(self._prefix) + 2 :].partition("}")[0]
