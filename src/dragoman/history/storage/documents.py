"""`Documents`: one document per name on a ledger, for state that many writers change at once.

A document is kept as a session that has it in the place of its windows. Changes that wait for the
same document share a commit: while one is on its way, the next ones gather. So a document that
everybody changes takes fewer commits than changes, and the ledger settles what others did.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from threading import Lock
from time import monotonic, time
from typing import Any, Generic, NamedTuple, TypeVar, cast

import msgspec
from msgspec.structs import replace

from dragoman.errors import Corrupt
from dragoman.history.identity import SessionIdentity
from dragoman.history.storage.heads import Head, Stored, stored_of
from dragoman.history.storage.integrity import Tally, is_damaged, tally_of
from dragoman.history.storage.ledger import Ledger
from dragoman.history.storage.protocol import MAIN, Entry, Filter, Row, Session, placed
from dragoman.history.storage.shelf import Change

D = TypeVar("D")
A = TypeVar("A")
Work = Callable[[D], tuple[bool, A]]
"""Changes a document in place, and tells whether it did, with an answer. Must not raise.

It runs again if another writer was faster, or if it changed nothing and the document was cached.
"""
WorkWithRows = Callable[[D], Awaitable[tuple[Sequence[Entry] | None, A]]]
"""Like `Work`, with rows to write beside the document; `None`: nothing is to be written."""
_CACHED = 1000  # documents whose decoded form is cached
_PAGE = 500


class Known(NamedTuple, Generic[D]):
    """A document as this process wrote or read it last."""

    session: Session
    document: D
    since: float
    """By the monotonic clock."""


class Documents(Generic[D]):
    """The documents of one kind, in one scope of names."""

    def __init__(self, ledger: Ledger, scope: str, kind: type[D], damaged: str) -> None:
        """`damaged` is what to say of a document that can't be read."""
        self.ledger = ledger
        self._damaged = damaged
        self._scope = scope
        self._new = kind
        self._encode = msgspec.msgpack.Encoder().encode
        self._decode = msgspec.msgpack.Decoder(kind).decode
        self._queues: dict[str, list[tuple[Work[D, Any], asyncio.Future[Any]]]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        # Who changes a document takes it out, under the lock: the ledger may work on a thread.
        self._known: dict[str, Known[D]] = {}
        self._lock = Lock()

    def identity(self, name: str) -> SessionIdentity:
        """The session that a document is kept as."""
        return SessionIdentity(chat=name, scope=self._scope)

    # --- changes

    def change(self, identity: SessionIdentity, work: Work[D, A]) -> asyncio.Future[A]:
        """What `work` answers, once its change is committed; it is made whoever waits for it.

        A document that does not exist is an empty one.
        """
        answer: asyncio.Future[A] = asyncio.get_running_loop().create_future()
        queue = self._queues.get(identity.digest)
        if queue is not None:
            queue.append((work, answer))
            return answer
        queue = self._queues[identity.digest] = [(work, answer)]
        task = asyncio.create_task(self._serve(identity, queue))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return answer

    async def _serve(
        self, identity: SessionIdentity, queue: list[tuple[Work[D, Any], asyncio.Future[Any]]]
    ) -> None:
        batch: list[tuple[Work[D, Any], asyncio.Future[Any]]] = []
        try:
            while queue:
                batch = queue[:]
                queue.clear()
                works = [work for work, _ in batch]
                failed: Exception | None = None
                answers: Sequence[Any] = works
                try:
                    answers = await self.ledger.whole(self._made, identity, works)
                except Corrupt:
                    failed = Corrupt(self._damaged)
                except Exception as error:  # noqa: BLE001 - belongs to those who wait
                    failed = error
                for (_, waiting), answer in zip(batch, answers, strict=True):
                    if waiting.done():
                        continue
                    if failed is None:
                        waiting.set_result(answer)
                    else:
                        waiting.set_exception(failed)
        finally:
            del self._queues[identity.digest]
            for _, waiting in (*batch, *queue):
                waiting.cancel()  # only when the loop ends: the others have their answers

    async def _made(self, identity: SessionIdentity, works: Sequence[Work[D, Any]]) -> list[Any]:
        answers: list[Any] = []
        seen: list[D] = []

        def changed(session: Session) -> Change:
            with self._lock:
                seen[:] = [document] = [self._taken(session)]
                done = [work(document) for work in works]
            answers[:] = [answer for _, answer in done]
            if not any(is_changed for is_changed, _ in done):
                raise _UnchangedError(session)
            return Change(replace(session, windows=self._encode(document)))

        for _ in range(2):
            is_cached = identity.digest in self._known
            try:
                now = await self.ledger.change(identity, changed, at=time(), is_cached=is_cached)
            except _UnchangedError as error:
                if is_cached:
                    continue  # perhaps it was outdated
                now = error.session
            self._remember(Known(now, seen[0], monotonic()))
            break
        return answers

    def _taken(self, session: Session) -> D:
        known = self._known.pop(session.identity.digest, None)
        if known is not None and known.session is session:
            return known.document
        return self.opened(session)

    def opened(self, session: Session) -> D:
        """The document in a session; raises `Corrupt`."""
        if session.windows is None and not session.version:
            return self._new()
        try:
            return self._decode(session.windows or b"")
        except (msgspec.MsgspecError, UnicodeError):
            pass
        raise Corrupt(self._damaged)

    def _remember(self, known: Known[D]) -> None:
        with self._lock:
            if len(self._known) >= _CACHED:
                self._known.pop(next(iter(self._known)))
            self._known[known.session.identity.digest] = known

    def peek(self, identity: SessionIdentity, look: Callable[[D], A], seconds: float) -> A | None:
        """What `look` tells of the document as it was known less than some seconds ago."""
        with self._lock:
            known = self._known.get(identity.digest)
            if known is None or monotonic() - known.since > seconds:
                return None
            return look(known.document)

    async def change_with_rows(self, identity: SessionIdentity, work: WorkWithRows[D, A]) -> A:
        """Like `change`, alone in its commit. A row takes the place of one with the same id."""
        answers: list[A] = []

        async def changed(session: Session) -> Change:
            document = self.opened(session)
            entries, answer = await work(document)
            answers[:] = [answer]
            if entries is None:
                raise _UnchangedError(session)
            written = replace(session, windows=self._encode(document))
            return await self._with_rows(written, entries)

        async def made() -> None:
            with self._lock:
                self._known.pop(identity.digest, None)
            with suppress(_UnchangedError):
                await self.ledger.change(identity, changed, at=time(), is_cached=False)

        await self._told(self.ledger.whole(made))
        return answers[0]

    async def _with_rows(self, session: Session, entries: Sequence[Entry]) -> Change:
        old = {row.id: row.seq for row in await self.rows(session.identity, entries)}
        version, last, rows, forks = cast("Tally", tally_of(session))
        puts: list[Row] = []
        for entry in entries:
            is_new = entry.id not in old
            last += is_new
            puts.append(placed(entry, last if is_new else old[entry.id], MAIN))
        new = Tally(version + 1, last, rows + len(entries) - len(old), forks)
        head = replace(session, version=new.version, last_seq=new.last_seq, chain=str(new))
        return Change(head, puts, [*old])

    # --- reading

    async def rows(self, identity: SessionIdentity, ids: Sequence[Entry | str]) -> list[Row]:
        """The rows beside a document with these ids, as far as they exist."""
        names = [each if isinstance(each, str) else each.id for each in ids]
        return await self.ledger.shelf.named(identity.digest, names)

    async def read(self, identity: SessionIdentity) -> D | None:
        """The newest document; `None` if there is none."""
        session = await self._told(self.ledger.session(identity))
        return None if session is None else self.opened(session)

    async def read_with_rows(self, identity: SessionIdentity) -> tuple[D, list[Row]] | None:
        """The newest document and all rows beside it."""
        while True:
            session = await self._told(self.ledger.session(identity))
            if session is None:
                return None
            rows = await self.ledger.rows(identity) if session.last_seq else []
            now = await self.ledger.session(identity) if rows else session
            if now is not None and now.version == session.version:
                return self.opened(now), rows

    async def all(self) -> AsyncIterator[tuple[Session, D | None]]:
        """All documents with their sessions; `None` for a damaged one."""
        after = ""
        which = Filter(scope=self._scope)
        while page := await self.ledger.sessions(which, limit=_PAGE, after=after):
            for session in page:
                yield session, self._readable(session)
            after = page[-1].identity.digest

    def _readable(self, session: Session) -> D | None:
        if is_damaged(session):
            return None
        try:
            return self.opened(session)
        except Corrupt:
            return None

    def stored(self, identity: SessionIdentity, document: D) -> Stored:
        """A new document as a shelf keeps it: for migrations."""
        stamp, at = secrets.randbits(62) + 1, time()
        session = Session(
            identity, 0, 0, at, at, windows=self._encode(document), chain=str(Tally(0, 0, 0))
        )
        return stored_of(Head(session, stamp, stamp))

    async def create(self, identity: SessionIdentity, document: D) -> bool:
        """Stores a document unless there is one."""

        def created(session: Session) -> Change:
            if session.windows is not None:
                raise _UnchangedError(session)
            return Change(replace(session, windows=self._encode(document)))

        try:
            await self.ledger.change(identity, created, at=time(), is_cached=False)
        except _UnchangedError:
            return False
        return True

    async def _told(self, asked: Awaitable[A]) -> A:
        """An answer; what is said of damage is about documents."""
        try:
            return await asked
        except Corrupt:
            pass
        raise Corrupt(self._damaged)

    async def replace(self, identity: SessionIdentity, document: D) -> None:
        """Puts another document in the place of a damaged one."""
        with self._lock:
            self._known.pop(identity.digest, None)
        await self.ledger.set_aside(identity, (), "its document was damaged")
        raw = self._encode(document)
        await self.ledger.change(
            identity, lambda session: Change(replace(session, windows=raw)), at=time()
        )


class _UnchangedError(Exception):
    """Nothing is to be written."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.session = session
