"""Seed 002: its examples, its layers, and the request for each provider."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import pytest

import dragoman
from dragoman import (
    Agent,
    ChatHistory,
    ConversationHistory,
    FinishReason,
    Message,
    Messages,
    Policy,
    Request,
    Response,
    Role,
    SessionIdentity,
    Text,
    Thinking,
    ToolExecutor,
    Usage,
    tool,
)
from dragoman.agent import Run, ToolOrchestrator, TypedOrchestrator
from dragoman.agent.events import MessageAdded, RetryRequested
from dragoman.errors import AllFailed, InvalidInputError, Overloaded
from dragoman.history import MemoryStorage
from dragoman.model import Choice, Origin
from dragoman.model.events import Event, PartStart
from dragoman.testing import ReplayTransport
from dragoman.transport import Client, FallbackModel
from tests.agent.scripts import asks, call, clock, model, weather

BOTH = asks(call("weather", "1", city="NYC"), call("clock", "2", city="NYC"))
ONE = SessionIdentity(agent="agent", chat="chat")
RAIN, HOUR = "rain in NYC", '{"city":"NYC","hour":15}'


@tool
def broken() -> str:
    """A tool that fails."""
    raise LookupError


# --- the seed's own examples


async def test_a_conversation_of_several_turns_with_tools() -> None:
    """The seed's longest example: each call returns its new messages; the caller collects them."""
    answers = model("Hi! How can I help?", BOTH, "It's 72°F and 3:45 PM in NYC", "Yes.")
    agent = Agent(answers, tools=[weather, clock])
    history = Messages()
    hello = await agent.send("Hello!")
    history += hello.messages
    told = await agent.send("What is the weather and time in NYC?", history=history)
    history += told.messages
    walk = await agent.send("Is that good weather for a walk?", history=history)
    history += walk.messages
    assert [len(each.messages) for each in (hello, told, walk)] == [2, 4, 2]
    assert [message.role.value for message in told.messages] == [
        "user", "assistant", "tool", "assistant",
    ]  # fmt: skip
    assert answers.requests[-1].messages == tuple(history[:-1])
    assert walk.output == "Yes."


async def test_messages_and_text_are_collected_from_a_stream() -> None:
    """The chunks add up to the prompt, the calls, the results and the answer."""
    first = asks(call("weather", city="Basel"), text="Calling tools.")
    agent = Agent(model(first, "The weather is wet."), tools=[weather])
    messages: list[Message] = []
    text = ""
    async for chunk in agent.stream("Call my tools please"):
        text += chunk.output
        messages.extend(chunk.messages)
    assert text == "Calling tools.\nThe weather is wet."
    assert [message.role.value for message in messages] == [
        "user", "assistant", "tool", "assistant",
    ]  # fmt: skip


async def test_only_the_first_chunk_of_a_further_message_begins_a_line() -> None:
    """Nothing is inserted between the chunks of one message."""
    first = asks(call("weather", city="Basel"), text="Let me look.")
    agent = Agent(model(first, "It will rain all day."), tools=[weather])
    pieces = [chunk.output async for chunk in agent.stream("Weather?") if chunk.output]
    assert [piece for piece in pieces if piece.startswith("\n")] == ["\nIt"]
    assert "".join(pieces).count("\n") == 1


async def test_a_typed_output_does_not_change_the_messages() -> None:
    """All messages are returned as well, and the value replaces the text."""
    result_call = call("return_result", "9", result=[1, 2])
    agent = Agent(model(BOTH, asks(result_call)), tools=[weather, clock])
    result = await agent.send("Numbers of the day?", output=list[int])
    assert result.output == [1, 2]
    assert [message.role.value for message in result.messages] == [
        "user", "assistant", "tool", "assistant", "tool",
    ]  # fmt: skip
    assert [r.call_id for r in result.messages[2].tool_results] == ["1", "2"]


async def test_users_and_models_take_turns() -> None:
    """A strict history accepts all messages of a run, and the whole passes its check."""
    history = ConversationHistory([Message.system("Be brief.")], policy=Policy.STRICT)
    agent = Agent(model(BOTH, "Both.", "Yes."), tools=[weather, clock])
    await agent.send("Weather and time?", history=history)
    await agent.send("Really?", history=history)
    history.validate()
    assert len(history) == 7


