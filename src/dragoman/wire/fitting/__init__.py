"""Fitting a request to its target: only what the target would refuse is touched.

`FIRST`, `MESSAGES` and `SETTINGS` have the steps in their order, and `fitted` runs them. Each step
returns the same object where there is nothing to do, so that a request which the target accepts
goes through untouched, and cheaply. A dialect may have steps of its own, which come last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from dragoman.model.messages import Message
from dragoman.model.parts import Part, Text
from dragoman.model.requests import Request
from dragoman.wire.context import CallForm, Context
from dragoman.wire.encoded import Encoded
from dragoman.wire.fitting.cache_hints import has_hints_outside, with_accepted_hints
from dragoman.wire.fitting.content import with_accepted_media, without_blank_texts
from dragoman.wire.fitting.foreign_settings import with_foreign_settings
from dragoman.wire.fitting.identifiers import with_accepted_ids, with_accepted_names
from dragoman.wire.fitting.mapping import (
    with_provider_tools,
    with_readable_parts,
    with_settings_of_target,
)
from dragoman.wire.fitting.offers import (
    placed_back,
    with_offered_tools,
    without_tool_changes,
)
from dragoman.wire.fitting.pairing import with_paired_results, with_paired_results_among_kept
from dragoman.wire.fitting.paths import Numbers, left, renumbered, restored
from dragoman.wire.fitting.provider_calls import with_readable_calls
from dragoman.wire.fitting.settings import (
    has_hidden_context,
    with_supported_settings,
    with_supported_state,
)
from dragoman.wire.fitting.steps import (
    Contents,
    Keeps,
    Kept,
    Messages,
    Step,
    fit_messages,
    keep_nothing,
)
from dragoman.wire.fitting.thinking import with_allowed_thinking, with_thinking_sent_back
from dragoman.wire.fitting.thinking_settings import is_told_not_to_think, with_supported_thinking
from dragoman.wire.fitting.tools import (
    are_objects,
    with_call_opening,
    with_declared_tools,
    with_object_arguments,
    with_supported_choice,
)
from dragoman.wire.fitting.turns import (
    with_alternating_roles,
    with_answered_results,
    with_calls_by_assistant,
    with_ending,
    with_known_roles,
    with_opening,
    with_opening_among_kept,
    with_placed_instructions,
)
from dragoman.wire.fitting.unsupported_fields import unsupported_field_losses
from dragoman.wire.foreign_extras import foreign_message_losses, foreign_request_losses
from dragoman.wire.losses import Loss, Note, Repair
from dragoman.wire.target import Target

_MAX_ROUNDS = 5
OwnSteps = Sequence[Step[Request]]

FIRST: tuple[Step[Request], ...] = (
    Step(without_tool_changes, ()),
    Step(with_placed_instructions, ("turns.system_place",)),
    Step(with_supported_state, ("state.fields",)),
)
"""What comes before all else."""
MESSAGES: tuple[Step[Messages], ...] = (
    Step(with_readable_parts, (), lambda seen, _: seen.has_media),
    Step(with_readable_calls, (), lambda seen, _: seen.has_media),
    Step(with_known_roles, ("turns.takes_developer",)),
    Step(with_calls_by_assistant, ("is_strict",), lambda seen, _: seen.has_misplaced_calls),
    Step(
        with_thinking_sent_back,
        ("thinking.sent_back", "thinking.verifies_signatures"),
        lambda seen, to: seen.has_thinking or to.thinking.sent_back == "all",
    ),
    Step(
        with_accepted_media,
        ("media.kinds", "media.takes_image_urls"),
        lambda seen, _: seen.has_media,
    ),
    Step(
        without_blank_texts,
        ("turns.refuses_empty_text", "turns.refuses_blank_text", "turns.refuses_empty_messages"),
        lambda seen, _: seen.has_blanks,
    ),
    Step(
        with_paired_results,
        ("turns.pairs_results", "turns.groups_results", "turns.orders_results"),
        lambda seen, _: seen.has_results or bool(seen.calls),
        with_paired_results_among_kept,
    ),
    Step(
        with_object_arguments,
        ("tools.parses_arguments",),
        lambda seen, to: not are_objects(seen.calls, to),
    ),
    Step(with_alternating_roles, ("turns.alternates_roles",)),
    Step(with_answered_results, ("turns.answers_results",)),
    Step(
        with_opening,
        ("turns.starts_with_user", "turns.refuses_call_first", "turns.needs_message"),
        among_kept=with_opening_among_kept,
    ),
)
"""What is repeated until nothing is found: putting one thing right may bring out another (I11)."""
SETTINGS: tuple[Step[Request], ...] = (
    Step(
        with_supported_thinking,
        ("thinking.form", "thinking.efforts", "thinking.budget_range"),
    ),
    Step(with_allowed_thinking, ("thinking.allows_forced_tools", "thinking.begins_turns")),
    Step(
        with_supported_settings,
        (
            "sampling.refused",
            "sampling.refused_while_thinking",
            "sampling.refuses_temperature_with_top_p",
            "sampling.min_output_tokens",
            "schemas.outputs",
            "schemas.takes_strict_tools",
            "tools.takes_parallel_choice",
        ),
    ),
)
"""What is asked of the model, once the conversation stands."""


class Fitted(NamedTuple):
    """A request that the target accepts, what it cost, and how to undo it on the way back."""

    request: Request
    notes: tuple[Note, ...]
    context: Context
    placed: tuple[Message, ...]
    """Its messages with the parts that were given, where they stand now."""
    tools: Numbers | None = None
    """The numbers that its tools had, where not all are left."""
    has_extra_fields: bool = False
    """Whether a part may have a field that has no place on the wire."""

    @property
    def losses(self) -> tuple[Loss, ...]:
        """What the target can't be told."""
        return _losses(self.notes)

    @property
    def repairs(self) -> tuple[Repair, ...]:
        """What was changed so that it is accepted."""
        return tuple([note for note in self.notes if isinstance(note, Repair)])


