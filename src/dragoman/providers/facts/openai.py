"""OpenAI's models."""

from __future__ import annotations

from dragoman.providers.facts.sizes import Size
from dragoman.providers.family import Family
from dragoman.wire.openai_settings import IMAGE_DETAILS

_CHAT, _RESPONSES = "openai-chat", "openai-responses"
_DRAWN = ("temperature", "top_p", "logprobs", "top_logprobs")
_PENALTIES = ("presence_penalty", "frequency_penalty", "choices", "stop")
EXTENSIONS = ("cache_control", "extra_content", "reasoning_details")
"""Extensions of other hosts to OpenAI's dialect, which OpenAI refuses (W17)."""
_SEARCH = "web_search_options"
_LOW_TO_HIGH = ("low", "medium", "high")
_UP_TO_XHIGH = (*_LOW_TO_HIGH, "xhigh")

_ERRORS = ("recorded error texts", "2026-11")
_DOCS = ("OpenAI's documentation; wire rules", "2026-11")
_TYPES = ("openai 3.49 types", "2026-11")
_PROBED = ("pydantic-ai 2.66 profiles, tried against the API", "2026-10")
_LIKE_GPT_5 = ("assumed: as GPT-5", "2026-11")
_LIKE_GPT_5_6 = ("assumed: as GPT-5.6", "2026-11")

_CHAT_THINKERS = {
    "sampling.token_limit_fields": ("max_completion_tokens",),
    "sampling.refused": (*_DRAWN, *_PENALTIES),
    "fields.refused": (*EXTENSIONS, "logit_bias"),
    "media.kinds": ("image", "file"),
    "thinking.form": "effort",
}
_RESPONSES_THINKERS = {"sampling.refused": _DRAWN, "thinking.form": "effort"}
# From 5.1 on thinking can be turned off, and then the usual settings are accepted.
_CAN_REST = {"sampling.refused_while_thinking": _DRAWN}
_ON = {"thinking.is_on_by_default": True}