@pytest.mark.parametrize("system", [None, "Be brief."])
@pytest.mark.parametrize("streams", [False, True])
async def test_a_default_conversation_accepts_any_agent(system: str | None, streams: bool) -> None:
    """An empty strict one, too: instructions, if any, are sent with requests."""
    history = ConversationHistory()
    answers = model(BOTH, "Both.", "Yes.")
    agent = Agent(answers, tools=[weather, clock], system=system)
    for prompt in ("Weather and time?", "Really?"):
        if streams:
            await agent.stream(prompt, history=history).collect()
        else:
            await agent.send(prompt, history=history)
    history.validate()
    assert [m.role.value for m in history] == [
        "user", "assistant", "tool", "assistant", "user", "assistant",
    ]  # fmt: skip
    assert [str(part) for part in answers.requests[-1].system] == ([system] if system else [])
    assert ConversationHistory.from_json(history.to_json()).messages == history.messages


async def test_a_strict_conversation_accepts_repeated_call_ids() -> None:
    """Each call has a unique id in the conversation; the model's id is kept."""
    history = ConversationHistory([Message.system("Be brief.")])
    agent = Agent(model(BOTH, BOTH, "Done."), tools=[weather, clock])
    await agent.send("Weather and time, twice?", history=history)
    history.validate()
    calls = [each for message in history for each in message.tool_calls]
    results = [each for message in history for each in message.tool_results]
    assert len({each.id for each in calls}) == 4
    assert [each.call_id for each in results] == [each.id for each in calls]
    assert [each.wire_id for each in calls[2:]] == ["1", "2"]


async def test_messages_after_parallel_calls_are_exported() -> None:
    """One entry per result in formats with one each, and all of them can be imported again."""
    agent = Agent(model(BOTH, "Both."), tools=[weather, clock])
    messages = (await agent.send("Weather and time?")).messages
    listed = messages.to_list()
    assert [each["role"] for each in listed] == ["user", "assistant", "tool", "tool", "assistant"]
    assert Messages.from_any(listed) == messages.split_results()
    assert Messages.from_any(listed).consolidated() == messages


async def test_a_result_has_the_answers_id() -> None:
    """The metadata has the response id, which a further request may name, and the model."""
    choice = Choice(0, Message.assistant("Hi."), FinishReason.STOP)
    answer = Response(choices=(choice,), id="resp_abc123", model="gpt-5")
    result = await Agent(model(answer)).send("Hello")
    assert result.metadata == {"response_id": "resp_abc123", "model": "gpt-5"}


async def test_arguments_are_parsed() -> None:
    """A call has its arguments as a mapping; without any it is empty."""
    agent = Agent(model(asks(call("broken"), call("weather", "2", city="Basel")), "Done."),
                  tools=[broken, weather])  # fmt: skip
    result = await agent.send("Go")
    assert [dict(each.arguments) for each in result.messages[1].tool_calls] == [
        {},
        {"city": "Basel"},
    ]


# --- a custom model


class Mine:
    """A model with the methods of `dragoman.Model`, and nothing else."""

    name = "mine:1"

    def __init__(self, *answers: Response) -> None:
        self.answers = list(answers)

    async def send(self, _request: Any) -> Response:
        """The next answer."""
        return self.answers.pop(0)

    def stream(self, _request: Any) -> MyStream:
        """The next answer, in pieces."""
        return MyStream(self.answers.pop(0))

    async def close(self) -> None:
        """Nothing is open."""


class MyStream:
    """A stream with the methods of `ModelStream`, and nothing else."""

    def __init__(self, response: Response) -> None:
        self.response = response
        self.is_complete = self.is_closed = False

    async def __aiter__(self) -> AsyncIterator[Event]:
        for place, part in enumerate(self.response.message.parts):
            yield PartStart(place, part)
        self.is_complete = True

    async def close(self) -> None:
        """Remember it."""
        self.is_closed = True


def spent(message: Message, finish: FinishReason | None = None, **fields: Any) -> Response:
    """An answer whose usage and finish reason are only on the response."""
    return Response(choices=(Choice(0, message, finish),), usage=Usage(7, 3), **fields)


@pytest.mark.parametrize("streams", [False, True])
async def test_a_custom_model_needs_only_the_protocol(streams: bool) -> None:
    """`name`, `send`, `stream` and `close`; a type checker accepts it as well."""
    mine: dragoman.Model = Mine(spent(BOTH), spent(Message.assistant("Both.")))
    agent = Agent(mine, tools=[weather, clock])
    result = await (agent.stream("Go").collect() if streams else agent.send("Go"))
    assert result.output == "Both."
    assert result.usage == Usage(14, 6)


