"""What an agent accepts as a history: anything that holds messages, in any dialect."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from threading import Event, get_ident
from typing import Any

import pytest

from dragoman import (
    Agent,
    ChatHistory,
    ChatHistoryConfig,
    Message,
    Messages,
    MessageStore,
    Request,
    Response,
    SessionIdentity,
    Text,
    ToolDefinition,
    ToolResult,
)
from dragoman.agent.conversations import Conversation, conversation_of, unanswered
from dragoman.errors import InvalidInputError, NotFound, OrderError
from dragoman.history import BlockingChatHistory, MemoryStorage
from dragoman.model import portal
from dragoman.model.conversation import ConversationHistory, Policy
from dragoman.model.parts import Thinking
from dragoman.model.store import Section
from tests.environment import PATIENCE
from tests.interop.inputs.talk import ROUND

ONE, TWO = SessionIdentity(chat="7"), SessionIdentity(chat="8")
SECRET = "xyzzy-the-secret"


async def sent(conversation: Conversation) -> Messages:
    """The messages that would be sent to an unknown model."""
    return await conversation.window("unheard-of", (), ())


async def read(history: Any) -> Messages:
    """The messages that a history is read as."""
    return await sent(conversation_of(history))


def texts(messages: Messages) -> list[str]:
    """The texts of the messages."""
    return [message.text for message in messages]


class TestMessages:
    """What is plain messages already, or says so itself."""

    async def test_none_is_an_empty_conversation(self) -> None:
        """None is an empty conversation, to which messages can be added."""
        conversation = conversation_of(None)
        assert await sent(conversation) == Messages()
        await conversation.add(Message.user("Hi"))
        assert texts(await sent(conversation)) == ["Hi"]
        assert not conversation.keeps_rounds

    async def test_messages_are_used_without_a_copy(self) -> None:
        """A `Messages` object is used as it is, whatever its length."""
        messages = Messages(*ROUND)
        assert await read(messages) is messages

    @pytest.mark.parametrize(
        "history",
        [
            list(ROUND),
            tuple(ROUND),
            iter(ROUND),
            (message for message in ROUND),
            MessageStore.from_messages(Messages(*ROUND)),
            Section("prompt", Messages(*ROUND)),
            Messages(*ROUND).to_json(),
            Messages(*ROUND).to_json().decode(),
            json.loads(Messages(*ROUND).to_json()),
            MessageStore.from_messages(Messages(*ROUND)).to_json(),
            ConversationHistory(ROUND, policy=Policy.LENIENT).to_json(),
            Request(messages=ROUND),
            Request(messages=ROUND).to_json(),
            [message.to_dict() for message in ROUND],
            json.dumps([message.to_dict() for message in ROUND]).encode(),
        ],
        ids=lambda history: type(history).__name__,
    )
    async def test_anything_that_holds_messages_is_accepted(self, history: Any) -> None:
        """Iterables, our containers, documents and dicts are accepted."""
        assert await read(history) == Messages(*ROUND)

    @pytest.mark.parametrize("shape", ["canonical", "openai", "content", "flat"])
    async def test_our_own_shapes_round_trip(self, shape: Any) -> None:
        """Each shape of `to_list` is read back, with metadata."""
        thought = [Thinking("Hm.")] if shape == "canonical" else []
        answer = Message.assistant(*thought, "Yes.", metadata={"rating": 5})
        messages = Messages(*ROUND, answer).split_results()
        assert await read(messages.to_list(shape=shape)) == messages

    async def test_a_single_item_is_a_conversation_of_one(self) -> None:
        """A text, a message, a part or a dict is a conversation of one message."""
        for one in (
            "Hi",
            Message.user("Hi"),
            Text("Hi"),
            {"role": "user", "content": "Hi"},
            {"type": "text", "text": "Hi"},
            {"role": "user", "parts": [{"text": "Hi"}]},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"}]},
            ["Hi"],
            [["Hi"]],
            [{"role": "user", "content": [Text("Hi")]}],
        ):
            assert await read(one) == Messages(Message.user("Hi"))

    async def test_a_role_and_a_text_are_a_message(self) -> None:
        """A pair as in LangChain is a message; other pairs of texts are user messages."""
        pairs = await read([("human", "Hi"), ("ai", "Hello."), ("one", "two")])
        assert [message.role.value for message in pairs] == ["user", "assistant", "user"]
        assert texts(pairs)[:2] == ["Hi", "Hello."]

    async def test_a_text_that_is_json_is_still_a_text(self) -> None:
        """Only a Dragoman document is parsed, and it must be complete."""
        assert texts(await read('{"messages": []}')) == ['{"messages": []}']
        with pytest.raises(InvalidInputError):
            conversation_of('{"dragoman": 1, "kind": "Messages", "value": [')

    async def test_a_caller_s_list_is_never_changed(self) -> None:
        """A list and its dicts aren't modified by adding or replacing messages."""
        items: list[Any] = [{"role": "user", "content": "Hi"}, Message.assistant("Hello.")]
        before = [dict(items[0]), items[1]]
        conversation = conversation_of(items)
        added = await conversation.add(Message.user("Bye"))
        await conversation.replace(added.replace(parts=(Text("Goodbye"),)))
        assert items == before
        assert texts(await sent(conversation)) == ["Hi", "Hello.", "Goodbye"]

    async def test_two_runs_on_the_same_messages_do_not_mix(self) -> None:
        """Each has its own view, and the messages stay as they were."""
        messages = Messages(*ROUND)
        first, second = conversation_of(messages), conversation_of(messages)
        await first.add(Message.user("a"))
        await second.add(Message.user("b"))
        assert texts(await sent(first))[4:] == ["a"]
        assert texts(await sent(second))[4:] == ["b"]
        assert len(messages) == 4

    async def test_a_message_in_the_middle_is_replaced(self) -> None:
        """Later messages are kept; replacing an unknown message raises."""
        conversation = conversation_of(Messages(*ROUND))
        await conversation.replace(ROUND[2].replace(parts=(ToolResult.error("call_1", "late"),)))
        assert texts(await sent(conversation))[2:] == ["late", "Sun there, snow here."]
        with pytest.raises(NotFound):
            await conversation.replace(Message.user("Hi"))

    async def test_a_conversation_is_used_as_it_is(self) -> None:
        """A custom conversation adapter isn't wrapped."""
        mine = conversation_of(["Hi"])
        assert conversation_of(mine) is mine


