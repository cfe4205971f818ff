"""The names of keys. Of a session's names only the digest gets into one."""

from __future__ import annotations

import re

from dragoman.errors import InvalidInputError

_PREFIX = re.compile(r"[A-Za-z0-9_.:-]{1,100}")


class Keys:
    """The keys of a store."""

    def __init__(self, prefix: str) -> None:
        if not _PREFIX.fullmatch(prefix):
            msg = "a prefix of keys is made of up to 100 ASCII letters, digits, '_', '-', '.', ':'"
            raise InvalidInputError(msg)
        self._prefix = prefix
        self.sessions = f"{prefix}:sessions"
        self.asides = f"{prefix}:asides"

    def of(self, digest: str, what: str) -> str:
        """One key of a session; the braces keep them all in one slot."""
        return f"{self._prefix}:{{{digest}}}:{what}"

    def read(self, digest: str) -> list[str]:
        """What a reading script is given: where version 2 keeps a session, where version 1 did."""
        return [self.of(digest, what) for what in ("session", "records", "head", "rows", "ids")]

    def written(self, digest: str) -> list[str]:
        """What a writing script is given."""
        own = (self.of(digest, "aside"), self.asides, self.of(digest, "done"))
        return [*self.read(digest), self.sessions, *own]

    def heads(self) -> list[str]:
        """Patterns that all heads match."""
        return [f"{self._prefix}:{{*}}:{what}" for what in ("session", "head")]

    def digest_of(self, head: str) -> str:
        """The digest in the name of a head."""
        return head[len(self._prefix) + 2 :].partition("}")[0]
