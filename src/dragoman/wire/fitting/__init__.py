"""Fits a request to its target: changes only what the target would refuse.

`FIRST`, `MESSAGES` and `SETTINGS` list the steps in order, and `fitted` runs them. Each step
returns the same object if there is nothing to do, so that a request the target accepts passes
through unchanged, and cheaply. A dialect may have steps of its own, which run last.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from dragoman.model.frozen import EMPTY
from dragoman.model.messages import Message
from dragoman.model.parts import Part, Text
from dragoman.model.requests import Request
from dragoman.wire.context import NOTHING, CallForm, Context
from dragoman.wire.encoded import Encoded
from dragoman.wire.fitting.cache_hints import has_hints_outside, with_accepted_hints
from dragoman.wire.fitting.content import (
    with_accepted_media,
    with_known_details,
    without_blank_instructions,
    without_blank_texts,
    without_empty_results,
)
from dragoman.wire.fitting.forced_calls import with_forced_call
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
    NOTHING_KEPT,
    Contents,
    Keeps,
    Kept,
    Messages,
    Step,
    fit_messages,
    keep_nothing,
    steps_for,
)
from dragoman.wire.fitting.thinking import with_allowed_thinking, with_thinking_sent_back
from dragoman.wire.fitting.thinking_settings import is_thinking_off, with_supported_thinking
from dragoman.wire.fitting.tools import (
    are_objects,
    with_call_opening,
    with_declared_tools,
    with_object_arguments,
    with_supported_choice,
    without_orphaned_choice,
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
OwnSteps = tuple[Step[Request], ...]

FIRST: tuple[Step[Request], ...] = (
    Step(without_tool_changes, (), lambda seen, _: seen.has_media),
    Step(
        with_placed_instructions,
        ("turns.system_place",),
        is_required=lambda to: to.turns.system_place != "anywhere",
    ),
    Step(with_supported_state, ("state.fields",)),
    Step(
        without_blank_instructions,
        ("turns.refuses_empty_text", "turns.refuses_blank_text", "turns.doubts_empty_text"),
        is_required=lambda to: to.turns.refuses_empty_text or to.turns.doubts_empty_text,
    ),
)
"""Steps that run before all others."""
MESSAGES: tuple[Step[Messages], ...] = (
    Step(with_readable_parts, (), lambda seen, _: seen.has_media),
    Step(with_readable_calls, (), lambda seen, _: seen.has_media),
    Step(
        with_known_roles,
        ("turns.takes_developer",),
        is_required=lambda to: not to.turns.takes_developer,
    ),
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
    Step(with_known_details, ("media.details",), lambda seen, _: seen.has_media),
    Step(without_empty_results, (), lambda seen, _: seen.has_blanks),
    Step(
        without_blank_texts,
        (
            *("turns.refuses_empty_text", "turns.refuses_blank_text"),
            *("turns.doubts_empty_text", "turns.refuses_empty_messages"),
            "turns.refuses_empty_answers",
        ),
        lambda seen, _: seen.has_blanks,
    ),
    Step(
        with_paired_results,
        ("turns.pairs_results", "turns.groups_results", "turns.orders_results"),
        lambda seen, _: seen.has_results or bool(seen.calls),
        is_required=lambda to: to.turns.pairs_results,
        among_kept=with_paired_results_among_kept,
    ),
    Step(
        with_object_arguments,
        ("tools.parses_arguments",),
        lambda seen, _: bool(seen.calls),
        is_required=lambda to: to.tools.parses_arguments,
        finds=lambda seen, to: not are_objects(seen.calls, to),
    ),
    Step(
        with_alternating_roles,
        ("turns.alternates_roles",),
        is_required=lambda to: to.turns.alternates_roles,
    ),
    Step(
        with_answered_results,
        ("turns.answers_results",),
        is_required=lambda to: to.turns.answers_results,
    ),
    Step(
        with_opening,
        ("turns.starts_with_user", "turns.refuses_call_first", "turns.needs_message"),
        is_required=lambda to: (
            to.turns.starts_with_user or to.turns.refuses_call_first or to.turns.needs_message
        ),
        among_kept=with_opening_among_kept,
    ),
)
"""Steps that are repeated until nothing changes: one repair may make another necessary (I11)."""
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
"""Steps for the request's settings, which run once the messages are final."""


