"""Rules for requests to OpenAI's Chat Completions API."""

from __future__ import annotations

import re
from collections.abc import Mapping

from dragoman.wire import shared_rules
from dragoman.wire.openai_chat import rules_hosts as hosts
from dragoman.wire.openai_chat.dialect import RANGES
from dragoman.wire.openai_chat.rules_view import View
from dragoman.wire.openai_strict_schemas import (
    w14_strict_objects_are_closed,
    w15_strict_schemas_keep_to_the_subset,
)
from dragoman.wire.violations import Found, Rule, Rulebook, field, is_data, listed

ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_VENDORS_MEDIA = ("image", "audio", "file")
_PARTS = {"image": "image_url", "audio": "input_audio", "video": "video_url", "file": "file"}
_FLAT_PARTS = {**_PARTS, "file": "document_url"}


def shape_messages(view: View) -> Found:
    """There is at least one message, and each is an object with a known role."""
    messages = view.body.get("messages")
    if not isinstance(messages, (list, tuple)) or not messages:
        yield "messages", "at least one message is required"
        return
    for index, message in enumerate(messages):
        if not isinstance(message, Mapping):
            yield f"messages[{index}]", "must be an object"
        elif not isinstance(role := message.get("role"), str) or role not in ROLES:
            yield f"messages[{index}].role", f"must be one of {', '.join(sorted(ROLES))}"


def shape_content(view: View) -> Found:
    """Content is a string or a list of parts."""
    for path, message in view.messages:
        content = message.get("content")
        if not isinstance(content, (str, list, tuple, type(None))):
            yield f"{path}.content", "must be a string or a list of parts"
        elif not isinstance(content, str) and len(listed(message, "content")) < len(content or ()):
            yield f"{path}.content", "every part must be an object"


def shape_ranges(view: View) -> Found:
    """Sampling settings are numbers in their ranges."""
    yield from shared_rules.out_of_range(view.body, RANGES)


def shape_model(view: View) -> Found:
    """The model is a string."""
    yield from shared_rules.wrong_model(view.body)


def shape_model_is_named(view: View) -> Found:
    """A model is given."""
    yield from shared_rules.missing_model(view.body, view.target)


def shape_model_is_listed(view: View) -> Found:
    """The model is in the provider's list, if the target has that list."""
    yield from shared_rules.unlisted_model(view.body, view.target)


def shape_counts(view: View) -> Found:
    """Limits are integers."""
    yield from shared_rules.wrong_counts(
        view.body, "max_tokens", "max_completion_tokens", "n", "top_logprobs"
    )


def shape_user_parts(view: View) -> Found:
    """The parts of user messages are of types that OpenAI or the target supports."""
    media = _VENDORS_MEDIA if view.is_vendors else view.target.media.kinds
    if media is None:
        return
    parts = _FLAT_PARTS if view.target.media.is_flat else _PARTS
    known = [parts[kind] for kind in media if kind in parts]
    known += [each for each in view.target.media.url_parts if each not in known]
    types = ("text", *known, *view.target.fields.content_types)
    for path, message in view.with_role("user"):
        for place, part in listed(message, "content", path):
            if part.get("type") not in types:
                yield f"{place}.type", f"must be one of {', '.join(types)}"


def shape_image_data(view: View) -> Found:
    """The data of an image data URL is base64."""
    for path, message in view.messages:
        for place, part in listed(message, "content", path):
            url = field(part, "image_url").get("url")
            if isinstance(url, str) and not is_data(url):
                yield f"{place}.image_url.url", "the data is not base64"


def shape_image_details(view: View) -> Found:
    """The detail of an image is one that the target knows: OpenAI's newest models have more."""
    for path, message in view.messages:
        for place, part in listed(message, "content", path):
            detail = field(part, "image_url").get("detail")
            yield from shared_rules.unknown_detail(detail, f"{place}.image_url.detail", view.target)


def w1_tool_messages_hold_text(view: View) -> Found:
    """Tool messages contain text. The API's error message mentions images, its types don't."""
    for path, message in view.with_role("tool"):
        for place, part in listed(message, "content", path):
            if part.get("type") not in ("text", "image_url"):
                yield place, "a tool message can only contain text; send media in a user message"


