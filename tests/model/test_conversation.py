"""A growing conversation: seed 004's rules, thread safety, and serialisation."""

from __future__ import annotations

import copy
import json
import pickle
import re
import sys
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Barrier
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from dragoman.errors import InvalidInputError, OrderError
from dragoman.model.collection import Messages
from dragoman.model.conversation import ConversationHistory, Policy
from dragoman.model.ids import new_id
from dragoman.model.messages import Message, make_message
from dragoman.model.roles import Role
from dragoman.model.schema import document_schema
from dragoman.model.tools import ToolCall, ToolResult
from tests.model import strategies as some

SYSTEM, USER, ASSISTANT = Message.system("System"), Message.user("User"), Message.assistant("Hi")


def calling(*ids: str) -> Message:
    """An assistant message that calls a tool under each of these ids."""
    return Message.assistant(tool_calls=[ToolCall.create(id_, "tool", {}) for id_ in ids])


def answering(*ids: str) -> Message:
    """A tool message with a result for each of these ids."""
    return Message.tool(*(ToolResult.success(id_, "Result") for id_ in ids))


def strict(*messages: Message) -> ConversationHistory:
    """A strict conversation with these messages."""
    return ConversationHistory(messages, policy=Policy.STRICT)


class TestSeed004:
    """Its `ConversationHistoryTests`, under their own names."""

    def test_should_start_empty(self) -> None:
        """No messages, no last one."""
        history = ConversationHistory()
        assert len(history) == 0
        assert history.messages == Messages()
        assert history.last is None

    def test_should_require_system_first(self) -> None:
        """A user can't begin."""
        with pytest.raises(OrderError, match=r"system.*first"):
            strict().add(Message.user("Hello"))

    def test_should_accept_system_as_first_message(self) -> None:
        """It is the last one then, too."""
        history = strict()
        history.add(Message.system("You are helpful."))
        assert len(history) == 1
        assert history.last is not None
        assert history.last.role is Role.SYSTEM

    def test_should_reject_second_system_message(self) -> None:
        """At any later time; a developer's message is one as well."""
        for second in (Message.system("System 2"), Message.developer("Developer")):
            with pytest.raises(OrderError, match=r"a system message is already"):
                strict(SYSTEM).add(second)
            with pytest.raises(OrderError, match=r"a system message is already"):
                strict(SYSTEM, USER, ASSISTANT).add(second)

    def test_should_validate_user_assistant_alternation(self) -> None:
        """Neither speaks twice in a row."""
        with pytest.raises(OrderError, match=r"user.*assistant.*alternate"):
            strict(SYSTEM, Message.user("User 1")).add(Message.user("User 2"))
        with pytest.raises(OrderError, match=r"user.*assistant.*alternate"):
            strict(SYSTEM, USER, ASSISTANT).add(ASSISTANT)

    def test_should_accept_valid_alternation(self) -> None:
        """For as long as one likes."""
        history = strict()
        for message in (SYSTEM, USER, ASSISTANT, USER, ASSISTANT):
            history.add(message)
        assert len(history) == 5

    def test_should_allow_tool_after_tool_calls(self) -> None:
        """With the id of the call."""
        history = strict(SYSTEM, USER, calling("call_123"))
        history.add(Message.tool("call_123", "Success"))
        assert len(history) == 4
        assert history.last is not None
        assert history.last.role is Role.TOOL

    def test_should_reject_tool_without_preceding_tool_calls(self) -> None:
        """A tool result needs a call before it."""
        with pytest.raises(OrderError, match=r"tool.*tool_calls"):
            strict(SYSTEM, USER, ASSISTANT).add(Message.tool("call_123", "Result"))

    def test_should_validate_tool_call_id_matches(self) -> None:
        """Another id is another call's."""
        with pytest.raises(OrderError, match="tool_call_id"):
            strict(SYSTEM, USER, calling("call_abc")).add(Message.tool("call_xyz", "Result"))

    def test_should_allow_multiple_tool_results_for_multiple_calls(self) -> None:
        """In messages of their own, in any order, or in one message."""
        history = strict(SYSTEM, USER, calling("call_1", "call_2"))
        history.add(Message.tool("call_2", "Result 2"))
        history.add(Message.tool("call_1", "Result 1"))
        assert len(history) == 5
        assert len(strict(SYSTEM, USER, calling("a", "b"), answering("a", "b"))) == 4

    def test_should_track_count(self) -> None:
        """One more with each message."""
        history = strict()
        for count, message in enumerate((SYSTEM, USER, ASSISTANT)):
            assert len(history) == count
            history.add(message)
        assert len(history) == 3

    def test_should_return_last_message(self) -> None:
        """The very one that was added."""
        history = strict(SYSTEM)
        user = Message.user("Hello")
        history.add(user)
        assert history.last is user

    def test_should_return_immutable_list(self) -> None:
        """A snapshot: no later addition changes it, and it can't be changed."""
        history = strict(SYSTEM)
        messages: Any = history.messages
        history.add(USER)
        assert isinstance(history.messages, Sequence)
        assert list(messages) == [SYSTEM]
        with pytest.raises(TypeError):
            messages[0] = USER
        messages.append(ASSISTANT)
        assert list(history) == [SYSTEM, USER]

    def test_should_support_clear(self) -> None:
        """Nothing is left."""
        history = strict(SYSTEM, USER, calling("a"))
        history.clear()
        assert len(history) == 0
        assert history.last is None
        assert history.pending_tool_calls == ()

    def test_should_accept_system_after_clear(self) -> None:
        """As at the beginning, and only that."""
        history = strict(SYSTEM)
        history.clear()
        with pytest.raises(OrderError, match=r"system.*first"):
            history.add(USER)
        history.add(Message.system("System 2"))
        assert len(history) == 1

    def test_should_be_thread_safe_concurrent_reads(self) -> None:
        """All see the same."""
        history = strict(SYSTEM, USER, ASSISTANT)
        with ThreadPoolExecutor(8) as pool:
            seen = list(
                pool.map(lambda _: (len(history.messages), len(history), history.last), range(100))
            )
        assert seen == [(3, 3, ASSISTANT)] * 100

    def test_should_be_thread_safe_concurrent_adds(self) -> None:
        """Messages out of order are rejected; the accepted ones are in valid order."""
        history = strict(SYSTEM)
        accepted = _race(
            history, lambda n: Message.user(str(n)) if n % 2 else Message.assistant("a")
        )
        assert len(history) == 1 + accepted
        history.validate()

    def test_should_support_enumeration(self) -> None:
        """In order, by index and slice too."""
        history = strict(SYSTEM, USER)
        assert [message.role for message in history] == [Role.SYSTEM, Role.USER]
        assert (history[0], history[-1], history[:1]) == (SYSTEM, USER, Messages(SYSTEM))
        assert USER in history
        assert ASSISTANT not in history

    def test_should_support_linq(self) -> None:
        """Comprehensions and what `Messages` can do."""
        history = strict(SYSTEM, USER, ASSISTANT, USER)
        assert len([message for message in history if message.role is Role.USER]) == 2
        assert len(history.messages.for_roles("user")) == 2

    def test_should_serialize(self) -> None:
        """Both ways, with its policy."""
        history = strict(SYSTEM, USER)
        back = ConversationHistory.from_json(history.to_json())
        assert len(back) == 2
        assert back[0].role is Role.SYSTEM
        assert back.messages == history.messages
        assert back.policy is Policy.STRICT


