"""`Request`: what is sent to a model, and its settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal, Self

from msgspec.structs import force_setattr

from dragoman.errors import InvalidInputError
from dragoman.model.content import AnyPart
from dragoman.model.frozen import EMPTY, FrozenDict
from dragoman.model.messages import Message, settle_all
from dragoman.model.parts import Origin, Part
from dragoman.model.provider_tools import KnownTool
from dragoman.model.tools import ServerTool, ToolChoice, ToolDefinition
from dragoman.model.value import (
    Value,
    expect,
    expect_fields,
    expect_number,
    name_shown,
    own_mapping,
    own_tuple,
)

_NO_GROUPS = (None, None, None)
_REALS = ("temperature", "top_p", "presence_penalty", "frequency_penalty")
_WHOLES = ("max_tokens", "top_k", "seed", "choices", "top_logprobs")
AnyTool = ToolDefinition | ServerTool | KnownTool


class Sampling(Value, frozen=True, kw_only=True):
    """Sampling parameters. `None` means the provider's default."""

    max_tokens: int | None = None
    """Maximum number of output tokens, thinking included where the provider counts it."""
    temperature: int | float | None = None
    top_p: int | float | None = None
    top_k: int | None = None
    stop: tuple[str, ...] = ()
    """Sequences at which the model stops."""
    seed: int | None = None
    """For reproducible sampling, where supported."""
    presence_penalty: int | float | None = None
    frequency_penalty: int | float | None = None
    choices: int | None = None
    """The number of choices to generate; `None` means one."""
    logprobs: bool | None = None
    """Whether to return log probabilities."""
    top_logprobs: int | None = None
    """The number of alternatives per token in the log probabilities."""
    verbosity: str | None = None
    """How verbose the response should be: `low`, `medium` or `high`."""

    def __post_init__(self) -> None:
        # Runs for every decoded request: most of them set only one or two of these.
        if self.stop.__class__ is not tuple or self.stop:
            own_tuple(self, "stop", str)
        if not (self.temperature is self.top_p is None) or not (
            self.presence_penalty is self.frequency_penalty is None
        ):
            for name in _REALS:
                expect_number(getattr(self, name), f"Sampling.{name}")
        for number in (self.max_tokens, self.top_k, self.seed, self.choices, self.top_logprobs):
            if number is not None and number.__class__ is not int:
                self._take_wholes()
        if self.logprobs is not None or self.verbosity is not None:
            expect_fields(self, logprobs=bool, verbosity=str)

    def _take_wholes(self) -> None:
        for name in _WHOLES:
            number = getattr(self, name)
            if isinstance(number, float) and number.is_integer():
                force_setattr(self, name, int(number))  # JSON does not distinguish 1 and 1.0
            elif number is not None:
                expect(number, int, f"Sampling.{name}")


class Output(Value, frozen=True, kw_only=True):
    """The format of the response: text, any JSON, or JSON that matches a schema."""

    format: Literal["text", "json", "schema"] = "text"
    schema: Mapping[str, Any] | None = None
    """The JSON Schema, for the format `schema`."""
    name: str | None = None
    description: str | None = None
    strict: bool | None = None
    """Whether the provider must enforce the schema."""
    extras: Mapping[str, Any] = EMPTY
    origin: Origin | None = None
    """Where the schema came from; it is sent back there unchanged."""

    def __post_init__(self) -> None:
        if self.format not in ("text", "json", "schema"):  # a tuple, as the value may be unhashable
            msg = "Output.format must be text, json or schema"
            raise InvalidInputError(msg)
        if self.schema is not None:
            own_mapping(self, "schema")
        own_mapping(self, "extras")

    def _compared_fields(self) -> tuple[Any, ...]:
        return (self.format, self.schema, self.name, self.description, self.strict)

    def _sizes(self) -> Iterator[str]:
        yield self.format