class TestRefused:
    """What isn't accepted as a history."""

    @pytest.mark.parametrize(
        ("history", "named"),
        [
            (7, "int"),
            (object(), "object"),
            (Messages, "the class Messages"),
            (ChatHistory, "the class ChatHistory"),
            (Response(), "Response"),
            ([7], "int"),
            ([Message.user("Hi"), object()], "object"),
            ([[]], "list"),
            ([None], "NoneType"),
            ([b"Hi"], "bytes"),
            (print, "builtin_function_or_method"),
        ],
    )
    def test_other_types_are_rejected_by_name(self, history: Any, named: str) -> None:
        """The error names the type and quotes no content."""
        with pytest.raises(InvalidInputError, match=named) as caught:
            conversation_of(history)
        assert SECRET not in str(caught.value)

    async def test_a_result_is_rejected_as_a_history(self) -> None:
        """The error suggests the result's `messages`."""
        result = await Agent("echo:").send("Hi")
        with pytest.raises(InvalidInputError, match="its `messages`"):
            conversation_of(result)

    def test_a_recursive_history_is_rejected(self) -> None:
        """A dict that contains itself raises."""
        item: dict[str, Any] = {"role": "user"}
        item["content"] = [item, item]
        with pytest.raises(InvalidInputError, match="contains itself"):
            conversation_of([item])

    @pytest.mark.parametrize("hooks", [{"on_add": print}, {"strategy": print}, {"on_after_add": 7}])
    @pytest.mark.parametrize("history", [None, ["Hi"]])
    def test_hooks_are_validated_for_every_history(self, history: Any, hooks: Any) -> None:
        """Unknown hook names and values that can't be called raise."""
        with pytest.raises(InvalidInputError, match="hook"):
            conversation_of(history, hooks)


