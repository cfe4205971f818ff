"""What some hosts and models that speak OpenAI's dialect refuse; their targets say which."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, pairwise

from dragoman.errors import InvalidInputError
from dragoman.model.jsontext import loads
from dragoman.wire.openai_chat.rules_view import View
from dragoman.wire.shared_rules import refused_sampling, unknown_effort
from dragoman.wire.violations import Found, Object, Placed, field, listed

_EXTENSIONS = (
    "cache_control", "extra_content", "reasoning", "reasoning_content", "reasoning_details",
)  # fmt: skip
_ADDRESSES = ("http:", "https:")
_IMAGE_DATA = ("data:image/jpeg;", "data:image/jpg;", "data:image/png;", "data:image/webp;")
_UNKNOWN = "this host takes no such field"


def w12_reasoning_models_take_no_sampling(view: View) -> Found:
    """Reasoning models refuse `max_tokens` and sampling."""
    body, target = view.body, view.target
    for key in ("max_tokens", "max_completion_tokens"):
        if body.get(key) is not None and key not in target.sampling.token_limit_fields:
            yield key, f"this model takes {target.sampling.token_limit_fields[0]} instead"
    is_thinking = view.is_thinking or body.get("reasoning_effort") not in (None, "none")
    yield from refused_sampling(body, target, is_thinking=is_thinking, names={"choices": "n"})
    if not target.tools.takes_parallel_choice and body.get("parallel_tool_calls") is not None:
        yield "parallel_tool_calls", "this model does not take it"
    for key in target.fields.refused:
        if body.get(key) is not None:
            yield key, "this model does not take it"


def w13_developer_is_known(view: View) -> Found:
    """The developer's role is OpenAI's own."""
    if not view.target.turns.takes_developer:
        for path, _ in view.with_role("developer"):
            yield f"{path}.role", "this host does not know the developer role: send system"


def w17_extensions_are_not_openais(view: View) -> Found:
    """Other hosts' fields may be refused."""
    refused = _EXTENSIONS if view.is_vendors else view.target.fields.refused
    for place, wire in _objects(view):
        for key in refused:
            if wire.get(key) is not None:
                yield f"{place}.{key}", "this host does not know the field"
    for key in refused if view.is_vendors else ():
        if view.body.get(key) is not None:
            yield key, "this host does not know the field"


def w105_images_are_data(view: View) -> Found:
    """Images are data, not addresses."""
    for path, url in _images(view):
        if url.startswith(_ADDRESSES):
            yield path, "this host takes images as data only"


def w105_images_are_of_known_types(view: View) -> Found:
    """And the data is JPEG, PNG or WebP."""
    for path, url in _images(view):
        if url.startswith("data:") and not url.startswith(_IMAGE_DATA):
            yield path, "this host takes JPEG, PNG and WebP only"


def w109_fields_are_known(view: View) -> Found:
    """Requests and messages have the fields that the host knows, and no others."""
    yield from (
        (name, _UNKNOWN) for name in _unknown_fields(view.body, view.target.fields.in_request)
    )
    for path, message in view.messages:
        for name in _unknown_fields(message, view.target.fields.in_message):
            yield f"{path}.{name}", _UNKNOWN


def w114_arguments_are_json(view: View) -> Found:
    """What was called with is parsed again, for the chat template: an object, or it fails."""
    for path, function in view.called if view.target.tools.parses_arguments else ():
        arguments = function.get("arguments")
        if isinstance(arguments, str) and arguments.strip() and not _is_json_object(arguments):
            yield f"{path}.arguments", "this host parses the arguments, and they are no JSON object"


def w117_roles_alternate(view: View) -> Found:
    """Users and assistants take turns; tools stand between them."""
    if not view.target.turns.alternates_roles:
        return
    for (_, before), (path, message) in pairwise(view.messages):
        role = message.get("role")
        if role == before.get("role") and role != "tool":
            yield f"{path}.role", "two messages in a row are of one role"


def w117_the_user_begins(view: View) -> Found:
    """The user is the first to speak, after the instructions."""
    if not view.target.turns.starts_with_user:
        return
    spoken = (one for one in view.messages if one[1].get("role") not in ("system", "developer"))
    for path, message in islice(spoken, 1):
        if message.get("role") != "user":
            yield f"{path}.role", "the user must speak first here"


def w117_instructions_come_first(view: View) -> Found:
    """There is one system message, before all others, or none at all."""
    place = view.target.turns.system_place
    for index, (path, message) in enumerate(view.messages):
        is_system = message.get("role") in ("system", "developer")
        if is_system and (place == "nowhere" or (place == "first" and index)):
            yield f"{path}.role", "this host takes no instructions here"