# --- the rules, further


def test_after_tools_the_assistant_answers_or_the_user_goes_on() -> None:
    """Acceptance 29, and a fault of the seed not to repeat: it let only users speak then."""
    done = (SYSTEM, USER, calling("a"), answering("a"))
    assert len(strict(*done, ASSISTANT, USER)) == 6
    assert len(strict(*done, USER)) == 5
    assert len(strict(*done, calling("b"), answering("b"), ASSISTANT)) == 7


def test_a_call_id_is_used_once() -> None:
    """Seed 004's second assumption: an id names one call of the session, whenever it was made."""
    done = (SYSTEM, USER, calling("a"), answering("a"), ASSISTANT, USER)
    history = strict(*done)
    for again in (calling("a"), calling("b", "a")):
        with pytest.raises(OrderError, match="message 6: a tool call reuses the id"):
            history.add(again)
    with pytest.raises(OrderError, match="id of an earlier call"):
        history.add_all([calling("b"), answering("b"), calling("b")])
    history.add_all([calling("b"), answering("b")])  # what was refused has used nothing
    with pytest.raises(OrderError, match="id of an earlier call"):
        ConversationHistory([*done, calling("a")], policy="lenient").validate()


def test_ids_are_free_again_when_their_calls_are_gone() -> None:
    """After `clear`, and after a message without calls has taken the place of theirs."""
    history = strict(SYSTEM, USER, calling("a"), answering("a"))
    history.clear()
    history.add_all([SYSTEM, USER, calling("a")])
    history.replace(history[2].id, ASSISTANT)
    history.add_all([USER, calling("a"), answering("a"), ASSISTANT, USER])
    history.replace(history[4].id, calling("a"))  # itself, once more
    with pytest.raises(OrderError, match="id of an earlier call"):
        history.add(calling("a"))