@pytest.mark.parametrize("missing", ["name", "send", "stream", "close"])
def test_missing_methods_of_a_model_are_named(missing: str) -> None:
    """With the list of required ones."""
    members = {name: getattr(Mine, name) for name in ("name", "send", "stream", "close")}
    del members[missing]
    with pytest.raises(InvalidInputError) as refused:
        Agent(cast("Any", type("Half", (), members)()))
    assert (
        str(refused.value) == f"a model must have name, send, stream, close; Half has no {missing}"
    )


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("scripted", [False, True])
async def test_usage_is_stored_with_the_answer(streams: bool, scripted: bool) -> None:
    """Also if only the response has it: histories use it for their windows."""
    answers = [spent(BOTH, FinishReason.TOOL_CALLS),
               spent(Message.assistant("Both."), FinishReason.STOP)]  # fmt: skip
    agent = Agent(model(*answers) if scripted else Mine(*answers), tools=[weather, clock])
    async with await ChatHistory.open(ONE, MemoryStorage()) as history:
        await (agent.stream("Go", history=history).collect() if streams
               else agent.send("Go", history=history))  # fmt: skip
        stored = [m for m in await history.messages() if m.role is Role.ASSISTANT]
    assert [m.usage.total if m.usage else 0 for m in stored] == [10, 10]
    assert [m.finish for m in stored] == [FinishReason.TOOL_CALLS, FinishReason.STOP]


async def test_a_truncated_call_is_detected_by_its_choice() -> None:
    """It is not run (I7), whether the message or only its choice has the finish reason."""
    mine = Mine(spent(BOTH, FinishReason.LENGTH), spent(Message.assistant("Too long.")))
    result = await Agent(mine, tools=[weather, clock]).send("Go")
    assert all(each.is_error for each in result.messages[2].tool_results)


# --- thinking


class TestThinking:
    """Thinking is metadata, not content of the conversation."""

    FOREIGN = Origin(dialect="elsewhere", provider="elsewhere", model="deep")

    def answer(self) -> Message:
        """An answer with thinking of another provider."""
        return Message.assistant(Thinking("Hmm, Basel."), Text("Rain.")).replace(
            origin=self.FOREIGN
        )

    async def test_thinking_is_streamed_once_in_metadata(self) -> None:
        """Deltas come without text or message; the last chunk does not repeat them."""
        chunks = [chunk async for chunk in Agent(model(self.answer())).stream("Weather?")]
        thoughts = [chunk for chunk in chunks if "thinking" in chunk.metadata]
        assert "".join(chunk.metadata["thinking"] for chunk in thoughts) == "Hmm, Basel."
        assert not any(chunk.output or chunk.messages for chunk in thoughts)
        assert "thinking" not in chunks[-1].metadata

    async def test_each_message_keeps_its_thinking_out_of_its_text(self) -> None:
        """All of a turn's thinking is on its message, and none of it in the text."""
        result = await Agent(model(self.answer())).send("Weather?")
        (answer,) = result.messages.for_roles("assistant")
        assert (answer.thinking, answer.text, str(answer)) == ("Hmm, Basel.", "Rain.", "Rain.")

    @pytest.mark.parametrize("name", dragoman.dialects())
    async def test_thinking_is_not_sent_to_another_provider(self, name: str) -> None:
        """Not in any field."""
        answers = model(self.answer(), "Yes.")
        agent = Agent(answers)
        first = await agent.send("Weather?")
        await agent.send("Sure?", history=first.messages)
        sent = dragoman.dialect(name).encode_request(answers.requests[1].replace(model="m"))
        assert b"Rain." in sent.to_bytes()
        assert b"Hmm" not in sent.to_bytes()


# --- the request for each provider


async def asked_after_tools() -> Request:
    """The request in which an agent sends the results of two tools."""
    answers = model(BOTH, "It rains at three.")
    await Agent(answers, tools=[weather, clock]).send("Weather and time?")
    (results,) = [m for m in answers.requests[1].messages if m.role is Role.TOOL]
    assert len(results.tool_results) == 2  # the agent knows nothing of providers
    return answers.requests[1].replace(model="m")


