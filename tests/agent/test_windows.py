"""What an agent sends of a long history, and what it reads for that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from dragoman import Agent, Message, Messages, Request, Response, ToolCall, Usage
from dragoman.agent.conversations import conversation_of, last_round, unanswered
from dragoman.history import ChatHistory, ChatHistoryConfig, MemoryStorage, SessionIdentity
from dragoman.history.storage.protocol import Row, Session
from dragoman.model import Choice
from dragoman.transport.scripted import ScriptedModel

ONE = SessionIdentity(chat="7")


class Sized(ScriptedModel):
    """A model that always answers, and keeps its requests."""

    def __init__(self, name: str) -> None:
        super().__init__(["Yes."], name=name, repeat=True)


class Counting:
    """A custom model that only reports usage with its answers."""

    name = "mine"

    def __init__(self, each: int, choices: int = 1) -> None:
        self.each = each
        self.choices = choices
        self.requests: list[Request] = []

    async def send(self, request: Request) -> Response:
        """An answer: every question so far has cost the same."""
        self.requests.append(request)
        asked = sum(message.text.startswith("question") for message in request.messages)
        usage = Usage(input=self.each * asked - 10, output=10)
        answers = (Choice(n, Message.assistant("Yes.")) for n in range(self.choices))
        return Response(choices=tuple(answers), usage=usage)

    def stream(self, request: Request) -> Any:
        """Not used here."""
        raise NotImplementedError

    async def close(self) -> None:
        """Nothing to close."""


def turns(number: int, words: int = 300) -> list[Message]:
    """Questions and answers."""
    pairs = (
        (Message.user(f"question {n} " + "word " * words), Message.assistant(f"answer {n}"))
        for n in range(number)
    )
    return [message for pair in pairs for message in pair]


class TestWindows:
    """One request does not affect the window of the next."""

    async def test_a_larger_model_gets_everything_again(self) -> None:
        """After a smaller model got less; the result has the number of omitted messages."""
        history = await ChatHistory.open(ONE, "memory:", ChatHistoryConfig(context_window=200_000))
        await history.extend(turns(60))
        small, large = Sized("openai:gpt-4"), Sized("anthropic:claude-sonnet-4-5")
        first = await Agent(small).send("And now?", history=history)
        assert len(small.requests[0].messages) < 121
        assert first.metadata["omitted"] > 0
        second = await Agent(large).send("And now?", history=history)
        assert len(large.requests[0].messages) == 123
        assert "omitted" not in second.metadata
        await Agent(small).send("And now?", history=history)
        before, after = (request.messages for request in small.requests)
        assert [m.id for m in after][: len(before)] == [m.id for m in before]

    async def test_alternating_models_keep_their_windows(self) -> None:
        """A model's usage only affects its own window."""
        history = await ChatHistory.open(ONE, "memory:", ChatHistoryConfig(context_window=200_000))
        await history.extend(turns(60))
        small, large = Sized("openai:gpt-4"), Sized("anthropic:claude-sonnet-4-5")
        for number in range(12):
            for model, limit in ((small, 8_192), (large, 200_000)):
                result = await Agent(model).send(f"And {number}?", history=history)
                assert result.usage is not None
                assert result.usage.total_input < limit
        firsts = [request.messages[1].id for request in small.requests]
        assert len(set(firsts)) == 1
        assert {len(request.messages) for request in large.requests} == {
            120 + 3 + 4 * number for number in range(12)
        }


class TestUsage:
    """Reported usage counts, wherever the response has it."""

    @pytest.mark.parametrize("choices", [1, 3])
    async def test_usage_of_a_response_counts(self, choices: int) -> None:
        """Its message has none of its own; it is stored with it."""
        history = await ChatHistory.open(ONE, "memory:")
        await Agent(Counting(300, choices)).send("question", history=history)
        last = await history.last()
        assert last is not None
        assert last.usage is not None
        assert last.usage.total == 300

    async def test_five_turns_of_300_tokens_and_room_for_800_leave_two(self) -> None:
        """Reported usage is trusted, however short the texts are."""
        history = await ChatHistory.open(
            ONE, "memory:", ChatHistoryConfig(context_window=1_600, reserved_for_completion=0)
        )
        agent = Agent(Counting(300))
        for number in range(5):
            await agent.send(f"question {number}", history=history)
        window = await history.window(800)
        asked = [m.text for m in window if m.text.startswith("question")]
        assert asked == ["question 3", "question 4"]
        assert window.omitted == 6

    async def test_usage_below_the_estimate_is_trusted_too(self) -> None:
        """Five turns are estimated at 3,000 tokens each, and are 300."""
        history = await ChatHistory.open(
            ONE, "memory:", ChatHistoryConfig(context_window=1_600, reserved_for_completion=0)
        )
        said = [
            message
            for number in range(5)
            for message in (
                Message.user(f"question {number} " + "word " * 600),
                Message.assistant("Yes.", usage=Usage(input=300 * number + 290, output=10)),
            )
        ]
        await history.extend(said)
        asked = [m for m in await history.window(800) if m.text.startswith("question")]
        assert len(asked) == 2

    async def test_one_expensive_turn_does_not_block_the_next(self) -> None:
        """After one large tool result, the rest of the window can still be sent."""
        history = await ChatHistory.open(
            ONE, "memory:", ChatHistoryConfig(context_window=8_000, reserved_for_completion=0)
        )
        for used in (100, 7_500):
            await history.add("Go on.")
            await history.add(Message.assistant("Yes.", usage=Usage(input=used, output=5)))
        await history.add("word " * 1_000)
        assert (await history.window())[-1].text.startswith("word")


