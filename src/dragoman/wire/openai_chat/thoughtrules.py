"""What hosts that speak OpenAI's dialect demand where the model thinks; their targets say what."""

from __future__ import annotations

from dragoman.wire.openai_chat.view import View
from dragoman.wire.settingrules import unknown_effort
from dragoman.wire.violations import Found, field

FIELDS = ("reasoning", "reasoning_content", "reasoning_details")


def w12_efforts_are_known(view: View) -> Found:
    """How hard to think is said in a word that the model knows, if it can be asked at all."""
    yield from unknown_effort(view.body.get("reasoning_effort"), "reasoning_effort", view.target)


def w58_thinking_forces_no_tool(view: View) -> Found:
    """While the model thinks, no tool can be forced."""
    if not view.target.forces_tools_thinking and view.is_thinking and view.forces_tools:
        yield "tool_choice", "while the model thinks, tool_choice can't force a tool"


def w110_thinking_is_not_taken_back(view: View) -> Found:
    """A model that does not think takes no thinking back."""
    if view.target.thinking_back == "never":
        for path, message in view.with_role("assistant"):
            for key in FIELDS:
                if message.get(key) is not None:
                    yield f"{path}.{key}", "this model takes no thinking back"


def w110_thinking_is_not_empty(view: View) -> Found:
    """Where `reasoning` is the one field for it, thinking is never an empty text."""
    if view.target.thinking_fields == ("reasoning",):
        for path, message in view.with_role("assistant"):
            if message.get("reasoning") == "":
                yield f"{path}.reasoning", "this host takes no empty thinking"


def w115_thinking_is_in_its_field(view: View) -> Found:
    """Thinking in a field that the host does not read is dropped without a word."""
    known = view.target.thinking_fields
    if not known or view.target.thinking_back == "never":
        return
    for path, message in view.with_role("assistant"):
        if any(message.get(key) is not None for key in known):
            continue
        for key in FIELDS:
            if message.get(key):
                yield f"{path}.{key}", "this host does not look for thinking here"


def c2_answers_have_their_thinking(view: View) -> Found:
    """While the model thinks and calls tools, every answer has its thinking, be it empty."""
    if view.target.thinking_back != "all" or not view.is_thinking or not view.called:
        return
    for path, message in view.with_role("assistant"):
        fields = view.target.thinking_fields or FIELDS
        if not any(isinstance(message.get(key), (str, list, tuple)) for key in fields):
            yield path, "this model wants its thinking back, be it empty"


def c4_forced_tools_drop_thinking(view: View) -> Found:
    """Where a tool is forced, OpenRouter does not ask the model to think, without a word."""
    is_asked = bool(field(view.body, "reasoning")) or view.body.get("reasoning_effort") is not None
    if view.target.thinking_form == "reasoning" and is_asked and view.forces_tools:
        yield "tool_choice", "while a tool is forced, this host drops the wish to think"
