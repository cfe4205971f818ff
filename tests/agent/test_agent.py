"""Agents hold conversations: the sending semantics of seed 002."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from dragoman import (
    Agent,
    ConversationHistory,
    DragomanError,
    FinishReason,
    Image,
    Message,
    Messages,
    Policy,
    Role,
    RunContext,
    RunLimits,
    Text,
    Thinking,
    ToolDefinition,
    Usage,
    tool,
)
from dragoman.agent.options import AgentOptions
from dragoman.agent.results import Result
from dragoman.errors import (
    ConfigError,
    InvalidInputError,
    LimitExceeded,
    ProviderError,
    ServerError,
)
from dragoman.model import ToolChoice
from dragoman.model.responses import Choice, Response
from dragoman.model.tools import make_call
from dragoman.providers import Price
from dragoman.testing import ScriptedModel
from tests.agent.scripts import asks, call, clock, model, weather

PICTURE = Image.from_bytes(b"\x89PNG", mime="image/png")


def roles(result: Result[Any]) -> list[str]:
    """The roles of the new messages."""
    return [message.role.value for message in result.messages]


async def sent(agent: Agent, *content: Any, **options: Any) -> Result[Any]:
    """The result of `send`."""
    found: Result[Any] = await agent.send(*content, **options)
    return found


async def streamed(agent: Agent, *content: Any, **options: Any) -> Result[Any]:
    """The result of `stream`, collected."""
    return await agent.stream(*content, **options).collect()


EITHER = pytest.mark.parametrize("ask", [sent, streamed])


@EITHER
async def test_result_has_only_the_new_messages_with_the_prompt(ask: Any) -> None:
    """Each call returns the new messages; together they are the conversation."""
    agent = Agent(model("Hi! How can I help?", "2+2 equals 4"))
    first = await ask(agent, "Hello")
    second = await ask(agent, "What is 2+2?", history=first.messages)
    assert [message.text for message in first.messages] == ["Hello", "Hi! How can I help?"]
    assert [message.text for message in second.messages] == ["What is 2+2?", "2+2 equals 4"]
    assert second.output == "2+2 equals 4"
    asked = agent.model.requests[1].messages  # type: ignore[attr-defined]
    assert Messages.of(asked) == first.messages + second.messages[:1]


@EITHER
async def test_the_results_of_a_round_are_one_message(ask: Any) -> None:
    """The messages are user, calls, all results in call order, answer."""
    calls = asks(call("weather", "a", city="Basel"), call("clock", "b", city="Basel"))
    agent = Agent(model(calls, "It rains at three."), tools=[weather, clock])
    result = await ask(agent, "Weather and time?")
    assert roles(result) == ["user", "assistant", "tool", "assistant"]
    rain, hour = result.messages[2].tool_results
    assert (rain.call_id, rain.text, rain.tool_name) == ("a", "rain in Basel", "weather")
    assert (hour.call_id, hour.text) == ("b", '{"city":"Basel","hour":15}')
    assert result.output == "It rains at three."


@EITHER
async def test_text_beside_calls_is_kept_and_joined_by_a_newline(ask: Any) -> None:
    """The texts of two messages are separated by one newline."""
    calls = asks(call("weather", city="Basel"), text="Calling tools.")
    result = await ask(Agent(model(calls, "It rains."), tools=[weather]), "Weather?")
    assert result.output == result.text == "Calling tools.\nIt rains."
    assert [m.text for m in result.messages.for_roles("assistant")] == [
        "Calling tools.",
        "It rains.",
    ]


async def test_no_newline_before_the_first_text() -> None:
    """The first text of a run has no newline before it."""
    agent = Agent(model(asks(call("weather", city="Basel")), "It rains."), tools=[weather])
    assert (await agent.send("Weather?")).output == "It rains."


@EITHER
async def test_usage_is_the_sum_of_all_requests(ask: Any) -> None:
    """Usage covers all requests of the run, not only the last."""
    calls = asks(call("weather", city="Basel")).replace(usage=Usage(input=10, output=3))
    answer = Message.assistant("Rain.").replace(usage=Usage(input=20, output=4))
    result = await ask(Agent(model(calls, answer), tools=[weather]), "Weather?")
    assert (result.usage.total_input, result.usage.total_output) == (30, 7)
    assert result.steps == 2
    assert result.finish is result.finish_reason is FinishReason.STOP


@EITHER
async def test_thinking_is_metadata_and_stays_on_the_message(ask: Any) -> None:
    """The text of all thinking is in the result's metadata, not in its output."""
    first = Message.assistant(
        Thinking("Which city?"), Text("One moment."), tool_calls=[call("weather", city="Basel")]
    )
    last = Message.assistant(Thinking("Rain it is."), Thinking("Really."), Text("Rain."))
    result = await ask(Agent(model(first, last), tools=[weather]), "Weather?")
    assert result.metadata["thinking"] == "Which city?\nRain it is.\nReally."
    assert result.thinking == result.metadata["thinking"]
    assert "city" not in str(result.output)
    assert [m.thinking for m in result.messages.for_roles("assistant")] == [
        "Which city?",
        "Rain it is.\nReally.",
    ]
    silent = await ask(Agent(model("Hi.")), "Hello")
    assert "thinking" not in silent.metadata


