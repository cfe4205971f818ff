"""The vendors' list prices in US dollars per million tokens.

As of `AS_OF`, checked against genai-prices 0.2.2: the standard tier, text and images, without
prices announced as temporary (Gemini 3.6 and later). Prices change; override them with `Prices`.

A row applies to one provider. Other providers of the same models have their own prices:
OpenRouter selects a host for each request, Azure's deployments have custom names, and both Azure
and Vertex are more expensive in some regions. Those prices are unknown unless the user sets them.

A name that refers to models of different prices over time (`mistral-large-latest`) has no row.
"""

from __future__ import annotations

import re

from dragoman.model.name_cache import cached_by_name
from dragoman.providers.price import Amount, Price

AS_OF = "2026-11-17"

_DATE = re.compile(r"[-@](\d{8}|\d{4}-\d{2}-\d{2}|\d{4}|00\d|latest)$")
"""Suffixes of a model name that don't change its price."""

Rows = tuple[tuple[str, Price], ...]

FREE = Price(0)


def _listed(dollars_in: str, dollars_out: Amount = 0, read: str | None = None) -> Price:
    return Price(dollars_in, dollars_out, cache_read=read)


def _with_long(price: Price, above: int, output: str) -> Price:
    """Add prices for long prompts: input at twice the price, output at `output` times the price."""
    beyond = Price(
        price.input * 2,
        price.output * Price(output).input,
        cache_read=price.cache_read * 2,
        cache_write=price.cache_write * 2,
        cache_write_hour=price.cache_write_hour * 2,
    )
    return Price(
        price.input,
        price.output,
        cache_read=price.cache_read,
        cache_write=price.cache_write,
        cache_write_hour=price.cache_write_hour,
        above=above,
        beyond=beyond,
    )


def _claude(dollars_in: str, dollars_out: str, read: str | None = None) -> Price:
    """Anthropic: cache writes cost 1.25 times the input, twice for an hour; reads cost 0.1."""
    base = Price(dollars_in).input
    return Price(
        base,
        dollars_out,
        cache_read=base / 10 if read is None else read,
        cache_write=base * 5 / 4,
        cache_write_hour=base * 2,
    )


def _writing(price: Price) -> Price:
    """OpenAI from GPT-5.6 on: cache writes cost 1.25 times the input."""
    return Price(
        price.input,
        price.output,
        cache_read=price.cache_read,
        cache_write=price.input * 5 / 4,
    )


_LONG_GPT, _LONG = 272_000, 200_000
_SHORT = _claude("0.1", "0.5")
_HAIKU_5_5 = Price(
    _SHORT.input,
    _SHORT.output,
    cache_read=_SHORT.cache_read,
    cache_write=_SHORT.cache_write,
    cache_write_hour=_SHORT.cache_write_hour,
    above=100_000,
    beyond=_claude("0.5", "2.5"),
)

