"""The view of a body that rules work on; rules for the order of messages and for thinking."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import pairwise
from typing import Any

from dragoman.wire.anthropic.settings import MIN_BUDGET, MIN_TOP_P
from dragoman.wire.settings_table import text
from dragoman.wire.shared_rules import refused_sampling, used_twice, without_partner
from dragoman.wire.target import Target
from dragoman.wire.violations import Found, Object, Placed, Rules, field, is_number, listed, word

CLAUDE = ("anthropic", "vertex")
"""Providers of the same service."""
_PAIRS = ("turns.pairs_results", "turns.groups_results")
THINKING = ("thinking", "redacted_thinking")


class Turn:
    """Consecutive messages of one role, which the API merges (W47)."""

    __slots__ = ("blocks", "role")

    def __init__(self, role: object) -> None:
        self.role = role
        self.blocks: list[Placed] = []

    def of_type(self, kind: str) -> list[Placed]:
        """The blocks of one type."""
        return [(path, block) for path, block in self.blocks if block.get("type") == kind]


class View:
    """A request body with its path and headers, and the lists in it."""

    def __init__(
        self,
        body: Object,
        target: Target,
        path: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.body = body
        self.path = (path or "").partition("?")[0]
        self.headers = headers
        self.target = target
        self.messages = listed(body, "messages")
        self.tools = listed(body, "tools")

    @property
    def has_hidden_context(self) -> bool:
        """Whether the provider stores a part of the conversation that is not in the body."""
        return bool(self.body.get("thread"))

    @property
    def counts_tokens(self) -> bool:
        """Whether this is a token counting request."""
        return self.path.endswith("/count_tokens")

    @property
    def may_interleave(self) -> bool:
        """Whether the model may think between its calls: a beta enabled by a header."""
        if not self.tools:
            return False
        if self.headers is None:
            return True  # unknown
        return any("interleaved-thinking" in str(value) for value in self.headers.values())

    @cached_property
    def thinking(self) -> object:
        """`enabled`, `adaptive`, `disabled` or None."""
        return field(self.body, "thinking").get("type")

    @property
    def may_think(self) -> bool:
        """Whether thinking is on, with a budget or adaptive."""
        return self.thinking in ("enabled", "adaptive")

    @cached_property
    def turns(self) -> list[Turn]:
        """The turns of user and assistant, ignoring system messages in between."""
        turns: list[Turn] = []
        for path, message in self.messages:
            role = message.get("role")
            if role == "system":
                continue
            if not turns or turns[-1].role != role:
                turns.append(Turn(role))
            turns[-1].blocks += blocks_of(message, path)
        return turns

    @cached_property
    def blocks(self) -> list[Placed]:
        """The content blocks of all messages."""
        return [block for path, message in self.messages for block in blocks_of(message, path)]

    @cached_property
    def every(self) -> list[Placed]:
        """The same, with those in tool results."""
        found: list[Placed] = []
        for path, block in self.blocks:
            found.append((path, block))
            if block.get("type") == "tool_result":
                found += listed(block, "content", path)
        return found

    def of_type(self, *kinds: str) -> list[Placed]:
        """The blocks of these types, including those in tool results."""
        return [(path, block) for path, block in self.every if block.get("type") in kinds]


def blocks_of(message: Object, path: str) -> list[Placed]:
    """The blocks of a message; string content counts as one block."""
    content = message.get("content")
    if isinstance(content, str):
        return [(f"{path}.content", {"type": "text", "text": content})]
    return listed(message, "content", path)


rule = Rules[View]()
"""The rules of this dialect."""

# --- messages and blocks

ROLES = ("user", "assistant", "system")
_SPEAKERS = {
    "tool_use": "assistant",
    "thinking": "assistant",
    "redacted_thinking": "assistant",
    "tool_result": "user",
}


@rule("error", "ST", CLAUDE)
def shape_messages(view: View) -> Found:
    """Messages are objects with a role, and a string or blocks as content."""
    messages = view.body.get("messages")
    for index, message in enumerate(messages if isinstance(messages, (list, tuple)) else ()):
        path = f"messages[{index}]"
        if not isinstance(message, Mapping):
            yield path, "must be an object"
            continue
        if message.get("role") not in ROLES:
            yield f"{path}.role", "must be user, assistant or system"
        is_setting = message.get("role") == "system" and bool(field(message, "output_config"))
        if not _is_content(message.get("content")) and not (
            is_setting and message.get("content") is None
        ):
            yield f"{path}.content", "must be a string or a list of blocks"


@rule("error", "E", CLAUDE)
def shape_blocks_have_their_speaker(view: View) -> Found:
    """Calls and thinking are only in assistant messages, results only in user messages."""
    for turn in view.turns:
        for path, block in turn.blocks:
            speaker = _SPEAKERS.get(word(block, "type"), turn.role)
            if turn.role in ROLES and speaker != turn.role:
                yield path, f"this block type is only allowed in {speaker} messages"


@rule("error", "E", CLAUDE, *_PAIRS)
def w40_results_follow_calls(view: View) -> Found:
    """All calls of a turn have results in the next turn."""
    if view.has_hidden_context:
        return
    for turn, following in pairwise([*view.turns, Turn(None)]):
        if turn.role != "assistant":
            continue
        calls = _ids(turn.of_type("tool_use"), "id")
        answered = [found for _, found in _ids(_results(following), "tool_use_id")]
        reason = "the next user turn has no tool_result for this call"
        yield from without_partner(calls, answered, reason)


@rule("error", "E", CLAUDE, *_PAIRS)
def w41_results_come_first(view: View) -> Found:
    """Results come before everything else in their turn."""
    for turn in view.turns:
        others = False
        for path, block in turn.blocks:
            if block.get("type") != "tool_result":
                others = True
            elif others:
                yield path, "tool_result blocks must come first in the user turn"


@rule("error", "E", CLAUDE, *_PAIRS)
def w42_results_have_calls(view: View) -> Found:
    """A result refers to a call of the previous turn, unless that is stored by the provider."""
    if view.has_hidden_context:
        return
    for before, turn in pairwise([Turn(None), *view.turns]):
        results = _ids(_results(turn), "tool_use_id")
        called = [found for _, found in _ids(before.of_type("tool_use"), "id")]
        yield from without_partner(
            results, called, "the previous turn has no tool_use with this id"
        )


@rule("error", "E", CLAUDE)
def w42_server_results_have_calls(view: View) -> Found:
    """The result of a server tool follows its call."""
    called: set[str | None] = set()
    for path, block in view.blocks:
        kind = block.get("type")
        if kind in ("server_tool_use", "mcp_tool_use"):
            called.add(text(block.get("id")))
        is_result = isinstance(kind, str) and kind.endswith("_tool_result")
        if is_result and text(block.get("tool_use_id")) not in called:
            yield path, "no earlier server_tool_use has this id"


@rule("error", "E", CLAUDE)
def w43_ids_are_unique_in_a_turn(view: View) -> Found:
    """Call ids are unique in a turn, and so are the call ids of its results."""
    for turn in view.turns:
        yield from _used_twice(turn.blocks)


@rule("warning", "ET", CLAUDE)
def w43_ids_are_unique(view: View) -> Found:
    """Call ids are unique across turns, though recordings show that duplicates are tolerated."""
    within = {path for path, _ in w43_ids_are_unique_in_a_turn(view)}
    for path, message in _used_twice(view.blocks):
        if path not in within:
            yield path, message


@rule("error", "E", CLAUDE, "turns.refuses_empty_text")
def w46_texts_are_not_empty(view: View) -> Found:
    """Text blocks are not empty."""
    for path, block in _text_blocks(view):
        if block.get("text") == "":
            yield path, "a text block must not be empty"


@rule("warning", "ET", CLAUDE)
def w46_texts_are_not_blank(view: View) -> Found:
    """Text blocks are not whitespace only."""
    for path, block in _text_blocks(view):
        if (value := text(block.get("text"))) and value.isspace():
            yield path, "a text block must not be whitespace only"


@rule("error", "SET", CLAUDE, "turns.needs_message")
def w47_there_are_messages(view: View) -> Found:
    """There is at least one message; a system prompt alone is not enough."""
    messages = view.body.get("messages")
    if not isinstance(messages, (list, tuple)) or not messages:
        yield "messages", "at least one message is required"


@rule("warning", "ET", CLAUDE)
def w47_the_user_begins(view: View) -> Found:
    """The first message is a user message, though recordings show exceptions."""
    if view.turns and view.turns[0].role == "assistant":
        yield "messages[0].role", "the first message must be a user message"


@rule("error", "SET", CLAUDE, "turns.refuses_empty_messages", "turns.refuses_empty_text")
def w47_messages_say_something(view: View) -> Found:
    """Only the last message may be empty, if it is an assistant message."""
    for index, (path, message) in enumerate(view.messages):
        is_last = index == len(view.messages) - 1 and message.get("role") == "assistant"
        if message.get("content") in ("", [], ()) and not is_last:
            yield f"{path}.content", "only a final assistant message may be empty"


@rule("error", "E", CLAUDE, "turns.prefill")
def w48_prefill_has_no_white_space_at_its_end(view: View) -> Found:
    """A final assistant message (prefill) is supported, and has no trailing whitespace."""
    path, message = view.messages[-1] if view.messages else ("", {})
    if message.get("role") != "assistant":
        return
    if view.target.turns.prefill == "refused":
        yield path, "this model does not support prefill; the last message must be a user message"
    for place, block in blocks_of(message, path)[-1:]:
        if (value := text(block.get("text"))) and value != value.rstrip():
            yield place, "the final assistant message must not end with whitespace"


@rule("error", "SE", CLAUDE)
def w49_system_messages_precede_the_assistant(view: View) -> Found:
    """A system message in the list precedes an assistant message or is the last."""
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
        found = [(f"{path}.{key}", block) for path, block in blocks if block.get("type") == kind]
        yield from used_twice(_ids(found, key), f"another {kind} has the same id")


def _ids(blocks: list[Placed], key: str) -> list[tuple[str, str | None]]:
    return [(path, text(block.get(key))) for path, block in blocks]


def _results(turn: Turn) -> list[Placed]:
    return turn.of_type("tool_result") if turn.role == "user" else []


def _text_blocks(view: View) -> Iterator[Placed]:
    for path, message in view.messages:
        if not isinstance(message.get("content"), str):
            placed = blocks_of(message, path)
            yield from ((place, block) for place, block in placed if block.get("type") == "text")


# --- rules for thinking


@rule("error", "E", CLAUDE, "thinking.begins_turns")
def w51_a_tool_loop_begins_with_thinking(view: View) -> Found:
    """With thinking on, the assistant turn whose results are sent begins with thinking."""
    is_required = view.thinking == "enabled" and view.target.thinking.begins_turns
    if not is_required or len(view.turns) < 2:  # noqa: PLR2004 - a turn and its results
        return
    before, last = view.turns[-2:]
    if last.role == "user" and last.of_type("tool_result") and before.blocks:
        path, first = before.blocks[0]
        if first.get("type") in ("text", "tool_use"):
            yield path, "with thinking on, this turn must begin with a thinking block"


@rule("error", "E", CLAUDE)
def w52_thinking_comes_first(view: View) -> Found:
    """With thinking on, a message that contains thinking begins with it.

    Recorded exceptions begin with a server tool call and are accepted.
    """
    if view.thinking != "enabled":
        return
    for path, message in view.messages:
        kinds = [block.get("type") for _, block in blocks_of(message, path)]
        if kinds[:1] in (["text"], ["tool_use"]) and any(kind in THINKING for kind in kinds):
            yield path, "a message that contains thinking must begin with it"


@rule("error", "E", CLAUDE, "thinking.is_refused_in_prefill")
def w53_no_thinking_at_the_end_when_off(view: View) -> Found:
    """With thinking off, a final assistant message contains no thinking."""
    if view.may_think or not view.messages:
        return
    path, message = view.messages[-1]
    if message.get("role") == "assistant":
        for place, block in blocks_of(message, path):
            if block.get("type") in THINKING:
                reason = "with thinking off, the final assistant message must not contain thinking"
                yield place, reason


@rule("error", "E", CLAUDE, "thinking.verifies_signatures")
def w54_thinking_is_signed(view: View) -> Found:
    """Thinking has a signature; only the provider can verify it."""
    if not view.target.thinking.verifies_signatures:
        return
    for path, block in view.of_type("thinking"):
        if not text(block.get("signature")):
            yield path, "a thinking block must have its signature"


@rule("error", "S")
def w57_redacted_thinking_has_its_data(view: View) -> Found:
    """Redacted thinking has its data."""
    for path, block in view.of_type("redacted_thinking"):
        if not text(block.get("data")):
            yield path, "a redacted_thinking block must have its data"


@rule("error", "ER", CLAUDE, "thinking.allows_forced_tools")
def w58_thinking_forces_no_tool(view: View) -> Found:
    """With thinking on (unless adaptive), tool calls can't be forced."""
    if view.target.thinking.allows_forced_tools:
        return
    choice = field(view.body, "tool_choice").get("type")
    if view.thinking == "enabled" and choice in ("any", "tool"):
        yield "tool_choice", "with thinking on, tool_choice can't force a tool"


