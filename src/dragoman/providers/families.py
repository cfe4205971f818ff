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
    Family(r"gpt-(3|4)|chatgpt-4|gpt-35", {"thinking.form": "never"}),
    # "Web search options not supported with this model": those made for it say so in their names.
    Family(
        r"(?!.*search)(gpt-|chatgpt-)", {"fields.refused": (*EXTENSIONS, _SEARCH)}, _CHAT
    ),
    # Models that think: W12. Their dialect's own name for the limit is the only one they take.
    Family(
        r"o\d|gpt-5|codex",
        {
            "sampling.token_limit_fields": ("max_completion_tokens",),
            "sampling.refused": (
                *_DRAWN, "presence_penalty", "frequency_penalty", "choices", "stop",
            ),
            "fields.refused": (*EXTENSIONS, "logit_bias"),
            "media.kinds": ("image", "file"),
            "thinking.form": "effort",
        },
        _CHAT,
    ),
    Family(
        r"o\d|gpt-5|codex",
        {"sampling.refused": _DRAWN, "thinking.form": "effort"},
        _RESPONSES,
    ),
    Family(r"o\d", {"thinking.efforts": _LOW_TO_HIGH}),
    Family(r"o(1|3)", {"tools.takes_parallel_choice": False}),
    # Recorded: neither role is taken.
    Family(r"o1-(mini|preview)", {"turns.system_place": "nowhere", "thinking.form": "never"}),
    Family(r"gpt-5(?!\.)", {"thinking.efforts": ("minimal", *_LOW_TO_HIGH)}),
    # From 5.1 on they think only if asked to, and take the usual settings while they don't.
    Family(
        r"gpt-5\.\d",
        {
            "sampling.refused": ("presence_penalty", "frequency_penalty", "choices", "stop"),
            "sampling.refused_while_thinking": _DRAWN,
            "thinking.efforts": ("none", *_LOW_TO_HIGH),
        },
        _CHAT,
    ),
    Family(
        r"gpt-5\.\d",
        {
            "sampling.refused": (),
            "sampling.refused_while_thinking": _DRAWN,
            "thinking.efforts": ("none", *_LOW_TO_HIGH),
        },
        _RESPONSES,
    ),
    Family(r"gpt-5\.[2-9]", {"thinking.efforts": ("none", *_LOW_TO_HIGH, "xhigh")}),
    # Those from before the schemas: any JSON at best.
    Family(r"gpt-3\.5|gpt-4(?!o|\.)|gpt-4o-2024-05-13", {"schemas.outputs": ("text", "json")}),
    Family(r"o1-(mini|preview)", {"schemas.outputs": ("text",)}),
    Family(
        r"gpt-5(\.\d)?-chat",  # the ones behind ChatGPT don't think
        {"sampling.refused": (), "sampling.refused_while_thinking": (), "thinking.form": "never"},
    ),
)  # fmt: skip