FAMILIES = (
    # Models without thinking: an effort would be refused.
    Family(r"gpt-(3|4)|chatgpt-4|gpt-35", {"thinking.form": "never"}, None, *_ERRORS),
    # "Web search options not supported with this model": only models with "search" in their name.
    Family(
        r"(?!.*search)(gpt-|chatgpt-)",
        {"fields.refused": (*EXTENSIONS, _SEARCH)}, _CHAT, *_ERRORS,
    ),
    # Models with thinking (W12), which only accept the dialect's newer field for the token limit.
    Family(r"o\d|gpt-5|codex", _CHAT_THINKERS, _CHAT, *_ERRORS),
    Family(r"o\d|gpt-5|codex", _RESPONSES_THINKERS, _RESPONSES, *_ERRORS),
    Family(r"gpt-6", _CHAT_THINKERS, _CHAT, *_LIKE_GPT_5),
    Family(r"gpt-6", _RESPONSES_THINKERS, _RESPONSES, *_LIKE_GPT_5),
    Family(r"o\d", {"thinking.efforts": _LOW_TO_HIGH}, None, *_ERRORS),
    Family(r"o(1|3)", {"tools.takes_parallel_choice": False}, None, *_ERRORS),
    # Recorded: o3-mini accepts stop sequences, which o1-mini refuses, as o3 and o4-mini do.
    Family(
        r"o3-mini",
        {"sampling.refused": (*_DRAWN, *(name for name in _PENALTIES if name != "stop"))}, _CHAT,
        "recorded traffic", "2026-11",
    ),
    # Neither role is supported.
    Family(
        r"o1-(mini|preview)",
        {"turns.system_place": "nowhere", "thinking.form": "never"}, None,
        "recorded traffic", "2026-11",
    ),
    Family(r"gpt-5(?!\.)", {"thinking.efforts": ("minimal", *_LOW_TO_HIGH)}, None, *_DOCS),
    Family(r"gpt-5-pro", {"thinking.efforts": ("high",)}, None, *_PROBED),
    Family(
        r"gpt-5\.\d",
        {"sampling.refused": _PENALTIES, **_CAN_REST, "thinking.efforts": ("none", *_LOW_TO_HIGH)},
        _CHAT, *_DOCS,
    ),
    Family(
        r"gpt-5\.\d",
        {"sampling.refused": (), **_CAN_REST, "thinking.efforts": ("none", *_LOW_TO_HIGH)},
        _RESPONSES, *_DOCS,
    ),
    Family(r"gpt-6", {"sampling.refused": _PENALTIES, **_CAN_REST}, _CHAT, *_LIKE_GPT_5_6),
    Family(r"gpt-6", {"sampling.refused": (), **_CAN_REST}, _RESPONSES, *_LIKE_GPT_5_6),
    Family(r"gpt-5\.[2-9]", {"thinking.efforts": ("none", *_UP_TO_XHIGH)}, None, *_DOCS),
    Family(r"gpt-5\.[5-9]", _ON, None, *_PROBED),
    Family(r"gpt-6", _ON, None, *_PROBED),
    # Only the newest look at an image in its original size.
    Family(
        r"gpt-(3|4|35|5(?!\.)|5\.[0-2])|chatgpt-4|o\d", {"media.details": IMAGE_DETAILS[:-1]}, None,
        "openai/codex's models (supports_image_detail_original)", "2026-03",
    ),
    # "max" is only supported in Responses: Chat refuses it for every model.
    Family(r"gpt-6", {"thinking.efforts": ("none", *_UP_TO_XHIGH)}, _CHAT, *_PROBED),
    Family(
        r"gpt-(5\.[6-9]|6)", {"thinking.efforts": ("none", *_UP_TO_XHIGH, "max")},
        _RESPONSES, *_PROBED,
    ),
    # Thinking can't be turned off.
    Family(
        r"gpt-6-astra|gpt-6\.1-sol", {"thinking.efforts": _UP_TO_XHIGH}, _CHAT, *_PROBED,
    ),
    Family(
        r"gpt-6-astra|gpt-6\.1-sol", {"thinking.efforts": (*_UP_TO_XHIGH, "max")},
        _RESPONSES, *_PROBED,
    ),
    Family(
        r"gpt-5\.\d-pro", {"thinking.efforts": ("medium", "high", "xhigh"), **_ON}, None, *_PROBED
    ),
    # Older than schemas: JSON output at best.
    Family(
        r"gpt-3\.5|gpt-4(?!o|\.)|gpt-4o-2024-05-13",
        {"schemas.outputs": ("text", "json")}, None, *_ERRORS,
    ),
    Family(r"o1-(mini|preview)", {"schemas.outputs": ("text",)}, None, *_ERRORS),
    # Models of ChatGPT: the first does not think, the others decide themselves.
    Family(
        r"gpt-5-chat",
        {"sampling.refused": (), "sampling.refused_while_thinking": (), "thinking.form": "never"},
        None, *_PROBED,
    ),
    Family(r"gpt-5\.\d-chat", {"thinking.efforts": ("medium",), **_ON}, None, *_PROBED),
)  # fmt: skip

_PRICES = ("genai-prices 0.2.1", "2026-11")

