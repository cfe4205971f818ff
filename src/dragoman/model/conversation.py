"""A growing, thread-safe conversation; under `Policy.STRICT` always in a valid order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum
from threading import RLock
from typing import Any, Never, Self, TypeVar, overload

import msgspec

from dragoman.errors import InvalidInputError, NotFound, OrderError
from dragoman.model import document
from dragoman.model.collection import Messages
from dragoman.model.jsontext import JsonText
from dragoman.model.messages import Message, settle_all
from dragoman.model.roles import Role
from dragoman.model.tools import ToolCall
from dragoman.model.value import expect

C = TypeVar("C", bound="ConversationHistory")


class Policy(StrEnum):
    """How strictly a conversation checks the order of its messages."""

    STRICT = "strict"
    """One system message, at the start; user and assistant alternate; tool results only for
    pending calls; no call id is used twice."""
    LENIENT = "lenient"
    """Any order. Invalid sequences are repaired when a request is encoded."""

    @classmethod
    def _missing_(cls, value: object) -> Never:
        msg = f"unknown policy of type {type(value).__name__}; expected strict or lenient"
        raise InvalidInputError(msg)


class _Order:
    """The rules of `Policy.STRICT` and the current state of a conversation; each step is O(1)."""

    __slots__ = ("is_instructed", "last_spoken", "last_was_tool", "pending", "system_first", "used")

    def __init__(self, *, system_first: bool, messages: Iterable[Message] = ()) -> None:
        self.system_first = system_first
        self.is_instructed = False
        self.last_spoken: Role | None = None
        self.last_was_tool = False
        self.pending: dict[str, ToolCall] = {}
        self.used: set[str] = set()
        for message in messages:
            self.step(message)

    def problem(self, message: Message, *, is_stored: bool = False) -> str | None:
        """Why a message is not allowed next, or `None` if it is.

        A stored conversation may reuse call ids: documents of earlier versions contain such cases.
        """
        problem = self._misplaced(message)
        if problem is None and message.tool_calls:
            problem = self._reused(message, is_stored=is_stored)
        return problem

    def _misplaced(self, message: Message) -> str | None:
        role = message.role
        if message.tool_calls and role is not Role.ASSISTANT:
            return "only assistant messages may have tool_calls"
        if message.tool_results and role is not Role.TOOL:
            return "tool results belong in a tool message; see Messages.split_results"
        if role.is_system and self.is_instructed:
            return "a system message is already there"
        if role is Role.TOOL and not self.pending:  # at any position, also as the first message
            return "a tool message must follow an assistant message with tool_calls"
        if self._is_before_system(role):
            return "the system message must come first"
        return self._tool_problem(message) if role is Role.TOOL else self._spoken_problem(message)

    def _is_before_system(self, role: Role) -> bool:
        """Whether the system message is still missing, or comes too late."""
        if self.is_instructed:
            return False
        return self.last_spoken is not None if role.is_system else self.system_first

    def _spoken_problem(self, message: Message) -> str | None:
        role = message.role
        if self.pending:
            count = len(self.pending)
            return f"{count} tool_calls have no result yet; add the tool messages first"
        # After tool results, either the assistant answers or the user continues.
        if role is self.last_spoken and not (role is Role.ASSISTANT and self.last_was_tool):
            return "user and assistant messages must alternate"
        return None

    def _reused(self, message: Message, *, is_stored: bool) -> str | None:
        ids = [call.id for call in message.tool_calls]
        if len(ids) != len(set(ids)):
            return "two tool_calls of the message have the same id"
        if not is_stored and not self.used.isdisjoint(ids):
            return "a tool call reuses the id of an earlier call"
        return None

    def _tool_problem(self, message: Message) -> str | None:
        ids = [result.call_id for result in message.tool_results]
        if not ids or len(ids) != len(message.parts):
            return "a tool message may hold tool results only"
        if len(ids) != len(set(ids)) or not self.pending.keys() >= set(ids):
            return "a tool_call_id does not match any pending tool call"
        return None

    def step(self, message: Message) -> None:
        """Updates the state, whether the rules allow the message or not."""
        role = message.role
        if role.is_system:
            self.is_instructed = True
            return
        self.last_was_tool = role is Role.TOOL
        for result in message.tool_results:
            self.pending.pop(result.call_id, None)
        if role is not Role.TOOL:
            self.last_spoken = role
            for call in message.tool_calls:
                self.pending[call.id] = call
                self.used.add(call.id)


class ConversationHistory:
    """An ordered, thread-safe list of messages that can enforce the order of a conversation.

    >>> history = ConversationHistory(policy=Policy.STRICT)
    >>> history.add(Message.system("You are a guide."))
    >>> history.add(Message.user("Where is the Old Bridge?"))
    >>> len(history), history.last.role.value
    (2, 'user')

    A strict conversation starts with a system message. `system_first=False` makes it optional, for
    when instructions are passed separately. An agent does that: given an empty conversation, it
    starts with the user's message.
    """

    def __init__(
        self,
        messages: Any = (),
        *,
        policy: Policy | str = Policy.STRICT,
        system_first: bool = True,
    ) -> None:
        expect(system_first, bool, "system_first")
        self._policy = Policy(policy)
        self._system_first = system_first
        self._lock = RLock()
        self._messages = Messages()
        self._order = _Order(system_first=system_first)
        self.add_all(messages)

    def add(self, message: Any) -> None:
        """Adds a message; raises `OrderError` if the policy does not allow it next."""
        self._add(Message.from_any(message))

    def _add(self, added: Message, *, is_stored: bool = False) -> None:
        with self._lock:
            if self._policy is Policy.STRICT:
                problem = self._order.problem(added, is_stored=is_stored)
                if problem is not None:
                    msg = f"message {len(self._messages)}: {problem}"
                    raise OrderError(msg)
            self._order.step(added)
            self._messages = self._messages.append(added)

    def add_all(self, messages: Any) -> None:
        """Adds several messages, or none of them if one is not allowed."""
        with self._lock:
            before, system_first = self._messages, self._order.system_first
            try:
                for message in Messages.from_any(messages):
                    self.add(message)
            except BaseException:  # also on KeyboardInterrupt: all or none
                self._messages = before
                self._order = _Order(system_first=system_first, messages=before)
                raise

    def waive_system(self) -> None:
        """Makes the system message optional, if there are no messages yet.

        For callers that pass instructions with each request, as an agent does. `clear` restores the
        original setting.
        """
        with self._lock:
            if not self._messages:
                self._order.system_first = False

    def replace(self, id: str, message: Any) -> None:
        """Replaces the message with this id; the new message takes over the id.

        Raises `NotFound` if there is no such message, and `OrderError` if the policy does not allow
        the new one. Nothing changes in either case.
        """
        new = Message.from_any(message).with_id(id)
        with self._lock:
            place = self._messages.find("id", id)
            if place is None:
                msg = "there is no message with that id"
                raise NotFound(msg)
            kept, system_first = self._messages, self._order.system_first
            changed = ConversationHistory(
                (*kept[:place], new, *kept[place + 1 :]),
                policy=self._policy,
                system_first=system_first,
            )
            self._messages, self._order = changed._messages, changed._order

    def clear(self) -> None:
        """Removes all messages."""
        with self._lock:
            self._messages = Messages()
            self._order = _Order(system_first=self._system_first)

    @property
    def policy(self) -> Policy:
        """The policy that new messages are checked against."""
        return self._policy

    @property
    def messages(self) -> Messages:
        """A snapshot of all messages; later additions don't change it."""
        with self._lock:
            return self._messages

    @property
    def last(self) -> Message | None:
        """The last message, or `None`."""
        return self.messages.last

    @property
    def pending_tool_calls(self) -> tuple[ToolCall, ...]:
        """The tool calls without a result, in order."""
        with self._lock:
            return tuple(self._order.pending.values())

    def validate(self, policy: Policy | str = Policy.STRICT) -> None:
        """Raises `OrderError` unless all messages follow the policy and every call has a result."""
        if Policy(policy) is Policy.LENIENT:
            return
        with self._lock:
            messages, order = self._messages, _Order(system_first=self._order.system_first)
        for index, message in enumerate(messages):
            problem = order.problem(message)
            if problem is not None:
                msg = f"message {index}: {problem}"
                raise OrderError(msg)
            order.step(message)
        if order.pending:
            msg = f"{len(order.pending)} tool_calls at the end have no result"
            raise OrderError(msg)

    def to_json(self) -> bytes:
        """Serialises messages and policy to versioned JSON."""
        with self._lock:
            messages, system_first = tuple(self._messages), self._order.system_first
        settle_all(messages)
        stored = StoredConversation(self.policy, messages, system_first)
        return document.write("ConversationHistory", stored)

    @classmethod
    def from_json(cls, raw: JsonText) -> Self:
        """Reads the output of `to_json`; if the policy is strict, the order is checked."""
        stored: StoredConversation = document.read(raw, "ConversationHistory")
        return cls.restored(stored.messages, policy=stored.policy, system_first=stored.system_first)

    @classmethod
    def restored(cls, messages: Iterable[Message], *, policy: Policy, system_first: bool) -> Self:
        """Rebuilds a stored conversation; unlike `add`, it accepts duplicate call ids."""
        made = cls(policy=policy, system_first=system_first)
        for message in messages:
            made._add(message, is_stored=True)
        return made

    def to_messages(self) -> Messages:
        """A snapshot of all messages."""
        return self.messages

    def __len__(self) -> int:
        return len(self.messages)

    def __iter__(self) -> Iterator[Message]:
        return iter(self.messages)

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> Messages: ...
    def __getitem__(self, index: int | slice) -> Message | Messages:
        return self.messages[index]

    def __contains__(self, message: object) -> bool:
        return message in self.messages

    def __reduce__(self) -> tuple[Any, ...]:
        with self._lock:
            return _restored, (
                type(self), self._messages, self._policy, self._order.system_first,
            )  # fmt: skip

    def _repr_markdown_(self) -> str:
        """The conversation as Markdown, for notebooks."""
        from dragoman.model.markdown import markdown

        return markdown(self.messages)

    def __repr__(self) -> str:
        return f"ConversationHistory({self.policy.value}, {len(self)} messages)"


def _restored(
    kind: type[C],
    messages: Iterable[Message],
    policy: Policy,
    system_first: bool = True,  # noqa: FBT001, FBT002 - positional in pickles
) -> C:
    return kind.restored(messages, policy=policy, system_first=system_first)


class StoredConversation(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The serialised form of a conversation."""

    policy: Policy
    messages: tuple[Message, ...]
    system_first: bool = True


document.register("ConversationHistory", StoredConversation)
