"""Where instructions may stand, for hosts whose chat templates are particular about it (W117)."""

from __future__ import annotations

from dragoman.model.content import AnyPart
from dragoman.model.frozen import EMPTY
from dragoman.model.messages import Message, make_message
from dragoman.model.parts import Text
from dragoman.model.requests import Request
from dragoman.model.roles import Role
from dragoman.wire.losses import Loss, Note
from dragoman.wire.target import Target

_GAP = "\n\n"


def with_placed_instructions(request: Request, target: Target, losses: list[Note]) -> Request:
    """The request with its instructions where the target takes them."""
    if target.system_place == "anywhere":
        return request
    places = [index for index, message in enumerate(request.messages) if message.role.is_system]
    if target.system_place == "first":
        is_fine = places in ([], [0]) and not (places and request.system)
    else:
        is_fine = not places and not request.system
    if is_fine:
        return request
    parts = [*request.system]
    for index in places:
        parts += request.messages[index].parts
    spoken = tuple(message for message in request.messages if not message.role.is_system)
    if target.system_place == "first":
        return _first(request, places, parts, spoken, losses)
    return _in_the_users_words(request, places, parts, spoken, losses)


def _first(
    request: Request,
    places: list[int],
    parts: list[AnyPart],
    spoken: tuple[Message, ...],
    losses: list[Note],
) -> Request:
    for at, index in enumerate(places):
        if index != at:  # those before all others are only joined
            losses.append(Loss(f"messages[{index}]", "instructions are moved to the beginning"))
        if request.messages[index].name is not None:
            losses.append(Loss(f"messages[{index}].name", "joined with other instructions"))
    system = make_message(Role.SYSTEM, _joined(parts))
    return request.replace(system=(), messages=(system, *spoken))


def _in_the_users_words(
    request: Request,
    places: list[int],
    parts: list[AnyPart],
    spoken: tuple[Message, ...],
    losses: list[Note],
) -> Request:
    reason = "instructions are put into the user's words"
    losses.extend(Loss(f"messages[{index}]", reason) for index in places)
    if request.system:
        losses.append(Loss("system", reason))
    said = _joined(parts)
    if spoken and spoken[0].role is Role.USER:
        first = spoken[0].replace_unchecked(parts=_joined([*said, *spoken[0].parts]))
        return request.replace(system=(), messages=(first, *spoken[1:]))
    return request.replace(system=(), messages=(make_message(Role.USER, said), *spoken))


def _joined(parts: list[AnyPart]) -> tuple[AnyPart, ...]:
    """The parts, neighbouring plain texts as one: templates take a text better than a list."""
    done: list[AnyPart] = []
    for part in parts:
        before = done[-1] if done else None
        if isinstance(before, Text) and _is_plain(before) and _is_plain(part):
            done[-1] = Text(f"{before.text}{_GAP}{part.text}")  # type: ignore[union-attr]
        else:
            done.append(part)
    return tuple(done)


def _is_plain(part: AnyPart) -> bool:
    return type(part) is Text and part.extras is EMPTY and part.cache is None and not part.citations
