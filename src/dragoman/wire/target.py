"""What differs between the deployments and models of one dialect."""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import cached_property, lru_cache
from typing import Any, Literal

from dragoman.model.messages import Message
from dragoman.model.parts import Origin
from dragoman.model.value import Value

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


ANYTHING = r"[\s\S]*"


@lru_cache(maxsize=64)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.ASCII)


class Target(Value, frozen=True, kw_only=True, gc=True, dict=True):
    """The facts about a target that decide how a request has to look.

    Each dialect has one for its vendor's own deployment; providers and models are variations of
    it (`target.replace(...)`). Wire code asks these flags, never for a provider's name.
    """

    dialect: str
    is_strict: bool = True
    """Whether it is believed to refuse what the rules say; where it is not, what is given is
    sent, and nothing is added."""
    spares_own: bool = False
    """Whether messages that came in this dialect stay as they came, among others that are fitted:
    nobody knows that the host refuses them."""
    nowhere: tuple[str, ...] = ()
    """The fields of parts that have no place on the wire (`Image.name`); see `fitting.luggage`."""
    is_described: bool = True
    """Whether its flags come from somebody who knows the host; not where they are put together from
    documentation, and nobody was seen to be refused there."""
    provider: str | None = None
    model: str | None = None
    tool_id: str = ANYTHING
    """What a tool call's id must look like, as a regular expression for the whole of it."""
    tool_id_length: int = 64
    """The most characters an id may have; ids that we make have as many as fit, up to 29."""
    tool_name: str = r"[A-Za-z0-9_-]{1,64}"
    """What a tool's name must look like."""
    tool_name_length: int = 64
    has_unique_tool_ids: bool = False
    """Whether an id may be used once only in a whole request (W43)."""
    pairs_results: bool = True
    """Whether every call needs its result, and every result its call, before anyone goes on."""
    groups_results: bool = False
    """Whether all results of a round must be in one message (W40, W78)."""
    orders_results: bool = False
    """Whether results of one tool must stand in the order of its calls: it may know names only
    (W103)."""
    merges_turns: bool = False
    """Whether neighbouring messages of one role are one turn to it: calls in two of them wait for
    results together."""
    refuses_empty_text: bool = False
    """Whether a text of no characters is refused (W46)."""
    refuses_blank_text: bool = False
    """Whether a text of nothing but white space may be refused (W46, W76)."""
    thinking_back: Literal["own", "never", "all"] = "own"
    """Which thinking goes back to it: what it made itself, none (Groq: W110), or some in every
    answer, be it empty (DeepSeek: C2)."""
    verifies_thinking: bool = False
    """Whether thinking without a signature is refused (W54)."""
    thinking_begins_turns: bool = False
    """Whether, with thinking on, a turn that goes on after tools must have begun with it (W51)."""
    thinking_fields: tuple[str, ...] = ()
    """The fields in which a Chat host takes thinking back, the best one first (W109, W115):
    `reasoning_content`, `reasoning`, `reasoning_details`, or `content` for parts of it. Empty: as
    it was spelled."""
    thinking_form: ThinkingForm = "any"
    """How it is asked to think; see `ThinkingForm`."""
    efforts: tuple[str, ...] | None = None
    """The efforts that it knows, from the least to the most; None: whatever is asked for."""
    thinking_budgets: tuple[int, ...] | None = None
    """The least and the most tokens that it may be told to think with; None: any number."""
    always_thinks: bool = False
    """Whether a model that is told a budget can't be told to think not at all (Gemini 2.5 Pro)."""
    thinks_by_default: bool = False
    """Whether it thinks unless it is told not to."""
    forces_tools_thinking: bool = True
    """Whether a thinking model may be forced to call a tool (W58)."""
    prefill: Literal["free", "trimmed", "uncertain", "refused"] = "free"
    """Whether the last message may be the assistant's, to be gone on with: as it is, without white
    space at its end, at some models only, or not at all (W48, W79)."""
    refuses_prefilled_thinking: bool = False
    """Whether, with thinking off, such a message must not hold any (W53)."""
    verifies_items: bool = False
    """Whether it looks items up by their ids, and refuses those that are not as it made them: an
    id of another form, reasoning without what it led to, an item twice (W21, W23 to W25, W28)."""
    types_messages: bool = False
    """Whether a Responses host knows the assistant's words only by `"type": "message"`, which its
    vendor does not ask for (llama.cpp)."""
    reads_reasoning: bool = False
    """Whether a Responses host takes reasoning only as one text that it can read: no summaries, no
    seals (llama.cpp)."""
    limits_argument_names: bool = False
    """Whether names of properties in the arguments of earlier calls have a limit (W39)."""
    least_output_tokens: int = 0
    """The smallest cap on the answer that it takes (OpenAI's Responses: 16)."""
    needs_token_limit: bool = False
    """Whether a request must say how many tokens the answer may have (W50)."""
    state_fields: tuple[str, ...] = ("store",)
    """The fields of `State` that it knows."""
    resumes_answers: bool = False
    """Whether a request may go on from an answer that it has kept (`previous_response_id`), with
    instructions and tools of its own (W36)."""
    needs_model: bool = False
    """Whether a request must name its model: no path does, and there is no default."""
    needs_message: bool = False
    """Whether instructions alone are refused (W47, W75)."""
    starts_with_user: bool = False
    """Whether the first message must be the user's (W47)."""
    refuses_call_first: bool = False
    """Whether the first message must be no call (W77)."""
    system_place: Literal["anywhere", "first", "nowhere"] = "anywhere"
    """Where instructions among the messages may stand: anywhere, in one message before all others,
    or in the user's words only (W117)."""
    takes_developer: bool = True
    """Whether it knows the developer's role (W13)."""
    alternates_roles: bool = False
    """Whether two messages in a row must not be of one role, tools apart (W117)."""
    answers_results: bool = False
    """Whether the assistant must speak between a tool's result and the user (C1)."""
    parses_arguments: bool = False
    """Whether a Chat host reads the arguments of earlier calls, so that a text that is no JSON
    fails the request (W114, C3)."""
    content_parts: tuple[str, ...] = ()
    """The types of parts that a Chat host has besides text and media (Groq, Mistral)."""
    media: tuple[str, ...] | None = None
    """The media that it takes: `image`, `audio`, `video`, `file`; None: all that its dialect
    can say."""
    takes_image_urls: bool = True
    """Whether images may be given by their address, or only as data (W105)."""
    has_flat_media: bool = False
    """Whether a Chat host has sound and documents as plain addresses or data (Mistral)."""
    token_limits: tuple[str, ...] = ("max_completion_tokens", "max_tokens")
    """The names that a Chat host takes for the most tokens to write, the best one first (W12)."""
    seed_field: str | None = None
    """What a Chat host calls the seed; None: `seed`, or as it was spelled."""
    required_word: str | None = None
    """What a Chat host says for a tool that must be called; None: `required`, or as spelled."""
    refused_sampling: tuple[str, ...] = ()
    """The fields of `Sampling` that it refuses, unless they are as they would be anyway (W12,
    W59, W111)."""
    refused_sampling_thinking: tuple[str, ...] = ()
    """Those that it refuses besides while it is asked to think (W12)."""
    refuses_temperature_with_top_p: bool = False
    """Whether temperature and `top_p` exclude each other (Claude from Opus 4.1 on: W59)."""
    takes_parallel_choice: bool = True
    """Whether it can be told to call tools one at a time, or several at once."""
    heeded_choices: tuple[str, ...] = ("auto", "none", "required", "named", "allowed")
    """The modes of `ToolChoice` that it heeds; the others are said by the tools that are sent."""
    call_opening: str | None = None
    """What a call begins with, for a model that would rather talk: put into its mouth where it must
    call. None: it can be told."""
    takes_strict_tools: bool = True
    """Whether tools may be marked as strict."""
    checks_strict_schemas: bool = True
    """Whether a strict schema must keep to the vendor's subset (W14, W15): others make a grammar of
    any."""
    outputs: tuple[str, ...] = ("text", "json", "schema")
    """The formats of `Output` that it takes."""
    heeds_chat_format: bool = False
    """Whether a Responses host looks for the form of the answer where Chat has it, in
    `response_format` (llama.cpp)."""
    hides_cut_offs: bool = False
    """Whether it calls an answer complete that it cut off at the most tokens to write (llama.cpp on
    Responses): then only the count tells."""
    request_fields: tuple[str, ...] | None = None
    """The fields that a Chat host takes in a request; None: any (W109)."""
    message_fields: tuple[str, ...] | None = None
    """The fields that a Chat host takes in a message; None: any (W109, W111)."""
    refused_fields: tuple[str, ...] = ()
    """The fields that a Chat host refuses wherever they stand: other hosts' extensions (W17)."""
    cache_field: str | None = None
    """The field in which a Chat host takes cache hints, others' included (C4); None: hints go
    back as they were spelled."""
    cache_markers: int | None = None
    """How many cache hints it takes; the oldest are left out first (W60)."""
    takes_cache_ttl: bool = True
    """Whether a cache hint may say how long (W61)."""
    needs_tools_for_history: bool = False
    """Whether tools must be declared while there are calls in the history (W63)."""
    ends_with_done: bool = True
    """Whether a Chat host's streams end with `[DONE]`."""
    model_in_path: bool = False
    """Whether the path names the model, and the body must not (Vertex)."""
    api_version: str | None = None
    """What an Anthropic host wants to read in `anthropic_version`, in the body (Vertex)."""
    refuses_empty: bool = False
    """Whether a message without any content is refused (W76)."""
    signs_calls: bool = False
    """Whether the first call of each step of the current turn must be signed (Gemini 3: W83)."""
    takes_tool_ids: bool = True
    """Whether calls and results may have ids at all (W81)."""
    media_in_results: bool | None = None
    """Whether a tool's result may hold media (W1, W31, W64; Gemini 3: W96). None: nobody knows;
    then only what came so goes back so, and the rest stands behind the results."""
    takes_json_schema: bool = True
    """Whether a Gemini host takes JSON Schema itself, or in OpenAPI's form only (W90 to W93)."""
    refuses_json_with_tools: bool = False
    """Whether an answer in JSON and tools exclude each other: it refuses them (before Gemini 3:
    W97), or, held to a form, the model can't call (servers that make a grammar of it)."""
    refuses_mixed_tools: bool = False
    """Whether functions and the provider's own tools exclude each other (W97)."""

    @cached_property
    def _id(self) -> re.Pattern[str]:
        return _compiled(self.tool_id)

    @cached_property
    def _name(self) -> re.Pattern[str]:
        return _compiled(self.tool_name)

    def has_made(self, origin: Origin | None) -> bool:
        """Whether opaque state of this origin may go back to it (W54, W86).

        It was made here, as far as both know provider and model, or put there by hand.
        """
        if origin is None:
            return True
        if origin.dialect != self.dialect:
            return False
        if None not in (origin.provider, self.provider) and origin.provider != self.provider:
            return False
        return origin.model is None or self.model is None or is_same_model(origin.model, self.model)

    def owns(self, message: Message) -> bool:
        """Whether a message came in a request of this dialect, and nobody has changed it since.

        An edit takes the mark away (`Message.replace`). An answer has more to its origin: whatever
        became of the conversation since, it is fitted. So is what was meant for another model
        (`Request.replace`).
        """
        origin = message.origin
        if origin is None or origin.dialect != self.dialect or not origin.is_of_a_request:
            return False
        return origin.model is None or self.model is None or is_same_model(origin.model, self.model)

    @cached_property
    def relaxed(self) -> Target:
        """The same target, believed to refuse nothing: what is given is sent."""
        return self.replace(**_RELAXED)

    @cached_property
    def sparing(self) -> Target:
        """The same target, for a conversation of which only some messages came in the dialect."""
        return self.replace(spares_own=True)

    def admits_field(self, name: str, known: tuple[str, ...] | None) -> bool:
        """Whether a Chat host takes this field where only `known` ones are taken."""
        return name not in self.refused_fields and (known is None or name in known)

    def accepts_id(self, tool_id: str) -> bool:
        """Whether a tool call may have this id."""
        return len(tool_id) <= self.tool_id_length and self._id.fullmatch(tool_id) is not None

    def accepts_ids(self, tool_ids: Collection[str]) -> bool:
        """Whether tool calls may have all of these."""
        if max(map(len, tool_ids), default=0) > self.tool_id_length:
            return False
        return self.tool_id == ANYTHING or all(map(self._id.fullmatch, tool_ids))

    def accepts_name(self, name: str) -> bool:
        """Whether a tool may have this name."""
        return self._name.fullmatch(name) is not None


