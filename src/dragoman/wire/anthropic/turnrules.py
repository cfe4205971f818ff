"""What Anthropic's API demands of the order of messages and blocks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from dragoman.wire.anthropic.view import Turn, View, blocks_of, identity
from dragoman.wire.violations import Found, Object, Placed, word

ROLES = ("user", "assistant", "system")
_SPEAKERS = {
    "tool_use": "assistant",
    "thinking": "assistant",
    "redacted_thinking": "assistant",
    "tool_result": "user",
}


def shape_messages(view: View) -> Found:
    """Messages are objects with a role, and blocks or a text."""
    messages = view.body.get("messages")
    for index, message in enumerate(messages if isinstance(messages, (list, tuple)) else ()):
        path = f"messages[{index}]"
        if not isinstance(message, Mapping):
            yield path, "a message must be an object"
            continue
        if message.get("role") not in ROLES:
            yield f"{path}.role", "the role must be user, assistant or system"
        if not _is_content(message.get("content")):
            yield f"{path}.content", "content must be a text or a list of blocks"


def shape_blocks_have_their_speaker(view: View) -> Found:
    """Calls and thinking are the assistant's, results the user's."""
    for turn in view.turns:
        for path, block in turn.blocks:
            speaker = _SPEAKERS.get(word(block, "type"), turn.role)
            if turn.role in ROLES and speaker != turn.role:
                yield path, f"such a block can only be in a message of the {speaker}"


def w40_results_follow_calls(view: View) -> Found:
    """All calls of a turn are answered in the turn that follows it."""
    if view.has_hidden_context:
        return
    for turn, following in pairwise([*view.turns, Turn(None)]):
        if turn.role != "assistant":
            continue
        answered = {identity(block.get("tool_use_id")) for _, block in _results(following)}
        for path, block in turn.of_type("tool_use"):
            if identity(block.get("id")) not in answered:
                yield path, "the user's turn right after it has no tool_result for this call"


def w41_results_come_first(view: View) -> Found:
    """Results stand before everything else in their turn."""
    for turn in view.turns:
        others = False
        for path, block in turn.blocks:
            if block.get("type") != "tool_result":
                others = True
            elif others:
                yield path, "tool_result blocks must come first in the user's turn"


def w42_results_have_calls(view: View) -> Found:
    """A result answers a call of the turn before it, unless the provider holds that."""
    if view.has_hidden_context:
        return
    for before, turn in pairwise([Turn(None), *view.turns]):
        called = {identity(block.get("id")) for _, block in before.of_type("tool_use")}
        for path, block in _results(turn):
            if identity(block.get("tool_use_id")) not in called:
                yield path, "there is no such tool_use in the turn before"


def w42_server_results_have_calls(view: View) -> Found:
    """What a server's tool returned stands after its call."""
    called: set[str | None] = set()
    for path, block in view.blocks:
        kind = block.get("type")
        if kind in ("server_tool_use", "mcp_tool_use"):
            called.add(identity(block.get("id")))
        is_result = isinstance(kind, str) and kind.endswith("_tool_result")
        if is_result and identity(block.get("tool_use_id")) not in called:
            yield path, "there is no such server_tool_use before it"


def w43_ids_are_unique_in_a_turn(view: View) -> Found:
    """No two calls of a turn share an id, and no two results of a turn one call."""
    for turn in view.turns:
        yield from _used_twice(turn.blocks)


def w43_ids_are_unique(view: View) -> Found:
    """Nor do calls of different turns; but recordings show that this is tolerated."""
    within = {path for path, _ in w43_ids_are_unique_in_a_turn(view)}
    for path, message in _used_twice(view.blocks):
        if path not in within:
            yield path, message


def w46_texts_are_not_empty(view: View) -> Found:
    """Text blocks are not empty."""
    for path, block in _text_blocks(view):
        if block.get("text") == "":
            yield path, "a text block must not be empty"


def w46_texts_are_not_blank(view: View) -> Found:
    """Nor do they hold nothing but white space."""
    for path, block in _text_blocks(view):
        text = block.get("text")
        if isinstance(text, str) and text.isspace():
            yield path, "a text block of nothing but white space is refused"


def w47_there_are_messages(view: View) -> Found:
    """At least one message; a system prompt alone is no request."""
    messages = view.body.get("messages")
    if not isinstance(messages, (list, tuple)) or not messages:
        yield "messages", "at least one message is needed"


def w47_the_user_begins(view: View) -> Found:
    """The first message is the user's; recordings show that not every model insists."""
    if view.turns and view.turns[0].role == "assistant":
        yield "messages[0].role", "the first message must be the user's"


def w47_messages_say_something(view: View) -> Found:
    """Only the assistant's last message may be empty."""
    for index, (path, message) in enumerate(view.messages):
        is_last = index == len(view.messages) - 1 and message.get("role") == "assistant"
        if message.get("content") in ("", [], ()) and not is_last:
            yield f"{path}.content", "only a last assistant message may be empty"


def w48_prefill_has_no_white_space_at_its_end(view: View) -> Found:
    """A last assistant message is a beginning to be continued, where that is supported."""
    path, message = view.messages[-1] if view.messages else ("", {})
    if message.get("role") != "assistant":
        return
    if view.target.prefill == "refused":
        yield path, "this model needs the user's message to be the last"
    for place, block in blocks_of(message, path)[-1:]:
        text = block.get("text")
        if isinstance(text, str) and text != text.rstrip():
            yield place, "the last assistant message must not end with white space"


def w49_system_messages_precede_the_assistant(view: View) -> Found:
    """A system message among the others stands before an assistant's, or at the end."""
    roles = [message.get("role") for _, message in view.messages]
    for index, (path, _) in enumerate(view.messages[:-1]):
        if roles[index] == "system" and roles[index + 1] not in ("assistant", "system"):
            yield path, "a system message must precede an assistant message or be the last"


def _is_content(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return all(isinstance(block, Mapping) for block in value)
    return isinstance(value, str)


def _used_twice(blocks: list[Placed]) -> Found:
    for kind, key in (("tool_use", "id"), ("tool_result", "tool_use_id")):
        seen: set[str] = set()
        for path, block in blocks:
            value = identity(block.get(key)) if block.get("type") == kind else None
            if value is not None and value in seen:
                yield f"{path}.{key}", f"another {kind} has this id"
            elif value is not None:
                seen.add(value)


def _results(turn: Turn) -> list[Placed]:
    return turn.of_type("tool_result") if turn.role == "user" else []


def _text_blocks(view: View) -> Iterator[Placed]:
    for path, message in view.messages:
        if not isinstance(message.get("content"), str):
            yield from (placed for placed in blocks_of(message, path) if _is_text(placed[1]))


def _is_text(block: Object) -> bool:
    return block.get("type") == "text"
