"""Rules for hosts and models that speak OpenAI's dialect, depending on the target."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, pairwise

from dragoman.errors import InvalidInputError
from dragoman.model.jsontext import loads
from dragoman.wire.losses import UNSUPPORTED_FIELD
from dragoman.wire.openai_chat.rules_view import View
from dragoman.wire.shared_rules import refused_sampling, unknown_effort
from dragoman.wire.violations import Found, Object, Placed, field, listed

_EXTENSIONS = (
    "cache_control", "extra_content", "reasoning", "reasoning_content", "reasoning_details",
)  # fmt: skip
_ADDRESSES = ("http:", "https:")
_IMAGE_DATA = ("data:image/jpeg;", "data:image/jpg;", "data:image/png;", "data:image/webp;")


def w12_reasoning_models_take_no_sampling(view: View) -> Found:
    """Reasoning models refuse `max_tokens` and sampling settings."""
    body, target = view.body, view.target
    for key in ("max_tokens", "max_completion_tokens"):
        if body.get(key) is not None and key not in target.sampling.token_limit_fields:
            yield key, f"not supported by this model; use {target.sampling.token_limit_fields[0]}"
    is_thinking = view.is_thinking or body.get("reasoning_effort") not in (None, "none")
    yield from refused_sampling(body, target, is_thinking=is_thinking, names={"choices": "n"})
    if not target.tools.takes_parallel_choice and body.get("parallel_tool_calls") is not None:
        yield "parallel_tool_calls", "not supported by this model"
    for key in target.fields.refused:
        if body.get(key) is not None:
            yield key, "not supported by this model"


def w13_developer_is_known(view: View) -> Found:
    """The developer role is specific to OpenAI."""
    if not view.target.turns.takes_developer:
        for path, _ in view.with_role("developer"):
            yield f"{path}.role", "this host does not support the developer role; use system"


def w17_extensions_are_not_openais(view: View) -> Found:
    """Extension fields of other hosts may be refused."""
    refused = _EXTENSIONS if view.is_vendors else view.target.fields.refused
    for place, wire in _objects(view):
        for key in refused:
            if wire.get(key) is not None:
                yield f"{place}.{key}", "this host does not support this field"
    for key in refused if view.is_vendors else ():
        if view.body.get(key) is not None:
            yield key, "this host does not support this field"


def w105_images_are_data(view: View) -> Found:
    """Images are data URLs."""
    for path, url in _images(view):
        if url.startswith(_ADDRESSES):
            yield path, "this host only supports images as data URLs"


def w105_images_are_of_known_types(view: View) -> Found:
    """Image data is JPEG, PNG or WebP."""
    for path, url in _images(view):
        if url.startswith("data:") and not url.startswith(_IMAGE_DATA):
            yield path, "this host only supports JPEG, PNG and WebP images"


def w109_fields_are_known(view: View) -> Found:
    """Requests and messages have only fields that the host supports."""
    yield from (
        (name, UNSUPPORTED_FIELD)
        for name in _unknown_fields(view.body, view.target.fields.in_request)
    )
    for path, message in view.messages:
        for name in _unknown_fields(message, view.target.fields.in_message_of(message.get("role"))):
            yield f"{path}.{name}", UNSUPPORTED_FIELD


def w114_arguments_are_json(view: View) -> Found:
    """Arguments are a JSON object: the host parses them for its chat template."""
    for path, function in view.called if view.target.tools.parses_arguments else ():
        arguments = function.get("arguments")
        if isinstance(arguments, str) and arguments.strip() and not _is_json_object(arguments):
            yield f"{path}.arguments", "must be a JSON object: this host parses the arguments"


def w117_roles_alternate(view: View) -> Found:
    """User and assistant messages alternate, with tool messages between them."""
    if not view.target.turns.alternates_roles:
        return
    for (_, before), (path, message) in pairwise(view.messages):
        role = message.get("role")
        if role == before.get("role") and role != "tool":
            yield f"{path}.role", "this host does not support two consecutive messages of one role"


def w117_the_user_begins(view: View) -> Found:
    """The first message after the instructions is a user message."""
    if not view.target.turns.starts_with_user:
        return
    spoken = (one for one in view.messages if one[1].get("role") not in ("system", "developer"))
    for path, message in islice(spoken, 1):
        if message.get("role") != "user":
            yield f"{path}.role", "the first message after the instructions must be a user message"


def w117_instructions_come_first(view: View) -> Found:
    """There is at most one system message, before all others; some hosts allow none."""
    place = view.target.turns.system_place
    for index, (path, message) in enumerate(view.messages):
        is_system = message.get("role") in ("system", "developer")
        if is_system and (place == "nowhere" or (place == "first" and index)):
            yield f"{path}.role", "this host does not support instructions at this position"


def c1_ids_have_their_form(view: View) -> Found:
    """Call ids have the format that the host requires."""
    for round_ in view.rounds:
        for path, tool_id in (*round_.calls, *round_.results):
            is_short = isinstance(tool_id, str) and len(tool_id) <= view.target.ids.max_length
            if is_short and not view.target.ids.accepts(str(tool_id)):
                yield path, "the id does not have the format that this host requires"


def c1_results_are_answered(view: View) -> Found:
    """A tool message is followed by an assistant message, not by a user message."""
    if view.target.turns.answers_results:
        for (_, before), (path, message) in pairwise(view.messages):
            if before.get("role") == "tool" and message.get("role") == "user":
                yield (
                    path,
                    "an assistant message must come between a tool message and a user message",
                )


def _images(view: View) -> Iterator[tuple[str, str]]:
    """The URLs of images, for hosts that only support data URLs."""
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
    """The messages, their parts and their calls."""
    for path, message in view.messages:
        yield path, message
        yield from listed(message, "content", path)
        yield from listed(message, "tool_calls", path)


# Known fields, which paths may name. Other field names are private and not shown.
_DIALECTS = frozenset({
    "store", "metadata", "logit_bias", "logprobs", "top_logprobs", "name", "n", "seed", "user",
    "service_tier", "stream_options", "prediction", "modalities", "audio", "verbosity",
    "prompt_cache_key", "safety_identifier", "web_search_options", "reasoning_effort", "refusal",
    "annotations", "response_format", "parallel_tool_calls", "random_seed", "top_k", "thinking",
    "max_completion_tokens", "max_tokens", "functions", "function_call", *_EXTENSIONS,
})  # fmt: skip


def _unknown_fields(wire: Object, known: tuple[str, ...] | None) -> Iterator[str]:
    """The unsupported fields of an object."""
    for key, value in wire.items() if known is not None else ():
        if value is not None and key not in (known or ()):
            yield key if key in _DIALECTS else "*"


# --- rules for thinking

FIELDS = ("reasoning", "reasoning_content", "reasoning_details")


def w12_efforts_are_known(view: View) -> Found:
    """The effort is supported by the model."""
    yield from unknown_effort(view.body.get("reasoning_effort"), "reasoning_effort", view.target)


def w58_thinking_forces_no_tool(view: View) -> Found:
    """With thinking on, tool calls can't be forced."""
    if not view.target.thinking.allows_forced_tools and view.is_thinking and view.forces_tools:
        yield "tool_choice", "with thinking on, tool_choice can't force a tool"