class Fitted(Struct, frozen=True, eq=False, gc=False):
    """A request that the target accepts, with losses and repairs, and how to undo the changes."""

    request: Request
    notes: tuple[Note, ...]
    context: Context
    placed: tuple[Message, ...]
    """The fitted messages with their original parts, to map paths back."""
    tools: Numbers | None = None
    """The original indices of its tools, if some were dropped."""
    has_extra_fields: bool = False
    """Whether a part may have a field that the wire lacks."""

    @property
    def losses(self) -> tuple[Loss, ...]:
        """What the target can't be sent."""
        return tuple([note for note in self.notes if type(note) is Loss])

    @property
    def repairs(self) -> tuple[Repair, ...]:
        """What was changed so that the target accepts it."""
        return tuple([note for note in self.notes if type(note) is Repair])


def fitted(
    request: Request, target: Target, own_steps: OwnSteps = (), seen: Contents | None = None
) -> Fitted:
    """Fit a request to a target; `own_steps` are the dialect's.

    `seen` is the summary of its messages, if the caller already has it.
    """
    keeps: Keeps = target.owns if target.keeps_own_messages else keep_nothing
    notes: list[Note] = []
    given = request.messages
    seen = Contents(given) if seen is None or seen.messages is not given else seen
    request, seen = _with_first_steps(request, seen, target, notes)
    messages = request.messages
    asked, target = target, _for_conversation(target, request, seen)
    has_extra_fields = seen.has_extra_fields or seen.has_media or seen.has_hints
    placed = left(given, given, messages)
    messages, placed, seen = _with_fitted_messages(
        messages, placed, seen, given, target, notes, keeps
    )
    if not messages and (given or request.system):
        placed = messages = with_opening((), target, notes, is_instructed=True)
    found: list[Note] = []
    if target.turns.prefill != "free" and not (messages and keeps(messages[-1])):
        after = with_ending(messages, target, found)
        notes += restored(found, given, placed)
        messages, placed, found = after, left(placed, messages, after), []
    # From here on, positions don't change.
    kept = NOTHING_KEPT if keeps is keep_nothing else Kept(messages, request.tools, target, keeps)
    if seen.calls:
        messages = with_accepted_ids(messages, target, seen.calls, found, kept.ids)
    if messages is not request.messages:
        request = request.replace_trusted(messages=messages)
    request, tools, context = _with_fitted_settings(request, seen, target, found, kept.names)
    notes += restored(found, given, placed)
    for step in steps_for(own_steps, seen, target) if own_steps else ():
        if step.finds is not None and not step.finds(seen, target):
            continue
        found, before = [], request
        request = step.fit(request, asked, found)
        if request is not before or found:
            if found:
                notes += restored(renumbered(found, tools), given, placed)
            placed = left(placed, before.messages, request.messages)
    has_extra_fields = has_extra_fields or any(map(_has_extra_fields, request.system))
    return Fitted(request, tuple(notes), context, placed, tools, has_extra_fields)


def _with_first_steps(
    request: Request, seen: Contents, target: Target, notes: list[Note]
) -> tuple[Request, Contents]:
    """Run `FIRST`; also reports fields that only other dialects have."""
    given = request.messages
    for step in steps_for(FIRST, seen, target):
        request = step.fit(request, target, notes)
    notes += foreign_request_losses(request, target.dialect)
    if request.messages is not given:
        notes += foreign_message_losses(given, range(len(given)), target.dialect)
        return request, Contents(request.messages)
    if seen.extended:
        notes += foreign_message_losses(given, seen.extended, target.dialect)
    return request, seen


def _with_fitted_settings(
    request: Request, seen: Contents, target: Target, found: list[Note], kept: frozenset[str]
) -> tuple[Request, Numbers | None, Context]:
    """Fit settings and tools.

    Also returns the original indices of the tools, if some were dropped, and how to undo renames.
    """
    for step in SETTINGS:
        request = step.fit(request, target, found)
    if seen.has_hints or has_hints_outside(request):
        request = with_accepted_hints(request, target, found)
    tools, context = None, NOTHING
    if request.tool_choice is not None:
        request, tools = with_supported_choice(request, target, found)
    request = with_declared_tools(request, target, found)
    request = without_orphaned_choice(request, target, seen, found)
    if request.tools or seen.calls:
        request, context = with_accepted_names(request, target, seen.calls, found, kept)
    if request.tool_choice is not None:
        request = with_call_opening(request, target, found)
        request, forced = with_forced_call(request, target, found)
        context = Context(context.names, forced=forced) if forced else context
    return request, tools, context