@rule("error", "SR")
def w59_the_budget_fits(view: View) -> Found:
    """The budget is at least 1,024 tokens and less than `max_tokens`."""
    if view.thinking != "enabled":
        return
    budget, most = field(view.body, "thinking").get("budget_tokens"), view.body.get("max_tokens")
    if type(budget) is not int or budget < MIN_BUDGET:
        yield "thinking.budget_tokens", f"must be an integer of at least {MIN_BUDGET}"
    elif type(most) is int and budget >= most and not view.may_interleave:
        yield "thinking.budget_tokens", "must be less than max_tokens"


@rule("error", "SR")
def w59_thinking_takes_no_sampling(view: View) -> Found:
    """With thinking on, the temperature is 1."""
    temperature = view.body.get("temperature")
    if view.may_think and is_number(temperature) and temperature != 1:
        yield "temperature", "with thinking on, the temperature must be 1"


@rule("error", "ER", CLAUDE)
def w59_thinking_takes_little_sampling(view: View) -> Found:
    """With thinking on, `top_p` has a minimum and `top_k` is not allowed."""
    if not view.may_think:
        return
    top_p = view.body.get("top_p")
    if isinstance(top_p, (int, float)) and top_p < MIN_TOP_P:
        yield "top_p", f"with thinking on, top_p must be at least {MIN_TOP_P}"
    if view.body.get("top_k") is not None:
        yield "top_k", "with thinking on, top_k can't be set"


