"""Notes of agents about calls that they have begun are not handed to other libraries."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman import Message, Messages, Role, ToolCall, ToolResult
from dragoman.interop import to_anthropic, to_langchain, to_openai, to_pydantic_ai
from dragoman.model.messages import make_message


@pytest.mark.parametrize("to", [to_openai, to_anthropic, to_langchain, to_pydantic_ai])
def test_a_tool_message_without_results_is_left_out(to: Any) -> None:
    """It is reported as a loss, and the results are placed as if it were absent."""
    calls = Message.assistant(tool_calls=[ToolCall.create("a", "f", {})])
    result = Message.tool(ToolResult("a", "done", tool_name="f"))
    note = make_message(Role.TOOL).with_metadata("begun", ["a"])
    plain = to(Messages(Message.user("Go"), calls, result)).messages
    noted = to(Messages(Message.user("Go"), calls, note, result))
    assert len(noted.messages) == len(plain)
    assert [type(each) for each in noted.messages] == [type(each) for each in plain]
    assert "begun" not in repr(noted.messages)
    assert any(loss.path.startswith("messages[2]") for loss in noted.losses)