class TestConversationHistory:
    """A history in memory with a policy."""

    async def test_it_is_kept_up_to_date(self) -> None:
        """Each message is in the caller's history at once."""
        history = ConversationHistory([Message.system("Be brief.")])
        conversation = conversation_of(history)
        for message in ROUND:
            assert await conversation.add(message) is message
        assert history.messages == Messages(Message.system("Be brief."), *ROUND)
        assert await sent(conversation) is history.messages
        assert not conversation.keeps_rounds

    async def test_its_policy_is_enforced(self) -> None:
        """A message that the policy forbids is rejected, and changes nothing."""
        history = ConversationHistory([Message.system("Be brief."), *ROUND[:3]])
        conversation = conversation_of(history)
        before = history.messages
        with pytest.raises(OrderError):
            await conversation.add(Message.tool("call_9", "?"))
        with pytest.raises(OrderError):
            await conversation.replace(Message.assistant("No tools.", id=ROUND[1].id))
        assert history.messages is before
        assert history.pending_tool_calls == ()

    async def test_a_message_is_replaced_in_it(self) -> None:
        """Replacing a message updates the pending calls."""
        history = ConversationHistory([Message.system("Be brief."), *ROUND[:3]])
        conversation = conversation_of(history)
        half = ROUND[2].replace(parts=ROUND[2].parts[:1])
        await conversation.replace(half)
        assert [call.id for call in history.pending_tool_calls] == ["call_2"]
        with pytest.raises(NotFound):
            await conversation.replace(Message.user("Hi"))