@rule("error", "ER", CLAUDE, "sampling.refused", "sampling.refused_while_thinking")
def w59_the_newest_take_no_sampling(view: View) -> Found:
    """Some models refuse sampling settings (depending on the target)."""
    yield from refused_sampling(view.body, view.target, is_thinking=view.may_think)


@rule("error", "ER", CLAUDE, "sampling.refuses_temperature_with_top_p")
def w59_temperature_and_top_p_exclude_each_other(view: View) -> Found:
    """Some models take only one of the two, whatever the values (depending on the target)."""
    if not view.target.sampling.refuses_temperature_with_top_p:
        return
    if view.body.get("temperature") is not None and view.body.get("top_p") is not None:
        yield "top_p", "this model accepts top_p or temperature, not both"


@rule("error", "T", CLAUDE, "thinking.form", "thinking.efforts", "thinking.budget_range")
def w59_thinking_is_asked_for_as_the_model_has_it(view: View) -> Found:
    """The model supports the thinking type and effort (depending on the target)."""
    form = view.target.thinking.form
    if view.thinking == "enabled" and form in ("adaptive", "never"):
        yield "thinking.type", "this model does not support a thinking budget"
    if view.thinking == "adaptive" and form in ("budget", "never"):
        yield "thinking.type", "this model does not support adaptive thinking"
    effort, known = field(view.body, "output_config").get("effort"), view.target.thinking.efforts
    if effort is not None and known is not None and effort not in known:
        yield "output_config.effort", "this model does not support this effort"


@rule("warning", "R")
def w59_thinking_can_be_turned_off(view: View) -> Found:
    """Some models can't turn thinking off, or use another value (depending on the target)."""
    thinking = view.target.thinking
    if view.thinking in ("disabled", "between_tools") and thinking.is_always_on:
        yield "thinking.type", "thinking can't be turned off for this model"
    elif view.thinking == "disabled" and thinking.off_word != "disabled":
        yield (
            "thinking.type",
            f"this model uses another value to turn thinking off: {thinking.off_word}",
        )