def test_stored_conversations_may_use_an_id_again() -> None:
    """Earlier versions allowed it, so their documents are read; new duplicates are rejected."""
    said = [SYSTEM, USER, calling("a"), answering("a"), calling("a"), answering("a")]
    raw = ConversationHistory(said, policy=Policy.LENIENT).to_json()
    read = ConversationHistory.from_json(raw.replace(b'"lenient"', b'"strict"'))
    for history in (read, pickle.loads(pickle.dumps(read))):  # noqa: S301 - our own bytes
        assert list(history) == said
        with pytest.raises(OrderError, match="id of an earlier call"):
            history.add(calling("a"))


# --- without a system message


def test_a_conversation_may_be_instructed_elsewhere() -> None:
    """Then the user begins, all other rules hold, and instructions that come later are refused."""
    history = ConversationHistory([USER, ASSISTANT], system_first=False)
    with pytest.raises(OrderError, match=r"system.*first"):
        history.add(SYSTEM)
    with pytest.raises(OrderError, match="alternate"):
        history.add(ASSISTANT)
    history.validate()
    with pytest.raises(OrderError, match=r"a system message is already"):
        ConversationHistory([SYSTEM, SYSTEM], system_first=False)
    with pytest.raises(InvalidInputError, match="system_first must be bool"):
        ConversationHistory(system_first="no")  # type: ignore[arg-type]


def test_the_system_message_can_be_waived_before_it_begins() -> None:
    """For the conversation at hand: it is remembered by copies, and forgotten by `clear`."""
    history = ConversationHistory()
    history.waive_system()
    history.add(USER)
    for back in (
        ConversationHistory.from_json(history.to_json()),
        pickle.loads(pickle.dumps(history)),  # noqa: S301 - our own bytes
        copy.deepcopy(history),
    ):
        assert list(back) == [USER]
        back.validate()
        back.add(ASSISTANT)
    history.replace(history[0].id, Message.user("Other"))
    with pytest.raises(OrderError, match="alternate"):
        history.add_all([ASSISTANT, ASSISTANT])
    history.add(ASSISTANT)
    history.clear()
    with pytest.raises(OrderError, match=r"system.*first"):
        history.add(USER)


def test_the_system_rule_cannot_be_waived_after_the_start() -> None:
    """`waive_system` raises once there are messages."""
    history = strict(SYSTEM)
    history.waive_system()
    with pytest.raises(OrderError, match=r"a system message is already"):
        history.add(SYSTEM)
    assert "system_first" not in json.loads(history.to_json())["value"]