class Watched(MemoryStorage):
    """Counts reads."""

    def __init__(self) -> None:
        super().__init__()
        self.rows_read = self.sessions_read = 0

    async def rows(self, *arguments: Any, **options: Any) -> list[Row]:
        """Count that many rows."""
        found = await super().rows(*arguments, **options)
        self.rows_read += len(found)
        return found

    async def row(self, *arguments: Any, **options: Any) -> Row | None:
        """Count one row."""
        self.rows_read += 1
        return await super().row(*arguments, **options)

    async def session(self, identity: SessionIdentity) -> Session | None:
        """Count one read."""
        self.sessions_read += 1
        return await super().session(identity)


class TestResuming:
    """Resuming reads only the end."""

    @pytest.mark.parametrize("is_blocking", [False, True])
    async def test_starting_a_run_reads_the_end_and_truncates_nothing(
        self, is_blocking: bool
    ) -> None:
        """No hook is called, and no cut is stored, until there is something to send."""
        heard: list[str] = []
        names = ("on_before_load", "on_after_load", "before_truncate", "after_truncate")
        hooks: dict[str, Any] = {name: lambda *_, name=name: heard.append(name) for name in names}
        config = ChatHistoryConfig(context_window=900, reserved_for_completion=0, **hooks)
        storage = Watched()
        filling = await ChatHistory.open(ONE, storage)
        call = ToolCall.create("call_1", "weather", {})
        await filling.extend(
            [*turns(500), Message.user("So?"), Message.assistant(tool_calls=[call])]
        )
        history: Any = (
            ChatHistory.open_sync(ONE, storage, config)
            if is_blocking
            else await ChatHistory.open(ONE, storage, config)
        )
        storage.rows_read = 0
        found = await last_round(conversation_of(history), "m")
        assert [each.id for each in unanswered(found)] == ["call_1"]
        assert storage.rows_read <= 8
        assert heard == []
        assert (await storage.session(ONE)).windows is None  # type: ignore[union-attr]

    @pytest.mark.parametrize("results", [1, 7, 8, 9, 40, 200])
    async def test_a_long_round_is_found_whole(self, results: int) -> None:
        """However many messages its results are in."""
        calls = [ToolCall.create(f"call_{n}", "weather", {}) for n in range(results + 1)]
        said = [
            *turns(10),
            Message.user("So?"),
            Message.assistant(tool_calls=calls),
            *(Message.tool(f"call_{n}", "sunny") for n in range(results)),
        ]
        history = await ChatHistory.open(ONE, "memory:")
        await history.extend(said)
        for each in (history, Messages.of(said)):
            found = await last_round(conversation_of(each), "m")
            assert [call.id for call in unanswered(found)] == [f"call_{results}"]

    async def test_a_custom_conversation_need_not_have_a_tail(self) -> None:
        """Its window is used instead."""

        class Own:
            keeps_rounds = False

            async def window(self, _model: str | None, _tools: Any, _system: Any) -> Messages:
                return Messages.of(turns(3))

            async def add(self, message: Message) -> Message:
                return message

            async def replace(self, message: Message) -> Message:
                return message

        assert len(await last_round(conversation_of(Own()), "m")) == 6


class TestCost:
    """A send costs in proportion to what is new."""

    @pytest.mark.parametrize("size", [900, 10_000_000])
    async def test_a_send_reads_and_counts_only_what_is_new(
        self, size: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Nothing is counted or read again, in a history of any length."""
        counted: list[Message] = []
        seen = await self._counted(size, monkeypatch, counted)
        assert seen == [seen[0]] * len(seen)
        assert seen[0][0] <= 8  # rows: the end, to see whether calls are pending
        assert seen[0][2] <= 3

    async def _counted(
        self, size: int, monkeypatch: pytest.MonkeyPatch, counted: list[Message]
    ) -> Sequence[tuple[int, int, int]]:
        from dragoman.history import part_tokens, tokens

        real = part_tokens.size_of_message

        def watch(message: Message) -> Any:
            counted.append(message)
            return real(message)

        monkeypatch.setattr(tokens, "size_of_message", watch)
        seen: list[tuple[int, int, int]] = []
        for number in (10, 1_000):
            storage = Watched()
            config = ChatHistoryConfig(context_window=size, reserved_for_completion=0)
            history = await ChatHistory.open(ONE, storage, config)
            await history.extend(turns(number, words=50))
            agent = Agent(ScriptedModel(["Yes."], name="m", repeat=True))
            for _ in range(3):
                await agent.send("So?", history=history)
            storage.rows_read = storage.sessions_read = 0
            counted.clear()
            await agent.send("So?", history=history)
            seen.append((storage.rows_read, storage.sessions_read, len(counted)))
        return seen
