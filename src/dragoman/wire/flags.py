"""The flags of a `Target`, in small groups.

A flag with a plain default is a fact about how a target is spoken to. One that is made with
`demand` is something the target insists on: it names the rules that it stands for, and what it is
where the target is believed to refuse nothing. Rules, families of models and tests name a flag by
its group and its own name: `turns.pairs_results`.
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
    """A flag that asks for repairs: its default, the rules behind it, its value where it asks none.

    `relaxed` need be given only where the default demands something.
    """
    # `FlagsMeta` puts the default in its place.
    return _Demand(default, rules, default if relaxed is _AS_BY_DEFAULT else relaxed)  # type: ignore[return-value]


class FlagsMeta(msgspec.StructMeta):
    """Keeps what `demand` says of a class's fields, and leaves their defaults in the class."""

    def __new__(  # noqa: D102
        cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: Any
    ) -> Any:
        demands = {key: one for key, one in namespace.items() if isinstance(one, _Demand)}
        namespace |= {key: one.default for key, one in demands.items()}
        made: Any = super().__new__(cls, name, bases, namespace, **options)
        made.demands = demands
        return made


class Flags(Value, frozen=True, kw_only=True, gc=True, dict=True, metaclass=FlagsMeta):
    """A group of flags; `relaxed` is the same group with no demands."""

    demands: ClassVar[dict[str, _Demand]]
    """What is known of the flags that ask for repairs, by name."""

    @cached_property
    def relaxed(self) -> Self:
        """The same flags of a target that is believed to refuse nothing."""
        changes = {name: one.relaxed for name, one in self.demands.items()}
        for name in self.__struct_fields__:
            if isinstance(group := getattr(self, name), Flags):
                changes[name] = group.relaxed
        return self.replace(**changes)


@lru_cache(maxsize=64)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.ASCII)


def is_word(text: str) -> bool:
    """As `WORDS` has it; most are identifiers, which is sooner told."""
    is_name = text.isidentifier() and text.isascii()
    return is_name or _compiled(WORDS).fullmatch(text) is not None


def _is_anything(_text: str) -> bool:
    return True


class IdFlags(Flags, frozen=True, kw_only=True):
    """What the ids of tool calls look like."""

    pattern: str = demand(ANYTHING, "W22", "W44", "C1")
    """A regular expression for the whole of an id."""
    max_length: int = demand(64, "W5", "W22", "W44", "C1", relaxed=1 << 30)
    """The most characters an id may have; ids that we make have as many as fit, up to 29."""
    must_be_unique: bool = demand(False, "W43")
    """Whether an id may be used once only in a whole request."""
    are_allowed: bool = True
    """Whether calls and results may have ids at all (W81)."""

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return _compiled(self.pattern)

    def accepts(self, tool_id: str) -> bool:
        """Whether a tool call may have this id."""
        return len(tool_id) <= self.max_length and self._pattern.fullmatch(tool_id) is not None

    @cached_property
    def _matches(self) -> Callable[[str], object]:
        if self.pattern == ANYTHING:
            return _is_anything
        return is_word if self.pattern == WORDS else self._pattern.fullmatch

    def accepts_all(self, tool_ids: Collection[str]) -> bool:
        """Whether tool calls may have all of these."""
        matches, longest = self._matches, self.max_length
        if len(tool_ids) > _MANY and matches in (is_word, _is_anything):
            # All at once: four times as fast.
            lengths = [*map(len, tool_ids)]
            if max(lengths) > longest or matches is _is_anything:
                return max(lengths) <= longest
            joined = "".join(tool_ids)
            is_fitting = min(lengths) > 0 and joined.isascii()
            return is_fitting and not joined.encode().translate(None, _OF_WORDS)
        for tool_id in tool_ids:  # noqa: SIM110 - mostly one: to begin a generator takes longer
            if len(tool_id) > longest or not matches(tool_id):
                return False
        return True


