"""What is asked of a model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal, Self

from msgspec.structs import force_setattr

from dragoman.errors import InvalidInputError
from dragoman.model.content import AnyPart
from dragoman.model.frozen import EMPTY
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
    """How the answer is drawn. None: as the provider likes."""

    max_tokens: int | None = None
    """The cap on what the model may write, thinking included where the provider counts it so."""
    temperature: int | float | None = None
    top_p: int | float | None = None
    top_k: int | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None
    presence_penalty: int | float | None = None
    frequency_penalty: int | float | None = None
    choices: int | None = None
    """How many answers; None: one."""
    logprobs: bool | None = None
    top_logprobs: int | None = None
    verbosity: str | None = None
    """How much to say: low, medium, high."""

    def __post_init__(self) -> None:
        # Runs for every request that is read: most of them set one or two of all these.
        if self.stop.__class__ is not tuple or self.stop:
            own_tuple(self, "stop", str)
        for name in _REALS:
            if (number := getattr(self, name)) is not None:
                expect_number(number, f"Sampling.{name}")
        for name in _WHOLES:
            number = getattr(self, name)
            if number is not None and number.__class__ is not int:
                self._whole(name, number)
        if self.logprobs is not None or self.verbosity is not None:
            expect_fields(self, logprobs=bool, verbosity=str)

    def _whole(self, name: str, number: object) -> None:
        if isinstance(number, float) and number.is_integer():  # JSON knows no difference
            force_setattr(self, name, int(number))
        else:
            expect(number, int, f"Sampling.{name}")


class Output(Value, frozen=True, kw_only=True):
    """The form of the answer: free text, any JSON, or JSON of a schema."""

    format: Literal["text", "json", "schema"] = "text"
    schema: Mapping[str, Any] | None = None
    name: str | None = None
    description: str | None = None
    strict: bool | None = None
    extras: Mapping[str, Any] = EMPTY
    origin: Origin | None = None
    """Where the schema was spelled as it is; it goes back there untouched."""

    def __post_init__(self) -> None:
        if self.format not in ("text", "json", "schema"):  # a tuple: it may be unhashable
            msg = "Output.format must be text, json or schema"
            raise InvalidInputError(msg)
        if self.schema is not None:
            own_mapping(self, "schema")
        own_mapping(self, "extras")

    def _said(self) -> tuple[Any, ...]:
        return (self.format, self.schema, self.name, self.description, self.strict)

    def _sizes(self) -> Iterator[str]:
        yield self.format


class ThinkingConfig(Value, frozen=True, kw_only=True):
    """Whether and how hard the model should think first. None: as the provider likes."""

    enabled: bool | None = None
    effort: str | None = None
    """none, minimal, low, medium, high, … as the provider names them."""
    budget: int | None = None
    """The most tokens to think with."""
    visible: bool | None = None
    """Whether the thinking, or a summary of it, should come along."""
    summary: str | None = None
    extras: Mapping[str, Any] = EMPTY

    def __post_init__(self) -> None:
        own_mapping(self, "extras")

    def _said(self) -> tuple[Any, ...]:
        return (self.enabled, self.effort, self.budget, self.visible, self.summary)


class State(Value, frozen=True, kw_only=True):
    """What the provider holds of the conversation besides what the request shows, by its name.

    Calls, results and instructions may be among it.
    """

    previous_response_id: str | None = None
    """The answer that is gone on from (OpenAI Responses)."""
    conversation: str | None = None
    """A conversation that the provider keeps (OpenAI Responses)."""
    prompt: str | None = None
    """A stored prompt (OpenAI Responses)."""
    thread: str | None = None
    """The answer up to which the provider keeps a thread (Anthropic)."""
    cached_content: str | None = None
    """Contents that were cached before (Gemini)."""
    continuation_token: str | None = None
    """Where an earlier request left off (Gemini)."""
    store: bool | None = None
    """Whether the answer is to be kept."""


class MediaOutput(Value, frozen=True, kw_only=True):
    """What the answer may be made of besides text. None: as the provider likes."""

    modalities: tuple[str, ...] = ()
    """text, audio, image."""
    voice: str | None = None
    """Who speaks, as the provider names them."""
    audio_format: str | None = None
    """wav, mp3, pcm16, …"""

    def __post_init__(self) -> None:
        own_tuple(self, "modalities", str)
        expect_fields(self, voice=str, audio_format=str)


class Service(Value, frozen=True, kw_only=True):
    """How the provider is to treat the request, apart from the answer. None: as it likes."""

    user: str | None = None
    """Who asks: a stable name for the person behind the request, without saying who it is."""
    safety_identifier: str | None = None
    """The same, where the provider keeps one for finding abuse apart from the name."""
    tier: str | None = None
    """auto, standard, flex, priority, … as the provider names them."""
    labels: Mapping[str, Any] = EMPTY
    """Kept by the provider beside the request: what OpenAI calls `metadata`, Google `labels`."""
    cache_key: str | None = None
    """Requests that share it are likely to find each other's prompts in the cache."""
    cache_retention: str | None = None
    """How long prompts are cached: `in_memory`, `24h`."""
    cache_options: Mapping[str, Any] | None = None
    """How prompts are cached, as OpenAI says it (`prompt_cache_options`): `mode`, `ttl`."""
    moderation: Mapping[str, Any] | None = None
    """What to look for in what is said, in the provider's own terms."""
    obfuscation: bool | None = None
    """Whether streams are padded, so that their sizes say nothing."""

    def __post_init__(self) -> None:
        own_mapping(self, "labels")
        if self.cache_options is not None:
            own_mapping(self, "cache_options")
        if self.moderation is not None:
            own_mapping(self, "moderation")
        expect_fields(self, user=str, safety_identifier=str, tier=str, cache_key=str,
                      cache_retention=str, obfuscation=bool)  # fmt: skip