CLAUDE = (
    Family(
        r"claude-(instant|[12]\b|3-(opus|sonnet|haiku|5))",
        {
            "thinking.form": "never",
            "thinking.efforts": (),
            "schemas.takes_strict_tools": False,
            "schemas.outputs": ("text",),
        },
        _ANTHROPIC,
    ),
    Family(
        r"claude-(3-7|(opus|sonnet)-4(?!-[1-9]\b))",
        {
            "thinking.form": "budget",
            "thinking.efforts": (),
            "schemas.takes_strict_tools": False,
            "schemas.outputs": ("text",),
        },
        _ANTHROPIC,
    ),
    Family(
        r"claude-(opus-4-1|(sonnet|haiku)-4-5)",
        {"thinking.form": "budget", "thinking.efforts": ()},
        _ANTHROPIC,
    ),
    Family(
        r"claude-opus-4-5",
        {"thinking.form": "budget", "thinking.efforts": _LOW_TO_HIGH},
        _ANTHROPIC,
    ),
    # "`temperature` and `top_p` cannot both be specified for this model": W59.
    Family(
        r"claude-(opus-4-[156]|(sonnet|haiku)-4-[56])\b",
        {"sampling.refuses_temperature_with_top_p": True},
        _ANTHROPIC,
    ),
    # W48: no words may be put into their mouths. The efforts are in a recorded error text.
    Family(
        r"claude-(opus|sonnet)-4-6",
        {
            "thinking.form": "either",
            "thinking.efforts": (*_LOW_TO_HIGH, "max"),
            "turns.prefill": "refused",
        },
        _ANTHROPIC,
    ),
    # W59: they decide themselves how much to think, and take no settings of sampling.
    Family(
        r"claude-(opus-4-[7-9]|[a-z]+-([5-9]|\d\d)\b|mythos|fable)",
        {
            "thinking.form": "adaptive",
            "thinking.efforts": (*_LOW_TO_HIGH, "xhigh", "max"),
            "turns.prefill": "refused",
            "sampling.refused": ("temperature", "top_p", "top_k"),
        },
        _ANTHROPIC,
    ),
)  # fmt: skip

GEMINI = (
    Family(
        r"(models/)?gemini-(1|2\.0)",
        {
            "thinking.form": "never",
            "turns.prefill": "free",
            "media.in_results": False,
            "schemas.refuses_json_with_tools": True,
            "tools.refuses_mixed": True,
        },
        "gemini",
    ),
    # W93: they are older than the fields for it.
    Family(r"(models/)?gemini-1", {"schemas.takes_json_schema": False}, "gemini"),
    Family(
        r"(models/)?gemini-2\.5",
        {
            "thinking.form": "budget",
            "turns.prefill": "free",
            "media.in_results": False,
            "schemas.refuses_json_with_tools": True,
            "tools.refuses_mixed": True,
            "thinking.budget_range": (1, 24_576),  # the documentation's numbers; 0 is off
        },
        "gemini",
    ),
    Family(
        r"(models/)?gemini-2\.5-pro",
        {"thinking.budget_range": (128, 32_768), "thinking.is_always_on": True},
        "gemini",
    ),
    Family(r"(models/)?gemini-2\.5-flash-lite", {"thinking.budget_range": (512, 24_576)}, "gemini"),
    # W83, W96: calls are signed from here on, and results hold media.
    Family(
        r"(models/)?gemini-([3-9]|\d\d)",
        {
            "thinking.form": "effort",
            "thinking.is_on_by_default": True,
            "thinking.signs_calls": True,
            "media.in_results": True,
        },
        "gemini",
    ),
    # "Thinking level MEDIUM is not supported for this model": from 3.1 on it is, and MINIMAL is
    # Flash's alone.
    Family(r"(models/)?gemini-3-pro", {"thinking.efforts": ("low", "high")}, "gemini"),
    Family(r"(models/)?gemini-[3-9]\.\d+-pro", {"thinking.efforts": _LOW_TO_HIGH}, "gemini"),
)

# W117, W118: what the chat templates of open models insist on, wherever a server runs them.
TEMPLATES = (
    Family(
        r"(.*/)?(open-)?(mistral|mixtral|ministral|magistral|devstral|codestral)",
        {
            "ids.pattern": r"[A-Za-z0-9]{9}",
            "ids.max_length": 9,
            "turns.answers_results": True,
            "turns.alternates_roles": True,
            "turns.system_place": "first",
            "turns.starts_with_user": True,
        },
        _CHAT,
    ),
    Family(
        r"(.*/)?gemma-?[12]?(-|:|$)",
        {
            "turns.system_place": "nowhere",
            "turns.alternates_roles": True,
            "turns.starts_with_user": True,
        },
        _CHAT,
    ),
    Family(r"(.*/)?qwen-?3", {"turns.system_place": "first"}, _CHAT),
    Family(r"(.*/)?qwen", {"tools.parses_arguments": True}, _CHAT),  # C3
)  # fmt: skip