class ToolFlags(Flags, frozen=True, kw_only=True):
    """Tools, their names and arguments, and the choice among them."""

    name_pattern: str = demand(r"[A-Za-z0-9_-]{1,64}", "W6", "W89", relaxed=ANYTHING)
    """A regular expression for the whole of a tool's name."""
    max_name_length: int = 64
    """The most characters of a name that we make."""
    parses_arguments: bool = demand(False, "W114", "C3")
    """Whether a Chat host reads the arguments of earlier calls, so that a text that is no JSON
    fails the request."""
    limits_argument_names: bool = demand(False, "W39")
    """Whether names of properties in the arguments of earlier calls have a limit."""
    must_be_declared: bool = demand(False, "W63")
    """Whether tools must be declared while there are calls in the history."""
    refuses_mixed: bool = demand(False, "W97")
    """Whether functions and the provider's own tools exclude each other."""
    choices: tuple[str, ...] = demand(("auto", "none", "required", "named", "allowed"))
    """The modes of `ToolChoice` that it heeds; the others are said by the tools that are sent."""
    required_word: str | None = None
    """What a Chat host says for a tool that must be called; None: `required`, or as spelled."""
    takes_parallel_choice: bool = True
    """Whether it can be told to call tools one at a time, or several at once."""
    takes_forced_choice: bool = demand(True, "W74")
    """Whether it may be forced to call a tool at all (the newest Claudes refuse)."""
    takes_text: bool = demand(True)
    """Whether a Chat host has tools that take free text (`custom`), as OpenAI's own."""
    call_opening: str | None = demand(None)
    """What a call begins with, for a model that would rather talk: put into its mouth where it must
    call. None: it can be told."""

    @cached_property
    def _name(self) -> re.Pattern[str]:
        return _compiled(self.name_pattern)

    def accepts_name(self, name: str) -> bool:
        """Whether a tool may have this name."""
        return self._name.fullmatch(name) is not None


class TurnFlags(Flags, frozen=True, kw_only=True):
    """Who speaks when, what must be answered, and what a message must hold."""

    pairs_results: bool = demand(True, "W3", "W4", "W29", "W40", "W41", "W42", "W78", relaxed=False)
    """Whether every call needs its result, and every result its call, before anyone goes on."""
    groups_results: bool = demand(False, "W40", "W41", "W78")
    """Whether all results of a round must be in one message."""
    orders_results: bool = demand(False, "W103")
    """Whether results of one tool must stand in the order of its calls: it may know names only."""
    merges_neighbours: bool = False
    """Whether neighbouring messages of one role are one turn to it: calls in two of them wait for
    results together."""
    answers_results: bool = demand(False, "C1")
    """Whether the assistant must speak between a tool's result and the user."""
    refuses_empty_text: bool = demand(False, "W46")
    """Whether a text of no characters is refused."""
    refuses_blank_text: bool = demand(False, "W46", "W76")
    """Whether a text of nothing but white space may be refused."""
    refuses_empty_messages: bool = demand(False, "W47", "W76")
    """Whether a message without any content is refused."""
    needs_message: bool = demand(False, "W47", "W75")
    """Whether instructions alone are refused."""
    starts_with_user: bool = demand(False, "W47", "W117")
    """Whether the first message must be the user's."""
    refuses_call_first: bool = demand(False, "W77")
    """Whether the first message must be no call."""
    prefill: Literal["free", "trimmed", "uncertain", "refused"] = demand("free", "W48", "W79")
    """Whether the last message may be the beginning of an answer that the model continues: `free`,
    `trimmed` (if it has no white space at its end), `uncertain` (only some models allow it), or
    `refused`."""
    system_place: Literal["anywhere", "first", "nowhere"] = demand("anywhere", "W117")
    """Where instructions among the messages may stand: anywhere, in one message before all others,
    or in the user's words only."""
    takes_developer: bool = demand(True, "W13")
    """Whether it knows the developer's role."""
    alternates_roles: bool = demand(False, "W117")
    """Whether two messages in a row must not be of one role, tools apart."""


ThinkingForm = Literal[
    "any", "never", "effort", "reasoning", "switch", "template", "budget", "adaptive", "either"
]
"""How a target is asked to think.

- `any`: as the request says it, in the spelling that it came in
- `never`: it can't be asked to
- `effort`: by an effort alone (OpenAI's `reasoning_effort`)
- `reasoning`: in OpenRouter's object of that name, with effort, budget and more
- `switch`: on or off in `thinking`, and an effort (DeepSeek, Z.ai)
- `template`: on or off for the chat template, and an effort (vLLM, llama.cpp)
- `budget`: by a number of tokens (Claude up to 4.5)
- `adaptive`: on or off, and an effort; it decides itself how much (the newest Claudes)
- `either`: by a budget or adaptively (Claude 4.6)
"""