class TestChatHistory:
    """A stored history."""

    async def test_messages_are_stored_when_add_returns(self, tmp_path: Path) -> None:
        """Another reader of the storage sees added and replaced messages."""
        url = f"sqlite:///{tmp_path}/chats.db"
        async with await ChatHistory.open(ONE, url) as history:
            conversation = conversation_of(history)
            assert conversation.keeps_rounds
            added = await conversation.add(Message.user("Hi"))
            await conversation.replace(added.replace(parts=(Text("Hello"),)))
            async with await ChatHistory.open(ONE, url) as other:
                assert texts(await other.messages()) == ["Hello"]
            assert texts(await sent(conversation)) == ["Hello"]
            with pytest.raises(NotFound):
                await conversation.replace(Message.user("Bye"))

    @pytest.mark.parametrize(
        ("model", "is_whole"),
        [("gpt-4", False), ("claude-sonnet-4-5", True), ("unheard-of", True), ("", True)],
    )
    async def test_the_context_window_is_the_model_s(self, model: str, is_whole: bool) -> None:
        """If the model is unknown, the configured context window is used."""
        async with await ChatHistory.open(ONE, "memory:") as history:
            await history.extend(["word " * 9000, Message.assistant("Yes."), Message.user("Hi")])
            conversation = conversation_of(history)
            window = await conversation.window(model, (), ())
            assert texts(window)[-1] == "Hi"
            assert any(len(text) > 1000 for text in texts(window)) is is_whole

    async def test_a_configured_limit_applies_to_larger_models(self) -> None:
        """A configured context window is a maximum, whatever the model's own."""
        config = ChatHistoryConfig(context_window=400, reserved_for_completion=100)
        async with await ChatHistory.open(ONE, "memory:", config) as history:
            await history.extend([f"{number} {'word ' * 50}" for number in range(20)])
            conversation = conversation_of(history)
            assert 0 < len(await conversation.window("claude-sonnet-4-5", (), ())) < 20

    async def test_tools_and_instructions_reduce_the_window(self) -> None:
        """Tools and instructions count toward the context window."""
        config = ChatHistoryConfig(context_window=1000, reserved_for_completion=100)
        big = ToolDefinition("f", "word " * 200, {"type": "object"})
        async with await ChatHistory.open(ONE, "memory:", config) as history:
            await history.extend([f"{number} {'word ' * 20}" for number in range(20)])
            conversation = conversation_of(history)
            alone = len(await conversation.window("m", (), ()))
            assert len(await conversation.window("m", [big], ())) < alone
            assert len(await conversation.window("m", {"f": big}, ())) < alone
            assert len(await conversation.window("m", (), "word " * 500)) < alone
            assert len(await conversation.window("m", (), (Text("word " * 500),))) < alone

    async def test_two_concurrent_runs_store_all_their_messages(self, tmp_path: Path) -> None:
        """Runs on one history store all messages; separate histories don't mix."""
        url = f"sqlite:///{tmp_path}/chats.db"
        async with await ChatHistory.open(ONE, url) as one, await ChatHistory.open(TWO, url) as two:
            runs = [conversation_of(one), conversation_of(one), conversation_of(two)]

            async def add_all(number: int) -> None:
                for place in range(20):
                    await runs[number].add(Message.user(f"{number}: {place}"))

            await asyncio.gather(*map(add_all, range(3)))
            shared, alone = texts(await one.messages()), texts(await two.messages())
        expected = [[f"{number}: {place}" for place in range(20)] for number in range(3)]
        assert [text for text in shared if text.startswith("0")] == expected[0]
        assert [text for text in shared if text.startswith("1")] == expected[1]
        assert (len(shared), alone) == (40, expected[2])

    async def test_hooks_of_the_caller_s_are_called_after_the_history_s(self) -> None:
        """The caller's hooks are called only in runs that were given them."""
        heard: list[str] = []

        async def after(message: Message, _history: ChatHistory) -> None:
            await asyncio.sleep(0)
            heard.append(f"agent: {message.text}")

        config = ChatHistoryConfig(on_after_add=lambda m, _: heard.append(f"own: {m.text}"))
        async with await ChatHistory.open(ONE, "memory:", config) as history:
            await conversation_of(history, {"on_after_add": after}).add(Message.user("a"))
            await conversation_of(history).add(Message.user("b"))
        assert heard == ["own: a", "agent: a", "own: b"]


class Elsewhere(MemoryStorage):
    """A storage that is used on the background loop, as databases are."""

    is_blocking = False


@pytest.fixture(params=["in the caller's thread", "on a loop"])
def blocking(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BlockingChatHistory]:
    """A blocking history."""
    inline = request.param == "in the caller's thread"
    place = f"sqlite:///{tmp_path}/chats.db" if inline else Elsewhere()
    with ChatHistory.open_sync(ONE, place) as history:
        yield history