def test_other_messages_are_rejected_while_calls_are_pending() -> None:
    """The error has the number of pending calls."""
    history = strict(SYSTEM, USER, calling("a", "b"), answering("a"))
    for early in (USER, ASSISTANT, calling("c")):
        with pytest.raises(OrderError, match="message 4: 1 tool_calls have no result yet"):
            history.add(early)
    history.add(answering("b"))
    history.add(ASSISTANT)


@pytest.mark.parametrize(("before", "message", "says"), [
    ((USER, calling("a", "b")), answering("a", "a"), "tool_call_id"),
    ((USER, calling("a")), answering("a", "b"), "tool_call_id"),
    ((USER, calling("a"), answering("a")), answering("a"), "must follow"),
    ((USER,), answering("a"), "must follow"),
    ((), answering("a"), "must follow"),
    ((USER,), calling("a", "a"), "same id"),
    ((USER, calling("a")), make_message(Role.TOOL), "tool results only"),
    ((USER, calling("a")), make_message(Role.TOOL, (*answering("a").parts, *USER.parts)),
     "tool results only"),
    ((), make_message(Role.USER, calling("a").parts), "only assistant messages"),
    ((USER, calling("a")), Message.user(*answering("a").parts), "belong in a tool message"),
    ((USER,), make_message(Role.ASSISTANT, answering("a").parts), "belong in a tool message"),
])  # fmt: skip
def test_messages_out_of_order_are_rejected(
    before: tuple[Message, ...], message: Message, says: str
) -> None:
    """The error names the position and the rule, and nothing changes."""
    history = strict(SYSTEM, *before)
    pending = history.pending_tool_calls
    with pytest.raises(OrderError, match=says) as caught:
        history.add(message)
    assert str(caught.value).startswith(f"message {1 + len(before)}: ")
    assert list(history) == [SYSTEM, *before]
    assert history.pending_tool_calls == pending


def test_an_assistant_may_greet_first() -> None:
    """An assistant message may come first."""
    assert len(strict(SYSTEM, ASSISTANT, USER, ASSISTANT)) == 4


def test_a_developers_message_is_a_system_message() -> None:
    """Both instruct the model."""
    assert len(strict(Message.developer("Be brief."), USER)) == 2


def test_lenient_takes_any_order() -> None:
    """Invalid sequences are repaired when a request is encoded."""
    odd = (answering("x"), USER, USER, calling("a"), SYSTEM, ASSISTANT, ASSISTANT)
    history = ConversationHistory(odd, policy="lenient")
    assert list(history) == list(odd)
    assert history.policy is Policy.LENIENT
    history.validate(Policy.LENIENT)
    with pytest.raises(OrderError, match="message 0: "):
        history.validate()


def test_strict_is_the_default_and_stays() -> None:
    """Seed 004's class validates; the policy can't be changed later."""
    history: Any = ConversationHistory()
    assert history.policy is Policy.STRICT
    with pytest.raises(AttributeError):
        history.policy = Policy.LENIENT


@pytest.mark.parametrize("policy", ["loose", "", None, 5])
def test_unknown_policies_are_refused(policy: Any) -> None:
    """The error doesn't quote the value."""
    with pytest.raises(InvalidInputError, match="expected strict or lenient"):
        ConversationHistory(policy=policy)


@pytest.mark.parametrize("message", [None, {"role": "robot", "content": "x"}, b"x"])
def test_other_values_are_not_added(message: Any) -> None:
    """Dicts and texts that represent a message are added."""
    history = strict(SYSTEM)
    with pytest.raises(InvalidInputError):
        history.add(message)
    history.add("hi")
    history.add({"role": "assistant", "content": "ho"})
    assert history.messages.to_text("|") == "System|hi|ho"


# --- calls that wait


@pytest.mark.parametrize("policy", Policy)
def test_pending_calls_are_those_without_a_result(policy: Policy) -> None:
    """In the order of the calls, whatever the order of the results."""
    history = ConversationHistory([SYSTEM, USER, calling("a", "b", "c")], policy=policy)
    assert [call.id for call in history.pending_tool_calls] == ["a", "b", "c"]
    history.add(answering("b"))
    assert [call.id for call in history.pending_tool_calls] == ["a", "c"]
    assert history.messages.pending_tool_calls == history.pending_tool_calls
    history.add(answering("c", "a"))
    assert history.pending_tool_calls == ()


