"""Two histories of one session, driven at random, compared with a simple model."""

from __future__ import annotations

import tempfile
from collections.abc import Coroutine, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from dragoman import ChatHistory, ChatHistoryConfig, Message, SessionIdentity
from dragoman.errors import Conflict, ContextTooSmall, NotFound
from dragoman.history import MemoryStorage
from dragoman.history.storage.protocol import Storage
from dragoman.history.storage.sqlite import SQLiteStorage
from dragoman.history.truncation import notes
from dragoman.model import portal

T = TypeVar("T")
ONE = SessionIdentity(chat="7")
Said = tuple[str, str]


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine; blocking stores never suspend."""
    return portal.run_inline(coroutine)


@dataclass
class Stored:
    """The expected content of the store."""

    exists: bool = False
    seq: int = 0
    rows: dict[str, tuple[int, int, str]] = field(default_factory=dict)
    forks: dict[int, tuple[int, int]] = field(default_factory=dict)
    active: int = 0

    def path(self, branch: int, upto: int = 10**9) -> list[Said]:
        """The messages from the first to a branch's last."""
        own = [
            (id, text)
            for id, (seq, on, text) in sorted(self.rows.items(), key=lambda item: item[1])
            if on == branch and seq <= upto
        ]
        return [*self.path(*self.forks[branch]), *own] if branch else own

    def append(self, said: Iterable[Said], branch: int) -> None:
        """Add to the end of a branch."""
        self.exists = True
        for id, text in said:
            self.seq += 1
            self.rows[id] = (self.seq, branch, text)

    def clear(self) -> None:
        """Remove everything except the numbers."""
        self.exists, self.rows, self.forks, self.active = True, {}, {}, 0

    def fork(self, parent: int, at: int) -> int:
        """Add a branch."""
        self.active = max(self.forks, default=0) + 1
        self.forks[self.active] = (parent, at)
        return self.active


@dataclass
class Handle:
    """A history, and its expected content."""

    history: ChatHistory
    autosave: bool
    branch: int = 0
    cleared: bool = False
    added: list[Said] = field(default_factory=list)
    replaced: dict[str, str] = field(default_factory=dict)
    removed: set[str] = field(default_factory=set)

    @property
    def is_dirty(self) -> bool:
        """Whether there are unsaved changes."""
        return bool(self.cleared or self.added or self.replaced or self.removed)

    def forget(self) -> None:
        """Drop pending changes."""
        self.cleared, self.added, self.replaced, self.removed = False, [], {}, set()

    def of_stored(self, stored: list[Said]) -> list[Said]:
        """The stored messages as this handle sees them."""
        if self.cleared:
            return []
        return [(id, self.replaced.get(id, t)) for id, t in stored if id not in self.removed]


