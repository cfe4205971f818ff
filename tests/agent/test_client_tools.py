"""Tools known to models but run by the caller: one function implements them on any provider."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman import Agent, Image, Message, ToolCall, tool
from dragoman.errors import InvalidInputError
from dragoman.tools import ApplyPatch, ComputerUse, Shell, WebSearch
from tests.agent.scripts import asks, call, model
from tests.agent.vendors import InTurn, encoded, speaking

MODELS = {
    "openai-responses": "openai:gpt-5",
    "anthropic": "anthropic:claude-sonnet-4-5",
    "gemini": "google:gemini-2.5-flash",
    "openai-chat": "deepseek:deepseek-chat",
    "ollama": "ollama:qwen3",
}
PIXEL = "iVBORw0KGgo="


@tool(implements=Shell())
def run(command: str) -> str:
    """Run a command."""
    return f"ran {command}"


def _asking(dialect: str) -> dict[str, Any]:
    """An answer with a shell call in that provider's form."""
    if dialect == "openai-responses":
        item = {"type": "shell_call", "id": "sh_1", "call_id": "call_1", "status": "completed",
                "action": {"commands": ["cd /tmp", "ls"], "timeout_ms": None,
                           "max_output_length": 99}}  # fmt: skip
        return {"id": "r", "object": "response", "model": "gpt-5", "status": "completed",
                "output": [item]}  # fmt: skip
    name = "bash" if dialect == "anthropic" else "run"
    made = ToolCall.create("call_1", name, {"command": "cd /tmp\nls"})
    return encoded(dialect, Message.assistant(tool_calls=(made,)))


@pytest.mark.parametrize("streams", [False, True], ids=["plain", "streamed"])
@pytest.mark.parametrize("links", [False, True], ids=["whole", "linked"])
@pytest.mark.parametrize("dialect", sorted(MODELS))
async def test_one_function_is_the_shell_of_any_model(
    dialect: str, links: bool, streams: bool
) -> None:
    """The provider's own tool if it has one, else a function; results are in the same form."""
    done = encoded(dialect, Message.assistant("Done."), 2)
    vendor = InTurn(dialect, _asking(dialect), done)
    async with speaking(vendor, MODELS[dialect]) as client:
        agent = Agent(client, tools=[run], links_responses=links)
        result = await (agent.stream("Hi").collect() if streams else agent.send("Hi"))
    assert result.text == "Done."
    assert vendor.faults == []
    first, second = vendor.raw
    assert result.messages[2].tool_results[0].text == "ran cd /tmp\nls"
    if dialect == "openai-responses":
        assert first["tools"] == [{"type": "shell"}]
        output = second["input"][-1]
        assert output["type"] == "shell_call_output"
        assert output["output"][0]["stdout"] == "ran cd /tmp\nls"
        assert output["call_id"] == "call_1"
        assert links or output["max_output_length"] == 99
    elif dialect == "anthropic":
        assert first["tools"] == [{"type": "bash_20250124", "name": "bash"}]
    else:
        assert '"run"' in json.dumps(first["tools"])
    assert "ran cd /tmp" in json.dumps(second)


async def test_unimplemented_tools_are_deferred_to_the_caller() -> None:
    """The run ends with the call; the caller's result goes to the model."""
    agent = Agent(model(asks(call("bash", "a", command="ls")), "Done."), tools=[Shell()])
    asked = await agent.send("Hi")
    assert [each.id for each in asked.deferred] == ["a"]
    done = await agent.send(history=asked.messages, results={"a": "a.txt"})
    assert done.output == "Done."


async def test_patches_and_screens_have_their_own_results() -> None:
    """A text for a patch, an image for the screen."""

    @tool(implements=ApplyPatch())
    def patch(type: str, path: str, diff: str = "") -> str:
        """Change a file."""
        return f"{type} {path} {diff}"

    @tool(implements=ComputerUse(display_width=9, display_height=9, environment="browser"))
    def screen(type: str, x: int = 0, y: int = 0) -> Image:
        """Use the screen."""
        assert (type, x, y) == ("click", 1, 2)
        return Image(data=PIXEL, mime="image/png")

    asking = {"id": "r", "object": "response", "model": "gpt-5", "status": "completed", "output": [
        {"type": "apply_patch_call", "id": "apc_1", "call_id": "a", "status": "completed",
         "operation": {"type": "delete_file", "path": "x"}},
        {"type": "computer_call", "id": "cu_1", "call_id": "b", "status": "completed",
         "pending_safety_checks": [], "action": {"type": "click", "x": 1, "y": 2,
                                                 "button": "left"}},
    ]}  # fmt: skip
    done = encoded("openai-responses", Message.assistant("Done."), 2)
    vendor = InTurn("openai-responses", asking, done)
    async with speaking(vendor, "openai:gpt-5") as client:
        result = await Agent(client, tools=[patch, screen]).send("Hi")
    assert result.text == "Done."
    assert vendor.faults == []
    assert vendor.raw[1]["input"][-2:] == [
        {"type": "apply_patch_call_output", "call_id": "a", "status": "completed",
         "output": "delete_file x "},
        {"type": "computer_call_output", "call_id": "b",
         "output": {"type": "computer_screenshot",
                    "image_url": f"data:image/png;base64,{PIXEL}"}},
    ]  # fmt: skip


async def test_approval_gets_the_functions_own_arguments() -> None:
    """Whatever names the provider uses for them."""
    seen: list[Any] = []

    def ask(given: Any) -> bool:
        seen.append(dict(given))
        return True

    @tool(implements=Shell(), requires_approval=ask)
    def sh(command: str) -> str:
        """Run a command."""
        return command

    agent = Agent(model(asks(call("shell", "a", commands=["ls", "pwd"])), "Done."), tools=[sh])
    asked = await agent.send("Hi")
    assert [each.id for each in asked.deferred] == ["a"]
    assert seen == [{"command": "ls\npwd"}]


def test_only_tools_that_callers_run_can_be_implemented() -> None:
    """A search is run by the provider."""
    with pytest.raises(InvalidInputError, match="implements"):
        tool(implements=WebSearch())(run.function)