class ThinkingConfig(Value, frozen=True, kw_only=True):
    """Whether and how much the model should think. `None` means the provider's default."""

    enabled: bool | None = None
    effort: str | None = None
    """`none`, `minimal`, `low`, `medium`, `high`, … as the provider names them."""
    budget: int | None = None
    """Maximum number of thinking tokens."""
    visible: bool | None = None
    """Whether the response should include the thinking or a summary of it."""
    summary: str | None = None
    extras: Mapping[str, Any] = EMPTY

    def __post_init__(self) -> None:
        own_mapping(self, "extras")

    @property
    def is_shown(self) -> bool | None:
        """`visible`, or what a `summary` says about it: `none` hides the thinking."""
        if self.visible is None and self.summary is not None:
            return self.summary != "none"
        return self.visible

    def _compared_fields(self) -> tuple[Any, ...]:
        return (self.enabled, self.effort, self.budget, self.visible, self.summary)


class State(Value, frozen=True, kw_only=True):
    """References to conversation state that the provider holds in addition to the request.

    It may contain calls, results and instructions.
    """

    previous_response_id: str | None = None
    """The response to continue from (OpenAI Responses)."""
    conversation: str | None = None
    """The id of a conversation stored by the provider (OpenAI Responses)."""
    prompt: str | None = None
    """The id of a stored prompt (OpenAI Responses)."""
    thread: str | None = None
    """The response up to which the provider keeps a thread (Anthropic)."""
    cached_content: str | None = None
    """The name of previously cached content (Gemini)."""
    continuation_token: str | None = None
    """Where an earlier request stopped (Gemini)."""
    store: bool | None = None
    """Whether the provider should store the response."""


class MediaOutput(Value, frozen=True, kw_only=True):
    """Output media besides text. `None` means the provider's default."""

    modalities: tuple[str, ...] = ()
    """`text`, `audio` or `image`."""
    voice: str | None = None
    """The voice, as the provider names it."""
    audio_format: str | None = None
    """`wav`, `mp3`, `pcm16`, …"""

    def __post_init__(self) -> None:
        own_tuple(self, "modalities", str)
        expect_fields(self, voice=str, audio_format=str)


class Service(Value, frozen=True, kw_only=True):
    """How the provider processes the request. `None` means the provider's default."""

    user: str | None = None
    """A stable, pseudonymous identifier of the end user."""
    safety_identifier: str | None = None
    """The identifier for abuse detection, where the provider has one apart from `user`."""
    tier: str | None = None
    """The service tier: `auto`, `standard`, `flex`, `priority`, … as the provider names them."""
    labels: Mapping[str, Any] = EMPTY
    """Labels stored with the request: `metadata` in OpenAI, `labels` in Google."""
    cache_key: str | None = None
    """Requests with the same key are more likely to share cached prompts."""
    cache_retention: str | None = None
    """How long prompts are cached: `in_memory` or `24h`."""
    cache_options: Mapping[str, Any] | None = None
    """OpenAI's `prompt_cache_options`: `mode` and `ttl`."""
    moderation: Mapping[str, Any] | None = None
    """Moderation settings, in the provider's format."""
    obfuscation: bool | None = None
    """Whether streams are padded, so that chunk sizes reveal nothing."""

    def __post_init__(self) -> None:
        if self.labels.__class__ is not FrozenDict or not self.labels:
            own_mapping(self, "labels")
        if self.cache_options is not None:
            own_mapping(self, "cache_options")
        if self.moderation is not None:
            own_mapping(self, "moderation")
        if not (self.user is self.safety_identifier is self.tier is None) or not (
            self.cache_key is self.cache_retention is None and self.obfuscation is None
        ):
            expect_fields(self, user=str, safety_identifier=str, tier=str, cache_key=str,
                          cache_retention=str, obfuscation=bool)  # fmt: skip


class ContextManagement(Value, frozen=True, kw_only=True):
    """What the provider does when the conversation gets too long. `None` means its default."""

    compact_at: int | None = None
    """The number of tokens from which the provider replaces the beginning with a summary."""
    truncate: bool | None = None
    """Whether the provider may drop messages that don't fit, instead of returning an error."""

    def __post_init__(self) -> None:
        expect_fields(self, compact_at=int, truncate=bool)


def _meant_for(message: Message, model: str) -> Message:
    origin = message.origin
    if origin is None or not origin.is_of_a_request or origin.model is not None:
        return message
    return message.replace_unchecked(origin=origin.replace(model=model, response_id=""))