SIZES = (
    Size(r"gpt-4\.1", 1_047_576, None, *_DOCS),
    Size(
        r"gpt-4o|gpt-4-turbo|chatgpt-4o|gpt-4-(1106|0125|vision)|gpt-4\.5|gpt-audio",
        128_000, None, *_DOCS,
    ),
    Size(r"gpt-4-32k", 32_768, None, *_DOCS),
    Size(r"gpt-4", 8_192, None, *_DOCS),
    Size(r"gpt-3\.5|gpt-35", 16_385, None, *_DOCS),
    Size(r"o1-mini|o1-preview", 128_000, None, *_DOCS),
    Size(r"o\d|codex-mini", 200_000, None, *_DOCS),
    Size(r"gpt-5.*chat", 128_000, None, *_DOCS),
    Size(r"gpt-5\.4-(mini|nano)", 400_000, None, *_PRICES),
    Size(r"gpt-5\.4|gpt-5\.6-(sol|terra|luna)", 1_050_000, None, *_PRICES),
    Size(r"gpt-5\.5", 1_000_000, None, *_PRICES),
    Size(r"gpt-5\.6", 1_050_000, None, "assumed: as gpt-5.6-sol", "2026-11"),
    Size(r"gpt-6-astra", 1_050_000, 128_000, "Vercel AI Gateway, its page of the model", "2026-11"),
    Size(r"gpt-6(\.1)?-(sol|terra|luna)", 1_050_000, None, *_PRICES),
    Size(r"gpt-6", 1_050_000, None, "assumed: as gpt-6-astra", "2026-11"),
    Size(r"gpt-5|codex", 400_000, None, *_DOCS),
    Size(r"computer-use", 8_192, None, *_PRICES),
    Size(r"gpt-oss", 131_072, None, *_PRICES),
)  # fmt: skip

NAMES = (
    # openai 3.49: types/shared/chat_model.py and all_models.py, without dates
    "gpt-6-astra", "gpt-6.1-sol", "gpt-6.1-terra", "gpt-6-sol", "gpt-6-luna", "gpt-6-cyber",
    "gpt-6-rosalind", "gpt-5.6-sol", "gpt-5.6-terra", "gpt-5.6-luna", "gpt-5.6-cyber", "gpt-5.5",
    "gpt-5.5-pro", "gpt-5.4", "gpt-5.4-mini", "gpt-5.4-nano", "gpt-5.3-chat", "gpt-5.2",
    "gpt-5.2-chat", "gpt-5.2-pro", "gpt-5.1", "gpt-5.1-codex", "gpt-5.1-codex-max", "gpt-5.1-mini",
    "gpt-5.1-chat", "gpt-5", "gpt-5-mini", "gpt-5-nano", "gpt-5-chat", "gpt-5-codex", "gpt-5-pro",
    "gpt-4.1", "gpt-4.1-mini", "gpt-4.1-nano", "o4-mini", "o4-mini-deep-research", "o3", "o3-mini",
    "o3-pro", "o3-deep-research", "o1", "o1-pro", "o1-preview", "o1-mini", "gpt-4o", "gpt-4o-audio",
    "gpt-4o-search", "gpt-4o-mini", "gpt-4o-mini-audio", "gpt-4o-mini-search", "gpt-audio-mini",
    "chatgpt-4o", "codex-mini", "gpt-4-turbo", "gpt-4-vision", "gpt-4", "gpt-4-32k",
    "gpt-3.5-turbo", "gpt-3.5-turbo-16k", "computer-use", "gpt-daybreak-blue", "gpt-daybreak-red",
    "gpt-rosalind-research",
    # recorded traffic, and genai-prices 0.2.1
    "gpt-5.6", "gpt-5.5-cyber", "gpt-5.4-pro", "gpt-5.3", "gpt-5.3-codex", "gpt-5.1-codex-mini",
    "gpt-5-search-api", "gpt-4.5", "gpt-audio", "gpt-oss-120b", "gpt-oss-20b", "gpt-chat",
    "gpt-rosalind-discovery", "gpt-5-image", "gpt-5-image-mini",
    "gpt-3.5-turbo-instruct", "davinci-002", "babbage-002", "gpt-image-*", "gpt-realtime*",
    "gpt-live-*", "gpt-4o*-realtime*", "gpt-4o*-transcribe*", "gpt-4o*-tts*", "gpt-transcribe*",
    # embeddings
    "text-embedding-3-small", "text-embedding-3-large", "text-embedding-ada-002",
)  # fmt: skip