def test_lenient_histories_have_pending_calls() -> None:
    """Over several turns, and also if a user's message has the results."""
    history = ConversationHistory([calling("a"), USER, calling("b")], policy=Policy.LENIENT)
    assert [call.id for call in history.pending_tool_calls] == ["a", "b"]
    history.add(Message.user(*answering("a").parts, "and?"))
    assert [call.id for call in history.pending_tool_calls] == ["b"]


def test_validate_looks_at_the_whole() -> None:
    """The order of all messages, and that no call is left without a result at the end."""
    strict().validate()
    strict(SYSTEM, USER).validate()
    waiting = strict(SYSTEM, USER, calling("a", "b"))
    with pytest.raises(OrderError, match="2 tool_calls at the end have no result"):
        waiting.validate()
    waiting.add(answering("a", "b"))
    waiting.validate("strict")


# --- several at once


def test_add_all_is_all_or_none() -> None:
    """An invalid message in the middle leaves no trace, not even in what is allowed next."""
    history = strict(SYSTEM, USER, calling("a"))
    with pytest.raises(OrderError, match="message 5: "):
        history.add_all([answering("a"), ASSISTANT, ASSISTANT])
    assert list(history) == [SYSTEM, USER, calling("a")]
    assert [call.id for call in history.pending_tool_calls] == ["a"]
    with pytest.raises(InvalidInputError):
        history.add_all([answering("a"), None])
    history.add_all([answering("a"), ASSISTANT])
    assert len(history) == 5
    history.add_all([])
    assert len(history) == 5