def w1_tool_messages_hold_no_images(view: View) -> Found:
    """The API's types only allow text."""
    for path, message in view.with_role("tool"):
        for place, part in listed(message, "content", path):
            if part.get("type") == "image_url":
                yield place, "not every model accepts images in tool messages"


def w2_assistant_says_text_or_refusal(view: View) -> Found:
    """The parts of assistant messages are text or refusals; some hosts also allow thinking."""
    more = view.target.fields.content_types
    more += ("thinking",) if view.may_think_in_content else ()
    for path, message in view.with_role("assistant"):
        for place, part in listed(message, "content", path):
            if part.get("type") not in ("text", "refusal", *more):
                yield place, "an assistant message can only contain text and refusals"


def w2_assistant_says_something(view: View) -> Found:
    """An assistant message has content or tool calls."""
    others = ("tool_calls", "function_call", "refusal", "audio")
    for path, message in view.with_role("assistant"):
        if message.get("content") is None and not any(message.get(key) for key in others):
            yield path, "an assistant message must have content or tool calls"


def w3_results_answer_calls(view: View) -> Found:
    """A tool message refers to a call of the preceding assistant message."""
    for round_ in view.rounds:
        reason = "the preceding assistant message has no call with this id"
        yield from shared_rules.without_partner(round_.results, round_.ids, reason)


def w4_calls_are_answered(view: View) -> Found:
    """All calls have results in the tool messages that follow."""
    for round_ in view.rounds:
        answered = {tool_id for _, tool_id in round_.results}
        reason = "no tool message right after it has the result of this call"
        yield from shared_rules.without_partner(round_.calls, answered, reason)


def w5_ids_are_short(view: View) -> Found:
    """Call ids have at most 40 characters."""
    limit = view.target.ids.max_length
    for round_ in view.rounds:
        for path, tool_id in (*round_.calls, *round_.results):
            if isinstance(tool_id, str) and len(tool_id) > limit:
                yield path, f"the id has {len(tool_id)} characters; the maximum is {limit}"


def w6_names_are_plain(view: View) -> Found:
    """Function names are valid, both in definitions and in calls."""
    for path, function in (*view.functions, *view.called):
        name = function.get("name")
        if not (isinstance(name, str) and _NAME.fullmatch(name)):
            yield f"{path}.name", "a name must have 1 to 64 characters: letters, digits, _ and -"


def w121_choices_need_tools(view: View) -> Found:
    """Settings about tools come with tools."""
    yield from shared_rules.orphaned_choice(
        view.body, "tool_choice", "parallel_tool_calls", "function_call"
    )


def i5_calls_have_ids(view: View) -> Found:
    """Calls and results have ids."""
    for round_ in view.rounds:
        for path, tool_id in (*round_.calls, *round_.results):
            if not tool_id:
                yield path, "a call and its result must have the same id"


def i5_ids_are_unique(view: View) -> Found:
    """Call ids are unique in a message."""
    for round_ in view.rounds:
        yield from shared_rules.used_twice(
            _given(round_.calls), "another call of this message has the same id"
        )


def i8_calls_have_one_result(view: View) -> Found:
    """Every call has only one result."""
    for round_ in view.rounds:
        yield from shared_rules.used_twice(
            _given(round_.results), "another tool message has a result for this call"
        )


def _given(ids: list[tuple[str, str | None]]) -> list[tuple[str, str | None]]:
    """The ids that are present and not empty."""
    return [(path, tool_id) for path, tool_id in ids if tool_id]


OPENAI = ("openai", "azure")
"""Providers of the same service."""
TEMPLATES = ("vllm", "llama.cpp")
"""Servers that render messages with the model's own chat template."""
PAIRS = ("turns.pairs_results",)
SAMPLING = (
    "sampling.token_limit_fields",
    "sampling.refused",
    "sampling.refused_while_thinking",
    "tools.takes_parallel_choice",
    "fields.refused",
)
EFFORTS = ("thinking.form", "thinking.efforts")
FIELDS = (
    "fields.in_request",
    "fields.in_message",
    "sampling.token_limit_fields",
    "sampling.seed_field",
    "thinking.fields",
)
STRICT = ("schemas.checks_strict",)