class TestBlockingChatHistory:
    """A history with blocking calls."""

    async def test_it_is_kept_up_to_date(self, blocking: BlockingChatHistory) -> None:
        """Messages are added and replaced as in the async history."""
        conversation = conversation_of(blocking)
        assert conversation.keeps_rounds
        added = await conversation.add(Message.user("Hi"))
        await conversation.replace(added.replace(parts=(Text("Hello"),)))
        assert texts(blocking.messages()) == ["Hello"]
        assert texts(await conversation.window("gpt-4", [], "Be brief.")) == ["Hello"]
        with pytest.raises(NotFound):
            await conversation.replace(Message.user("Bye"))

    async def test_the_loop_is_not_blocked(self, blocking: BlockingChatHistory) -> None:
        """Hooks of a blocking history run on another thread."""
        seen, go_on = Event(), Event()
        threads: list[int] = []

        def wait(*_: Any) -> None:
            threads.append(get_ident())
            seen.set()
            assert go_on.wait(PATIENCE)

        conversation = conversation_of(blocking, {"on_before_add": wait})
        adding = asyncio.ensure_future(conversation.add(Message.user("Hi")))
        await asyncio.to_thread(seen.wait, PATIENCE)
        go_on.set()
        await adding
        assert get_ident() not in threads

    @pytest.mark.parametrize("is_async", [False, True])
    def test_it_can_be_used_on_the_background_loop(
        self, blocking: BlockingChatHistory, is_async: bool
    ) -> None:
        """Hooks may call the history there."""

        def answer(message: Message, history: BlockingChatHistory) -> None:
            if message.text == "ping":
                history.add(Message.assistant("pong"))

        async def answer_later(message: Message, history: BlockingChatHistory) -> None:
            await asyncio.sleep(0)
            answer(message, history)

        hook = answer_later if is_async else answer
        conversation = conversation_of(blocking, {"on_after_add": hook})
        portal.run(conversation.add(Message.user("ping")))
        assert texts(portal.run(sent(conversation))) == ["ping", "pong"]

    @pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt, ValueError])
    def test_an_exception_of_a_hook_is_raised(
        self, blocking: BlockingChatHistory, error: type[BaseException]
    ) -> None:
        """The message isn't added, and the next one is."""

        def fail(message: Message, _: Any) -> None:
            if message.text == "a":
                raise error

        conversation = conversation_of(blocking, {"on_before_add": fail})
        with pytest.raises(error):
            portal.run(conversation.add(Message.user("a")))
        portal.run(conversation.add(Message.user("b")))
        assert texts(blocking.messages()) == ["b"]

    async def test_a_cancelled_run_waits_for_its_write(self, blocking: BlockingChatHistory) -> None:
        """The write is finished first, and adding the message again adds it once."""
        seen, go_on = Event(), Event()

        def wait(*_: Any) -> None:
            seen.set()
            assert go_on.wait(PATIENCE)

        conversation, message = (
            conversation_of(blocking, {"on_before_add": wait}),
            Message.user("a"),
        )
        adding = asyncio.ensure_future(conversation.add(message))
        await asyncio.to_thread(seen.wait, PATIENCE)
        adding.cancel()
        await asyncio.sleep(0.01)
        assert not adding.done()
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await adding
        assert texts(blocking.messages()) == ["a"]
        assert await conversation.add(message) == message
        assert texts(blocking.messages()) == ["a"]
        await conversation.add(Message.user("b"))
        assert texts(blocking.messages()) == ["a", "b"]


class TestUnanswered:
    """Calls without results."""

    @pytest.mark.parametrize(
        ("messages", "ids"),
        [
            ((), []),
            (ROUND[:1], []),
            (ROUND[:2], ["call_1", "call_2"]),
            (ROUND[:3], []),
            (ROUND, []),
            ((*ROUND[:2], Message.tool("call_1", "sunny")), ["call_2"]),
            ((*ROUND[:2], Message.tool("call_2", "snow"), Message.user("Well?")), []),
            ((*ROUND[:2], Message.tool("call_1", "a"), Message.tool("call_2", "b")), []),
            ((*ROUND[:2], Message.user("Never mind."), Message.assistant("All right.")), []),
            ((*ROUND[:2], Message.assistant("One moment.")), ["call_1", "call_2"]),
            ((*ROUND, *ROUND[:2]), ["call_1", "call_2"]),
            ((ROUND[1], ROUND[1]), ["call_1", "call_2"]),
        ],
    )
    def test_pending_calls_are_those_of_the_last_round(
        self, messages: tuple[Message, ...], ids: list[str]
    ) -> None:
        """They are in order, and there are none after a later user message."""
        assert [call.id for call in unanswered(Messages(*messages))] == ids

    def test_only_the_end_is_read(self) -> None:
        """The number of messages read doesn't grow with the conversation."""

        class Counted(Messages):
            """Counts what is looked at."""

            looked = 0

            def __getitem__(self, index: Any) -> Any:
                type(self).looked += 1
                return super().__getitem__(index)

        talk = [Message.user("Hi"), Message.assistant("Hello.")] * 1000
        assert unanswered(Counted(*talk)) == ()
        assert len(unanswered(Counted(*talk, *ROUND[:2]))) == 2
        assert Counted.looked < 10
