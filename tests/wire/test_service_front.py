"""Embeddings, model lists and token counts, between clients and providers of any dialect."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

import dragoman
from dragoman.errors import DragomanError, InvalidInputError, InvalidRequest, ServerError, WireError
from dragoman.model.catalogue import ModelInfo, TokenCount
from dragoman.model.jsontext import dumps, loads
from dragoman.model.media import Image
from dragoman.model.parts import Text
from dragoman.model.usage import Usage
from dragoman.wire.embeddings import Embedded, EmbeddingFormat, ToEmbed
from dragoman.wire.encoded import Encoded
from dragoman.wire.losses import Loss
from dragoman.wire.service_front import ServiceFront
from dragoman.wire.services import services
from tests.corpus import Corpus
from tests.model.strategies import json_values
from tests.wire.recorded import SPOKEN_BY, normal

EMBEDDERS = ("openai-chat", "openai-responses", "gemini", "ollama")
LISTERS = ("openai-chat", "openai-responses", "anthropic", "gemini", "ollama")
COUNTERS = ("openai-responses", "anthropic", "gemini")
ONE: dict[str, Any] = {"content": {"parts": [{"text": "a"}]}}
PATHS = {"gemini": "/v1beta/models/e:batchEmbedContents"}


def _format(name: str) -> EmbeddingFormat:
    found = services(name).embeddings
    assert found is not None
    return found


def _front(name: str) -> ServiceFront:
    return ServiceFront(name, path=PATHS.get(name))


# --- required fields of the vendors' types

LISTED = [ModelInfo("one", "One", 9, 1.5e9), ModelInfo("two")]
EMBEDDED = Embedded([(0.5, 1.0)], Usage(4))


@pytest.mark.parametrize(
    ("name", "kind", "make"),
    [
        (
            "openai-chat",
            "openai.types:CreateEmbeddingResponse",
            lambda front: front.embeddings(EMBEDDED, ToEmbed("e", ["a"])),
        ),
        (
            "ollama",
            "ollama:EmbedResponse",
            lambda front: front.embeddings(EMBEDDED, ToEmbed("e", ["a"])),
        ),
        (
            "ollama",
            "ollama:EmbeddingsResponse",
            lambda front: front.embeddings(EMBEDDED, ToEmbed("e", ["a"], answer_form="legacy")),
        ),
        (
            "gemini",
            "google.genai.types:EmbedContentResponse",
            lambda front: front.embeddings(EMBEDDED, ToEmbed("e", ["a"])),
        ),
        ("ollama", "ollama:ListResponse", lambda front: front.models(LISTED)),
        ("ollama", "ollama:ProcessResponse", lambda front: front.running(LISTED)),
        ("ollama", "ollama:ShowResponse", lambda front: front.model(LISTED[0])),
        ("ollama", "ollama:ShowResponse", lambda front: front.model(LISTED[1])),
        ("anthropic", "anthropic.types:MessageTokensCount", lambda front: front.count(7)),
        ("gemini", "google.genai.types:CountTokensResponse", lambda front: front.count(7)),
        (
            "openai-responses",
            "openai.types.responses.input_token_count_response:InputTokenCountResponse",
            lambda front: front.count(7),
        ),
    ],
)
def test_answers_have_what_their_types_require(
    name: str, kind: str, make: Callable[[ServiceFront], Encoded]
) -> None:
    """Every field without a default is there, with its type."""
    module, _, word = kind.partition(":")
    adapter: TypeAdapter[Any] = TypeAdapter(getattr(pytest.importorskip(module), word))
    body = make(ServiceFront(name)).to_bytes()
    adapter.validate_json(body, strict=not module.startswith("google"))


# --- embeddings: requests


@pytest.mark.parametrize("source", EMBEDDERS)
@pytest.mark.parametrize("target", EMBEDDERS)
def test_any_front_embeds_with_any_provider(source: str, target: str) -> None:
    """A client's request is sent to any provider, and its answer returned."""
    front, back = _front(source), _format(target)
    body = _format(source).encode(ToEmbed("e", ["one", "two"], 3)).body
    asked = front.decode_embeddings(dumps(body))
    assert (asked.model, list(asked.inputs), asked.dimensions) == ("e", ["one", "two"], 3)
    sent = back.encode(asked)
    assert sent.losses == ()
    served = ServiceFront(target, path=PATHS.get(target))
    told = served.embeddings(
        Embedded([(0.5, 1.0), (2.0, -0.25)], Usage(4), "e-1"), served.decode_embeddings(sent.body)
    )
    answer = front.embeddings(back.decode(told.body), asked)
    vectors = _format(source).decode(answer.body).vectors
    assert [tuple(vector) for vector in vectors] == [(0.5, 1.0), (2.0, -0.25)]
    assert answer.headers["content-type"] == "application/json"


