"""The flags of a `Target`, in small groups.

A flag with a plain default is a fact about how to address a target. A flag made with `demand` is a
requirement of the target: it names the rules behind it, and the value that requires nothing.
Rules, model families and tests refer to a flag by its group and name: `turns.pairs_results`.
"""

from __future__ import annotations

# ruff: noqa: FBT003 - the default of a flag stands beside its name
import re
from collections.abc import Callable, Collection
from functools import cached_property, lru_cache
from string import ascii_letters, digits
from typing import Any, ClassVar, Literal, Self, TypeVar

import msgspec

from dragoman.model.value import Value

T = TypeVar("T")

ANYTHING = r"[\s\S]*"
"""A pattern that every id and every name matches."""
WORDS = r"[a-zA-Z0-9_-]+"
"""A pattern for plain ids."""
_OF_WORDS = (ascii_letters + digits + "_-").encode()
_MANY = 8


class _Demand(msgspec.Struct, frozen=True):
    default: Any
    rules: tuple[str, ...]
    relaxed: Any


_AS_BY_DEFAULT: Any = object()


def demand(default: T, *rules: str, relaxed: T = _AS_BY_DEFAULT) -> T:
    """Define a flag that triggers repairs: its default, its rules, and the value that needs none.

    `relaxed` is needed only if the default itself triggers repairs.
    """
    # `FlagsMeta` replaces this with the default.
    return _Demand(default, rules, default if relaxed is _AS_BY_DEFAULT else relaxed)  # type: ignore[return-value]


class FlagsMeta(msgspec.StructMeta):
    """Collects the `demand` flags of a class, and sets their defaults as ordinary defaults."""

    def __new__(  # noqa: D102
        cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: Any
    ) -> Any:
        demands = {key: one for key, one in namespace.items() if isinstance(one, _Demand)}
        namespace |= {key: one.default for key, one in demands.items()}
        made: Any = super().__new__(cls, name, bases, namespace, **options)
        made.demands = demands
        return made


class Flags(Value, frozen=True, kw_only=True, gc=True, dict=True, metaclass=FlagsMeta):
    """A group of flags; `relaxed` is the same group without requirements."""

    demands: ClassVar[dict[str, _Demand]]
    """The flags that trigger repairs, by name."""

    @cached_property
    def relaxed(self) -> Self:
        """The same flags for a target that is assumed to refuse nothing."""
        changes = {name: one.relaxed for name, one in self.demands.items()}
        for name in self.__struct_fields__:
            if isinstance(group := getattr(self, name), Flags):
                changes[name] = group.relaxed
        return self.replace(**changes)


@lru_cache(maxsize=64)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.ASCII)


def is_word(text: str) -> bool:
    """Whether a text matches `WORDS`; the common case, an identifier, is checked first."""
    is_name = text.isidentifier() and text.isascii()
    return is_name or _compiled(WORDS).fullmatch(text) is not None


def _words_up_to(longest: int) -> Callable[[Collection[str]], bool]:
    def are_words(ids: Collection[str]) -> bool:
        if len(ids) > _MANY:  # checks all ids at once: four times as fast
            lengths, joined = [*map(len, ids)], "".join(ids)
            is_fitting = min(lengths) > 0 and max(lengths) <= longest and joined.isascii()
            return is_fitting and not joined.encode().translate(None, _OF_WORDS)
        for each in ids:
            # An identifier as in `is_word`, without the call: most requests have one such id.
            is_name = each.isidentifier() and each.isascii()
            if len(each) > longest or not (is_name or is_word(each)):
                return False
        return True

    return are_words


class IdFlags(Flags, frozen=True, kw_only=True):
    """Requirements for the ids of tool calls."""

    pattern: str = demand(ANYTHING, "W22", "W44", "C1")
    """A regular expression that matches the whole id."""
    max_length: int = demand(64, "W5", "W22", "W44", "C1", relaxed=1 << 30)
    """Maximum id length in characters; ids that we generate use up to 29."""
    must_be_unique: bool = demand(False, "W43")
    """Whether an id may be used only once in a request."""
    are_allowed: bool = True
    """Whether calls and results may have ids at all (W81)."""

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return _compiled(self.pattern)

    def accepts(self, tool_id: str) -> bool:
        """Whether a tool call may have this id."""
        return len(tool_id) <= self.max_length and self._pattern.fullmatch(tool_id) is not None

    @cached_property
    def accepts_all(self) -> Callable[[Collection[str]], bool]:
        """Whether tool calls may have all of these ids."""
        if self.pattern == WORDS:
            return _words_up_to(self.max_length)
        if self.pattern == ANYTHING:
            return lambda ids: max(map(len, ids), default=0) <= self.max_length
        return lambda ids: all(map(self.accepts, ids))


