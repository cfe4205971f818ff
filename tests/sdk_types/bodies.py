"""The bodies that the SDKs' types describe: their root types, and how to make them complete."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any, Literal, Required

import typing_extensions

from tests.sdk_types import hosts
from tests.sdk_types.sentinels import Sentinels
from tests.sdk_types.shapes import Shape, shape_of
from tests.sdk_types.walk import Builder, Case, cases

Kind = Literal["request", "response"]
PATH = "/v1beta/models/some-model:generateContent"
_REQUIRED: Any = Required
_PACKAGES = {"google": "google.genai"}


@dataclass(frozen=True)
class Body:
    """A generated body."""

    source: str
    case: Case
    dialect: str
    kind: Kind
    wire: dict[str, Any]
    """Inside a complete, valid body."""
    bare: dict[str, Any]
    """As generated from the type alone."""
    sentinels: Mapping[str, str]
    path: str | None

    def __str__(self) -> str:
        return f"{self.source} {self.kind} {self.case}"


@dataclass(frozen=True)
class Source:
    """A type of an SDK that describes the bodies of a dialect."""

    name: str
    dialect: str
    kind: Kind
    root: str | Callable[[], Any]
    """The type as `module:name`, or a function that returns it."""
    host: hosts.Host
    left_out: frozenset[str] = frozenset()
    """Fields that the SDK does not send: its own options."""
    sent: Callable[[dict[str, Any]], dict[str, Any] | None] = lambda made: made
    """What the SDK sends for an instance; None if the SDK itself rejects it."""

    @property
    def sdk(self) -> str:
        """The SDK's package."""
        name = self.name.partition(".")[0]
        return _PACKAGES.get(name, name)

    @property
    def is_installed(self) -> bool:
        """Whether the SDK is installed."""
        try:
            return find_spec(self.sdk) is not None
        except ModuleNotFoundError:
            return False

    def build(self, case: Case) -> Body | None:
        """The body of a case; None if the SDK doesn't send it."""
        sentinels = Sentinels()
        bare = self.sent(Builder(sentinels, self.left_out).build(_shape(self), case))
        if bare is None:
            return None
        wire = self.host(deepcopy(bare), sentinels)
        path = PATH if self.dialect == "gemini" and self.kind == "request" else None
        return Body(self.name, case, self.dialect, self.kind, wire, bare, sentinels.made, path)

    def bodies(self, step: int = 1) -> Iterator[Body]:
        """Every body, or every `step`-th."""
        for case in _cases(self)[::step]:
            made = self.build(case)
            if made is not None:
                yield made


@cache
def _shape(source: Source) -> Shape:
    root = source.root
    if isinstance(root, str):
        module, _, name = root.partition(":")
        root = getattr(import_module(module), name)
    else:
        root = root()
    found = shape_of(root)
    assert found is not None
    return found


@cache
def _cases(source: Source) -> tuple[Case, ...]:
    return cases(_shape(source), source.left_out)


# --- Google: its SDK converts its Python types before it sends them


def _google_rest() -> Any:
    """The body as the REST API accepts it."""
    types: Any = import_module("google.genai.types")
    listed: Any = list
    fields = {
        "contents": _REQUIRED[listed[types.Content]],
        "systemInstruction": types.Content,
        "generationConfig": types.GenerationConfig,
        "tools": listed[types.Tool],
        "toolConfig": types.ToolConfig,
        "safetySettings": listed[types.SafetySetting],
        "cachedContent": str,
        "labels": dict[str, str],
        "modelArmorConfig": types.ModelArmorConfig,
    }
    return _typed_dict("GenerateContent", fields)


def _google_parameters() -> Any:
    """What the SDK's converters accept."""
    types: Any = import_module("google.genai.types")
    listed: Any = list
    fields = {
        "contents": _REQUIRED[listed[types.Content]],
        "tools": listed[types.Tool],
        "config": types.GenerateContentConfig,
    }
    return _typed_dict("Parameters", fields)


def _typed_dict(name: str, fields: dict[str, Any]) -> Any:
    make: Any = typing_extensions.TypedDict
    return make(name, fields, total=False)