def test_an_interrupt_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the exception is."""
    history = ConversationHistory(policy=Policy.LENIENT)
    add = history.add

    def interrupted(message: Any) -> None:
        if message == ASSISTANT:
            raise KeyboardInterrupt
        add(message)

    monkeypatch.setattr(history, "add", interrupted)
    with pytest.raises(KeyboardInterrupt):
        history.add_all([USER, calling("a"), ASSISTANT])
    assert len(history) == 0
    assert history.pending_tool_calls == ()


def test_a_bad_beginning_makes_no_conversation() -> None:
    """The constructor checks as `add_all` does."""
    with pytest.raises(OrderError, match="message 0: "):
        strict(USER)


def test_a_result_at_the_beginning_is_rejected() -> None:
    """The missing call is reported, whether or not there is a system message."""
    result = Message.tool("a", "It is warm.")
    for history in ([result], [SYSTEM, result]):
        with pytest.raises(OrderError, match="must follow an assistant message with tool_calls"):
            ConversationHistory(history, policy=Policy.LENIENT).validate()


# --- to JSON and back


@pytest.mark.parametrize("policy", Policy)
def test_a_history_comes_back(policy: Policy) -> None:
    """A document, a pickle and a copy keep ids, policy and pending calls."""
    history = ConversationHistory([SYSTEM, USER, calling("a")], policy=policy)
    for back in (
        ConversationHistory.from_json(history.to_json()),
        pickle.loads(pickle.dumps(history)),  # noqa: S301 - our own bytes
        copy.copy(history),
        copy.deepcopy(history),
    ):
        assert back.policy is policy
        assert all(map(Message.identical, back, history))
        assert [call.id for call in back.pending_tool_calls] == ["a"]
        back.add(answering("a"))
        assert len(history) == 3


@given(st.lists(some.messages, max_size=4))
def test_any_messages_come_back(messages: list[Message]) -> None:
    """Lenient ones hold anything."""
    history = ConversationHistory(messages, policy=Policy.LENIENT)
    back = ConversationHistory.from_json(history.to_json())
    assert all(map(Message.identical, back, messages))
    assert len(back) == len(messages)
    assert back.pending_tool_calls == history.pending_tool_calls


@pytest.mark.parametrize("policy", Policy)
def test_the_document_is_what_the_schema_promises(policy: Policy) -> None:
    """The one that ships with the package."""
    history = ConversationHistory([SYSTEM, USER, calling("a"), answering("a")], policy=policy)
    jsonschema.validate(json.loads(history.to_json()), document_schema())


def test_refusals_do_not_quote() -> None:
    """Neither content nor ids nor names: an error may be logged."""
    history = strict(SYSTEM, USER, calling("a"))
    for message in (
        Message.user("hunter2"),
        Message.tool("hunter2", "hunter2"),
        calling("hunter2"),
    ):
        with pytest.raises(OrderError) as caught:
            history.add(message)
        assert "hunter2" not in str(caught.value)
        assert caught.value.__cause__ is caught.value.__context__ is None


def test_a_strict_document_is_checked_when_read() -> None:
    """The document may have been changed by hand."""
    raw = ConversationHistory([USER, USER], policy=Policy.LENIENT).to_json()
    assert len(ConversationHistory.from_json(raw)) == 2
    document = json.loads(raw)
    document["value"]["policy"] = "strict"
    with pytest.raises(OrderError, match="message 0: "):
        ConversationHistory.from_json(json.dumps(document))
    document["value"]["policy"] = "loose"
    with pytest.raises(InvalidInputError):
        ConversationHistory.from_json(json.dumps(document))


def test_it_provides_its_messages() -> None:
    """It is accepted as a conversation; its repr shows no content."""
    history = strict(SYSTEM, USER)
    assert Messages.from_any(history) == history.to_messages() == history.messages
    assert repr(history) == "ConversationHistory(strict, 2 messages)"
    with pytest.raises(InvalidInputError, match=re.escape("does not hold a value of kind")):
        ConversationHistory.from_json(history.messages.to_json())


# --- cost, and threads


def test_adding_copies_nothing() -> None:
    """20,000 messages grow in one list, under either policy, with snapshots taken all along."""
    for policy in Policy:
        history = ConversationHistory(SYSTEM, policy=policy)
        shared, order = history.messages._shared, history._order
        for _ in range(10_000):
            history.add(USER)
            history.add(ASSISTANT)
            assert history.messages._shared is shared
        assert history._order is order
        assert len(shared) == 20_001


@contextmanager
def impatient() -> Generator[None, None, None]:
    """Makes threads switch far more often than usual, to find races."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(usual)


def _race(
    history: ConversationHistory, make: Callable[[int], Message], threads: int = 8, each: int = 50
) -> int:
    """Threads that add at the same time; returns how many messages were accepted."""
    start = Barrier(threads)

    def run(thread: int) -> int:
        start.wait()
        accepted = 0
        for step in range(each):
            try:
                history.add(make(thread * each + step))
            except OrderError:
                continue
            accepted += 1
        return accepted

    with impatient(), ThreadPoolExecutor(threads) as pool:
        return sum(pool.map(run, range(threads)))


def test_eight_threads_lose_nothing() -> None:
    """Every message is there once, and each thread's are in its own order."""
    history = ConversationHistory(policy=Policy.LENIENT)
    assert _race(history, lambda n: Message.user(str(n)), each=250) == 2_000
    said = [int(message.text) for message in history]
    assert sorted(said) == list(range(2_000))
    for thread in range(8):
        assert [n for n in said if n // 250 == thread] == list(
            range(thread * 250, thread * 250 + 250)
        )


def test_eight_threads_keep_the_order_valid() -> None:
    """With concurrent writers of all roles, rejected messages leave no trace."""
    history = strict(SYSTEM)
    kinds = (
        USER,
        ASSISTANT,
        calling("a", "b"),
        answering("a"),
        answering("b"),
        answering("a", "b"),
    )
    accepted = _race(history, lambda n: kinds[n % len(kinds)], each=100)
    assert accepted > 0
    assert len(history) == 1 + accepted
    assert is_valid(list(history))