def fitted(request: Request, target: Target, own_steps: OwnSteps = ()) -> Fitted:
    """The request as the target takes it; `own_steps` are the dialect's."""
    keeps: Keeps = target.owns if target.keeps_own_messages else keep_nothing
    notes: list[Note] = []
    given = request.messages
    for step in FIRST:
        request = step.fit(request, target, notes)
    messages = request.messages
    seen = Contents(messages)
    asked, target = target, _for_conversation(target, request, seen)
    has_extra_fields = seen.has_extra_fields or seen.has_media or seen.has_hints
    notes += foreign_request_losses(request, target.dialect)
    extended = seen.extended if messages is given else range(len(given))
    notes += foreign_message_losses(given, extended, target.dialect)
    messages, seen = _with_fitted_messages(messages, seen, given, target, notes, keeps)
    if not messages and (given or request.system):
        messages = with_opening((), target, notes, is_instructed=True)
    found: list[Note] = []
    after = messages if messages and keeps(messages[-1]) else with_ending(messages, target, found)
    notes += restored(found, given, messages)
    messages = placed = after  # from here on, everything stays where it is
    found = []
    kept = Kept(messages, request.tools, target, keeps)
    messages = with_accepted_ids(messages, target, seen.calls, found, kept.ids)
    if messages is not request.messages:
        request = request.replace_trusted(messages=messages)
    for step in SETTINGS:
        request = step.fit(request, target, found)
    if seen.has_hints or has_hints_outside(request):
        request = with_accepted_hints(request, target, found)
    request, tools = with_supported_choice(request, target, found)
    request = with_declared_tools(request, target, found)
    request, context = with_accepted_names(request, target, seen.calls, found, kept.names)
    request = with_call_opening(request, target, found)
    notes += restored(found, given, placed)
    for step in own_steps:
        if not step.concerns(seen, target):
            continue
        found, before = [], request
        request = step.fit(request, asked, found)
        if request is not before or found:
            if found:
                notes += restored(renumbered(found, tools), given, placed)
            placed = left(placed, before.messages, request.messages)
    has_extra_fields = has_extra_fields or any(map(_has_extra_fields, request.system))
    return Fitted(request, tuple(notes), context, placed, tools, has_extra_fields)


