"""What is known of models that more than one provider serves, as data.

Sources: recorded traffic, the vendors' SDKs and error texts, and the catalogue of wire rules. A
model that no row covers is taken to be as its provider's others.
"""

from __future__ import annotations

from dragoman.providers.provider import Family

_CHAT, _RESPONSES, _ANTHROPIC = "openai-chat", "openai-responses", "anthropic"
_DRAWN = ("temperature", "top_p", "logprobs", "top_logprobs")
EXTENSIONS = ("cache_control", "extra_content", "reasoning_details")
"""What other hosts have added to OpenAI's dialect, and OpenAI refuses (W17)."""
_SEARCH = "web_search_options"
_LOW_TO_HIGH = ("low", "medium", "high")

OPENAI = (
    # Models that don't think: an effort would be refused.
    Family(r"gpt-(3|4)|chatgpt-4|gpt-35", {"thinking_form": "never"}),
    # "Web search options not supported with this model": those made for it say so in their names.
    Family(
        r"(?!.*search)(gpt-|chatgpt-)", {"refused_fields": (*EXTENSIONS, _SEARCH)}, _CHAT
    ),
    # Models that think: W12. Their dialect's own name for the limit is the only one they take.
    Family(
        r"o\d|gpt-5|codex",
        {
            "token_limits": ("max_completion_tokens",),
            "refused_sampling": (
                *_DRAWN, "presence_penalty", "frequency_penalty", "choices", "stop",
            ),
            "refused_fields": (*EXTENSIONS, "logit_bias"),
            "media": ("image", "file"),
            "thinking_form": "effort",
        },
        _CHAT,
    ),
    Family(
        r"o\d|gpt-5|codex",
        {"refused_sampling": _DRAWN, "thinking_form": "effort"},
        _RESPONSES,
    ),
    Family(r"o\d", {"efforts": _LOW_TO_HIGH}),
    Family(r"o(1|3)", {"takes_parallel_choice": False}),
    # Recorded: neither role is taken.
    Family(r"o1-(mini|preview)", {"system_place": "nowhere", "thinking_form": "never"}),
    Family(r"gpt-5(?!\.)", {"efforts": ("minimal", *_LOW_TO_HIGH)}),
    # From 5.1 on they think only if asked to, and take the usual settings while they don't.
    Family(
        r"gpt-5\.\d",
        {
            "refused_sampling": ("presence_penalty", "frequency_penalty", "choices", "stop"),
            "refused_sampling_thinking": _DRAWN,
            "efforts": ("none", *_LOW_TO_HIGH),
        },
        _CHAT,
    ),
    Family(
        r"gpt-5\.\d",
        {
            "refused_sampling": (),
            "refused_sampling_thinking": _DRAWN,
            "efforts": ("none", *_LOW_TO_HIGH),
        },
        _RESPONSES,
    ),
    Family(r"gpt-5\.[2-9]", {"efforts": ("none", *_LOW_TO_HIGH, "xhigh")}),
    # Those from before the schemas: any JSON at best.
    Family(r"gpt-3\.5|gpt-4(?!o|\.)|gpt-4o-2024-05-13", {"outputs": ("text", "json")}),
    Family(r"o1-(mini|preview)", {"outputs": ("text",)}),
    Family(
        r"gpt-5(\.\d)?-chat",  # the ones behind ChatGPT don't think
        {"refused_sampling": (), "refused_sampling_thinking": (), "thinking_form": "never"},
    ),
)  # fmt: skip