class ToolFlags(Flags, frozen=True, kw_only=True):
    """Tools, their names and arguments, and tool choice."""

    name_pattern: str = demand(r"[A-Za-z0-9_-]{1,64}", "W6", "W89", relaxed=ANYTHING)
    """A regular expression that matches the whole tool name."""
    max_name_length: int = 64
    """Maximum length of a tool name that we generate."""
    parses_arguments: bool = demand(False, "W114", "C3")
    """Whether a Chat host parses the arguments of earlier calls, so that invalid JSON fails the
    request."""
    limits_argument_names: bool = demand(False, "W39")
    """Whether property names in the arguments of earlier calls are limited in length."""
    must_be_declared: bool = demand(False, "W63")
    """Whether tools must be declared if the history has calls."""
    refuses_mixed: bool = demand(False, "W97")
    """Whether functions and the provider's own tools are mutually exclusive."""
    choices: tuple[str, ...] = demand(("auto", "none", "required", "named", "allowed"))
    """The supported modes of `ToolChoice`; others are emulated by selecting the tools sent."""
    required_word: str | None = None
    """A Chat host's value for a mandatory tool call; None: `required`, or as spelled."""
    takes_parallel_choice: bool = True
    """Whether parallel tool calls can be switched on or off."""
    choice_needs_tools: bool = demand(True, "W121", relaxed=False)
    """Whether a tool choice is refused if there are no tools."""
    takes_forced_choice: bool = demand(True, "W74")
    """Whether a tool call can be forced at all (the newest Claude models refuse)."""
    takes_text: bool = demand(True)
    """Whether a Chat host supports free-text tools (`custom`), as OpenAI does."""
    forces_by_schema: bool = demand(False, "W74")
    """Whether a call is forced by an output schema of calls, for a server without a tool choice."""
    call_opening: str | None = demand(None)
    """The first characters of a tool call, sent as a prefill to force a call from a model without
    such a setting. None: tool choice works."""

    @cached_property
    def _name(self) -> re.Pattern[str]:
        return _compiled(self.name_pattern)

    def accepts_name(self, name: str) -> bool:
        """Whether a tool may have this name."""
        return self._name.fullmatch(name) is not None


class TurnFlags(Flags, frozen=True, kw_only=True):
    """The order of roles, the pairing of calls and results, and required message content."""

    pairs_results: bool = demand(True, "W3", "W4", "W29", "W40", "W41", "W42", "W78", relaxed=False)
    """Whether every call needs its result, and every result its call, before the next turn."""
    groups_results: bool = demand(False, "W40", "W41", "W78")
    """Whether all results of a step must be in one message."""
    orders_results: bool = demand(False, "W103")
    """Whether results of one tool must be in the order of its calls: it may match by name only."""
    merges_neighbours: bool = False
    """Whether adjacent messages of one role form one turn: calls in both share one set of
    results."""
    answers_any_call: bool = False
    """Whether a result may answer whatever has its call id, also a call of a built-in tool."""
    answers_results: bool = demand(False, "C1")
    """Whether an assistant message is required between a tool's result and a user message."""
    refuses_empty_text: bool = demand(False, "W46")
    """Whether an empty text is refused."""
    refuses_blank_text: bool = demand(False, "W46", "W76")
    """Whether a whitespace-only text may be refused."""
    doubts_empty_text: bool = demand(False, "W76")
    """Whether an empty text may be refused, although the vendor's own clients send some: only those
    of other dialects are removed."""
    refuses_empty_answers: bool = demand(True, "C5", relaxed=False)
    """Whether an assistant message that says nothing and calls nothing may be refused."""
    refuses_empty_messages: bool = demand(False, "W47", "W76")
    """Whether a message without any content is refused."""
    needs_message: bool = demand(False, "W47", "W75")
    """Whether a request with only instructions is refused."""
    starts_with_user: bool = demand(False, "W47", "W117")
    """Whether the first message must be a user message."""
    refuses_call_first: bool = demand(False, "W77")
    """Whether the first message must not be a tool call."""
    prefill: Literal["free", "trimmed", "uncertain", "refused"] = demand("free", "W48", "W79")
    """Whether the last message may be a prefill, the beginning of a response that the model
    continues: `free`, `trimmed` (without trailing whitespace), `uncertain` (only some models allow
    it), or `refused`."""
    system_place: Literal["anywhere", "first", "nowhere"] = demand("anywhere", "W117")
    """Where system messages may be: anywhere, only as a single first message, or nowhere (then they
    are sent as user text)."""
    takes_developer: bool = demand(True, "W13")
    """Whether it supports the developer role."""
    alternates_roles: bool = demand(False, "W117")
    """Whether consecutive messages must have different roles, except tool messages."""