def c1_ids_have_their_form(view: View) -> Found:
    """Ids of calls are of the one form that the host takes."""
    for round_ in view.rounds:
        for path, tool_id in (*round_.calls, *round_.results):
            is_short = isinstance(tool_id, str) and len(tool_id) <= view.target.ids.max_length
            if is_short and not view.target.ids.accepts(str(tool_id)):
                yield path, "the id is not of the form that this host takes"


def c1_results_are_answered(view: View) -> Found:
    """The assistant speaks between a tool and the user."""
    if view.target.turns.answers_results:
        for (_, before), (path, message) in pairwise(view.messages):
            if before.get("role") == "tool" and message.get("role") == "user":
                yield path, "the assistant must speak after a tool, before the user"


def _images(view: View) -> Iterator[tuple[str, str]]:
    """The addresses of images, for hosts that take data only."""
    for path, message in view.messages if not view.target.media.takes_image_urls else ():
        for place, part in listed(message, "content", path):
            url = field(part, "image_url").get("url", part.get("image_url"))
            if isinstance(url, str):
                yield f"{place}.image_url", url


def _is_json_object(text: str) -> bool:
    try:
        return isinstance(loads(text), dict)
    except InvalidInputError:
        return False


def _objects(view: View) -> Iterator[Placed]:
    """The messages, with their parts and calls."""
    for path, message in view.messages:
        yield path, message
        yield from listed(message, "content", path)
        yield from listed(message, "tool_calls", path)


# Fields of the dialect, which paths may name; what people made up is not told.
_DIALECTS = frozenset({
    "store", "metadata", "logit_bias", "logprobs", "top_logprobs", "name", "n", "seed", "user",
    "service_tier", "stream_options", "prediction", "modalities", "audio", "verbosity",
    "prompt_cache_key", "safety_identifier", "web_search_options", "reasoning_effort", "refusal",
    "annotations", "response_format", "parallel_tool_calls", "random_seed", "top_k", "thinking",
    "max_completion_tokens", "max_tokens", "functions", "function_call", *_EXTENSIONS,
})  # fmt: skip


def _unknown_fields(wire: Object, known: tuple[str, ...] | None) -> Iterator[str]:
    """The fields that are not known."""
    for key, value in wire.items() if known is not None else ():
        if value is not None and key not in (known or ()):
            yield key if key in _DIALECTS else "*"


# --- what hosts that speak OpenAI's dialect demand where the model thinks; their targets say what

FIELDS = ("reasoning", "reasoning_content", "reasoning_details")


def w12_efforts_are_known(view: View) -> Found:
    """How hard to think is said in a word that the model knows, if it can be asked at all."""
    yield from unknown_effort(view.body.get("reasoning_effort"), "reasoning_effort", view.target)


def w58_thinking_forces_no_tool(view: View) -> Found:
    """While the model thinks, no tool can be forced."""
    if not view.target.thinking.allows_forced_tools and view.is_thinking and view.forces_tools:
        yield "tool_choice", "while the model thinks, tool_choice can't force a tool"


def w110_thinking_is_not_taken_back(view: View) -> Found:
    """A model that does not think takes no thinking back."""
    if view.target.thinking.sent_back == "never":
        for path, message in view.with_role("assistant"):
            for key in FIELDS:
                if message.get(key) is not None:
                    yield f"{path}.{key}", "this model takes no thinking back"


def w110_thinking_is_not_empty(view: View) -> Found:
    """Where `reasoning` is the one field for it, thinking is never an empty text."""
    if view.target.thinking.fields == ("reasoning",):
        for path, message in view.with_role("assistant"):
            if message.get("reasoning") == "":
                yield f"{path}.reasoning", "this host takes no empty thinking"


def w115_thinking_is_in_its_field(view: View) -> Found:
    """Thinking in a field that the host does not read is dropped without a word."""
    known = view.target.thinking.fields
    if not known or view.target.thinking.sent_back == "never":
        return
    for path, message in view.with_role("assistant"):
        if any(message.get(key) is not None for key in known):
            continue
        for key in FIELDS:
            if message.get(key):
                yield f"{path}.{key}", "this host does not look for thinking here"


def c2_answers_have_their_thinking(view: View) -> Found:
    """While the model thinks and calls tools, every answer has its thinking, be it empty."""
    if view.target.thinking.sent_back != "all" or not view.is_thinking or not view.called:
        return
    for path, message in view.with_role("assistant"):
        fields = view.target.thinking.fields or FIELDS
        if not any(isinstance(message.get(key), (str, list, tuple)) for key in fields):
            yield path, "this model wants its thinking back, be it empty"


def c4_forced_tools_drop_thinking(view: View) -> Found:
    """Where a tool is forced, OpenRouter does not ask the model to think, without a word."""
    is_asked = bool(field(view.body, "reasoning")) or view.body.get("reasoning_effort") is not None
    if view.target.thinking.form == "reasoning" and is_asked and view.forces_tools:
        yield "tool_choice", "while a tool is forced, this host drops the wish to think"