def w110_thinking_is_not_taken_back(view: View) -> Found:
    """A model without thinking does not accept thinking in messages."""
    if view.target.thinking.sent_back == "never":
        for path, message in view.with_role("assistant"):
            for key in FIELDS:
                if message.get(key) is not None:
                    yield f"{path}.{key}", "this model does not accept thinking in messages"


def w110_thinking_is_not_empty(view: View) -> Found:
    """Where `reasoning` is the only field for thinking, it is not empty."""
    if view.target.thinking.fields == ("reasoning",):
        for path, message in view.with_role("assistant"):
            if message.get("reasoning") == "":
                yield f"{path}.reasoning", "this host does not accept empty thinking"


def w115_thinking_is_in_its_field(view: View) -> Found:
    """Thinking in a field that the host does not read is silently dropped."""
    known = view.target.thinking.fields
    if not known or view.target.thinking.sent_back == "never":
        return
    for path, message in view.with_role("assistant"):
        if any(message.get(key) is not None for key in known):
            continue
        for key in FIELDS:
            if message.get(key):
                yield f"{path}.{key}", "this host ignores thinking in this field"


def c2_answers_have_their_thinking(view: View) -> Found:
    """With thinking and tools, every assistant message has thinking, even if empty."""
    if view.target.thinking.sent_back != "all" or not view.is_thinking or not view.called:
        return
    for path, message in view.with_role("assistant"):
        fields = view.target.thinking.fields or FIELDS
        if not any(isinstance(message.get(key), (str, list, tuple)) for key in fields):
            yield path, "this model requires its thinking to be sent back, even if empty"


def c5_answers_say_something(view: View) -> Found:
    """An assistant message has a text, a call or another field: strict servers refuse it empty."""
    for path, message in view.with_role("assistant"):
        said = {key for key, value in message.items() if value not in (None, "", [], ())}
        if said <= {"role", "name"}:
            yield f"{path}.content", "an empty answer may be refused; leave the message out"


def c4_forced_tools_drop_thinking(view: View) -> Found:
    """When a tool is forced, OpenRouter silently turns thinking off."""
    is_requested = (
        bool(field(view.body, "reasoning")) or view.body.get("reasoning_effort") is not None
    )
    if view.target.thinking.form == "reasoning" and is_requested and view.forces_tools:
        yield "tool_choice", "this host silently turns thinking off when a tool is forced"