class ContextManagement(Value, frozen=True, kw_only=True):
    """What the provider is to do when the conversation grows too long. None: as it likes."""

    compact_at: int | None = None
    """From so many tokens on, it replaces the beginning by a summary."""
    truncate: bool | None = None
    """Whether it may leave out messages that don't fit, instead of refusing the request."""

    def __post_init__(self) -> None:
        expect_fields(self, compact_at=int, truncate=bool)


def _meant_for(message: Message, model: str) -> Message:
    origin = message.origin
    if origin is None or not origin.is_of_a_request or origin.model is not None:
        return message
    return message.replace_unchecked(origin=origin.replace(model=model, response_id=""))


class Request(Value, frozen=True, kw_only=True):
    """One call to a model: the conversation so far, and how it should go on."""

    model: str | None = None
    system: tuple[AnyPart, ...] = ()
    """Instructions that the wire keeps outside the list of messages."""
    messages: tuple[Message, ...] = ()
    tools: tuple[AnyTool, ...] = ()
    tool_choice: ToolChoice | None = None
    sampling: Sampling = Sampling()
    output: Output | None = None
    thinking: ThinkingConfig | None = None
    state: State | None = None
    media: MediaOutput | None = None
    service: Service | None = None
    context_management: ContextManagement | None = None
    stream: bool | None = None
    metadata: Mapping[str, Any] = EMPTY
    """The developer's own; never sent. What a provider calls metadata is `service.labels`."""
    extras: Mapping[str, Any] = EMPTY

    def __post_init__(self) -> None:
        own_tuple(self, "system", Part)
        own_tuple(self, "messages", Message)
        if isinstance(
            self.tools, (list, tuple)
        ):  # a function made a tool stands for its definition
            tools = tuple(getattr(tool, "definition", tool) for tool in self.tools)
            force_setattr(self, "tools", tools)
        own_tuple(self, "tools", (ToolDefinition, ServerTool))
        expect(self.sampling, Sampling, "Request.sampling")
        expect_fields(self, model=str, tool_choice=ToolChoice, output=Output,
                      thinking=ThinkingConfig, state=State, stream=bool)  # fmt: skip
        if (self.media, self.service, self.context_management) != _NO_GROUPS:
            self._take_groups()
        own_mapping(self, "metadata")
        own_mapping(self, "extras")

    def _take_groups(self) -> None:
        """Check the groups of settings; one in which nothing is set says nothing."""
        expect_fields(self, media=MediaOutput, service=Service,
                      context_management=ContextManagement)  # fmt: skip
        for name in ("media", "service", "context_management"):
            group = getattr(self, name)
            if group is not None and group == type(group)():
                force_setattr(self, name, None)

    def replace(self, **changes: Any) -> Self:
        """A copy with these fields changed and all others as they are.

        With another model, messages that came in a wire's body remember for which it was meant.
        """
        made = super().replace(**changes)
        if self.model is None or made.model == self.model:
            return made
        meant = tuple([_meant_for(message, self.model) for message in made.messages])
        return made.replace_unchecked(messages=meant)

    def with_settings(self, **settings: Any) -> Self:
        """With these fields; those of `Sampling` may stand among them: `max_tokens=500`."""
        drawn = {key: settings[key] for key in settings if key in Sampling.__struct_fields__}
        others = {key: settings[key] for key in settings if key not in drawn}
        changed = self.replace(**others) if others else self
        return changed.replace(sampling=changed.sampling.replace(**drawn)) if drawn else changed

    def settle(self) -> None:
        """Assign the ids of messages that have none yet."""
        settle_all(self.messages)

    def _said(self) -> tuple[Any, ...]:
        names = ("model", "system", "messages", "tools", "tool_choice", "sampling", "output",
                 "thinking", "state", "media", "service", "context_management", "stream",
                 "metadata")  # fmt: skip
        return tuple(getattr(self, name) for name in names)

    def _sizes(self) -> Iterator[str]:
        yield from name_shown(self.model)
        yield f"{len(self.messages)} messages"
        yield f"{len(self.tools)} tools"


BLANK = Request()
"""A request that asks for nothing: decoders make theirs of it, by `replace_trusted`."""
UNSAID = Sampling()
"""What a decoder reads where a body says nothing of it; stored as `{}`, unlike a default."""