def test_batches_of_threads_stay_together() -> None:
    """No message of another thread gets between those of `add_all`."""
    history = ConversationHistory(policy=Policy.LENIENT)
    with impatient(), ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: history.add_all([str(n)] * 10), range(40)))
    said = history.messages.map(str)
    assert len(said) == 400
    assert all(len(set(said[at : at + 10])) == 1 for at in range(0, 400, 10))


def _add_rounds(history: ConversationHistory, count: int) -> None:
    for place in range(count):
        history.add_all([calling(f"a{place}"), answering(f"a{place}")])


def test_readers_see_whole_states_while_others_write() -> None:
    """A snapshot's calls and results fit: never half of a batch."""
    history = strict(SYSTEM, USER)
    with impatient(), ThreadPoolExecutor(8) as pool:
        writer = pool.submit(_add_rounds, history, 200)
        while not writer.done():
            assert is_valid(list(history.messages))
            assert history.pending_tool_calls == ()
        writer.result()
    assert len(history) == 402


# --- the rules once more, as simple as can be: the oracle of the machines below


def may_follow(said: list[Message], message: Message) -> bool:
    """Seed 004's rules, read off the whole conversation each time."""
    role = message.role
    if role.is_system:
        return not said
    if not said:
        return False
    calls = [call.id for call in message.tool_calls]
    results = [result.call_id for result in message.tool_results]
    waiting: set[str] = set()
    for earlier in said:
        waiting |= {call.id for call in earlier.tool_calls}
        waiting -= {result.call_id for result in earlier.tool_results}
    if role is Role.TOOL:
        return bool(results) and len(results) == len(set(results)) and set(results) <= waiting
    used = {call.id for earlier in said for call in earlier.tool_calls}
    if waiting or len(calls) != len(set(calls)) or not used.isdisjoint(calls):
        return False
    if said[-1].role is Role.TOOL:
        return True
    return said[-1].role is not role


def is_valid(messages: list[Message]) -> bool:
    """Whether each message may follow those before it."""
    return all(may_follow(messages[:at], message) for at, message in enumerate(messages))


_ids = st.lists(st.sampled_from("abc"), min_size=1, max_size=3)
_any_message = st.one_of(
    st.just(SYSTEM), st.just(Message.developer("Developer")), st.just(USER), st.just(ASSISTANT),
    _ids.map(lambda ids: calling(*ids)), _ids.map(lambda ids: answering(*ids)),
)  # fmt: skip


class StrictConversation(RuleBasedStateMachine):
    """Under `Policy.STRICT` the history takes exactly what the simple rules allow."""

    def __init__(self) -> None:
        super().__init__()
        self.history = ConversationHistory(policy=Policy.STRICT)
        self.said: list[Message] = []
        self.snapshots: list[tuple[Messages, int]] = []

    @initialize(started=st.booleans())
    def begin(self, started: bool) -> None:
        """Half of the runs begin properly, so that they get somewhere."""
        if started:
            self.add(SYSTEM)

    @rule(message=_any_message)
    def add(self, message: Message) -> None:
        """Accepted or refused, as the oracle says."""
        if may_follow(self.said, message):
            self.history.add(message)
            self.said.append(message)
        else:
            with pytest.raises(OrderError):
                self.history.add(message)

    @rule()
    def go_on(self) -> None:
        """Answer what waits, or let the next one speak: long conversations need luck otherwise."""
        waiting = [call.id for call in self.history.pending_tool_calls]
        assert waiting == [call.id for call in self.history.messages.pending_tool_calls]
        last = self.said[-1].role if self.said else None
        self.add(
            answering(*waiting) if waiting else SYSTEM if last is None else
            calling(new_id(), new_id()) if last is Role.USER else USER
        )  # fmt: skip

    @rule(messages=st.lists(_any_message, max_size=4))
    def add_all(self, messages: list[Message]) -> None:
        """All or none."""
        ok = all(
            may_follow(self.said + messages[:at], message) for at, message in enumerate(messages)
        )
        if ok:
            self.history.add_all(messages)
            self.said += messages
        else:
            with pytest.raises(OrderError):
                self.history.add_all(messages)

    @rule()
    def snapshot(self) -> None:
        """Taken now, looked at until the end."""
        self.snapshots.append((self.history.messages, len(self.said)))

    @rule()
    def reload(self) -> None:
        """A document in between makes no difference."""
        self.history = ConversationHistory.from_json(self.history.to_json())

    @rule()
    def clear(self) -> None:
        """From the beginning."""
        self.history.clear()
        self.said, self.snapshots = [], []

    @invariant()
    def same_conversation(self) -> None:
        """Messages, last, count, calls that wait, and whether it is complete."""
        assert list(self.history) == self.said
        assert len(self.history) == len(self.said)
        assert self.history.last == (self.said[-1] if self.said else None)
        assert is_valid(self.said)
        for messages, length in self.snapshots:
            assert list(messages) == self.said[:length]

    @invariant()
    def complete_or_waiting(self) -> None:
        """`validate` fails exactly while calls wait."""
        if self.history.pending_tool_calls:
            with pytest.raises(OrderError):
                self.history.validate()
        else:
            self.history.validate()