async def test_a_prompt_may_be_texts_and_media_or_a_message() -> None:
    """A prompt may be several arguments, a list, or a message."""
    agent = Agent(ScriptedModel(["ok"], repeat=True))
    several = await agent.send("What is this?", PICTURE)
    assert several.messages[0] == Message.user("What is this?", PICTURE)
    assert (await agent.send(["What is this?", PICTURE])).messages[0] == several.messages[0]
    message = Message.user("Hi", name="ada")
    assert (await agent.send(message)).messages[0].identical(message)


async def test_instructions_are_not_part_of_the_conversation() -> None:
    """Instructions are sent with each request and aren't messages; a function may return them."""
    agent = Agent(model("a", "b"), system="Be brief.")
    result = await agent.send("Hi")
    await agent.send("Go on", history=result.messages)
    for request in agent.model.requests:  # type: ignore[attr-defined]
        assert [part.text for part in request.system] == ["Be brief."]
        assert all(message.role is not Role.SYSTEM for message in request.messages)

    async def told(run: RunContext[str]) -> str:
        return f"You talk to {run.deps}."

    agent = Agent(model("a"), system=told)
    await agent.send("Hi", deps="Ada")
    assert agent.model.requests[0].system[0].text == "You talk to Ada."  # type: ignore[attr-defined]


async def test_settings_of_the_agent_and_of_a_call() -> None:
    """A call's settings take precedence; the error for an unknown setting lists the known ones."""
    agent = Agent(model("a", "b"), max_tokens=100, temperature=0, thinking="high")
    await agent.send("Hi", max_tokens=5, thinking=False)
    await agent.send("Hi")
    one, two = agent.model.requests  # type: ignore[attr-defined]
    assert (one.sampling.max_tokens, one.sampling.temperature) == (5, 0)
    assert (one.thinking.enabled, two.thinking.effort, two.sampling.max_tokens) == (
        False,
        "high",
        100,
    )
    with pytest.raises(InvalidInputError, match=r"no setting max_token .*max_tokens"):
        agent.stream("Hi", max_token=5)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
    with pytest.raises(InvalidInputError, match="no setting bogus"):
        Agent(model(), bogus=1)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]


async def test_a_conversation_history_is_kept_up_to_date() -> None:
    """The messages that the agent adds are valid under the strict policy."""
    history = ConversationHistory([Message.system("Be brief.")], policy=Policy.STRICT)
    calls = asks(call("weather", city="Basel"))
    agent = Agent(model(calls, "Rain.", "You're welcome."), tools=[weather])
    await agent.send("Weather?", history=history)
    await agent.send("Thanks", history=history)
    history.validate()
    assert [m.role.value for m in history.messages] == [
        "system", "user", "assistant", "tool", "assistant", "user", "assistant"
    ]  # fmt: skip


async def test_a_callers_list_is_not_changed() -> None:
    """A list of provider dicts is read, and not modified."""
    wire: list[dict[str, Any]] = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": None, "tool_calls": [
            {"id": "1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "1", "content": "rain"},
        {"role": "assistant", "content": "Rain."},
    ]  # fmt: skip
    before = [dict(each) for each in wire]
    agent = Agent(model("Yes."), tools=[weather])
    await agent.send("Really?", history=wire)
    assert wire == before
    asked = agent.model.requests[0].messages  # type: ignore[attr-defined]
    assert [m.kind for m in asked] == ["user", "tool_call", "tool_result", "assistant", "user"]