def _for_conversation(target: Target, request: Request, seen: Contents) -> Target:
    """The target without requirements that don't apply to this conversation."""
    if (request.state is not None or seen.has_media) and has_hidden_context(
        request, request.messages if seen.has_media else (), target
    ):
        # The calls that these results belong to may be stored by the provider.
        target = target.with_flags({"turns.pairs_results": False})
    if target.thinking.sent_back == "all" and is_thinking_off(request.thinking):
        target = target.with_flags({"thinking.sent_back": "own"})  # C2: only while it thinks
    return target


def _has_extra_fields(part: Part) -> bool:
    is_cited = isinstance(part, Text) and bool(part.citations)
    return is_cited or part.cache is not None or part.signature is not None


def _with_fitted_messages(
    messages: Messages,
    placed: Messages,
    seen: Contents,
    given: Messages,
    target: Target,
    notes: list[Note],
    keeps: Keeps,
) -> tuple[Messages, Messages, Contents]:
    """Run `MESSAGES` until nothing changes.

    `placed` has the given parts at the positions of the current ones. Also returns those of the
    result, and a summary of it.
    """
    for _ in range(_MAX_ROUNDS):
        before = messages
        steps, place = steps_for(MESSAGES, seen, target), 0
        while place < len(steps):
            step = steps[place]
            place += 1
            if step.finds is not None and not step.finds(seen, target):
                continue
            found: list[Note] = []
            after = fit_messages(step, messages, target, found, keeps)
            if after is not messages:
                notes += restored(found, given, placed)
                placed = left(placed, messages, after)
                messages, seen = after, Contents(after)
                steps = steps_for(MESSAGES, seen, target)
                place = _number_until(step, steps)
        if messages is before:
            break
    return messages, placed, seen


def _number_until(step: Step[Messages], steps: tuple[Step[Messages], ...]) -> int:
    """How many of these steps are not after the given one in `MESSAGES`."""
    last = MESSAGES.index(step)
    return sum(MESSAGES.index(each) <= last for each in steps)


def encoded_for(
    request: Request,
    target: Target,
    encode: Callable[[Request, Target], Encoded],
    *,
    steps: OwnSteps = (),
    strict: bool = False,
) -> Encoded:
    """Encode a request, fitted to the target; `strict` raises `LossError` if anything is lost."""
    mapped: list[Note] = []
    calls: dict[str, CallForm] = {}
    places = None
    seen = Contents(request.messages)
    if request.tools or seen.has_media:
        request, places = with_offered_tools(request, target, seen, calls, mapped)
        request = with_provider_tools(request, target, mapped, calls)
    request = with_settings_of_target(request, target, mapped)
    if request.extras is not EMPTY:
        request = with_foreign_settings(request, target, mapped)
    done = fitted(request, target, steps, seen)
    encoded = encode(done.request, target)
    losses, repairs = encoded.losses, encoded.repairs
    if losses:
        losses = restored(renumbered(losses, done.tools), request.messages, done.placed)
    if repairs:
        repairs = restored(renumbered(repairs, done.tools), request.messages, done.placed)
    if mapped or done.notes:
        notes = (*mapped, *done.notes)
        losses = (*[note for note in notes if type(note) is Loss], *losses)
        repairs = (*[note for note in notes if type(note) is Repair], *repairs)
    encoded.losses, encoded.repairs = losses, repairs
    if done.has_extra_fields:
        told = encoded.losses
        encoded.losses += unsupported_field_losses(request.system, request.messages, target, told)
    if places is not None:
        encoded.losses = placed_back(encoded.losses, places)
        encoded.repairs = placed_back(encoded.repairs, places)
    encoded.context = _way_back(done, encoded.context, target, calls)
    return encoded.or_raise() if strict else encoded


def _way_back(
    done: Fitted, schemas: Context, target: Target, calls: dict[str, CallForm]
) -> Context:
    """The combined context of fitting and encoding."""
    limit = done.request.sampling.max_tokens if target.host.hides_cut_offs else None
    if target.host.ends_with_done and schemas.is_idle and limit is None and not calls:
        return done.context
    return Context(
        done.context.names,
        forced=done.context.forced,
        calls=calls,
        undos=schemas.undos,
        output=schemas.output,
        ends_with_done=target.host.ends_with_done,
        limit=limit,
    )