class ConcurrentConversation(RuleBasedStateMachine):
    """Eight threads at a time: what is accepted stays, what is refused does not, order is valid."""

    pool: ThreadPoolExecutor

    def __init__(self) -> None:
        super().__init__()
        self.pool = ThreadPoolExecutor(8)
        self.strict = ConversationHistory(SYSTEM, policy=Policy.STRICT)
        self.lenient = ConversationHistory(policy=Policy.LENIENT)
        self.accepted = 1
        self.added: list[str] = []

    batches = Bundle("batches")

    @rule(target=batches, messages=st.lists(_any_message, min_size=1, max_size=8))
    def batch(self, messages: list[Message]) -> list[Message]:
        """Messages for the threads to choose from."""
        return messages

    @rule(messages=batches)
    def add_strictly(self, messages: list[Message]) -> None:
        """Each thread tries each message."""
        self.accepted += _race(self.strict, lambda n: messages[n % len(messages)], 8, len(messages))

    @rule(each=st.integers(1, 5))
    def add_leniently(self, each: int) -> None:
        """Each thread adds messages that nobody else adds."""
        base = len(self.added)
        assert _race(self.lenient, lambda n: Message.user(str(base + n)), 8, each) == 8 * each
        self.added += [str(base + n) for n in range(8 * each)]

    @rule(messages=batches)
    def clear_while_adding(self, messages: list[Message]) -> None:
        """What remains is a valid conversation, or the beginning of one that is refused."""
        cleared = self.pool.submit(self.strict.clear)
        _race(self.strict, lambda n: messages[n % len(messages)], 4, len(messages))
        cleared.result()
        if not len(self.strict):
            self.strict.add(SYSTEM)
        self.accepted = len(self.strict)

    @invariant()
    def nothing_lost(self) -> None:
        """Each accepted message is there, once."""
        assert len(self.strict) == self.accepted
        assert sorted(map(str, self.lenient)) == sorted(self.added)

    @invariant()
    def order_valid(self) -> None:
        """Whoever was first."""
        assert is_valid(list(self.strict))

    def teardown(self) -> None:
        """The threads go with the machine."""
        self.pool.shutdown()


@pytest.mark.hypothesis  # for `make torture`
def test_strict_histories_follow_the_rules() -> None:
    """Any sequence of additions, batches, reloads and clearings: as the machine's rules assert."""
    run_state_machine_as_test(StrictConversation)


@pytest.mark.hypothesis
def test_concurrent_histories_follow_the_rules() -> None:
    """Any sequence of races between eight threads; the machine asserts after each."""
    few = settings(max_examples=max(10, settings().max_examples // 5), stateful_step_count=12)
    run_state_machine_as_test(ConcurrentConversation, settings=few)
