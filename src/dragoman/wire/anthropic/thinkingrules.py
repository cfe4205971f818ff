"""What Anthropic's API demands where the model thinks."""

from __future__ import annotations

from dragoman.wire.anthropic.settings import LEAST_TOP_P, MIN_BUDGET
from dragoman.wire.anthropic.view import THINKING, View, blocks_of
from dragoman.wire.settingrules import refused_sampling
from dragoman.wire.violations import Found, field, is_number


def w51_a_tool_loop_begins_with_thinking(view: View) -> Found:
    """While thinking is on, the turn whose results are being sent begins with it."""
    is_asked = view.thinking == "enabled" and view.target.thinking_begins_turns
    if not is_asked or len(view.turns) < 2:  # noqa: PLR2004 - a turn and its results
        return
    before, last = view.turns[-2:]
    if last.role == "user" and last.of_type("tool_result") and before.blocks:
        path, first = before.blocks[0]
        if first.get("type") in ("text", "tool_use"):
            yield path, "with thinking on, this turn must begin with its thinking block"


def w52_thinking_comes_first(view: View) -> Found:
    """While thinking is on, a message with thinking begins with it.

    Recordings without it begin with a server's tool, and are accepted.
    """
    if view.thinking != "enabled":
        return
    for path, message in view.messages:
        kinds = [block.get("type") for _, block in blocks_of(message, path)]
        if kinds[:1] in (["text"], ["tool_use"]) and any(kind in THINKING for kind in kinds):
            yield path, "a message with thinking must begin with it"


def w53_no_thinking_at_the_end_when_off(view: View) -> Found:
    """While thinking is off, a last assistant message has none."""
    if view.thinking in ("enabled", "adaptive") or not view.messages:
        return
    path, message = view.messages[-1]
    if message.get("role") == "assistant":
        for place, block in blocks_of(message, path):
            if block.get("type") in ("thinking", "redacted_thinking"):
                yield place, "with thinking off, the last message must hold none"


def w54_thinking_is_signed(view: View) -> Found:
    """Thinking without its signature is refused; whether the signature is right, nobody can say."""
    if not view.target.verifies_thinking:
        return
    for path, block in view.of_type("thinking"):
        signature = block.get("signature")
        if not (isinstance(signature, str) and signature):
            yield path, "a thinking block needs its signature"


def w57_redacted_thinking_has_its_data(view: View) -> Found:
    """Redacted thinking is nothing but its data."""
    for path, block in view.of_type("redacted_thinking"):
        data = block.get("data")
        if not (isinstance(data, str) and data):
            yield path, "a redacted_thinking block needs its data"


def w58_thinking_forces_no_tool(view: View) -> Found:
    """While thinking is on, no tool can be forced; adaptive thinking allows it."""
    if view.target.forces_tools_thinking:
        return
    choice = field(view.body, "tool_choice").get("type")
    if view.thinking == "enabled" and choice in ("any", "tool"):
        yield "tool_choice", "with thinking on, tool_choice can't force a tool"


def w59_the_budget_fits(view: View) -> Found:
    """At least 1,024 tokens to think, and fewer than there are in all."""
    if view.thinking != "enabled":
        return
    budget, most = field(view.body, "thinking").get("budget_tokens"), view.body.get("max_tokens")
    if type(budget) is not int or budget < MIN_BUDGET:
        yield "thinking.budget_tokens", f"must be an integer of at least {MIN_BUDGET}"
    elif type(most) is int and budget >= most and not view.may_interleave:
        yield "thinking.budget_tokens", "must be less than max_tokens"


def w59_thinking_takes_no_sampling(view: View) -> Found:
    """While thinking is on, the temperature is 1."""
    temperature = view.body.get("temperature")
    if view.thinking == "enabled" and is_number(temperature) and temperature != 1:
        yield "temperature", "with thinking on, the temperature can only be 1"


def w59_thinking_takes_little_sampling(view: View) -> Found:
    """While thinking is on, `top_p` cuts off little, and `top_k` nothing."""
    if view.thinking != "enabled":
        return
    top_p = view.body.get("top_p")
    if isinstance(top_p, (int, float)) and top_p < LEAST_TOP_P:
        yield "top_p", f"with thinking on, top_p is at least {LEAST_TOP_P}"
    if view.body.get("top_k") is not None:
        yield "top_k", "with thinking on, top_k can't be set"


def w59_the_newest_take_no_sampling(view: View) -> Found:
    """Some models refuse any temperature but their own (the target says which)."""
    yield from refused_sampling(view.body, view.target, is_thinking=view.thinking == "enabled")


def w59_temperature_and_top_p_exclude_each_other(view: View) -> Found:
    """Some models take one of the two, whatever their values (the target says which)."""
    if not view.target.refuses_temperature_with_top_p:
        return
    if view.body.get("temperature") is not None and view.body.get("top_p") is not None:
        yield "top_p", "this model takes it or a temperature, not both"


def w59_thinking_is_asked_for_as_the_model_has_it(view: View) -> Found:
    """A budget or adaptively, and by an effort that it knows (the target says which)."""
    form = view.target.thinking_form
    if view.thinking == "enabled" and form in ("adaptive", "never"):
        yield "thinking.type", "this model takes no budget"
    if view.thinking == "adaptive" and form in ("budget", "never"):
        yield "thinking.type", "this model does not think adaptively"
    effort, known = field(view.body, "output_config").get("effort"), view.target.efforts
    if effort is not None and known is not None and effort not in known:
        yield "output_config.effort", "this model does not know this effort"