async def test_one_agent_serves_many_conversations_at_once() -> None:
    """Concurrent conversations of one agent don't affect each other."""

    async def echoed(request: object) -> str:
        await asyncio.sleep(0)
        return " ".join(m.text for m in request.messages if m.role is Role.USER)  # type: ignore[attr-defined]

    agent = Agent(ScriptedModel([echoed], repeat=True))

    async def talk(name: str) -> str:
        chat = agent.chat()
        await chat.send(f"{name}1")
        return str((await chat.send(f"{name}2")).output)

    told = await asyncio.gather(*(talk(name) for name in "abcdefgh"))
    assert told == [f"{name}1 {name}2" for name in "abcdefgh"]


# --- tools


async def test_tool_failures_are_error_results() -> None:
    """Unknown tools, bad arguments and exceptions become error results, beside successful ones."""

    @tool
    def broken(city: str) -> str:
        """Fails."""
        raise RuntimeError("no " + city)

    calls = asks(
        call("weather", "a", city="Basel"), call("wether", "b", city="Basel"),
        call("weather", "c", town="Basel"), call("broken", "d", city="Basel"),
        make_call("e", "weather", raw='{"city": "Ba'),
    )  # fmt: skip
    result = await Agent(model(calls, "Sorry."), tools=[weather, broken]).send("Weather?")
    results = result.messages[2].tool_results
    assert [each.is_error for each in results] == [False, True, True, True, True]
    assert "weather" in results[1].text
    assert "city" in results[2].text
    assert "no Basel" in results[3].text
    assert result.output == "Sorry."


async def test_calls_of_a_truncated_answer_are_not_run() -> None:
    """Their arguments may be incomplete, even if they can be parsed (I7)."""
    ran: list[str] = []

    @tool
    def delete(path: str) -> str:
        """Deletes."""
        ran.append(path)
        return "done"

    cut = asks(call("delete", path="/")).replace(finish=FinishReason.LENGTH)
    result = await Agent(model(cut, "I stop."), tools=[delete]).send("Tidy up")
    assert ran == []
    assert result.messages[2].tool_results[0].is_error
    assert "cut off" in result.messages[2].tool_results[0].text


async def test_repeatedly_truncated_answers_end_the_run() -> None:
    """After three truncated answers the run ends."""
    cut = asks(call("weather", city="Basel")).replace(finish=FinishReason.LENGTH)
    agent = Agent(ScriptedModel([cut], repeat=True), tools=[weather])
    result = await agent.send("Weather?")
    assert result.finish is FinishReason.LENGTH
    assert result.steps == 3


async def test_an_empty_answer_after_tools_is_requested_once_more() -> None:
    """After tools, an empty answer is requested once more, then accepted (acceptance 29)."""
    calls, nothing = asks(call("weather", city="Basel")), Message.assistant("")
    told = await Agent(model(calls, nothing, "Rain."), tools=[weather]).send("Weather?")
    assert (told.output, roles(told)) == ("Rain.", ["user", "assistant", "tool", "assistant"])
    silent = await Agent(model(calls, nothing, nothing), tools=[weather]).send("Weather?")
    assert (silent.output, silent.steps) == ("", 3)
    assert (await Agent(model(nothing)).send("Hi")).steps == 1


async def test_a_required_tool_is_required_only_once() -> None:
    """After the required call the choice is `auto`, so that the model can answer."""
    agent = Agent(
        model(asks(call("weather", city="Basel")), "Rain."),
        tools=[weather],
        tool_choice=ToolChoice("named", ("weather",), parallel=False),
    )
    await agent.send("Weather?")
    one, two = agent.model.requests  # type: ignore[attr-defined]
    assert one.tool_choice == ToolChoice("named", ("weather",), parallel=False)
    assert two.tool_choice == ToolChoice("auto", parallel=False)


async def test_a_call_for_the_caller_is_deferred() -> None:
    """The caller gives the result later, and the conversation continues (acceptance 35)."""
    pay = ToolDefinition.create("pay", "Pays.", {"type": "object", "properties": {}})
    agent = Agent(
        model(asks(call("weather", "a", city="Basel"), call("pay", "b")), "Paid, and it rains."),
        tools=[weather, pay],
    )
    first = await agent.send("Pay, and tell me the weather")
    assert [each.id for each in first.deferred] == ["b"]
    assert [r.call_id for r in first.messages[-1].tool_results] == ["a"]
    last = await agent.send(history=first.messages, results={"b": {"paid": True}})
    assert last.output == "Paid, and it rains."
    assert last.messages[0].tool_results[0].text == '{"paid":true}'
    assert not last.deferred