CLAUDE = (
    Family(
        r"claude-(instant|[12]\b|3-(opus|sonnet|haiku|5))",
        {
            "thinking_form": "never",
            "efforts": (),
            "takes_strict_tools": False,
            "outputs": ("text",),
        },
        _ANTHROPIC,
    ),
    Family(
        r"claude-(3-7|(opus|sonnet)-4(?!-[1-9]\b))",
        {
            "thinking_form": "budget",
            "efforts": (),
            "takes_strict_tools": False,
            "outputs": ("text",),
        },
        _ANTHROPIC,
    ),
    Family(
        r"claude-(opus-4-1|(sonnet|haiku)-4-5)",
        {"thinking_form": "budget", "efforts": ()},
        _ANTHROPIC,
    ),
    Family(r"claude-opus-4-5", {"thinking_form": "budget", "efforts": _LOW_TO_HIGH}, _ANTHROPIC),
    # "`temperature` and `top_p` cannot both be specified for this model": W59.
    Family(
        r"claude-(opus-4-[156]|(sonnet|haiku)-4-[56])\b",
        {"refuses_temperature_with_top_p": True},
        _ANTHROPIC,
    ),
    # W48: no words may be put into their mouths. The efforts are in a recorded error text.
    Family(
        r"claude-(opus|sonnet)-4-6",
        {"thinking_form": "either", "efforts": (*_LOW_TO_HIGH, "max"), "prefill": "refused"},
        _ANTHROPIC,
    ),
    # W59: they decide themselves how much to think, and take no settings of sampling.
    Family(
        r"claude-(opus-4-[7-9]|[a-z]+-([5-9]|\d\d)\b|mythos|fable)",
        {
            "thinking_form": "adaptive",
            "efforts": (*_LOW_TO_HIGH, "xhigh", "max"),
            "prefill": "refused",
            "refused_sampling": ("temperature", "top_p", "top_k"),
        },
        _ANTHROPIC,
    ),
)  # fmt: skip

GEMINI = (
    Family(
        r"(models/)?gemini-(1|2\.0)",
        {
            "thinking_form": "never",
            "prefill": "free",
            "media_in_results": False,
            "refuses_json_with_tools": True,
            "refuses_mixed_tools": True,
        },
        "gemini",
    ),
    # W93: they are older than the fields for it.
    Family(r"(models/)?gemini-1", {"takes_json_schema": False}, "gemini"),
    Family(
        r"(models/)?gemini-2\.5",
        {
            "thinking_form": "budget",
            "prefill": "free",
            "media_in_results": False,
            "refuses_json_with_tools": True,
            "refuses_mixed_tools": True,
            "thinking_budgets": (1, 24_576),  # the documentation's numbers; 0 is off
        },
        "gemini",
    ),
    Family(
        r"(models/)?gemini-2\.5-pro",
        {"thinking_budgets": (128, 32_768), "always_thinks": True},
        "gemini",
    ),
    Family(r"(models/)?gemini-2\.5-flash-lite", {"thinking_budgets": (512, 24_576)}, "gemini"),
    # W83, W96: calls are signed from here on, and results hold media.
    Family(
        r"(models/)?gemini-([3-9]|\d\d)",
        {
            "thinking_form": "effort",
            "thinks_by_default": True,
            "signs_calls": True,
            "media_in_results": True,
        },
        "gemini",
    ),
    # "Thinking level MEDIUM is not supported for this model": from 3.1 on it is, and MINIMAL is
    # Flash's alone.
    Family(r"(models/)?gemini-3-pro", {"efforts": ("low", "high")}, "gemini"),
    Family(r"(models/)?gemini-[3-9]\.\d+-pro", {"efforts": _LOW_TO_HIGH}, "gemini"),
)

# W117, W118: what the chat templates of open models insist on, wherever a server runs them.
TEMPLATES = (
    Family(
        r"(.*/)?(open-)?(mistral|mixtral|ministral|magistral|devstral|codestral)",
        {"tool_id": r"[A-Za-z0-9]{9}", "tool_id_length": 9, "answers_results": True,
         "alternates_roles": True, "system_place": "first", "starts_with_user": True},
        _CHAT,
    ),
    Family(
        r"(.*/)?gemma-?[12]?(-|:|$)",
        {"system_place": "nowhere", "alternates_roles": True, "starts_with_user": True},
        _CHAT,
    ),
    Family(r"(.*/)?qwen-?3", {"system_place": "first"}, _CHAT),
    Family(r"(.*/)?qwen", {"parses_arguments": True}, _CHAT),  # C3
)  # fmt: skip