def is_same_model(one: str, other: str) -> bool:
    """Whether two names are one model's: the same, or with a date behind it."""
    return one.startswith(other) or other.startswith(one)


_OF_THE_DEPLOYMENT = (
    "provider", "model", "model_in_path", "api_version", "ends_with_done", "hides_cut_offs",
    "resumes_answers",
)  # fmt: skip
"""What is not about refusing anything, but about who is spoken to."""


def trusting(target: Target, vendor: Target, flags: Collection[str] = ()) -> Target:
    """A target for what came in its dialect: it refuses what these flags say, no more.

    Everything else is as at the dialect's vendor, relaxed: so what came is spelled as it came.
    """
    known = {flag: getattr(target, flag) for flag in (*_OF_THE_DEPLOYMENT, *flags)}
    return vendor.relaxed.replace(**known)


_RELAXED: dict[str, Any] = {
    "is_strict": False,
    "tool_id": ANYTHING,
    "tool_id_length": 1 << 30,
    "tool_name": ANYTHING,
    "has_unique_tool_ids": False,
    "pairs_results": False,
    "groups_results": False,
    "orders_results": False,
    "refuses_empty_text": False,
    "refuses_blank_text": False,
    "refuses_empty": False,
    "thinking_back": "own",
    "verifies_thinking": False,
    "thinking_begins_turns": False,
    "thinking_form": "any",
    "efforts": None,
    "thinking_budgets": None,
    "forces_tools_thinking": True,
    "prefill": "free",
    "refuses_prefilled_thinking": False,
    "verifies_items": False,
    "limits_argument_names": False,
    "least_output_tokens": 0,
    "needs_token_limit": False,
    "needs_model": False,
    "needs_message": False,
    "starts_with_user": False,
    "refuses_call_first": False,
    "system_place": "anywhere",
    "takes_developer": True,
    "alternates_roles": False,
    "answers_results": False,
    "parses_arguments": False,
    "refused_sampling": (),
    "refused_sampling_thinking": (),
    "refuses_temperature_with_top_p": False,
    "checks_strict_schemas": False,
    "media": None,
    "takes_image_urls": True,
    "outputs": ("text", "json", "schema"),
    "heeded_choices": ("auto", "none", "required", "named", "allowed"),
    "call_opening": None,
    "cache_markers": None,
    "takes_cache_ttl": True,
    "needs_tools_for_history": False,
    "signs_calls": False,
    "refuses_json_with_tools": False,
    "refuses_mixed_tools": False,
}
"""What a target is like that refuses nothing: the flags that ask for repairs, turned off."""
