"""Fitting a request to its target: only what the target would refuse is touched.

Each step takes the messages and returns the same object where there is nothing to do, so that a
request which the target accepts goes through untouched, and cheaply. The steps are repeated until
none of them finds anything: putting one thing right may bring out another (I11).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from dragoman.model.messages import Message
from dragoman.model.parts import Part, Text
from dragoman.model.requests import Request
from dragoman.wire.context import Context
from dragoman.wire.encoded import Encoded
from dragoman.wire.fitting.arguments import are_readable, with_readable_arguments
from dragoman.wire.fitting.asking import with_askable_thinking
from dragoman.wire.fitting.blanks import without_blanks
from dragoman.wire.fitting.caching import has_hints_outside, with_accepted_hints
from dragoman.wire.fitting.choices import (
    Numbers,
    renumbered,
    with_begun_call,
    with_heeded_choice,
)
from dragoman.wire.fitting.declarations import with_declared_tools
from dragoman.wire.fitting.endings import with_ending
from dragoman.wire.fitting.instructions import with_placed_instructions
from dragoman.wire.fitting.luggage import left_unsaid
from dragoman.wire.fitting.media import with_accepted_media
from dragoman.wire.fitting.names import with_accepted_names
from dragoman.wire.fitting.openings import with_opening
from dragoman.wire.fitting.pairs import with_pairs, with_pairs_among_others
from dragoman.wire.fitting.places import restored
from dragoman.wire.fitting.settings import is_told_not_to_think, with_accepted_settings
from dragoman.wire.fitting.sparing import NOBODY, Kept, Spares, spare_nothing, spared
from dragoman.wire.fitting.speakers import with_calls_of_the_assistant
from dragoman.wire.fitting.state import has_hidden_context, with_known_state
from dragoman.wire.fitting.strangers import left_behind, left_behind_in
from dragoman.wire.fitting.survey import Survey
from dragoman.wire.fitting.thinking import with_agreed_thinking, with_possible_thinking
from dragoman.wire.fitting.toolids import with_accepted_ids
from dragoman.wire.fitting.turns import (
    with_alternating_roles,
    with_answered_results,
    with_known_roles,
)
from dragoman.wire.losses import Loss, Note, Repair
from dragoman.wire.target import Target

Messages = tuple[Message, ...]
_MAX_ROUNDS = 5
_Step = Callable[[Messages, Target, list[Note]], Messages]
_Concern = Callable[[Survey, Target], bool]


def _always(_seen: Survey, _target: Target) -> bool:
    return True  # or it asks the target itself


_STEPS: tuple[tuple[_Step, _Concern], ...] = (
    (with_known_roles, _always),
    (with_calls_of_the_assistant, lambda seen, _: seen.has_misplaced_calls),
    (with_agreed_thinking, lambda seen, to: seen.has_thinking or to.thinking_back == "all"),
    (with_accepted_media, lambda seen, _: seen.has_media),
    (without_blanks, lambda seen, _: seen.has_blanks),
    (with_pairs, lambda seen, _: seen.has_results or bool(seen.calls)),
    (with_readable_arguments, lambda seen, to: not are_readable(seen.calls, to)),
    (with_alternating_roles, _always),
    (with_answered_results, _always),
)
_SETTINGS = (with_askable_thinking, with_possible_thinking, with_accepted_settings)


class Fitted(NamedTuple):
    """A request that the target accepts, what it cost, and how to undo it on the way back."""

    request: Request
    notes: tuple[Note, ...]
    context: Context
    placed: tuple[Message, ...]
    """Its messages with the parts that were given, where they stand now."""
    tools: Numbers | None = None
    """The numbers that its tools had, where not all are left."""
    has_luggage: bool = False
    """Whether a part may carry something that has no place on the wire."""

    @property
    def losses(self) -> tuple[Loss, ...]:
        """What the target can't be told."""
        return tuple(note for note in self.notes if isinstance(note, Loss))

    @property
    def repairs(self) -> tuple[Repair, ...]:
        """What was changed so that it is accepted."""
        return tuple(note for note in self.notes if isinstance(note, Repair))


