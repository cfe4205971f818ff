"""The names of keys. Of a session's names, only the digest is part of one."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dragoman.errors import InvalidInputError

_COMMITTED = 7
_NO_TAGS = ("",)
_TAGS = tuple(f"{number:02x}" for number in range(256))
_PREFIX = re.compile(r"[A-Za-z0-9_.:-]{1,100}")


class Keys:
    """The keys of a store.

    In a cluster, the keys of a script must be in one slot. There the braces hold the first two
    digits of the digest, and each of these tags has a list of sessions, a feed, and so on: sorted
    by their tags, the lists are one list in order.
    """

    def __init__(self, prefix: str) -> None:
        if not _PREFIX.fullmatch(prefix):
            msg = "a key prefix must be up to 100 ASCII letters, digits, '_', '-', '.' and ':'"
            raise InvalidInputError(msg)
        self._prefix = prefix
        self._last: tuple[str, list[str]] = "", []  # most calls are about the same session again
        self.is_cluster = False

    @property
    def tags(self) -> Sequence[str]:
        """The tags of all lists: a single empty one outside a cluster."""
        return _TAGS if self.is_cluster else _NO_TAGS

    def tag_of(self, digest: str) -> str:
        """The tag of a session's lists."""
        return digest[:2] if self.is_cluster else ""

    def shared(self, what: str, tag: str) -> str:
        """A key that sessions share: `sessions`, `asides`, `feed` or `feed:last`."""
        return f"{self._prefix}:{{{tag}}}:{what}" if tag else f"{self._prefix}:{what}"

    def of(self, digest: str, what: str) -> str:
        """One key of a session; the braces put all of them into one slot."""
        if self.is_cluster:
            return f"{self._prefix}:{{{digest[:2]}}}:{digest}:{what}"
        return f"{self._prefix}:{{{digest}}}:{what}"

    def written(self, digest: str) -> list[str]:
        """The keys for a script: those of a session, and those that it shares."""
        if digest == self._last[0]:
            return self._last[1]
        tag = self.tag_of(digest)
        own = [self.of(digest, what) for what in ("session", "records", "ids")]
        shared = [self.shared(what, tag) for what in ("sessions", "feed", "feed:last")]
        later = [self.of(digest, what) for what in ("done", "head", "rows", "aside")]
        keys = [*own, *shared, *later, self.shared("asides", tag)]
        self._last = digest, keys
        return keys

    def committed(self, digest: str) -> list[str]:
        """The first of these, for a commit."""
        return self.written(digest)[:_COMMITTED]

    def heads(self) -> str:
        """A pattern that matches all heads."""
        return (
            f"{self._prefix}:{{??}}:*:session"
            if self.is_cluster
            else f"{self._prefix}:{{*}}:session"
        )

    def digest_of(self, head: str) -> str:
        """The digest in the name of a head."""
        tagged = head[len(self._prefix) + 2 :]
        return tagged.split(":")[1] if self.is_cluster else tagged.partition("}")[0]