class Histories(RuleBasedStateMachine):
    """All operations, in any order."""

    def storage(self) -> Storage:
        """The storage to use."""
        return MemoryStorage()

    @initialize(first=st.booleans(), second=st.booleans())
    def begin(self, first: bool, second: bool) -> None:
        """Two handles on one session, each with or without autosave."""
        self.place = self.storage()
        run(self.place.open())
        self.stored = Stored()
        self.ids: list[str] = []
        self.said = 0
        self.handles = [self.opened(first), self.opened(second)]

    def opened(self, autosave: bool) -> Handle:
        """Another history."""
        config = ChatHistoryConfig(
            autosave=autosave, context_window=400, reserved_for_completion=100
        )
        return Handle(run(ChatHistory.open(ONE, self.place, config)), autosave, self.stored.active)

    def text(self) -> str:
        """A new text."""
        self.said += 1
        return f"text {self.said} " + "word " * 20

    def view(self, handle: Handle) -> list[Said]:
        """The expected messages of a handle."""
        return [*handle.of_stored(self.stored.path(handle.branch)), *handle.added]

    def noticed(self) -> None:
        """After a clear the branches are gone: a handle continues on the first."""
        for handle in self.handles:
            run(handle.history.messages())
            if handle.branch not in self.stored.forks:
                handle.branch = 0

    # --- writing

    picks = st.integers(0, 10**6)
    which = st.integers(0, 1)

    @rule(which=which, count=st.integers(1, 3))
    def extend(self, which: int, count: int) -> None:
        """Add messages."""
        handle = self.handles[which]
        given = [Message.user(self.text()) for _ in range(count)]
        self.took(handle, given, list(run(handle.history.extend(given))))

    def took(self, handle: Handle, given: list[Message], added: list[Message]) -> None:
        """Update the model."""
        assert [m.text for m in added] == [m.text for m in given]
        said = [(message.id, message.text) for message in added]
        self.ids += [id for id, _ in said]
        if handle.autosave:
            self.stored.append(said, handle.branch)
        else:
            handle.added += said

    @rule(which=which, pick=picks)
    def say_again(self, which: int, pick: int) -> None:
        """Add an existing message again: alone, and twice in one call."""
        handle = self.handles[which]
        present = self.view(handle)
        if not present:
            return
        id, text = present[pick % len(present)]
        message = Message.user(text).with_id(id)
        added = list(run(handle.history.extend([message, message])))
        assert len({id, *(each.id for each in added)}) == 3
        self.took(handle, [message, message], added)

    @rule(which=which, off=st.integers(-1, 1))
    def expect_version(self, which: int, off: int) -> None:
        """A conflict changes nothing."""
        handle = self.handles[which]
        session = run(self.place.session(ONE))
        version = (0 if session is None else session.version) + off
        if version < 0:
            return
        message = Message.user(self.text())
        if off:
            with pytest.raises(Conflict) as raised:
                run(handle.history.add(message, expected_version=version))
            assert (raised.value.expected, raised.value.actual) == (version, version - off)
        else:
            added = run(handle.history.add(message, expected_version=version))
            self.took(handle, [message], [added])

    @rule(which=which, pick=picks)
    def replace(self, which: int, pick: int) -> None:
        """Replace a message of any branch; a removed one is an error."""
        if not self.ids:
            return
        handle, id, text = self.handles[which], self.ids[pick % len(self.ids)], self.text()
        if self.knows(handle, id) or id in handle.replaced:
            run(handle.history.replace(id, text))
            self.replaced(handle, id, text)
        else:
            with pytest.raises(NotFound):
                run(handle.history.replace(id, text))

    def replaced(self, handle: Handle, id: str, text: str) -> None:
        """Update the model."""
        if handle.autosave:
            seq, branch, _ = self.stored.rows[id]
            self.stored.rows[id] = (seq, branch, text)
        elif id in dict(handle.added):
            handle.added = [(each, text if each == id else old) for each, old in handle.added]
        else:
            handle.replaced[id] = text

    def knows(self, handle: Handle, id: str) -> bool:
        """Whether a handle knows such a message."""
        if id in dict(handle.added):
            return True
        return not handle.cleared and id not in handle.removed and id in self.stored.rows

    @rule(which=which, pick=picks)
    def remove(self, which: int, pick: int) -> None:
        """Remove a message of any branch, once."""
        if not self.ids:
            return
        handle, id = self.handles[which], self.ids[pick % len(self.ids)]
        if not self.knows(handle, id) and id not in handle.replaced:
            with pytest.raises(NotFound):
                run(handle.history.remove(id))
            return
        run(handle.history.remove(id))
        if handle.autosave:
            del self.stored.rows[id]
        elif id in dict(handle.added):
            handle.added = [each for each in handle.added if each[0] != id]
        else:
            handle.replaced.pop(id, None)
            handle.removed.add(id)

    @rule(which=which, pick=picks)
    def pin(self, which: int, pick: int) -> None:
        """A pinned message is unchanged, and in the window."""
        handle = self.handles[which]
        present = [id for id, _ in self.view(handle)]
        # One that another writer removed can be replaced here, unknowingly, but not be read.
        present = [id for id in present if self.knows(handle, id)]
        if not present:
            return
        id = present[pick % len(present)]
        pinned = run(handle.history.pin(id))
        self.replaced(handle, id, pinned.text)
        with suppress(ContextTooSmall):
            assert id in [message.id for message in run(handle.history.window())]
        run(handle.history.unpin(id))

    @rule(which=which)
    def clear(self, which: int) -> None:
        """Clear all branches."""
        handle = self.handles[which]
        run(handle.history.clear())
        if handle.autosave:
            self.stored.clear()
            handle.branch = 0
            self.noticed()
        else:
            handle.forget()
            handle.cleared = True

    @rule(which=which)
    def save(self, which: int) -> None:
        """Save everything possible: a message that another writer removed can't be replaced."""
        handle = self.handles[which]
        wanted = {} if handle.cleared else handle.replaced
        is_lost = any(id not in self.stored.rows for id in wanted)
        if is_lost:
            with pytest.raises(NotFound):
                run(handle.history.save())
        else:
            run(handle.history.save())
        self.saved(handle)

    def saved(self, handle: Handle) -> None:
        """Update the model."""
        assert not handle.history.is_dirty
        if handle.cleared:
            self.stored.clear()
            handle.branch = 0
        for id, text in handle.replaced.items():
            if id in self.stored.rows:
                seq, branch, _ = self.stored.rows[id]
                self.stored.rows[id] = (seq, branch, text)
        for id in handle.removed:
            self.stored.rows.pop(id, None)
        if handle.added:
            self.stored.append(handle.added, handle.branch)
        handle.forget()
        self.noticed()

    # --- branches

    @rule(which=which, pick=picks)
    def fork(self, which: int, pick: int) -> None:
        """Fork after any stored message; unsaved ones are saved first."""
        handle = self.handles[which]
        self.save(which)
        if not self.stored.rows:
            with pytest.raises(NotFound):
                run(handle.history.fork("msg_unknown"))
            return
        id = list(self.stored.rows)[pick % len(self.stored.rows)]
        branch = run(handle.history.fork(id))
        seq, parent, _ = self.stored.rows[id]
        handle.branch = self.stored.fork(parent, seq)
        assert (branch.number, branch.leaf, branch.forked_at) == (handle.branch, id, id)

    @rule(which=which, pick=picks)
    def edit(self, which: int, pick: int) -> None:
        """Equivalent to forking before it and adding another message."""
        handle = self.handles[which]
        self.save(which)
        if not self.stored.rows:
            return
        id = list(self.stored.rows)[pick % len(self.stored.rows)]
        message = Message.user(self.text())
        edited = run(handle.history.edit(id, message))
        seq, parent, _ = self.stored.rows[id]
        handle.branch = self.stored.fork(parent, seq - 1)
        self.took(handle, [message], [edited])

    @rule(which=which, number=st.integers(0, 4))
    def switch(self, which: int, number: int) -> None:
        """Switch to any existing branch."""
        handle = self.handles[which]
        self.save(which)
        if number in {0, *self.stored.forks} and self.stored.exists:
            run(handle.history.switch(number))
            handle.branch = self.stored.active = number
        else:
            with pytest.raises(NotFound):
                run(handle.history.switch(number))

    @rule(which=which)
    def reopen(self, which: int) -> None:
        """Unsaved changes are lost; it opens on the active branch."""
        run(self.handles[which].history.close())
        self.handles[which] = self.opened(self.handles[which].autosave)

    @rule(which=which)
    def delete(self, which: int) -> None:
        """The session is absent afterwards."""
        handle = self.handles[which]
        assert run(handle.history.delete()) is self.stored.exists
        self.stored = Stored()
        handle.forget()
        handle.branch = 0
        self.noticed()

    # --- reading

    @rule(which=which, count=st.integers(0, 6))
    def tail(self, which: int, count: int) -> None:
        """The end of the expected messages."""
        handle = self.handles[which]
        found = [(m.id, m.text) for m in run(handle.history.tail(count))]
        present = self.view(handle)
        assert found == present[max(len(present) - count, 0) :]

    @rule(which=which, pick=picks)
    def path(self, which: int, pick: int) -> None:
        """The path to any stored or unsaved message."""
        handle = self.handles[which]
        if not self.ids:
            return
        id = self.ids[pick % len(self.ids)]
        if not self.knows(handle, id):
            with pytest.raises(NotFound):
                run(handle.history.path(id))
            return
        found = [(m.id, m.text) for m in run(handle.history.path(id))]
        if id in dict(handle.added):
            present = self.view(handle)
            assert found == present[: [each for each, _ in present].index(id) + 1]
        else:
            seq, branch, _ = self.stored.rows[id]
            assert found == handle.of_stored(self.stored.path(branch, seq))

    @rule(which=which, size=st.sampled_from([200, 300, 400, 10_000]))
    def window(self, which: int, size: int) -> None:
        """A part of the expected messages, in order, up to the end; without notes."""
        handle = self.handles[which]
        present = self.view(handle)
        try:
            window = run(handle.history.window(size))
        except ContextTooSmall:
            return
        found = [(m.id, m.text) for m in window if notes.kind_of(m) is None]
        places = [present.index(each) for each in found]
        assert places == sorted(set(places))
        assert found[-1:] == present[-1:]

    @invariant()
    def shows_what_it_should(self) -> None:
        """Both handles show the expected messages: nothing is lost or duplicated."""
        for handle in self.handles:
            present = self.view(handle)
            found = run(handle.history.messages())
            assert [(m.id, m.text) for m in found] == present
            assert run(handle.history.count()) == len(present)
            assert handle.history.is_dirty is handle.is_dirty
            assert handle.history.branch == handle.branch

    def teardown(self) -> None:
        """Close the store."""
        run(self.place.close())


class HistoriesInSQLite(Histories):
    """The same on a file."""

    def storage(self) -> Storage:
        """A new file."""
        self.folder = tempfile.TemporaryDirectory()
        return SQLiteStorage(Path(self.folder.name) / "chats.db", blocking=True)

    def teardown(self) -> None:
        """Close it."""
        super().teardown()
        self.folder.cleanup()


_LONG = settings(
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
TestHistories = Histories.TestCase
TestHistories.settings = _LONG
TestHistoriesInSQLite = HistoriesInSQLite.TestCase
TestHistoriesInSQLite.settings = settings(_LONG, max_examples=max(5, _LONG.max_examples // 3))