ThinkingForm = Literal[
    "any", "never", "effort", "reasoning", "switch", "template", "budget", "adaptive", "either"
]
"""How thinking is requested from a target.

- `any`: as the request states it, in its original spelling
- `never`: it can't be requested
- `effort`: by an effort alone (OpenAI's `reasoning_effort`)
- `reasoning`: in OpenRouter's object of that name, with effort, budget and more
- `switch`: on or off in `thinking`, and an effort (DeepSeek, Z.ai)
- `template`: on or off for the chat template, and an effort (vLLM, llama.cpp)
- `budget`: by a number of tokens (Claude up to 4.5)
- `adaptive`: on or off, and an effort; the model decides how much (the newest Claude models)
- `either`: by a budget or adaptively (Claude 4.6)
"""


class ThinkingFlags(Flags, frozen=True, kw_only=True):
    """How thinking is requested, and which thinking is sent back."""

    form: ThinkingForm = demand("any", "W12", "W59")
    """How thinking is requested; see `ThinkingForm`."""
    efforts: tuple[str, ...] | None = demand(None, "W12", "W59")
    """The supported efforts, from lowest to highest; None: any."""
    budget_range: tuple[int, ...] | None = demand(None, "W59")
    """Minimum and maximum thinking budget in tokens; None: any number."""
    is_always_on: bool = False
    """Whether thinking can't be switched off, for a model with a budget or adaptive thinking
    (Gemini 2.5 Pro, Claude Opus 5.5)."""
    off_word: str = "disabled"
    """An Anthropic host's value for no thinking (Claude Sonnet 5.5: `between_tools`)."""
    is_on_by_default: bool = False
    """Whether it thinks unless thinking is switched off."""
    allows_forced_tools: bool = demand(True, "W58")
    """Whether a tool call may be forced while thinking is on."""
    sent_back: Literal["own", "never", "all"] = demand("own", "W110", "C2")
    """Which thinking is sent back: its own, none (Groq), or some in every response, even if empty
    (DeepSeek)."""
    verifies_signatures: bool = demand(False, "W54")
    """Whether thinking without a signature is refused."""
    begins_turns: bool = demand(False, "W51")
    """Whether, with thinking on, a turn that continues after tools must begin with thinking."""
    is_refused_in_prefill: bool = demand(False, "W53")
    """Whether, with thinking off, the last assistant message must not contain thinking."""
    signs_calls: bool = demand(False, "W83")
    """Whether the first call of each step of the current turn must be signed (Gemini 3)."""
    fields: tuple[str, ...] = ()
    """The fields in which a Chat host accepts thinking, in order of preference (W109, W115):
    `reasoning_content`, `reasoning`, `reasoning_details`, or `content` for thinking parts. Empty:
    as it was spelled."""
    is_plain_text: bool = False
    """Whether a Responses host accepts reasoning only as one readable text: no summaries, no
    signatures (llama.cpp)."""


class SamplingFlags(Flags, frozen=True, kw_only=True):
    """Sampling settings and output limits."""

    refused: tuple[str, ...] = demand((), "W12", "W59", "W111")
    """The fields of `Sampling` that it refuses, unless they have their default values."""
    refused_while_thinking: tuple[str, ...] = demand((), "W12", "W59")
    """Additional fields that it refuses while thinking is on."""
    refuses_temperature_with_top_p: bool = demand(False, "W59")
    """Whether temperature and `top_p` are mutually exclusive (Claude from Opus 4.1 on)."""
    needs_token_limit: bool = demand(False, "W50")
    """Whether a request must set the maximum number of output tokens."""
    default_output_tokens: int = 4096
    """The limit that is sent where one is required and the request has none: the most that the
    model can produce, so that it truncates nothing; where that is unknown, what every model has."""
    has_fast_mode: bool = demand(True)
    """Whether an Anthropic host has a fast mode (`speed`) for this model."""
    min_output_tokens: int = demand(0)
    """The smallest output token limit that it accepts (OpenAI's Responses: 16)."""
    token_limit_fields: tuple[str, ...] = ("max_completion_tokens", "max_tokens")
    """A Chat host's names for the output token limit, in order of preference (W12)."""
    seed_field: str | None = None
    """A Chat host's name for the seed; None: `seed`, or as it was spelled."""
    host_fields: tuple[str, ...] = ()
    """Settings that it supports although not every server of the dialect does: `top_k`, `min_p`,
    `repetition_penalty`, `typical_p`."""