async def test_dependent_rounds_of_tools() -> None:
    """The result of one is the argument of the next (acceptance 36)."""

    @tool
    def locate(who: str) -> str:
        """Where somebody is."""
        return {"Ada": "Basel"}[who]

    def then(request: object) -> Message:
        place = request.messages[-1].tool_results[0].text  # type: ignore[attr-defined]
        return asks(call("weather", "b", city=place))

    script = model(asks(call("locate", "a", who="Ada")), then, "Rain where Ada is.")
    result = await Agent(script, tools=[locate, weather]).send("Weather at Ada's?")
    assert result.messages[4].tool_results[0].text == "rain in Basel"
    assert result.steps == 3


async def test_groqs_malformed_calls_are_sent_back() -> None:
    """The model gets what it wrote and tries again, a limited number of times (W112)."""
    wrote = Message.assistant('<function=weather{"city": Basel}</function>')
    partial = Response(choices=(Choice(0, wrote, FinishReason.MALFORMED_CALL),))
    error = ServerError("bad call", status=400, code="tool_use_failed", partial=partial)
    agent = Agent(model(error, asks(call("weather", city="Basel")), "Rain."), tools=[weather])
    result = await agent.send("Weather?")
    assert result.output == "Rain."
    assert roles(result) == ["user", "assistant", "user", "assistant", "tool", "assistant"]
    hopeless = Agent(ScriptedModel([error], repeat=True), tools=[weather])
    with pytest.raises(ProviderError, match="bad call"):
        await hopeless.send("Weather?")


async def test_a_paused_turn_is_continued() -> None:
    """After `pause_turn` the partial answer is sent back, and the model continues."""
    pause = Message.assistant("Searching").replace(finish=FinishReason.PAUSE)
    agent = Agent(model(pause, " found."))
    result = await agent.send("Search")
    assert result.output == "Searching found."
    assert agent.model.requests[1].messages[-1].text == "Searching"  # type: ignore[attr-defined]


# --- limits


async def test_steps_are_limited() -> None:
    """The run stops after the limit; its messages stay in the history."""
    count = iter(range(100))
    agent = Agent(
        ScriptedModel([lambda _: asks(call("weather", f"c{(n := next(count))}", city=str(n)))],
                      repeat=True),
        tools=[weather],
        limits=RunLimits(steps=3),
    )  # fmt: skip
    history = ConversationHistory(policy=Policy.LENIENT)
    with pytest.raises(LimitExceeded, match="sent 3 requests"):
        await agent.send("Weather?", history=history)
    assert len(history) == 7


async def test_repeated_identical_rounds_are_stopped() -> None:
    """Repeating the same call with the same result ends the run."""
    agent = Agent(
        ScriptedModel([asks(call("weather", city="Basel"))], repeat=True), tools=[weather]
    )
    with pytest.raises(LimitExceeded, match="stuck in a loop"):
        await agent.send("Weather?")


async def test_time_is_limited() -> None:
    """A slow model ends the run when its time is up."""

    async def slow(_request: object) -> str:
        await asyncio.sleep(60)
        return "late"

    with pytest.raises(LimitExceeded, match="seconds"):
        await Agent(model(slow), limits=RunLimits(seconds=0.05)).send("Hi")


async def test_calls_and_tokens_are_limited() -> None:
    """A round over the call limit isn't started; a token limit keeps the partial result."""
    calls = asks(call("weather", "a", city="Basel"), call("weather", "b", city="Bern"))
    agent = Agent(model(calls, "Rain."), tools=[weather], limits=RunLimits(calls=1))
    with pytest.raises(LimitExceeded, match="tool calls"):
        await agent.send("Weather?")
    dear = Message.assistant("x").replace(usage=Usage(input=1000, output=1))
    with pytest.raises(LimitExceeded, match="tokens") as caught:
        await Agent(model(dear), limits=RunLimits(tokens=100)).send("Hi")
    assert caught.value.partial.output == "x"  # already paid for
    assert len(caught.value.partial.messages) == 2