def test_unsupported_embedding_fields_are_reported() -> None:
    """Tasks, titles, users and fields of one API are never dropped silently."""
    gemini = _front("gemini").decode_embeddings(
        {"requests": [{**ONE, "taskType": "CLUSTERING", "title": "T", "autoTruncate": False}]}
    )
    openai = _front("openai-chat").decode_embeddings(
        {"model": "e", "input": "a", "user": "u", "input_type": "query"}
    )

    def paths(asked: ToEmbed, target: str) -> set[str]:
        return {loss.path for loss in _format(target).encode(asked).losses}

    assert paths(gemini, "openai-chat") == {"task", "titles", "extras.autoTruncate"}
    assert paths(gemini, "ollama") == {"task", "titles", "extras.autoTruncate"}
    assert paths(gemini, "gemini") == set()
    assert paths(openai, "gemini") == {"user", "extras.input_type"}
    assert paths(openai, "ollama") == {"user", "extras.input_type"}
    assert paths(openai, "openai-responses") == set()


def test_token_ids_are_sent_to_openai_only() -> None:
    """OpenAI's API gets them unchanged; other providers can't embed them."""
    asked = _front("openai-chat").decode_embeddings({"model": "e", "input": [[1, 2], [3]]})
    assert _format("openai-chat").encode(asked).body["input"] == [[1, 2], [3]]
    for name in ("gemini", "ollama"):
        with pytest.raises(InvalidInputError, match="token ids"):
            _format(name).encode(asked)
        assert _front(name).error(InvalidInputError("token ids")).status == 400


def test_parts_are_kept_for_gemini_and_joined_for_others() -> None:
    """Several texts become one elsewhere, which is reported; media are refused."""
    parts = [{"text": "a"}, {"text": "b"}]
    asked = _front("gemini").decode_embeddings({"content": {"parts": parts, "role": "user"}})
    assert asked.inputs == [(Text("a"), Text("b"))]
    assert _format("gemini").encode(asked).body["requests"][0]["content"] == {"parts": parts}
    told = _format("openai-chat").encode(asked)
    assert (told.body["input"], len(told.losses)) == (["a\nb"], 1)
    picture = Image(data="aGk=", mime="image/png")
    shown = asked._replace(inputs=[(picture,)])
    assert "inlineData" in str(_format("gemini").encode(shown).body)
    with pytest.raises(InvalidInputError):
        _format("ollama").encode(shown)


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({**ONE, "taskType": "CLUSTERING"}, ":embedContent"),
        (
            {"model": "models/e", "content": {"parts": {"text": "a"}}, "task_type": "CLUSTERING"},
            None,
        ),
        (
            {
                "content": {"parts": [{"text": "a"}]},
                "embedContentConfig": {"taskType": "CLUSTERING"},
            },
            ":embedContent",
        ),
    ],
)
def test_gemini_embeds_one_content(body: dict[str, Any], path: str | None) -> None:
    """Its answer has one embedding, not a list."""
    front = ServiceFront("gemini", path=path and f"/v1beta/models/e{path}")
    asked = front.decode_embeddings(body)
    assert (asked.model, asked.inputs, asked.task) == ("e", ["a"], "CLUSTERING")
    told = front.embeddings(Embedded([(1.0,)], Usage(2)), asked)
    assert told.body["embedding"] == {"values": [1.0]}
    assert _format("gemini").decode(told.body) == Embedded([(1.0,)], Usage(2))