class TestProviders:
    """One message with all results is encoded in each provider's form."""

    async def body(self, dialect: str) -> Any:
        """The request body in a dialect, which passes its check."""
        encoded = dragoman.dialect(dialect).encode_request(await asked_after_tools())
        found = dragoman.dialect(dialect).check(encoded.body, path=encoded.path)
        assert [each for each in found if each.severity == "error"] == []
        return json.loads(encoded.to_bytes())

    async def test_openai_chat_gets_a_message_for_each_result(self) -> None:
        """Each is a `tool` message with its call's id, after the calls."""
        calls, *results = (await self.body("openai-chat"))["messages"][1:]
        assert [each["id"] for each in calls["tool_calls"]] == ["1", "2"]
        assert results == [
            {"role": "tool", "tool_call_id": "1", "content": RAIN},
            {"role": "tool", "tool_call_id": "2", "content": HOUR},
        ]

    async def test_openai_responses_gets_an_item_for_each_result(self) -> None:
        """Each is a `function_call_output`."""
        items = (await self.body("openai-responses"))["input"][-2:]
        assert items == [
            {"type": "function_call_output", "call_id": "1", "output": RAIN},
            {"type": "function_call_output", "call_id": "2", "output": HOUR},
        ]

    async def test_anthropic_gets_results_in_one_user_message(self) -> None:
        """As blocks, each with the id of its `tool_use`."""
        calls, results = (await self.body("anthropic"))["messages"][1:]
        assert [each["id"] for each in calls["content"]] == ["1", "2"]
        assert results["role"] == "user"
        assert [(each["type"], each["tool_use_id"]) for each in results["content"]] == [
            ("tool_result", "1"),
            ("tool_result", "2"),
        ]

    async def test_gemini_gets_results_in_one_message(self) -> None:
        """As function responses, which are objects."""
        results = (await self.body("gemini"))["contents"][-1]
        assert results["role"] == "user"
        responses = [part["functionResponse"] for part in results["parts"]]
        assert [each["name"] for each in responses] == ["weather", "clock"]
        assert responses[1]["response"] == {"city": "NYC", "hour": 15}

    async def test_ollama_gets_its_own_form_or_openais(self) -> None:
        """In its own dialect results name their tool; in the other they are OpenAI's."""
        native = (await self.body("ollama"))["messages"][-2:]
        assert [(each["role"], each["tool_name"]) for each in native] == [
            ("tool", "weather"),
            ("tool", "clock"),
        ]
        assert "openai-chat" in {each.dialect for each in dragoman.provider("ollama").targets}

    @pytest.mark.parametrize("name", dragoman.dialects())
    async def test_a_single_result_is_sent_alike(self, name: str) -> None:
        """The request is valid and contains the result."""
        answers = model(asks(call("weather", city="Basel")), "Rain.")
        await Agent(answers, tools=[weather]).send("Weather?")
        dialect = dragoman.dialect(name)
        encoded = dialect.encode_request(answers.requests[1].replace(model="m"))
        assert b"rain in Basel" in encoded.to_bytes()
        found = dialect.check(encoded.body, path=encoded.path)
        assert [each for each in found if each.severity == "error"] == []


# --- the layers


class Noting(ToolOrchestrator):
    """Records its calls."""

    def __init__(self) -> None:
        self.noted: list[str] = []

    async def initialize(self, run: Run) -> None:
        """Nothing has been requested yet."""
        self.noted.append(f"initialize {run.tally.steps}")

    async def iterate(self, run: Run) -> None:
        """One request and what follows from it."""
        self.noted.append("iterate")
        await super().iterate(run)

    async def finalize(self, run: Run) -> None:
        """Called however the run ended."""
        self.noted.append(f"finalize {run.is_over}")