RULES: tuple[Rule[View], ...] = (
    Rule(shape_messages, "error", "ST", OPENAI),
    Rule(shape_content, "error", "S"),
    Rule(shape_model, "error", "S"),
    Rule(shape_model_is_named, "warning", "S"),
    Rule(shape_model_is_listed, "warning", "ST", OPENAI[:1]),
    Rule(shape_counts, "error", "S"),
    Rule(shape_ranges, "error", "ST", OPENAI),
    Rule(shape_user_parts, "error", "ST", OPENAI),
    Rule(shape_image_data, "error", "ST", OPENAI),
    Rule(shape_image_details, "error", "SER", (), ("media.details",)),
    Rule(i5_calls_have_ids, "error", "S"),
    Rule(i5_ids_are_unique, "warning", "R"),
    Rule(i8_calls_have_one_result, "warning", "R"),
    Rule(w1_tool_messages_hold_text, "error", "SR"),
    Rule(w1_tool_messages_hold_no_images, "warning", "ST"),
    Rule(w2_assistant_says_text_or_refusal, "error", "S"),
    Rule(w2_assistant_says_something, "error", "S"),
    Rule(w3_results_answer_calls, "error", "E", (*OPENAI, "deepseek"), PAIRS),
    Rule(w4_calls_are_answered, "error", "E", (*OPENAI, "deepseek"), PAIRS),
    Rule(w5_ids_are_short, "error", "E", OPENAI, ("ids.max_length",)),
    Rule(w6_names_are_plain, "error", "SE", OPENAI, ("tools.name_pattern",)),
    Rule(
        hosts.w12_reasoning_models_take_no_sampling,
        "error",
        "ET",
        (*OPENAI, "groq", "mistral", "xai"),
        SAMPLING,
    ),
    Rule(hosts.w12_efforts_are_known, "error", "E", (*OPENAI, "groq", "mistral"), EFFORTS),
    Rule(hosts.w13_developer_is_known, "error", "SE", ("groq", "vllm"), ("turns.takes_developer",)),
    Rule[View](w14_strict_objects_are_closed, "error", "ERT", OPENAI, STRICT),
    Rule[View](w15_strict_schemas_keep_to_the_subset, "error", "DET", OPENAI, STRICT),
    Rule(hosts.w17_extensions_are_not_openais, "warning", "R"),
    Rule(
        w121_choices_need_tools,
        "error",
        "E",
        (*OPENAI, "vllm"),
        ("tools.choice_needs_tools",),
    ),
    Rule(
        hosts.w58_thinking_forces_no_tool,
        "error",
        "ET",
        ("deepseek",),
        ("thinking.allows_forced_tools", "thinking.is_on_by_default", "thinking.form"),
    ),
    Rule(hosts.w105_images_are_data, "error", "SE", ("ollama",), ("media.takes_image_urls",)),
    Rule(hosts.w105_images_are_of_known_types, "warning", "S"),
    Rule(hosts.w109_fields_are_known, "error", "ET", ("groq", "mistral"), FIELDS),
    Rule(hosts.w110_thinking_is_not_taken_back, "error", "SE", ("groq",), ("thinking.sent_back",)),
    Rule(hosts.w110_thinking_is_not_empty, "error", "SE", ("groq",), ("thinking.fields",)),
    Rule(hosts.w114_arguments_are_json, "error", "SR"),
    Rule(hosts.w115_thinking_is_in_its_field, "warning", "SR"),
    Rule(hosts.w117_roles_alternate, "error", "E", TEMPLATES, ("turns.alternates_roles",)),
    Rule(hosts.w117_the_user_begins, "error", "E", TEMPLATES, ("turns.starts_with_user",)),
    Rule(hosts.w117_instructions_come_first, "error", "ET", TEMPLATES, ("turns.system_place",)),
    Rule(
        hosts.c1_ids_have_their_form,
        "error",
        "E",
        (*TEMPLATES, "mistral"),
        ("ids.pattern", "ids.max_length"),
    ),
    Rule(hosts.c1_results_are_answered, "warning", "ET", TEMPLATES, ("turns.answers_results",)),
    Rule(
        hosts.c2_answers_have_their_thinking,
        "error",
        "E",
        ("deepseek",),
        ("thinking.sent_back", "thinking.fields"),
    ),
    Rule(hosts.c4_forced_tools_drop_thinking, "warning", "R"),
    Rule(hosts.c5_answers_say_something, "warning", "E", (), ("turns.refuses_empty_answers",)),
)

RULEBOOK = Rulebook(RULES, lambda body, target, _path, _headers: View(body, target))
