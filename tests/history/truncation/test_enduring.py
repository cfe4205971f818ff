"""What stays in every window: instructions, pins, and open turns."""

from __future__ import annotations

import pytest

from dragoman import Message, ToolCall, ToolResult
from dragoman.history.truncation.cut import enduring

RULES = Message.system("Be brief.")
ASKED = Message.user("Take an umbrella?")
CALLED = Message.assistant("", ToolCall("c1", "weather"))
TOLD = Message.tool(ToolResult("c1", "rain"))
ANSWERED = Message.assistant("Yes.")


@pytest.mark.parametrize(
    ("messages", "kept"),
    [
        ([], []),
        ([RULES, ASKED, ANSWERED], [RULES]),
        ([RULES, ASKED, ANSWERED, ASKED], [RULES, ASKED]),
        ([RULES, ASKED, CALLED], [RULES, ASKED, CALLED]),
        ([RULES, ASKED, CALLED, TOLD], [RULES, ASKED, CALLED, TOLD]),
        ([RULES, ASKED, CALLED, TOLD, ANSWERED], [RULES]),
    ],
)
def test_the_last_turn_stays_until_the_model_has_ended_it(
    messages: list[Message], kept: list[Message]
) -> None:
    """It has ended when the last message is the model's, without pending results."""
    assert enduring(messages) == kept