class ThinkingFlags(Flags, frozen=True, kw_only=True):
    """How a target is asked to think, and which thinking goes back to it."""

    form: ThinkingForm = demand("any", "W12", "W59")
    """How it is asked to think; see `ThinkingForm`."""
    efforts: tuple[str, ...] | None = demand(None, "W12", "W59")
    """The efforts that it knows, from the least to the most; None: whatever is asked for."""
    budget_range: tuple[int, ...] | None = demand(None, "W59")
    """The least and the most tokens that it may be told to think with; None: any number."""
    is_always_on: bool = False
    """Whether a model that is told a budget, or thinks adaptively, can't be told to think not at
    all (Gemini 2.5 Pro, Claude Opus 5.5)."""
    off_word: str = "disabled"
    """What an Anthropic host says for no thinking (Claude Sonnet 5.5: `between_tools`)."""
    is_on_by_default: bool = False
    """Whether it thinks unless it is told not to."""
    allows_forced_tools: bool = demand(True, "W58")
    """Whether a model may be forced to call a tool while it thinks."""
    sent_back: Literal["own", "never", "all"] = demand("own", "W110", "C2")
    """Which thinking goes back to it: what it made itself, none (Groq), or some in every answer,
    be it empty (DeepSeek)."""
    verifies_signatures: bool = demand(False, "W54")
    """Whether thinking without a signature is refused."""
    begins_turns: bool = demand(False, "W51")
    """Whether, with thinking on, a turn that goes on after tools must have begun with it."""
    is_refused_in_prefill: bool = demand(False, "W53")
    """Whether, with thinking off, the assistant's last message must not hold any."""
    signs_calls: bool = demand(False, "W83")
    """Whether the first call of each step of the current turn must be signed (Gemini 3)."""
    fields: tuple[str, ...] = ()
    """The fields in which a Chat host takes thinking back, the best one first (W109, W115):
    `reasoning_content`, `reasoning`, `reasoning_details`, or `content` for parts of it. Empty: as
    it was spelled."""
    is_plain_text: bool = False
    """Whether a Responses host takes reasoning only as one text that it can read: no summaries, no
    signatures (llama.cpp)."""


class SamplingFlags(Flags, frozen=True, kw_only=True):
    """Settings of sampling, and the limit of the answer."""

    refused: tuple[str, ...] = demand((), "W12", "W59", "W111")
    """The fields of `Sampling` that it refuses, unless they are as they would be anyway."""
    refused_while_thinking: tuple[str, ...] = demand((), "W12", "W59")
    """Those that it refuses besides while it is asked to think."""
    refuses_temperature_with_top_p: bool = demand(False, "W59")
    """Whether temperature and `top_p` exclude each other (Claude from Opus 4.1 on)."""
    needs_token_limit: bool = demand(False, "W50")
    """Whether a request must say how many tokens the answer may have."""
    min_output_tokens: int = demand(0)
    """The smallest cap on the answer that it takes (OpenAI's Responses: 16)."""
    token_limit_fields: tuple[str, ...] = ("max_completion_tokens", "max_tokens")
    """The names that a Chat host takes for the most tokens to write, the best one first (W12)."""
    seed_field: str | None = None
    """What a Chat host calls the seed; None: `seed`, or as it was spelled."""
    host_fields: tuple[str, ...] = ()
    """The settings that not every server of the dialect has, and that it takes: `top_k`, `min_p`,
    `repetition_penalty`, `typical_p`."""


class MediaFlags(Flags, frozen=True, kw_only=True):
    """Which media may be sent, how, and where."""

    kinds: tuple[str, ...] | None = demand(None)
    """The media that it takes: `image`, `audio`, `video`, `file`; None: all that its dialect
    can say."""
    takes_image_urls: bool = demand(True, "W105")
    """Whether images may be given by their address, or only as data."""
    in_results: bool | None = None
    """Whether a tool's result may hold media (W1, W31, W64; Gemini 3: W96). None: nobody knows;
    then only what came so goes back so, and the rest stands behind the results."""
    is_flat: bool = False
    """Whether a Chat host has sound and documents as plain addresses or data (Mistral)."""