def fitted(request: Request, target: Target) -> Fitted:
    """The request as the target takes it; messages that are spared stay as they came."""
    spares: Spares = target.owns if target.spares_own else spare_nothing
    losses: list[Note] = []
    given = request.messages
    request = with_placed_instructions(request, target, losses)
    request = with_known_state(request, target, losses)
    messages = request.messages
    seen = Survey(messages)
    if has_hidden_context(request, messages if seen.has_media else (), target):
        # The calls that results here belong to may be with the provider.
        target = target.replace(pairs_results=False)
    if target.thinking_back == "all" and is_told_not_to_think(request.thinking):
        target = target.replace(thinking_back="own")  # C2: only while it thinks
    has_luggage = seen.has_luggage or seen.has_media or seen.has_hints
    losses += left_behind(request, target.dialect)
    extended = seen.extended if messages is given else range(len(given))
    losses += left_behind_in(given, extended, target.dialect)
    messages, seen = _ordered(messages, seen, given, target, losses, spares)
    if not messages and (given or request.system):
        messages = with_opening((), target, losses, is_instructed=True)
    found: list[Note] = []
    after = messages if messages and spares(messages[-1]) else with_ending(messages, target, found)
    losses += restored(found, given, messages)
    messages = after
    placed = messages  # from here on, everything stays where it is
    found = []
    kept = Kept(messages, request.tools, target, spares)
    messages = with_accepted_ids(messages, target, seen.calls, found, kept.ids)
    losses += restored(found, given, placed)
    if messages is not request.messages:
        request = request.replace(messages=messages)
    for settle in _SETTINGS:
        request = settle(request, target, losses)
    if seen.has_hints or has_hints_outside(request):
        found = []
        request = with_accepted_hints(request, target, found)
        losses += restored(found, given, placed)
    request, tools = with_heeded_choice(request, target, losses)
    request = with_declared_tools(request, target, losses)
    found = []
    request, context = with_accepted_names(request, target, seen.calls, found, kept.names)
    losses += restored(found, given, placed)
    request = with_begun_call(request, target, losses)
    has_luggage = has_luggage or any(map(_has_luggage, request.system))
    return Fitted(request, tuple(losses), context, placed, tools, has_luggage)


def _has_luggage(part: Part) -> bool:
    is_cited = isinstance(part, Text) and bool(part.citations)
    return is_cited or part.cache is not None or part.signature is not None


def _ordered(
    messages: Messages,
    seen: Survey,
    given: Messages,
    target: Target,
    losses: list[Note],
    spares: Spares,
) -> tuple[Messages, Survey]:
    """The messages with all that the steps have to do to them, and what there is in them."""
    for _ in range(_MAX_ROUNDS):
        before = messages
        for step, concerns in _STEPS:
            if not concerns(seen, target):
                continue
            found: list[Note] = []
            if spares is spare_nothing:
                after = step(messages, target, found)
            elif step is with_pairs:  # it looks at more than one message
                after = with_pairs_among_others(messages, target, found, spares)
            else:
                after = spared(step, messages, target, found, spares)
            if after is not messages:
                losses += restored(found, given, messages)
                messages, seen = after, Survey(after)
        if not spares(next((m for m in messages if not m.role.is_system), NOBODY)):
            messages = with_opening(messages, target, losses)
        if messages is before:
            break
    return messages, seen


def encoded_for(
    request: Request,
    target: Target,
    encode: Callable[[Request, Target], Encoded],
    *,
    strict: bool = False,
) -> Encoded:
    """The body for a request, fitted to the target; `strict` raises where anything is lost."""
    done = fitted(request, target)
    encoded = encode(done.request, target)
    losses = restored(renumbered(encoded.losses, done.tools), request.messages, done.placed)
    repairs = restored(renumbered(encoded.repairs, done.tools), request.messages, done.placed)
    encoded.losses = (*done.losses, *losses)
    if done.has_luggage:
        told = encoded.losses
        encoded.losses += left_unsaid(request.system, request.messages, target, told)
    encoded.repairs = (*done.repairs, *repairs)
    encoded.context = _way_back(done, encoded.context, target)
    return encoded.or_raise() if strict else encoded


def _way_back(done: Fitted, schemas: Context, target: Target) -> Context:
    """What fitting and encoding have to undo, as one."""
    limit = done.request.sampling.max_tokens if target.hides_cut_offs else None
    if target.ends_with_done and schemas.is_idle and limit is None:
        return done.context
    return Context(
        done.context.names,
        undos=schemas.undos,
        output=schemas.output,
        ends_with_done=target.ends_with_done,
        limit=limit,
    )