class MediaFlags(Flags, frozen=True, kw_only=True):
    """Which media may be sent, how, and where."""

    kinds: tuple[str, ...] | None = demand(None)
    """The media kinds that it supports: `image`, `audio`, `video`, `file`; None: all that its
    dialect can express."""
    takes_image_urls: bool = demand(True, "W105")
    """Whether images may be given by URL, not only as data."""
    details: tuple[str, ...] | None = demand(("auto", "low", "high"), relaxed=None)
    """The values of `Image.detail` that it knows, from coarse to fine; None: any."""
    url_parts: tuple[str, ...] = ()
    """The part types in which a Chat host accepts media by URL, besides `image_url`: `video_url`,
    `audio_url`, `file_url` (also for data), and `file` with the URL as its data."""
    in_results: bool | None = None
    """Whether a tool's result may hold media (W1, W31, W64; Gemini 3: W96). None: unknown; then
    only results that came with media are sent with them, and other media follow the results."""
    is_flat: bool = False
    """Whether a Chat host has audio and documents as plain URLs or data (Mistral)."""


class SchemaFlags(Flags, frozen=True, kw_only=True):
    """Output formats, and the supported part of JSON Schema."""

    outputs: tuple[str, ...] = demand(("text", "json", "schema"))
    """The formats of `Output` that it supports."""
    checks_strict: bool = demand(True, "W14", "W15", relaxed=False)
    """Whether a strict schema must keep to the vendor's subset; other hosts compile any schema."""
    takes_strict_tools: bool = True
    """Whether tools may be marked as strict."""
    takes_json_schema: bool = True
    """Whether a Gemini host accepts JSON Schema, or only OpenAPI's form of it (W90 to W93)."""
    refuses_json_with_tools: bool = demand(False, "W97")
    """Whether JSON output and tools are mutually exclusive: it refuses the two together (before
    Gemini 3), or constrained output prevents tool calls (servers that compile a grammar)."""
    uses_chat_format: bool = False
    """Whether a Responses host reads the output format from Chat's `response_format` instead of
    `text.format` (llama.cpp)."""


class StateFlags(Flags, frozen=True, kw_only=True):
    """State that the provider keeps between requests."""

    fields: tuple[str, ...] = ("store",)
    """The fields of `State` that it supports."""
    verifies_items: bool = demand(False, "W21", "W23", "W24", "W25", "W28", "W30")
    """Whether it looks items up by id, and refuses those that differ from what it made: an id of
    another form, reasoning without the item that followed it, a duplicate item."""


class CacheFlags(Flags, frozen=True, kw_only=True):
    """Prompt cache hints."""

    field: str | None = None
    """The field in which a Chat host accepts cache hints, including those from other dialects (C4);
    None: hints are sent back as they were spelled."""
    max_hints: int | None = demand(None, "W60")
    """Maximum number of cache hints; the oldest are dropped first."""
    takes_ttl: bool = demand(True, "W61")
    """Whether a cache hint may have a time to live."""


class FieldFlags(Flags, frozen=True, kw_only=True):
    """The fields that a host supports, requires or refuses."""

    in_request: tuple[str, ...] | None = None
    """The request fields that a Chat host accepts; None: any (W109)."""
    in_message: tuple[str, ...] | None = None
    """The message fields that a Chat host accepts; None: any (W109, W111)."""
    in_tool_message: tuple[str, ...] = ()
    """Fields besides these that a Chat host accepts in a tool's message."""
    refused: tuple[str, ...] = ()
    """Fields that a Chat host refuses anywhere, and a Responses host in the request: other hosts'
    extensions (W17, W109)."""
    content_types: tuple[str, ...] = ()
    """Part types that a Chat host has besides text and media (Groq, Mistral)."""
    needs_model: bool = demand(False)
    """Whether the request body must name the model: there is no default, and the path doesn't name
    it."""
    needs_message_type: bool = False
    """Whether a Responses host recognises assistant messages only by `"type": "message"`, which its
    vendor doesn't require (llama.cpp)."""

    def accepts(self, name: str, known: tuple[str, ...] | None) -> bool:
        """Whether a Chat host accepts this field, where only `known` ones are accepted."""
        return name not in self.refused and (known is None or name in known)

    def in_message_of(self, role: object) -> tuple[str, ...] | None:
        """The fields that a Chat host accepts in a message of this role; None: any."""
        if self.in_message is None or role != "tool":
            return self.in_message
        return self.in_message + self.in_tool_message


class HostFlags(Flags, frozen=True, kw_only=True):
    """Facts about the host; none of them triggers repairs."""

    names_model_in_path: bool = False
    """Whether the path names the model, and the body must not (Vertex)."""
    api_version: str | None = None
    """The value that an Anthropic host requires as `anthropic_version` in the body (Vertex)."""
    ends_with_done: bool = True
    """Whether a Chat host's streams end with `[DONE]`."""
    hides_cut_offs: bool = False
    """Whether it reports a response as complete that it truncated at the output token limit
    (llama.cpp on Responses): then only the token count shows it."""
    other_models: tuple[str, ...] = ()
    """The models that the vendor lists, if the requested model is not among them."""
    resumes_answers: bool = False
    """Whether a request may continue a stored response (`previous_response_id`) with its own
    instructions and tools (W36)."""