class TestOrchestrator:
    """The orchestrator of a run can be replaced."""

    async def test_it_is_initialized_iterated_and_finalized(self) -> None:
        """Once at the start, until the run is over, and once at the end."""
        noting = Noting()
        agent = Agent(model(BOTH, "Both."), tools=[weather, clock], orchestrator=noting)
        assert (await agent.send("Weather and time?")).output == "Both."
        assert noting.noted == ["initialize 0", "iterate", "iterate", "finalize True"]

    async def test_it_is_finalized_after_a_failure(self) -> None:
        """And after a reader that left early."""
        noting = Noting()
        with pytest.raises(Overloaded):
            await Agent(model(Overloaded("busy")), orchestrator=noting).send("Hi")
        assert noting.noted[-1] == "finalize False"
        noting = Noting()
        async with Agent(model("One two three"), orchestrator=noting).stream("Hi") as stream:
            async for chunk in stream:
                if chunk.output:
                    break
        assert noting.noted == ["initialize 0", "iterate", "finalize False"]

    async def test_a_custom_orchestrator_decides_what_is_requested(self) -> None:
        """It has three methods: this one answers without any model."""

        class Canned:
            async def initialize(self, run: Run) -> None:
                run.retries.clear()

            async def iterate(self, run: Run) -> None:
                await run.emit_text("Canned.")
                await run.add(Message.assistant("Canned."))
                run.finish()

            async def finalize(self, run: Run) -> None:
                assert run.is_over

        silent = model()
        result = await Agent(silent, orchestrator=Canned()).send("Hi")
        assert (result.output, len(result.messages)) == ("Canned.", 2)
        assert silent.requests == []

    async def test_an_orchestrator_that_yields_events_is_rejected(self) -> None:
        """As in an earlier version; the error says to emit them instead."""

        class Yielding(ToolOrchestrator):
            async def iterate(self, run: Run) -> Any:
                yield run.said("Hi.")

        with pytest.raises(InvalidInputError, match=r"await run\.emit"):
            await Agent(model("Hi."), orchestrator=Yielding()).send("Hi")

    async def test_emitted_events_are_in_the_stream(self) -> None:
        """In order, each after the one before it was read."""

        class Announcing(ToolOrchestrator):
            async def iterate(self, run: Run) -> None:
                await run.emit(RetryRequested("just so"))
                await super().iterate(run)

        agent = Agent(model("Hi."), orchestrator=Announcing())
        events = [type(event).__name__ async for event in agent.stream("Hi").events()]
        assert events[:3] == ["MessageAdded", "RetryRequested", "StepStarted"]

    async def test_the_orchestrator_depends_on_the_output(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A type has its own; text uses the one for tools."""
        used: list[str] = []

        def noting(kind: type) -> Any:
            begin = kind.initialize  # type: ignore[attr-defined]

            async def initialize(self: Any, run: Run) -> None:
                used.append(type(self).__name__)
                await begin(self, run)

            return initialize

        for kind in (ToolOrchestrator, TypedOrchestrator):
            monkeypatch.setattr(kind, "initialize", noting(kind))
        agent = Agent(model("Hi.", asks(call("return_result", result=7))))
        await agent.send("Hello")
        assert (await agent.send("A number?", output=int)).output == 7
        assert used == ["ToolOrchestrator", "TypedOrchestrator"]

    async def test_a_runs_state_is_its_own(self) -> None:
        """Two runs share only the setup."""
        seen: list[Run] = []

        class Keeping(ToolOrchestrator):
            async def initialize(self, run: Run) -> None:
                seen.append(run)

        agent = Agent(model("One.", "Two."), tools=[weather], orchestrator=Keeping())
        await agent.send("First")
        await agent.send("Second")
        first, second = seen
        assert [m.text for m in first.new] == ["First", "One."]
        assert [m.text for m in second.new] == ["Second", "Two."]
        assert first.conversation is not second.conversation
        assert first.setup is second.setup
        assert [*first.setup.tools.runnable] == ["weather"]


class TestExecutor:
    """The executor works with and without an agent."""

    async def test_a_batch_has_a_result_for_each_call(self) -> None:
        """In order; a failure is an error result."""
        calls = [call("broken", "1"), call("weather", "2", city="Basel")]
        tools = {each.name: each for each in (weather, broken)}
        failed, rain = await ToolExecutor().execute_batch(calls, tools)
        assert (failed.call_id, failed.is_error) == ("1", True)
        assert (rain.call_id, rain.is_error, rain.text) == ("2", False, "rain in Basel")

    async def test_all_results_are_one_message(self) -> None:
        """It is the round's last event, with successes and failures."""
        calls = asks(call("broken", "1"), call("weather", "2", city="Basel"))
        agent = Agent(model(calls, "Half of it."), tools=[broken, weather])
        added = [
            event.message
            async for event in agent.stream("Go").events()
            if isinstance(event, MessageAdded) and event.message.role is Role.TOOL
        ]
        (message,) = added
        assert [result.is_error for result in message.tool_results] == [True, False]


# --- embeddings


def recorded(place: str, asked: dict[str, Any], answered: dict[str, Any]) -> str:
    """A line of a recording."""
    request = {"method": "POST", "place": place, "body": json.dumps(asked)}
    reply = {"status": 200, "chunks": [json.dumps(answered)]}
    return json.dumps({"request": request, "reply": reply})


async def test_an_agent_embeds_texts(tmp_path: Path) -> None:
    """A query has one embedding, documents have one each, in order."""
    name, place = "text-embedding-3-small", "/v1/embeddings"
    one = {"index": 0, "embedding": [1.0, 0.0]}
    two = {"index": 1, "embedding": [0.0, 1.0]}
    lines = [
        json.dumps({"dragoman_recording": 1}),
        recorded(place, {"model": name, "input": ["search text"]}, {"data": [one]}),
        recorded(place, {"model": name, "input": ["doc1", "doc2"]}, {"data": [two, one]}),
    ]
    path = tmp_path / "embeddings.jsonl"
    path.write_text("\n".join(lines) + "\n")
    transport = ReplayTransport(path, ignore=["encoding_format"])
    async with Agent(Client(f"openai:{name}", key="any", transport=transport)) as agent:
        query = await agent.embed_query("search text")
        documents = await agent.embed_documents(["doc1", "doc2"])
    assert transport.unplayed == 0
    assert query.vector == (1.0, 0.0)
    assert documents.vectors == ((1.0, 0.0), (0.0, 1.0))
    with pytest.raises(InvalidInputError, match="embed_query"):
        await agent.embed_documents("doc1")


# --- what the seed's own system tests show (acceptance 33 to 36)


async def test_round_robin_over_models_with_tools_in_the_history() -> None:
    """Each turn uses another model, which gets all earlier messages."""
    models = [model(BOTH, f"Answer {n}.") for n in range(5)]
    agent, history = Agent(models[0], tools=[weather, clock]), Messages()
    for n, each in enumerate(models):
        result = await agent.with_model(each).send(f"Question {n}", history=history)
        assert result.output == f"Answer {n}."
        history += result.messages
    assert len(history) == 20
    for name in dragoman.dialects():
        dialect = dragoman.dialect(name)
        encoded = dialect.encode_request(models[-1].requests[-1].replace(model="m"))
        found = dialect.check(encoded.body, path=encoded.path)
        assert [each for each in found if each.severity == "error"] == []


@pytest.mark.parametrize("streams", [False, True], ids=["sent", "streamed"])
async def test_a_fallback_in_an_agent(streams: bool) -> None:
    """In the second step another model continues; the next send begins with the first again."""
    first = model(BOTH, Overloaded("busy"), "First again.")
    second = model("Second.")
    agent = Agent(FallbackModel(first, second), tools=[weather, clock])
    result = await (agent.stream("Go").collect() if streams else agent.send("Go"))
    assert result.output == "Second."
    assert [m.role.value for m in result.messages] == ["user", "assistant", "tool", "assistant"]
    assert [m.role.value for m in second.requests[0].messages] == ["user", "assistant", "tool"]
    assert (await agent.send("Go on", history=result.messages)).output == "First again."


async def test_a_fallback_whose_models_all_fail() -> None:
    """All causes are included, and the history has the prompt once, so that it can be continued."""
    history = ConversationHistory(policy=Policy.LENIENT)
    both = FallbackModel(model(Overloaded("a")), model(Overloaded("b"), "At last."))
    with pytest.raises(AllFailed) as failed:
        await Agent(both).send("Go", history=history)
    assert len(failed.value.causes) == 2
    assert [m.text for m in history.messages] == ["Go"]


async def test_a_failing_tool_is_not_a_failing_model() -> None:
    """A tool's exception goes to the model that called it, never to the next one."""
    second = model()
    agent = Agent(FallbackModel(model(asks(call("broken")), "Too bad."), second), tools=[broken])
    assert (await agent.send("Go")).output == "Too bad."
    assert second.requests == []


async def test_dependent_tools_then_a_type() -> None:
    """Rounds that build on each other end in a value, in one send (acceptance 36)."""
    seen: list[str] = []

    @tool
    def town() -> str:
        """Where the user is."""
        return "Basel"

    def then(request: Request) -> Message:
        place = request.messages[-1].tool_results[0].text
        seen.append(place)
        return asks(call("weather", "2", city=place))

    def last(request: Request) -> Message:
        told = request.messages[-1].tool_results[0].text
        return asks(call("return_result", "3", result=told == f"rain in {seen[0]}"))

    agent = Agent(model(asks(call("town", "1")), then, last), tools=[town, weather], output=bool)
    result = await agent.send("Will it rain here?")
    assert (seen, result.output, result.steps) == (["Basel"], True, 3)
