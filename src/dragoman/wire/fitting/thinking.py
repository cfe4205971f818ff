"""Thinking that goes back, as each target's contract has it, and thinking in a tool loop (W51)."""

from __future__ import annotations

from collections.abc import Callable
from operator import is_

from dragoman.model.content import AnyPart
from dragoman.model.messages import Message
from dragoman.model.parts import Opaque, Origin, ServerToolCall, ServerToolResult, Thinking
from dragoman.model.requests import Request, ThinkingConfig
from dragoman.model.roles import Role
from dragoman.model.tools import ToolChoice
from dragoman.wire.losses import Action, Loss, Note, Repair
from dragoman.wire.target import Target, is_same_model

_ASSISTANT = Role.ASSISTANT


def with_thinking_sent_back(
    messages: tuple[Message, ...], target: Target, losses: list[Note]
) -> tuple[Message, ...]:
    """Messages with the thinking that the target's contract asks for, or allows."""
    if target.thinking.sent_back == "all":
        return _with_thinking_in_every_answer(messages, target, losses)
    if not _is_there_any(messages):
        return messages
    if target.thinking.sent_back == "never":
        return _filtered(
            messages, lambda part, _: isinstance(part, Thinking), losses, "not taken back"
        )
    return with_own_thinking(messages, target, losses)


def _is_there_any(messages: tuple[Message, ...]) -> bool:
    for message in messages:
        for part in message.parts:
            if isinstance(part, Thinking):
                return True
    return False


def _with_thinking_in_every_answer(
    messages: tuple[Message, ...], target: Target, losses: list[Note]
) -> tuple[Message, ...]:
    """Thinking is plain text to such a target: anyone's will do, and so will none at all.

    While no tool was called, it does not ask for any.
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
        losses.extend(Loss(f"messages[{index}].parts[{p}]", "thinking, sealed") for p in sealed)
        thought = "\n".join(p.text for p in message.parts if isinstance(p, Thinking) and p.text)
        rest = tuple(part for part in message.parts if not isinstance(part, Thinking))
        if len(message.parts) - len(rest) != 1:
            action: Action = "merged" if thought else "added"
            reason = "thinking in every answer, in one piece" if thought else "empty thinking"
            losses.append(Repair(f"messages[{index}]", "C2", action, reason))
        changed.append(message.replace_unchecked(parts=(Thinking(thought, origin=here), *rest)))
    return messages if all(map(is_, changed, messages)) else tuple(changed)


def _is_thought_through(message: Message, target: Target) -> bool:
    own = [part for part in message.parts if isinstance(part, Thinking)]
    origins = [message.origin_of(part) for part in own]
    is_here = all(origin is not None and origin.dialect == target.dialect for origin in origins)
    return bool(own) and is_here and not any(map(_is_sealed, own))


def _is_sealed(part: AnyPart) -> bool:
    return isinstance(part, Thinking) and part.data is not None


def with_own_thinking(
    messages: tuple[Message, ...], target: Target, losses: list[Note]
) -> tuple[Message, ...]:
    """Messages without thinking that another model sealed, where the target's model is known.

    A target verifies what it made, and refuses what another did (W54, W86).
    """
    if target.thinking.verifies_signatures:
        messages = _filtered(messages, lambda part, _: _is_unsigned(part), losses, "without a seal")
    if target.model is None:
        return messages
    return _filtered(
        messages,
        lambda part, message: _is_foreign(part, message, target),
        losses,
        "sealed by another model",
    )


def _filtered(
    messages: tuple[Message, ...],
    is_unwanted: Callable[[AnyPart, Message], bool],
    losses: list[Note],
    why: str,
) -> tuple[Message, ...]:
    """Messages without the thinking that is not wanted, each piece of it reported."""
    kept: list[Message] = []
    for index, message in enumerate(messages):
        unwanted = [p for p, part in enumerate(message.parts) if is_unwanted(part, message)]
        losses.extend(Loss(f"messages[{index}].parts[{p}]", f"thinking, {why}") for p in unwanted)
        parts = tuple(part for p, part in enumerate(message.parts) if p not in unwanted)
        if not unwanted:
            kept.append(message)
        elif parts:
            kept.append(message.replace_unchecked(parts=parts))
    same = len(kept) == len(messages) and all(map(is_, kept, messages))
    return messages if same else tuple(kept)


def _is_unsigned(part: AnyPart) -> bool:
    return isinstance(part, Thinking) and not (part.signature or part.data)


def _is_foreign(part: AnyPart, message: Message, target: Target) -> bool:
    if not isinstance(part, Thinking) or not (part.signature or part.data):
        return False
    origin, model = message.origin_of(part), target.model or ""
    if origin is None or origin.model is None:
        return False
    return not is_same_model(origin.model, model)


def with_allowed_thinking(request: Request, target: Target, losses: list[Note]) -> Request:
    """The request with thinking off, where the turn under way has no thinking that may be sent.

    A turn that another model began has none that this target could verify, and it refuses to
    go on thinking without; the next turn may think again. Nor may a thinking model be forced to
    call a tool (W58): then the tool is what counts.
    """
    if not _is_on(request.thinking, target):
        return request
    choice = request.tool_choice
    if not target.thinking.allows_forced_tools and choice is not None and _forces(choice):
        losses.append(Loss("thinking", "a model that must call a tool can't think first here"))
        return request.replace(thinking=ThinkingConfig(enabled=False))
    if not target.thinking.begins_turns:
        return request
    turn = _turn_under_way(request.messages, target)
    if not turn or _begins_with_thinking(turn[0], target):
        return request
    losses.append(Loss("thinking", "this turn began without it, elsewhere; off until the next"))
    return request.replace(thinking=ThinkingConfig(enabled=False))


def _forces(choice: ToolChoice) -> bool:
    return choice.mode in ("required", "named") or choice.is_required


def _is_on(config: ThinkingConfig | None, target: Target) -> bool:
    """Whether it is sure to think; what it decides itself (adaptively) is another matter."""
    if config is None:
        return target.thinking.is_on_by_default
    if config.enabled is False or config.effort == "none":
        return False
    is_switched = target.thinking.form in ("switch", "template") and config.enabled is True
    return config.budget is not None or is_switched or target.thinking.is_on_by_default


def _turn_under_way(messages: tuple[Message, ...], target: Target) -> tuple[Message, ...]:
    """The neighbouring assistant messages whose results come last; none if they have no results.

    The user may have spoken after the results: to the target that is one turn with them.
    """
    spoken = [m for m in messages if not (m.role.is_system or _is_unsaid(m, target))]
    end = len(spoken)
    while end and spoken[end - 1].role is not _ASSISTANT:
        end -= 1
    start = end
    while start and spoken[start - 1].role is _ASSISTANT:
        start -= 1
    is_under_way = any(message.tool_results for message in spoken[end:])
    return tuple(spoken[start:end]) if is_under_way else ()


def _is_unsaid(message: Message, target: Target) -> bool:
    """Whether an answer is nothing but thinking that can't be sent: it will be left out."""
    return message.role is _ASSISTANT and all(
        isinstance(part, Thinking)
        and (
            not (part.signature or part.data)
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
        # What the provider's own tools began is accepted as it is.
        return isinstance(first, (ServerToolCall, ServerToolResult, Opaque))
    return bool(first.signature or first.data) and (
        origin is None or origin.dialect == target.dialect
    )