# --- continuing


@pytest.mark.parametrize(
    ("history", "problem"),
    [
        (None, "nothing to answer"),
        ([Message.user("Hi"), Message.assistant("Hello.")], "ends with an answer"),
    ],
)
async def test_a_call_without_a_prompt_needs_something_to_continue(
    history: object, problem: str
) -> None:
    """The error explains what to do."""
    with pytest.raises(InvalidInputError, match=problem):
        await Agent(model("x")).send(history=history)


async def test_a_run_continues_from_a_question_or_pending_calls() -> None:
    """Without a prompt, the run answers the last message or runs the pending calls."""
    agent = Agent(model("Yes.", "Rain."), tools=[weather])
    asked = await agent.send(history=[Message.user("Really?")])
    assert (asked.output, len(asked.messages)) == ("Yes.", 1)
    waiting = [Message.user("Weather?"), asks(call("weather", city="Basel"))]
    ran = await agent.send(history=waiting)
    assert [m.role.value for m in ran.messages] == ["tool", "assistant"]


async def test_results_for_unknown_calls_are_rejected() -> None:
    """Results and approvals that don't match a pending call raise."""
    with pytest.raises(InvalidInputError, match="don't match a pending call"):
        await Agent(model("x")).send("Hi", results={"nobody": 1})
    with pytest.raises(InvalidInputError, match="approval"):
        await Agent(model("x")).send("Hi", approvals={"a": 1})  # type: ignore[dict-item]


async def test_model_errors_are_raised_unchanged() -> None:
    """The prompt is already in the history, so the run continues without one."""
    history = ConversationHistory(policy=Policy.LENIENT)
    agent = Agent(model(ServerError("down", status=500), "Here I am."))
    with pytest.raises(ServerError):
        await agent.send("Hello?", history=history)
    result = await agent.send(history=history)
    assert [m.text for m in history.messages] == ["Hello?", "Here I am."]
    assert len(result.messages) == 1


def test_duplicate_tool_names_are_rejected() -> None:
    """Two tools with one name, or something that isn't a tool, raise."""
    with pytest.raises(InvalidInputError, match="two tools named `weather`"):
        Agent(model(), tools=[weather, weather])
    with pytest.raises(InvalidInputError, match="a tool must be a function"):
        Agent(model(), tools=[3])  # type: ignore[list-item]


def test_reprs_contain_no_content() -> None:
    """Reprs of agents, chats, chunks, results and contexts have no content."""
    secret = "s3cr3t"
    agent = Agent(model(asks(call("weather", city=secret), text=secret), secret), tools=[weather],
                  system=secret)  # fmt: skip
    chat = agent.chat()
    stream = chat.stream_sync(secret, deps=secret)
    shown = [repr(chunk) for chunk in stream]
    shown += [repr(stream.result), repr(agent), repr(chat), repr(RunContext(deps=secret))]
    assert secret not in "".join(shown)
    assert stream.result.output == f"{secret}\n{secret}"


async def test_embeddings_need_a_model_that_supports_them() -> None:
    """Without embeddings, or with a single text for documents, an error is raised."""
    with pytest.raises(DragomanError, match="does not support embeddings"):
        await Agent(model()).embed_query("text")
    with pytest.raises(InvalidInputError, match="list of texts"):
        await Agent(model()).embed_documents("text")


async def test_a_cost_limit_needs_a_price() -> None:
    """Without a price, a cost limit raises before any request; with one it is enforced."""
    unknown = ScriptedModel(["x"], name="acme:large")
    with pytest.raises(ConfigError, match=r'price of `acme:large`.*Prices\({"acme:large": Price'):
        await Agent(unknown, limits=RunLimits(cost=1)).send("Hi")
    assert not unknown.requests
    dear = Message.assistant("x").replace(usage=Usage(input=1_000_000))
    settings: AgentOptions = {
        "limits": RunLimits(cost="0.5"),
        "prices": {"acme:large": Price(1, 2)},
    }
    with pytest.raises(LimitExceeded, match="dollars") as caught:
        await Agent(ScriptedModel([dear], name="acme:large"), **settings).send("Hi")
    assert caught.value.partial.cost == 1
    assert (await Agent(ScriptedModel([dear], name="acme:large")).send("Hi")).cost is None
