"""What some hosts and models that speak OpenAI's dialect refuse; their targets say which."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from dragoman.wire.fitting.settings import USUAL
from dragoman.wire.openai_chat.view import View
from dragoman.wire.violations import Found, Object, Placed, field, is_number, listed

_EXTENSIONS = (
    "cache_control", "extra_content", "reasoning", "reasoning_content", "reasoning_details",
)  # fmt: skip
_THINKING = ("reasoning", "reasoning_content", "reasoning_details")
_ADDRESSES = ("http:", "https:")
_UNKNOWN = "this host takes no such field"


def w12_reasoning_models_take_no_sampling(view: View) -> Found:
    """Reasoning models refuse `max_tokens` and sampling."""
    body, target = view.body, view.target
    for key in ("max_tokens", "max_completion_tokens"):
        if body.get(key) is not None and key not in target.token_limits:
            yield key, f"this model takes {target.token_limits[0]} instead"
    refused = target.refused_sampling
    if view.is_thinking or body.get("reasoning_effort") not in (None, "none"):
        refused += target.refused_sampling_thinking
    for name in dict.fromkeys(refused):
        key = "n" if name == "choices" else name
        value = body.get(key)
        is_usual = is_number(value) and value == USUAL.get(name)
        if value is not None and value is not False and not is_usual:
            yield key, "this model takes the default only"
    if not target.takes_parallel_choice and body.get("parallel_tool_calls") is not None:
        yield "parallel_tool_calls", "this model does not take it"


def w13_developer_is_known(view: View) -> Found:
    """The developer's role is OpenAI's own."""
    if not view.target.takes_developer:
        for path, _ in view.with_role("developer"):
            yield f"{path}.role", "this host does not know the developer role: send system"


def w17_extensions_are_not_openais(view: View) -> Found:
    """Other hosts' fields may be refused."""
    refused = _EXTENSIONS if view.is_vendors else view.target.refused_fields
    for place, wire in _objects(view):
        for key in refused:
            if wire.get(key) is not None:
                yield f"{place}.{key}", "this host does not know the field"


def w58_thinking_forces_no_tool(view: View) -> Found:
    """While the model thinks, no tool can be forced."""
    if view.target.forces_tools_thinking or not view.is_thinking:
        return
    choice, kind = view.body.get("tool_choice"), field(view.body, "tool_choice").get("type")
    if choice in ("required", "any") or kind in ("function", "custom"):
        yield "tool_choice", "while the model thinks, tool_choice can't force a tool"


def w105_images_are_data(view: View) -> Found:
    """Images are data, not addresses."""
    if view.target.takes_image_urls:
        return
    for path, message in view.messages:
        for place, part in listed(message, "content", path):
            url = field(part, "image_url").get("url", part.get("image_url"))
            if isinstance(url, str) and url.startswith(_ADDRESSES):
                yield f"{place}.image_url", "this host takes images as data only"


def w109_fields_are_known(view: View) -> Found:
    """Requests and messages have the fields that the host knows, and no others."""
    yield from ((name, _UNKNOWN) for name in _strangers(view.body, view.target.request_fields))
    for path, message in view.messages:
        for name in _strangers(message, view.target.message_fields):
            yield f"{path}.{name}", _UNKNOWN


def w110_thinking_is_not_taken_back(view: View) -> Found:
    """A model that does not think takes no thinking back."""
    if view.target.thinking_back == "never":
        for path, message in view.with_role("assistant"):
            for key in _THINKING:
                if message.get(key) is not None:
                    yield f"{path}.{key}", "this model takes no thinking back"


def w117_roles_alternate(view: View) -> Found:
    """Users and assistants take turns; tools stand between them."""
    if not view.target.alternates_roles:
        return
    for (_, before), (path, message) in pairwise(view.messages):
        role = message.get("role")
        if role == before.get("role") and role != "tool":
            yield f"{path}.role", "two messages in a row are of one role"


def w117_instructions_come_first(view: View) -> Found:
    """There is one system message, before all others, or none at all."""
    place = view.target.system_place
    for index, (path, message) in enumerate(view.messages):
        is_system = message.get("role") in ("system", "developer")
        if is_system and (place == "nowhere" or (place == "first" and index)):
            yield f"{path}.role", "this host takes no instructions here"


def c1_ids_have_their_form(view: View) -> Found:
    """Ids of calls are of the one form that the host takes."""
    for round_ in view.rounds:
        for path, tool_id in (*round_.calls, *round_.results):
            is_short = isinstance(tool_id, str) and len(tool_id) <= view.target.tool_id_length
            if is_short and not view.target.accepts_id(str(tool_id)):
                yield path, "the id is not of the form that this host takes"


def c1_results_are_answered(view: View) -> Found:
    """The assistant speaks between a tool and the user."""
    if view.target.answers_results:
        for (_, before), (path, message) in pairwise(view.messages):
            if before.get("role") == "tool" and message.get("role") == "user":
                yield path, "the assistant must speak after a tool, before the user"


def c2_answers_have_their_thinking(view: View) -> Found:
    """While the model thinks and calls tools, every answer has its thinking, be it empty."""
    if view.target.thinking_back != "all" or not view.is_thinking or not view.called:
        return
    for path, message in view.with_role("assistant"):
        if not any(isinstance(message.get(key), (str, list)) for key in _THINKING):
            yield path, "this model wants its thinking back, be it empty"


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


def _strangers(wire: Object, known: tuple[str, ...] | None) -> Iterator[str]:
    """The fields that are not known."""
    for key, value in wire.items() if known is not None else ():
        if value is not None and key not in (known or ()):
            yield key if key in _DIALECTS else "*"