_OPENAI: Rows = (
    (r"gpt-6-astra", _with_long(_writing(_listed("10", "50", "1")), _LONG_GPT, "1.5")),
    (r"gpt-6\.1-sol", _with_long(_writing(_listed("2", "10", "0.1")), _LONG_GPT, "1.5")),
    (r"gpt-6\.1-terra", _with_long(_writing(_listed("1", "5", "0.05")), _LONG_GPT, "1.5")),
    (r"gpt-6-sol", _with_long(_writing(_listed("2", "10", "0.2")), _LONG_GPT, "1.5")),
    (r"gpt-6-luna", _with_long(_writing(_listed("0.1", "0.5", "0.01")), _LONG_GPT, "1.5")),
    (r"gpt-5\.6(-sol)?", _with_long(_writing(_listed("4", "20", "0.4")), _LONG_GPT, "1.5")),
    (r"gpt-5\.6-terra", _with_long(_writing(_listed("2", "12", "0.2")), _LONG_GPT, "1.5")),
    (r"gpt-5\.6-luna", _with_long(_writing(_listed("0.2", "1.2", "0.02")), _LONG_GPT, "1.5")),
    (r"gpt-5\.5", _with_long(_listed("5", "30", "0.5"), _LONG_GPT, "1.5")),
    (r"gpt-5\.5-pro", _with_long(_listed("30", "180"), _LONG_GPT, "1.5")),
    (r"gpt-5\.4", _with_long(_listed("2.5", "15", "0.25"), _LONG_GPT, "1.5")),
    (r"gpt-5\.4-pro", _with_long(_listed("30", "180"), _LONG_GPT, "1.5")),
    (r"gpt-5\.4-mini", _listed("0.75", "4.5", "0.075")),
    (r"gpt-5\.4-nano", _listed("0.2", "1.25", "0.02")),
    (r"gpt-5\.[23](-chat|-codex)?", _listed("1.75", "14", "0.175")),
    (r"gpt-5\.2-pro", _listed("21", "168")),
    (r"gpt-5(\.1)?(-chat|-codex|-codex-max)?", _listed("1.25", "10", "0.125")),
    (r"gpt-5-mini|gpt-5\.1-codex-mini", _listed("0.25", "2", "0.025")),
    (r"gpt-5-nano", _listed("0.05", "0.4", "0.005")),
    (r"gpt-5-pro", _listed("15", "120")),
    (r"gpt-4\.1", _listed("2", "8", "0.5")),
    (r"gpt-4\.1-mini", _listed("0.4", "1.6", "0.1")),
    (r"gpt-4\.1-nano", _listed("0.1", "0.4", "0.025")),
    (r"gpt-4o-2024-05-13|chatgpt-4o", _listed("5", "15")),
    (r"gpt-4o", _listed("2.5", "10", "1.25")),
    (r"gpt-4o-mini", _listed("0.15", "0.6", "0.075")),
    (r"gpt-4-turbo(-preview)?|gpt-4-(1106|0125)-preview", _listed("10", "30")),
    (r"gpt-4", _listed("30", "60")),
    (r"gpt-3\.5-turbo-0613", _listed("1.5", "2")),
    (r"gpt-3\.5-turbo-1106", _listed("1", "2")),
    (r"gpt-3\.5-turbo(-0125)?", _listed("0.5", "1.5")),
    (r"o1|o1-preview", _listed("15", "60", "7.5")),
    (r"o1-pro", _listed("150", "600")),
    (r"o[13]-mini", _listed("1.1", "4.4", "0.55")),
    (r"o3", _listed("2", "8", "0.5")),
    (r"o3-pro", _listed("20", "80")),
    (r"o3-deep-research", _listed("10", "40", "2.5")),
    (r"o4-mini", _listed("1.1", "4.4", "0.275")),
    (r"o4-mini-deep-research", _listed("2", "8", "0.5")),
    (r"codex-mini", _listed("1.5", "6", "0.375")),
    (r"text-embedding-3-small", _listed("0.02")),
    (r"text-embedding-3-large", _listed("0.13")),
    (r"text-embedding-ada-002", _listed("0.1")),
)

_ANTHROPIC: Rows = (
    (r"claude-fable-5", _claude("10", "50")),
    (r"claude-fable-5-1", _claude("10", "50", read="0.25")),
    (r"claude-opus-5-5", _claude("4", "20", read="0.2")),
    (r"claude-sonnet-5-5", _claude("2", "10", read="0.1")),
    (r"claude-sonnet-5", _claude("2", "10")),
    (r"claude-haiku-5-5", _HAIKU_5_5),
    (r"claude-opus-(4-[5-8]|5)", _claude("5", "25")),
    (r"claude-opus-4(-[01])?|claude-3-opus", _claude("15", "75")),
    (r"claude-sonnet-4(-[05])?", _with_long(_claude("3", "15"), _LONG, "1.5")),
    (r"claude-sonnet-4-6|claude-3(-[57])?-sonnet", _claude("3", "15")),
    (r"claude-haiku-4-5", _claude("1", "5")),
    (r"claude-3-5-haiku", _claude("0.8", "4")),
    (
        r"claude-3-haiku",
        Price("0.25", "1.25", cache_read="0.03", cache_write="0.3", cache_write_hour="0.5"),
    ),
)

_GOOGLE: Rows = (
    (r"gemini-3(\.1)?-pro-preview", _with_long(_listed("2", "12", "0.2"), _LONG, "1.5")),
    (r"gemini-3\.5-flash(-preview)?", _listed("1.5", "9", "0.15")),
    (r"gemini-3\.5-flash-lite(-preview)?", _listed("0.3", "2.5", "0.03")),
    (r"gemini-3-flash-preview", _listed("0.5", "3", "0.05")),
    (r"gemini-3\.1-flash-lite(-preview)?", _listed("0.25", "1.5", "0.025")),
    (r"gemini-2\.5-pro", _with_long(_listed("1.25", "10", "0.125"), _LONG, "1.5")),
    (r"gemini-2\.5-flash(-preview-09-2025)?", _listed("0.3", "2.5", "0.03")),
    (r"gemini-2\.5-flash-lite(-preview-09-2025)?", _listed("0.1", "0.4", "0.01")),
    (r"gemini-2\.0-flash", _listed("0.1", "0.4", "0.025")),
    (r"gemini-2\.0-flash-lite", _listed("0.075", "0.3")),
    (r"gemini-embedding", _listed("0.15")),
)