@pytest.mark.parametrize(
    "other", [{"taskType": "CLUSTERING"}, {"outputDimensionality": 2}, {"odd": 1}, {"model": "f"}]
)
def test_a_batch_must_have_one_model_and_one_setting(other: dict[str, Any]) -> None:
    """Other providers can't embed contents with different settings at once."""
    with pytest.raises(InvalidRequest):
        _front("gemini").decode_embeddings({"requests": [ONE, {**ONE, **other}]})


def test_ollama_loads_a_model_with_an_empty_input() -> None:
    """An empty input gets an empty answer, in the current and in the legacy API."""
    front = ServiceFront("ollama")
    empties: list[dict[str, Any]] = [{}, {"input": ""}, {"input": []}]
    for empty in empties:
        asked = front.decode_embeddings({"model": "e", **empty})
        assert front.embeddings(Embedded([]), asked).body == {"model": "e", "embeddings": []}
    legacy = ServiceFront("ollama", path="/api/embeddings")
    asked = legacy.decode_embeddings({"model": "e", "prompt": ""})
    assert legacy.embeddings(Embedded([]), asked).body == {"embedding": []}
    full = legacy.decode_embeddings({"model": "e", "prompt": "a"})
    told = legacy.embeddings(Embedded([(1.0,)], Usage(1)), full)
    assert (told.body, told.losses[0].path) == ({"embedding": [1.0]}, "usage")


def test_too_few_vectors_are_an_error() -> None:
    """Otherwise vectors would be assigned to the wrong texts."""
    for name in EMBEDDERS:
        asked = ToEmbed("e", ["a", "b"])
        with pytest.raises(ServerError):
            _front(name).embeddings(Embedded([(1.0,)]), asked)


def test_float32_overflow_is_an_error() -> None:
    """Base64 vectors are float32: a larger number would become infinite."""
    front = ServiceFront("openai-chat")
    asked = front.decode_embeddings({"model": "e", "input": "a", "encoding_format": "base64"})
    with pytest.raises(ServerError):
        front.embeddings(Embedded([(1e300,)]), asked)


OPTIONAL = st.none() | st.text(min_size=1, max_size=5)


@given(
    st.lists(st.text(max_size=9), min_size=1, max_size=4).filter(any),
    st.none() | st.integers(1, 9999),
    OPTIONAL,
    st.data(),
)
def test_embedding_requests_round_trip(
    texts: list[str], dimensions: int | None, word: str | None, data: st.DataObject
) -> None:
    """A client's body decodes to the same request, and encodes to the same body."""
    for name in EMBEDDERS:
        asked = ToEmbed("e", texts, dimensions)
        if name == "gemini":
            titles = data.draw(st.lists(OPTIONAL, min_size=len(texts), max_size=len(texts)))
            asked = asked._replace(task=word, titles=titles if any(titles) else ())
        elif name.startswith("openai"):
            asked = asked._replace(user=word)
        sent = _format(name).encode(asked)
        read = _front(name).decode_embeddings(sent.to_bytes())
        assert (read, sent.losses) == (asked, ())
        assert _format(name).encode(read).body == sent.body


_FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False)


@given(
    st.lists(st.lists(_FLOATS, max_size=4).map(tuple), min_size=1, max_size=4),
    st.none() | st.integers(0, 2**40),
    st.booleans(),
)
def test_embedding_responses_round_trip(
    vectors: list[tuple[float, ...]], tokens: int | None, is_base64: bool
) -> None:
    """Vectors, as numbers and in base64, and usage are the same for the client."""
    usage = None if tokens is None else Usage(tokens)
    for name in EMBEDDERS:
        form = "base64" if is_base64 and name.startswith("openai") else None
        asked = ToEmbed("e", ["a"] * len(vectors), answer_form=form)
        body = _front(name).embeddings(Embedded(vectors, usage), asked).to_bytes()
        read = _format(name).decode(loads(body))
        assert [tuple(vector) for vector in read.vectors] == vectors
        assert (0 if read.usage is None else read.usage.total_input) == (tokens or 0)


# --- lists of models

TYPES = {
    "openai-chat": "openai.types:Model",
    "openai-responses": "openai.types:Model",
    "anthropic": "anthropic.types:ModelInfo",
}
MODEL_INFOS = st.builds(
    ModelInfo,
    st.from_regex(r"[a-z0-9.:-]{1,9}(/[a-z0-9]{1,4})?", fullmatch=True),
    st.none() | st.text(min_size=1, max_size=9),
    st.none() | st.integers(0, 2**40),
    st.none() | st.integers(1, 4 * 10**9).map(float),
)


