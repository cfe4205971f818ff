"""Choices among tools that the target does not heed, said by the tools that are sent (W74)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TypeVar

from dragoman.model.messages import Message
from dragoman.model.requests import Request
from dragoman.model.roles import Role
from dragoman.model.tools import ToolChoice
from dragoman.wire.losses import Loss, Note, Repair
from dragoman.wire.target import Target

N = TypeVar("N", Loss, Repair)
Numbers = tuple[int, ...]
_TOOL = re.compile(r"tools\[(\d+)\]")


def with_heeded_choice(
    request: Request, target: Target, notes: list[Note]
) -> tuple[Request, Numbers | None]:
    """The request with a choice that the target heeds.

    Returned with it: the numbers that the tools had which are left; None where all are.
    """
    choice = request.tool_choice
    if choice is None or choice.mode in target.heeded_choices:
        return request, None
    if choice.mode == "required":
        return request, None  # no selection of tools says it
    names = () if choice.mode == "none" else choice.names
    kept = tuple(i for i, tool in enumerate(request.tools) if tool.name in names)
    if not kept and choice.mode != "none":
        return request, None  # it names what is not there: the target shall say so
    tools = tuple(request.tools[index] for index in kept)
    reason = "said by the tools that are sent"
    notes.append(Repair("tool_choice", "W74", "retyped", reason))
    notes.extend(
        Repair(f"tools[{index}]", "W74", "dropped", "a tool that must not be called")
        for index in range(len(request.tools))
        if index not in kept
    )
    return request.replace(tools=tools, tool_choice=_choice(choice)), kept


def _choice(choice: ToolChoice) -> ToolChoice | None:
    if choice.mode == "none":
        return None
    is_forced = choice.mode == "named" or choice.is_required
    return ToolChoice("required" if is_forced else "auto", parallel=choice.parallel)


def renumbered(notes: Iterable[N], kept: Numbers | None) -> tuple[N, ...]:
    """The losses or repairs, where the tools have the numbers that they had."""
    if kept is None:
        return tuple(notes)
    return tuple(_renumbered(note, kept) for note in notes)


def _renumbered(note: N, kept: Numbers) -> N:
    found = _TOOL.match(note.path)
    if found is None:
        return note
    number = kept[int(found[1])]
    return note.replace(path=f"tools[{number}]{note.path[found.end() :]}")


def with_begun_call(request: Request, target: Target, notes: list[Note]) -> Request:
    """The request with the beginning of a call as the answer to go on with, if there must be one.

    An answer that is begun already is left alone.
    """
    choice, messages = request.tool_choice, request.messages
    if target.call_opening is None or choice is None or not _is_forced(choice) or not request.tools:
        return request
    if messages and messages[-1].role is Role.ASSISTANT:
        return request
    notes.append(Repair("messages", "W74", "added", "the beginning of a call, to be continued"))
    return request.replace(messages=(*messages, Message.assistant(target.call_opening)))


def _is_forced(choice: ToolChoice) -> bool:
    return choice.mode in {"required", "named"} or choice.is_required
