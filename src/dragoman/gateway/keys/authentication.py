"""Authenticates API keys: looked up by id, compared in constant time, cached for seconds."""

from __future__ import annotations

import hmac
from collections import OrderedDict
from collections.abc import Callable
from time import monotonic
from typing import NamedTuple

from dragoman.errors import AuthenticationError, DragomanError, RateLimited
from dragoman.gateway.keys.admission import REVOKED
from dragoman.gateway.keys.records import KeyRecord
from dragoman.gateway.keys.secret_form import SECRET_LENGTH, digest_of, id_of
from dragoman.gateway.keys.store import KeyStore
from dragoman.gateway.keys.throttling import Throttle

REMEMBERED = 5.0
"""Seconds that a key is cached; a revoked one may still work that long in other processes."""
_MAX_CACHED = 10_000
_NOBODY = bytes(32)  # matches no secret
_MALFORMED = "malformed"
_WRONG = "the API key is not valid; `dragoman keys create` makes one"
_EXPIRED = "the API key has expired; ask the operator for a new one"
_THROTTLED = "too many invalid API keys from this client; wait a minute"


class _Known(NamedTuple):
    record: KeyRecord
    until: float


class Authenticator:
    """Finds the key of a presented secret, from a cache in most cases."""

    def __init__(
        self, store: KeyStore, clock: Callable[[], float], *, seconds: float = REMEMBERED,
        throttle: Throttle | None = None, monotonic_clock: Callable[[], float] = monotonic,
    ) -> None:  # fmt: skip
        self._store = store
        self._clock = clock
        self._monotonic_clock = monotonic_clock
        self._seconds = seconds
        self._throttle = throttle or Throttle()
        # By digest, so that no secret stays in memory.
        self._known: OrderedDict[bytes, _Known] = OrderedDict()

    def recall(self, presented: str) -> KeyRecord | None:
        """The key's record if it is cached and has no end; None: `authenticate` can tell."""
        if len(presented) > SECRET_LENGTH or not presented.isascii():
            return None
        known = self._known.get(digest_of(presented))
        if known is None or known.until <= self._monotonic_clock():
            return None
        return known.record if known.record.expires_at is None else None

    async def authenticate(self, presented: str, peer: str) -> KeyRecord:
        """The key's record; raises if the key is invalid, revoked or expired."""
        if len(presented) > SECRET_LENGTH or not presented.isascii():
            raise self._failure(peer or _MALFORMED)
        digest = digest_of(presented)
        known = self._known.get(digest)
        if known is None or known.until <= self._monotonic_clock():
            known = await self._look_up(presented, digest, peer)
        expires_at = known.record.expires_at
        if expires_at is not None and expires_at <= self._clock():
            raise _error(_EXPIRED)
        return known.record

    def forget(self, id: str) -> None:
        """Drop a key from the cache."""
        for digest, known in list(self._known.items()):
            if known.record.id == id:
                del self._known[digest]

    async def _look_up(self, presented: str, digest: bytes, peer: str) -> _Known:
        id = id_of(presented)
        asked_at = self._monotonic_clock()
        found = None if id is None else await self._store.find(id)
        # Compare for unknown ids too, so that they take as long as a wrong secret.
        is_right = hmac.compare_digest(_NOBODY if found is None else found.digest, digest)
        if found is None or not is_right:
            self._known.pop(digest, None)
            raise self._failure(peer or id or _MALFORMED)
        if found.record.revoked_at is not None:
            self._known.pop(digest, None)
            raise _error(REVOKED)
        return self._remember(digest, _Known(found.record, asked_at + self._seconds))

    def _remember(self, digest: bytes, known: _Known) -> _Known:
        self._known[digest] = known
        self._known.move_to_end(digest)
        if len(self._known) > _MAX_CACHED:
            self._known.popitem(last=False)
        return known

    def _failure(self, who: str) -> DragomanError:
        """The error for a secret that no key has, and for too many of them.

        Only those are counted and held back: others may share the client's address.
        """
        wait = self._throttle.wait(who)
        if wait > 0:
            return RateLimited(_THROTTLED, status=429, code="rate_limit_exceeded", retry_after=wait)
        self._throttle.note(who)
        return _error(_WRONG)


def _error(text: str) -> AuthenticationError:
    return AuthenticationError(text, status=401, code="invalid_api_key")