@given(st.lists(MODEL_INFOS, max_size=6, unique_by=lambda model: model.id), st.integers(1, 4))
def test_model_lists_round_trip(models: list[ModelInfo], size: int) -> None:
    """Our client reads them page by page; unsupported fields are reported."""
    for name in LISTERS:
        found, query = list[ModelInfo](), {"limit": str(size), "pageSize": str(size)}
        losses = list[Loss]()
        listing = services(name).models
        assert listing is not None
        for _ in range(len(models) + 1):
            page = ServiceFront(name).models(models, query)
            losses += page.losses
            read = listing.decode(page.body)
            found += read.models
            if read.following is None:
                break
            query = {**query, **read.following, "limit": str(size), "pageSize": str(size)}
        assert [model.id for model in found] == [model.id for model in models]
        lost = {loss.path.rpartition(".")[2] for loss in losses}
        for ours, theirs in zip(models, found, strict=True):
            assert theirs.context_window == ours.context_window
            assert theirs.name in (ours.name or ours.id, ours.name) or "name" in lost
            assert theirs.created == ours.created or "created" in lost


@pytest.mark.parametrize("name", [name for name in LISTERS if name in TYPES])
@given(model=MODEL_INFOS)
def test_a_single_model_is_complete(name: str, model: ModelInfo) -> None:
    """It matches the vendor's type, and our client decodes it."""
    module, _, kind = TYPES[name].partition(":")
    sdk = pytest.importorskip(module)
    body = ServiceFront(name).model(model)
    adapter: TypeAdapter[Any] = TypeAdapter(getattr(sdk, kind))
    adapter.validate_json(body.to_bytes(), strict=True)
    listing = services(name).models
    assert listing is not None
    assert listing.decode_model is not None
    assert listing.decode_model(body.body).id == model.id


def test_other_fields_of_a_model_stay_in_their_dialect() -> None:
    """They are reported as lost behind any other front."""
    extras = {"anthropic": {"capabilities": {"batch": {"supported": True}}}}
    model = ModelInfo("one", extras=extras)
    at_home = ServiceFront("anthropic").model(model)
    assert at_home.body["capabilities"] == {"batch": {"supported": True}}
    assert at_home.losses == ()
    for name in ("openai-chat", "gemini", "ollama"):
        assert ServiceFront(name).model(model).losses[0].path == "extras.capabilities"
        assert ServiceFront(name).models([model]).losses[0].path == "models[0].extras.capabilities"


@pytest.mark.parametrize(
    ("name", "query"),
    [
        ("anthropic", {"limit": "many"}),
        ("anthropic", {"limit": "-1"}),
        ("anthropic", {"limit": "9" * 5000}),
        ("anthropic", {"limit": "٣"}),
        ("anthropic", {"after_id": "a", "before_id": "a"}),
        ("anthropic", {"before_id": "x"}),
        ("gemini", {"pageSize": "1.5"}),
        ("gemini", {"pageToken": "?"}),
        ("gemini", {"pageToken": "_w=="}),
        ("gemini", {"pageToken": "eHg="}),
    ],
)
def test_invalid_pages_are_client_errors(name: str, query: dict[str, str]) -> None:
    """A 400 in the front's own form."""
    front = ServiceFront(name)
    with pytest.raises(InvalidRequest) as caught:
        front.models([ModelInfo("a")], query)
    assert front.error(caught.value).status == 400


@pytest.mark.parametrize(
    ("name", "path", "body", "expected"),
    [
        ("openai-chat", "/v1/models/org%2Fone", None, "org/one"),
        ("openai-chat", "/v1/models/org/one?x=1", None, "org/one"),
        ("anthropic", "/v1/models/claude", None, "claude"),
        ("gemini", "/v1beta/models/gemini-2.5-pro", None, "gemini-2.5-pro"),
        ("ollama", "/api/show", {"model": "m:1b"}, "m:1b"),
        ("ollama", "/api/show", b'{"name": "m"}', "m"),
    ],
)
def test_the_requested_model(name: str, path: str, body: Any, expected: str) -> None:
    """The name is in the path or in the body."""
    assert ServiceFront(name, path=path).decode_model_name(body) == expected