class Request(Value, frozen=True, kw_only=True):
    """One call to a model: messages, tools and settings."""

    model: str | None = None
    """The model's name."""
    system: tuple[AnyPart, ...] = ()
    """Instructions that the wire has outside the list of messages."""
    messages: tuple[Message, ...] = ()
    """The conversation so far."""
    tools: tuple[AnyTool, ...] = ()
    """The tools that the model may call."""
    tool_choice: ToolChoice | None = None
    """Whether the model must call tools, and which."""
    sampling: Sampling = Sampling()
    """Temperature, token limit and the like."""
    output: Output | None = None
    """The format of the response."""
    thinking: ThinkingConfig | None = None
    """Whether and how much to think."""
    state: State | None = None
    """Conversation state held by the provider."""
    media: MediaOutput | None = None
    """Output media besides text."""
    service: Service | None = None
    """Service tier, caching, user and labels."""
    context_management: ContextManagement | None = None
    """What to do when the conversation gets too long."""
    stream: bool | None = None
    """Whether to stream the response; `None` if not specified."""
    metadata: Mapping[str, Any] = EMPTY
    """Application data; never sent. A provider's metadata is `service.labels`."""
    extras: Mapping[str, Any] = EMPTY
    """Wire fields that no other field covers, keyed by dialect."""

    def __post_init__(self) -> None:
        own_tuple(self, "system", Part)
        own_tuple(self, "messages", Message)
        if isinstance(self.tools, (list, tuple)):  # a decorated function stands for its definition
            tools = tuple(getattr(tool, "definition", tool) for tool in self.tools)
            force_setattr(self, "tools", tools)
        own_tuple(self, "tools", (ToolDefinition, ServerTool))
        expect(self.sampling, Sampling, "Request.sampling")
        expect_fields(self, model=str, tool_choice=ToolChoice, output=Output,
                      thinking=ThinkingConfig, state=State, stream=bool)  # fmt: skip
        if (self.media, self.service, self.context_management) != _NO_GROUPS:
            self._take_groups()
        if self.metadata is not EMPTY:
            own_mapping(self, "metadata")
        if self.extras is not EMPTY:
            own_mapping(self, "extras")

    def _take_groups(self) -> None:
        """Checks the groups of settings; one in which nothing is set becomes `None`."""
        expect_fields(self, media=MediaOutput, service=Service,
                      context_management=ContextManagement)  # fmt: skip
        for name in ("media", "service", "context_management"):
            group = getattr(self, name)
            if group is not None and group == type(group)():
                force_setattr(self, name, None)

    @property
    def functions(self) -> tuple[ToolDefinition, ...]:
        """The functions among the tools: neither tools that take any text, nor a provider's own."""
        defined = (tool for tool in self.tools if isinstance(tool, ToolDefinition))
        return tuple([tool for tool in defined if tool.kind == "function"])

    def replace(self, **changes: Any) -> Self:
        """Returns a copy with these fields changed.

        If the model changes, messages decoded from a request remember the model it was meant for.
        """
        made = super().replace(**changes)
        if self.model is None or made.model == self.model:
            return made
        meant = tuple([_meant_for(message, self.model) for message in made.messages])
        return made.replace_unchecked(messages=meant)

    def with_settings(self, **settings: Any) -> Self:
        """Returns a copy with these fields changed, also those of `sampling`: `max_tokens=500`."""
        drawn = {key: settings[key] for key in settings if key in Sampling.__struct_fields__}
        others = {key: settings[key] for key in settings if key not in drawn}
        changed = self.replace(**others) if others else self
        return changed.replace(sampling=changed.sampling.replace(**drawn)) if drawn else changed

    def settle(self) -> None:
        """Assigns the ids of messages that have none yet."""
        settle_all(self.messages)
        for tool in self.tools:
            tool.settle()

    def _compared_fields(self) -> tuple[Any, ...]:
        names = ("model", "system", "messages", "tools", "tool_choice", "sampling", "output",
                 "thinking", "state", "media", "service", "context_management", "stream",
                 "metadata")  # fmt: skip
        return tuple(getattr(self, name) for name in names)

    def _sizes(self) -> Iterator[str]:
        yield from name_shown(self.model)
        yield f"{len(self.messages)} messages"
        yield f"{len(self.tools)} tools"


BLANK = Request()
"""An empty request, from which decoders build theirs with `replace_trusted`."""
UNSAID = Sampling()
"""The sampling of a request that sets none; stored as `{}`, unlike an omitted default."""