_LONG_GROK = 199_999  # long prompts begin at 200,000 tokens
_XAI: Rows = (
    (r"grok-4\.[67]", _with_long(_listed("2", "6", "0.5"), _LONG_GROK, "2")),
    (r"grok-4\.5", _with_long(_listed("2", "6", "0.3"), _LONG_GROK, "2")),
    (r"grok-4\.(3|20)", _with_long(_listed("1.25", "2.5", "0.2"), _LONG_GROK, "2")),
    (r"grok-4", _with_long(_listed("3", "15", "0.75"), 128_000, "2")),
    (
        r"grok-4(-1)?-fast(-reasoning|-non-reasoning)?",
        _with_long(_listed("0.2", "0.5", "0.05"), 128_000, "2"),
    ),
    (r"grok-code-fast(-1)?", _listed("0.2", "1.5", "0.02")),
    (r"grok-3(-beta)?", _listed("3", "15", "0.75")),
    (r"grok-3-mini(-beta)?", _listed("0.3", "0.5", "0.075")),
)

_DEEPSEEK: Rows = (
    (r"deepseek-v4-flash", _listed("0.15", "0.6", "0.003")),
    (r"deepseek-v4-pro", _listed("0.66", "1.98", "0.022")),
    (r"deepseek-(chat|reasoner)", _listed("0.28", "0.42", "0.028")),  # as listed for V3.2
)

_MISTRAL: Rows = (
    (r"mistral-large-2512", _listed("0.5", "1.5", "0.05")),
    (r"(mistral|pixtral)-large-24(07|11)", _listed("2", "6")),
    (r"mistral-medium-25(05|08)", _listed("0.4", "2")),
    (r"mistral-small-2603", _listed("0.15", "0.6", "0.015")),
    (r"mistral-small-25(01|03|06)", _listed("0.1", "0.3")),
    (r"magistral-medium", _listed("2", "5")),
    (r"magistral-small", _listed("0.5", "1.5")),
    (r"codestral-2508", _listed("0.3", "0.9", "0.03")),
    (r"codestral", _listed("0.3", "0.9")),
    (r"devstral-2512", _listed("0.4", "2", "0.04")),
    (r"ministral-14b-2512", _listed("0.2", "0.2", "0.02")),
    (r"ministral-3b-2512", _listed("0.1", "0.1", "0.01")),
    (r"open-mistral-nemo|pixtral-12b", _listed("0.15", "0.15")),
    (r"mistral-embed", _listed("0.1")),
)

_GROQ: Rows = (
    (r"llama-3\.3-70b-versatile", _listed("0.59", "0.79")),
    (r"llama-3\.1-8b-instant", _listed("0.05", "0.08")),
    (r"openai/gpt-oss-120b", _listed("0.15", "0.6", "0.075")),
    (r"openai/gpt-oss-20b", _listed("0.075", "0.3", "0.0375")),
    (r"meta-llama/llama-4-scout-17b-16e-instruct", _listed("0.11", "0.34")),
    (r"meta-llama/llama-4-maverick-17b-128e-instruct", _listed("0.2", "0.6")),
    (r"qwen/qwen3-32b", _listed("0.29", "0.59")),
    (r"moonshotai/kimi-k2-instruct", _listed("1", "3", "0.5")),
)

# Self-hosted models are free. Ollama also forwards requests to its cloud models, marked by name.
_OWN: Rows = ((r".*", FREE),)
_OLLAMA: Rows = ((r"(?!.*[-:]cloud$).*", FREE),)

_LISTS: dict[str, Rows] = {
    "openai": _OPENAI,
    "anthropic": _ANTHROPIC,
    "google": _GOOGLE,
    "xai": _XAI,
    "deepseek": _DEEPSEEK,
    "mistral": _MISTRAL,
    "groq": _GROQ,
    "local": _OWN,
    "echo": _OWN,
    "scripted": _OWN,
    "test": _OWN,
    "llama.cpp": _OWN,
    "lmstudio": _OWN,
    "vllm": _OWN,
    "ollama": _OLLAMA,
}
LISTING = frozenset(_LISTS)
"""The providers with list prices."""
_COMPILED = {
    provider: tuple((re.compile(pattern, re.IGNORECASE), price) for pattern, price in rows)
    for provider, rows in _LISTS.items()
}


def undated(model: str) -> str:
    """A model name without its release date.

    >>> undated("gpt-5-2025-08-07"), undated("claude-sonnet-4-5@20250929")
    ('gpt-5', 'claude-sonnet-4-5')
    """
    return _DATE.sub("", model)


@cached_by_name(256)
def listed_price(provider: str, model: str) -> Price | None:
    """The list price of a model; None if unknown."""
    for name in dict.fromkeys((model, undated(model))):
        for pattern, price in _COMPILED.get(provider, ()):
            if pattern.fullmatch(name):
                return price
    return None