# --- token counts


@pytest.mark.corpus
@pytest.mark.parametrize("name", COUNTERS)
def test_recorded_counts(corpus: Corpus, name: str) -> None:
    """Requests decode like generation requests, and round-trip."""
    count = 0
    counting = services(name).counts
    assert counting is not None
    for recording in corpus.select(
        provider_api=SPOKEN_BY[name], tier="extended", features=["count_tokens"]
    ):
        path, body = recording.request_path, recording.request_body
        count += 1
        front = ServiceFront(name, path=path)
        request = front.decode_count(dumps(body))
        assert request.messages
        assert request.model
        model = request.model if "generateContentRequest" in body else None
        sent = dragoman.dialect(name).encode_request(request, repair=False).body
        assert normal(counting.encode(sent, model)) == normal(body)
        told = recording.response_body
        if "error" not in told:
            tokens = counting.decode(told)
            assert front.count(TokenCount(tokens)).body.items() <= told.items()
    assert count >= 3


def test_a_wrapped_count_request_is_unwrapped() -> None:
    """Google's API takes tools and instructions only in that form."""
    front = ServiceFront("gemini", path="/v1beta/models/m:countTokens")
    whole = {"model": "models/m", "contents": [{"role": "user", "parts": [{"text": "Hi"}]}],
             "systemInstruction": {"parts": [{"text": "Be brief."}]}}  # fmt: skip
    request = front.decode_count({"generateContentRequest": whole})
    assert (request.model, request.messages[0].text) == ("m", "Hi")
    assert request.system[0] == Text("Be brief.")
    with pytest.raises(WireError):
        front.decode_count({"generateContentRequest": whole, "contents": []})


# --- unsupported services, and hostile input


def test_unsupported_services_are_not_found() -> None:
    """A 404 in the front's own form."""
    front = ServiceFront("anthropic")
    with pytest.raises(InvalidRequest) as caught:
        front.decode_embeddings({"model": "m", "input": "a"})
    assert front.error(caught.value).status == 404
    with pytest.raises(InvalidRequest):
        front.running([])
    with pytest.raises(InvalidRequest):
        ServiceFront("openai-chat").decode_count({"messages": []})


FIELDS = st.sampled_from([
    "model", "input", "dimensions", "encoding_format", "user", "requests", "content", "parts",
    "taskType", "title", "outputDimensionality", "embedContentConfig", "prompt", "truncate", "name",
    "generateContentRequest", "contents", "messages", "system", "tools",
])  # fmt: skip
HOSTILE = st.dictionaries(FIELDS, json_values | st.dictionaries(FIELDS, json_values), max_size=6)


def _refusals(front: ServiceFront, sent: bytes) -> Iterator[DragomanError]:
    """The outcome for every service."""
    for read in (front.decode_embeddings, front.decode_count, front.decode_model_name):
        try:
            read(sent)
        except DragomanError as error:
            yield error


@given(HOSTILE | json_values, st.sampled_from(LISTERS), st.none() | st.text(max_size=20))
def test_whatever_is_sent_is_read_or_refused(body: Any, name: str, path: str | None) -> None:
    """Only our own errors are raised, and each has a form for the client."""
    front = ServiceFront(name, path=path)
    sent = dumps(body)
    for error in _refusals(front, sent):
        assert 400 <= front.error(error).status < 500


@pytest.mark.parametrize("name", LISTERS)
def test_depth_and_size_are_harmless(name: str) -> None:
    """A million numbers and deeply nested lists are handled."""
    front = ServiceFront(name, path=PATHS.get(name))
    deep = b'{"model":"m","input":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    long = dumps({"model": "m", "input": [0] * 1_000_000, "requests": [{}] * 100_000})
    for sent in (deep, long, b"", b"[]", b"\xff", b"{"):
        for error in _refusals(front, sent):
            assert len(front.error(error).to_bytes()) < 1000


def test_reprs_show_no_content() -> None:
    """Reprs have neither texts nor vectors."""
    assert repr(ToEmbed("m", ["secret"])) == "ToEmbed(1 inputs)"
    assert repr(Embedded([(0.5,)])) == "Embedded(1 vectors)"