def _for_conversation(target: Target, request: Request, seen: Contents) -> Target:
    """The target without demands that this very conversation is free of."""
    if has_hidden_context(request, request.messages if seen.has_media else (), target):
        # The calls that results here belong to may be with the provider.
        target = target.with_flags({"turns.pairs_results": False})
    if target.thinking.sent_back == "all" and is_told_not_to_think(request.thinking):
        target = target.with_flags({"thinking.sent_back": "own"})  # C2: only while it thinks
    return target


def _has_extra_fields(part: Part) -> bool:
    is_cited = isinstance(part, Text) and bool(part.citations)
    return is_cited or part.cache is not None or part.signature is not None


def _with_fitted_messages(
    messages: Messages,
    seen: Contents,
    given: Messages,
    target: Target,
    notes: list[Note],
    keeps: Keeps,
) -> tuple[Messages, Contents]:
    """The messages with all that the steps have to do to them, and what there is in them."""
    for _ in range(_MAX_ROUNDS):
        before = messages
        for step in MESSAGES:
            if not step.concerns(seen, target):
                continue
            found: list[Note] = []
            after = fit_messages(step, messages, target, found, keeps)
            if after is not messages:
                notes += restored(found, given, messages)
                messages, seen = after, Contents(after)
        if messages is before:
            break
    return messages, seen


def encoded_for(
    request: Request,
    target: Target,
    encode: Callable[[Request, Target], Encoded],
    *,
    steps: OwnSteps = (),
    strict: bool = False,
) -> Encoded:
    """The body for a request, fitted to the target; `strict` raises where anything is lost."""
    mapped: list[Note] = []
    calls: dict[str, CallForm] = {}
    request, places = with_offered_tools(request, target, calls)
    request = with_provider_tools(request, target, mapped, calls)
    request = with_settings_of_target(request, target, mapped)
    request = with_foreign_settings(request, target, mapped)
    done = fitted(request, target, steps)
    encoded = encode(done.request, target)
    losses, repairs = encoded.losses, encoded.repairs
    if losses:
        losses = restored(renumbered(losses, done.tools), request.messages, done.placed)
    if repairs:
        repairs = restored(renumbered(repairs, done.tools), request.messages, done.placed)
    encoded.losses = (*_losses(mapped), *done.losses, *losses)
    if done.has_extra_fields:
        told = encoded.losses
        encoded.losses += unsupported_field_losses(request.system, request.messages, target, told)
    encoded.repairs = (*done.repairs, *repairs)
    if places is not None:
        encoded.losses = placed_back(encoded.losses, places)
        encoded.repairs = placed_back(encoded.repairs, places)
    encoded.context = _way_back(done, encoded.context, target, calls)
    return encoded.or_raise() if strict else encoded


def _losses(notes: Iterable[Note]) -> tuple[Loss, ...]:
    return tuple([note for note in notes if isinstance(note, Loss)])


def _way_back(
    done: Fitted, schemas: Context, target: Target, calls: dict[str, CallForm]
) -> Context:
    """What fitting and encoding have to undo, as one."""
    limit = done.request.sampling.max_tokens if target.host.hides_cut_offs else None
    if target.host.ends_with_done and schemas.is_idle and limit is None and not calls:
        return done.context
    return Context(
        done.context.names,
        calls=calls,
        undos=schemas.undos,
        output=schemas.output,
        ends_with_done=target.host.ends_with_done,
        limit=limit,
    )