def _google_sent(made: dict[str, Any]) -> dict[str, Any] | None:
    """The body that the SDK sends: to the Gemini API, or to Vertex if only Vertex supports it."""
    types, models = import_module("google.genai.types"), import_module("google.genai.models")
    common = import_module("google.genai._common")
    config = dict(made.get("config") or {})
    if "tools" in made:
        config["tools"] = made["tools"]
    contents = made["contents"] if made["contents"] != [{}] else [{"parts": [{"text": "Hi"}]}]
    try:
        given = types._GenerateContentParameters(
            model="some-model", contents=contents, config=types.GenerateContentConfig(**config)
        )
    except ValueError:
        return None
    for place in ("mldev", "vertex"):
        convert = getattr(models, f"_GenerateContentParameters_to_{place}")
        client = SimpleNamespace(vertexai=place == "vertex")
        try:
            sent: Any = convert(client, given, None, given)
        except (ValueError, TypeError):  # it fails on some nulls that its own types allow
            continue
        for name in ("config", "_url", "_query"):
            sent.pop(name, None)
        wire: dict[str, Any] = common.encode_unserializable_types(common.convert_to_dict(sent))
        return wire
    return None


# --- the sources

_CHAT, _RESPONSES, _ANTHROPIC = "openai-chat", "openai-responses", "anthropic"
_GEMINI, _OLLAMA = "gemini", "ollama"
_BETAS = frozenset({"betas", "anthropic-beta"})
_LOCAL = frozenset({"http_options", "should_return_http_response", "httpOptions",
                    "shouldReturnHttpResponse", "automaticFunctionCalling", "sdkHttpResponse",
                    "parsed", "automaticFunctionCallingHistory"})  # fmt: skip

SOURCES: tuple[Source, ...] = (
    Source("openai.chat", _CHAT, "request",
           "openai.types.chat.completion_create_params:CompletionCreateParams", hosts.chat_request),
    Source("openai.chat", _CHAT, "response",
           "openai.types.chat:ChatCompletion", hosts.chat_response),
    Source("openai.responses", _RESPONSES, "request",
           "openai.types.responses.response_create_params:ResponseCreateParams",
           hosts.responses_request),
    Source("openai.responses", _RESPONSES, "response",
           "openai.types.responses:Response", hosts.responses_response),
    Source("openai.beta", _RESPONSES, "request",
           "openai.types.beta.response_create_params:ResponseCreateParams",
           hosts.responses_request, _BETAS),
    Source("openai.beta", _RESPONSES, "response",
           "openai.types.beta:BetaResponse", hosts.responses_response),
    Source("anthropic.messages", _ANTHROPIC, "request",
           "anthropic.types.message_create_params:MessageCreateParams", hosts.anthropic_request),
    Source("anthropic.messages", _ANTHROPIC, "response",
           "anthropic.types:Message", hosts.anthropic_response),
    Source("anthropic.beta", _ANTHROPIC, "request",
           "anthropic.types.beta.message_create_params:MessageCreateParams",
           hosts.anthropic_request, _BETAS),
    Source("anthropic.beta", _ANTHROPIC, "response",
           "anthropic.types.beta:BetaMessage", hosts.anthropic_response),
    Source("google.rest", _GEMINI, "request", _google_rest, hosts.gemini_request, _LOCAL),
    Source("google.genai", _GEMINI, "request", _google_parameters, hosts.gemini_request, _LOCAL,
           _google_sent),
    Source("google.genai", _GEMINI, "response",
           "google.genai.types:GenerateContentResponse", hosts.gemini_response, _LOCAL),
    Source("ollama.chat", _OLLAMA, "request", "ollama._types:ChatRequest", hosts.ollama_request),
    Source("ollama.chat", _OLLAMA, "response", "ollama:ChatResponse", hosts.ollama_response),
    Source("groq.chat", _CHAT, "request",
           "groq.types.chat.completion_create_params:CompletionCreateParams", hosts.chat_request),
    Source("groq.chat", _CHAT, "response", "groq.types.chat:ChatCompletion", hosts.chat_response),
    Source("mistralai.chat", _CHAT, "request",
           "mistralai.client.models:ChatCompletionRequest", hosts.chat_request),
    Source("mistralai.chat", _CHAT, "response",
           "mistralai.client.models:ChatCompletionResponse", hosts.chat_response),
)  # fmt: skip


def versions() -> dict[str, str]:
    """The installed SDKs and their versions."""
    names = dict.fromkeys(source.sdk.replace(".", "-") for source in SOURCES if source.is_installed)
    return {name: version(name) for name in names}
