"""Which thinking is sent back, by target, and thinking within a tool loop (W51)."""

from __future__ import annotations

from collections.abc import Callable

from dragoman.model.content import AnyPart
from dragoman.model.messages import Message
from dragoman.model.parts import Opaque, Origin, ServerToolCall, ServerToolResult, Thinking
from dragoman.model.requests import Request, ThinkingConfig
from dragoman.model.roles import Role
from dragoman.wire.fitting.steps import Messages, unless_same
from dragoman.wire.fitting.tools import is_forced
from dragoman.wire.losses import Action, Loss, Note, Repair
from dragoman.wire.target import Target, is_same_model

_ASSISTANT = Role.ASSISTANT


def with_thinking_sent_back(messages: Messages, target: Target, notes: list[Note]) -> Messages:
    """Adjust thinking in messages to what the target requires or accepts."""
    if target.thinking.sent_back == "all":
        return _with_thinking_in_every_answer(messages, target, notes)
    if target.thinking.sent_back == "never":
        return _filtered(messages, lambda *_: True, notes, "not accepted in requests")
    return _with_own_thinking(messages, target, notes)


def _with_thinking_in_every_answer(
    messages: Messages, target: Target, notes: list[Note]
) -> Messages:
    """Put one thinking part into every assistant message.

    To such a target thinking is plain text: any model's thinking is accepted, and so is an empty
    one. It requires none as long as no tool was called.
    """
    if not any(message.tool_calls for message in messages):
        return messages
    here = Origin(dialect=target.dialect)
    changed: list[Message] = []
    for index, message in enumerate(messages):
        if message.role is not _ASSISTANT or _is_thought_through(message, target):
            changed.append(message)
            continue
        sealed = [p for p, part in enumerate(message.parts) if _is_sealed(part)]
        notes.extend(Loss(f"messages[{index}].parts[{p}]", "thinking, encrypted") for p in sealed)
        thought = "\n".join(p.text for p in message.parts if isinstance(p, Thinking) and p.text)
        rest = tuple(part for part in message.parts if not isinstance(part, Thinking))
        if len(message.parts) - len(rest) != 1:
            action: Action = "merged" if thought else "added"
            reason = "one thinking part is required" if thought else "empty thinking is required"
            notes.append(Repair(f"messages[{index}]", "C2", action, reason))
        changed.append(message.replace_unchecked(parts=(Thinking(thought, origin=here), *rest)))
    return unless_same(changed, messages)


def _is_thought_through(message: Message, target: Target) -> bool:
    own = [part for part in message.parts if isinstance(part, Thinking)]
    origins = [message.origin_of(part) for part in own]
    is_here = all(origin is not None and origin.dialect == target.dialect for origin in origins)
    return bool(own) and is_here and not any(map(_is_sealed, own))


def _is_sealed(part: AnyPart) -> bool:
    return isinstance(part, Thinking) and part.data is not None


def _with_own_thinking(messages: Messages, target: Target, notes: list[Note]) -> Messages:
    """Remove thinking that another model signed, if the target's model is known.

    A target verifies its own signatures, and refuses another model's (W54, W86).
    """
    if target.thinking.verifies_signatures:
        messages = _filtered(messages, lambda part, _: not _is_signed(part), notes, "not signed")
    model = target.model
    if model is None:
        return messages

    def is_foreign(part: Thinking, message: Message) -> bool:
        origin = message.origin_of(part)
        made_by = None if origin is None or not _is_signed(part) else origin.model
        return made_by is not None and not is_same_model(made_by, model)

    return _filtered(messages, is_foreign, notes, "signed by another model")


def _filtered(
    messages: Messages,
    is_unwanted: Callable[[Thinking, Message], bool],
    notes: list[Note],
    why: str,
) -> Messages:
    """Remove unwanted thinking, and report each part."""
    kept: list[Message] = []
    for index, message in enumerate(messages):
        parts: list[AnyPart] = []
        for place, part in enumerate(message.parts):
            if isinstance(part, Thinking) and is_unwanted(part, message):
                notes.append(Loss(f"messages[{index}].parts[{place}]", f"thinking, {why}"))
            else:
                parts.append(part)
        if len(parts) == len(message.parts):
            kept.append(message)
        elif parts:
            kept.append(message.replace_unchecked(parts=tuple(parts)))
    return unless_same(kept, messages)


def _is_signed(part: Thinking) -> bool:
    return bool(part.signature or part.data)


def with_allowed_thinking(request: Request, target: Target, notes: list[Note]) -> Request:
    """Turn thinking off if the current turn has no thinking that may be sent.

    A turn that another model began has no thinking that this target could verify, and the target
    refuses to continue thinking without it; the next turn may think again. Thinking is also
    turned off if a tool call is forced and the target can't do both (W58).
    """
    if not _is_on(request.thinking, target):
        return request
    choice = request.tool_choice
    if not target.thinking.allows_forced_tools and choice is not None and is_forced(choice):
        notes.append(Loss("thinking", "turned off: not supported with a forced tool call"))
        return request.replace_trusted(thinking=ThinkingConfig(enabled=False))
    if not target.thinking.begins_turns:
        return request
    turn = _current_turn(request.messages, target)
    if not turn or _begins_with_thinking(turn[0], target):
        return request
    notes.append(Loss("thinking", "turned off for this turn, which began without it"))
    return request.replace_trusted(thinking=ThinkingConfig(enabled=False))


def _is_on(config: ThinkingConfig | None, target: Target) -> bool:
    """Whether thinking is definitely on; an adaptive model may decide not to."""
    if config is None:
        return target.thinking.is_on_by_default
    if config.enabled is False or config.effort == "none":
        return False
    is_switched = target.thinking.form in ("switch", "template") and config.enabled is True
    return config.budget is not None or is_switched or target.thinking.is_on_by_default


def _current_turn(messages: Messages, target: Target) -> Messages:
    """The adjacent assistant messages whose results come last; empty if they have no results.

    A user message may follow the results: to the target they form one turn.
    """
    spoken = [m for m in messages if not (m.role.is_system or _will_be_dropped(m, target))]
    end = len(spoken)
    while end and spoken[end - 1].role is not _ASSISTANT:
        end -= 1
    start = end
    while start and spoken[start - 1].role is _ASSISTANT:
        start -= 1
    is_current = any(message.tool_results for message in spoken[end:])
    return tuple(spoken[start:end]) if is_current else ()


def _will_be_dropped(message: Message, target: Target) -> bool:
    """Whether an assistant message is only thinking that can't be sent, and so will be dropped."""
    return message.role is _ASSISTANT and all(
        isinstance(part, Thinking)
        and (
            not _is_signed(part)
            if (origin := message.origin_of(part)) is None
            else origin.dialect != target.dialect
        )
        for part in message.parts
    )


def _begins_with_thinking(message: Message, target: Target) -> bool:
    if not message.parts:
        return True
    first = message.parts[0]
    origin = message.origin_of(first)
    if not isinstance(first, Thinking):
        # A turn that begins with the provider's own tools is accepted as it is.
        return isinstance(first, (ServerToolCall, ServerToolResult, Opaque))
    return _is_signed(first) and (origin is None or origin.dialect == target.dialect)