class SchemaFlags(Flags, frozen=True, kw_only=True):
    """The forms of the answer, and what is taken of JSON Schema."""

    outputs: tuple[str, ...] = demand(("text", "json", "schema"))
    """The formats of `Output` that it takes."""
    checks_strict: bool = demand(True, "W14", "W15", relaxed=False)
    """Whether a strict schema must keep to the vendor's subset: others make a grammar of any."""
    takes_strict_tools: bool = True
    """Whether tools may be marked as strict."""
    takes_json_schema: bool = True
    """Whether a Gemini host takes JSON Schema itself, or in OpenAPI's form only (W90 to W93)."""
    refuses_json_with_tools: bool = demand(False, "W97")
    """Whether an answer in JSON and tools exclude each other: it refuses them (before Gemini 3),
    or, held to a form, the model can't call (servers that make a grammar of it)."""
    uses_chat_format: bool = False
    """Whether a Responses host reads the answer's format from Chat's field `response_format`, not
    from `text.format` (llama.cpp)."""


class StateFlags(Flags, frozen=True, kw_only=True):
    """What the provider keeps between requests."""

    fields: tuple[str, ...] = ("store",)
    """The fields of `State` that it knows."""
    verifies_items: bool = demand(False, "W21", "W23", "W24", "W25", "W28", "W30")
    """Whether it looks items up by their ids, and refuses those that are not as it made them: an
    id of another form, reasoning without what it led to, an item twice."""


class CacheFlags(Flags, frozen=True, kw_only=True):
    """Hints for the prompt cache."""

    field: str | None = None
    """The field in which a Chat host takes cache hints, others' included (C4); None: hints go
    back as they were spelled."""
    max_hints: int | None = demand(None, "W60")
    """How many cache hints it takes; the oldest are left out first."""
    takes_ttl: bool = demand(True, "W61")
    """Whether a cache hint may say how long."""


class FieldFlags(Flags, frozen=True, kw_only=True):
    """The fields that a host knows, needs or refuses."""

    in_request: tuple[str, ...] | None = None
    """The fields that a Chat host takes in a request; None: any (W109)."""
    in_message: tuple[str, ...] | None = None
    """The fields that a Chat host takes in a message; None: any (W109, W111)."""
    refused: tuple[str, ...] = ()
    """The fields that a Chat host refuses wherever they stand: other hosts' extensions (W17)."""
    content_types: tuple[str, ...] = ()
    """The types of parts that a Chat host has besides text and media (Groq, Mistral)."""
    needs_model: bool = demand(False)
    """Whether the body of a request must name the model: there is no default, and the path does
    not name it."""
    needs_message_type: bool = False
    """Whether a Responses host knows the assistant's words only by `"type": "message"`, which its
    vendor does not ask for (llama.cpp)."""

    def accepts(self, name: str, known: tuple[str, ...] | None) -> bool:
        """Whether a Chat host takes this field where only `known` ones are taken."""
        return name not in self.refused and (known is None or name in known)


class HostFlags(Flags, frozen=True, kw_only=True):
    """Who is spoken to: nothing here is about refusing anything."""

    names_model_in_path: bool = False
    """Whether the path names the model, and the body must not (Vertex)."""
    api_version: str | None = None
    """What an Anthropic host wants to read in `anthropic_version`, in the body (Vertex)."""
    ends_with_done: bool = True
    """Whether a Chat host's streams end with `[DONE]`."""
    hides_cut_offs: bool = False
    """Whether it calls an answer complete that it cut off at the most tokens to write (llama.cpp on
    Responses): then only the count tells."""
    other_models: tuple[str, ...] = ()
    """The models that its maker lists, where the one that is asked for is none of them."""
    resumes_answers: bool = False
    """Whether a request may go on from an answer that it has kept (`previous_response_id`), with
    instructions and tools of its own (W36)."""
