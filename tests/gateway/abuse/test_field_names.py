"""Fields that look like known ones: no spelling of a name reaches a provider past the policy.

Servers written in Go take names in any case, the last one winning; routers choose by fields that
OpenAI's API does not have.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from random import Random
from typing import Any

import msgspec
import pytest

from dragoman.errors import DragomanError, InvalidRequest
from dragoman.gateway.config.settings import GatewayConfig, Hop, RouteSettings
from dragoman.gateway.keys import Budget, KeyRecord
from dragoman.providers.registry import provider, provider_names
from dragoman.wire.dialect import dialect
from dragoman.wire.known_fields import (
    KnownFields,
    accepted,
    folded,
    known_fields,
    without_lookalikes,
)
from tests.corpus import Corpus
from tests.gateway.answers import KINDS, Provider
from tests.gateway.client_requests import FRONTS, Answer, ask, body_for, path_for
from tests.gateway.running import Serving, place, routed, running, upstream
from tests.gateway.services import test_keys
from tests.wire.mutations import seeds
from tests.wire.recorded import bodies

LOOKALIKES = str.maketrans("skiaeo", "\u017f\u212a\u0131\uff41\uff45\uff4f")
"""Long s, Kelvin sign, dotless i, and fullwidth letters."""
LOSSES = "x-dragoman-losses"


def spellings(name: str) -> set[str]:
    """Other names that some reader takes for this one."""
    fullwidth = "".join(chr(ord(c) + 0xFEE0) if c.isascii() and c.isalpha() else c for c in name)
    found = {
        name.upper(), name.title(), name[:1].upper() + name[1:], name.swapcase(), fullwidth,
        name.translate(LOOKALIKES), name.replace("_", "-"), f"{name} ", f"{name}\0",
        name.replace("i", "\u0130"),
    }  # fmt: skip
    return found - {name}


def _paths(known: KnownFields, *before: str) -> Iterator[tuple[str, ...]]:
    for name in sorted(known.exact):
        yield (*before, name)
        if name in known.inside:
            yield from _paths(known.inside[name], *before, name)


def _with(body: dict[str, Any], path: tuple[str, ...], name: str, value: Any) -> dict[str, Any]:
    """The body with another field beside the one at a path."""
    made: dict[str, Any] = json.loads(json.dumps(body))
    inner = made
    for step in path[:-1]:
        inner = inner.setdefault(step, {})
    inner[name] = value
    return made


def _names(value: Any) -> set[str]:
    """The names of all fields at the top and in settings objects."""
    found = set(value)
    for each in value.values():
        if isinstance(each, dict):
            found |= _names(each)
    return found


@contextmanager
def _gateway(back: str, **route: Any) -> Generator[tuple[Serving, Provider, Any]]:
    """A gateway with keys in front of one provider."""
    with ExitStack() as stack:
        behind = Provider(back)
        at = place("lab", KINDS[back], stack.enter_context(upstream(behind)), dialect=back)
        config = routed(at)
        if route:
            settings = RouteSettings(**{"model": "*", "to": (Hop(place=at),), **route})
            config = GatewayConfig(places={"lab": at}, routes=(settings,))
        serving = stack.enter_context(running(config))
        keys: Any = test_keys.ScriptedKeys()
        serving.gateway.keys = keys
        yield serving, behind, keys


def _post(serving: Serving, front: str, body: Any, *, key: str = "plain", **path: Any) -> Answer:
    return ask(serving.url, path_for(front, **path), body, x_api_key=key)


@pytest.mark.parametrize("front", FRONTS)
def test_no_other_spelling_of_a_known_field_reaches_the_provider(front: str) -> None:
    """Each known field, in every other spelling: it is dropped, and its loss is reported."""
    body, draw = body_for(front), Random(5)
    known = known_fields(dialect(front))
    with _gateway(front) as (serving, behind, _):
        for path in _paths(known):
            for name in draw.sample(sorted(spellings(path[-1])), 3):
                if name in known.exact:
                    continue
                answer = _post(serving, front, _with(body, path, name, "secret-expensive"))
                assert answer.status == 200, (name, answer.body)
                assert name not in _names(behind.asked[-1]), name
                assert int(answer.headers[LOSSES].partition(";")[0]) >= 1
                assert "secret-expensive" not in json.dumps(behind.asked[-1])


def test_a_model_in_another_case_is_not_seen_by_a_provider() -> None:
    """A key for one model reaches no other, its route keeps its settings, and limits hold."""
    body = body_for("ollama", model="m1")
    attack = {"Model": "secret-expensive", "Options": {"num_predict": -1}, "Messages": []}
    with _gateway("ollama", fixed={"max_tokens": 9}) as (serving, behind, _):
        answer = _post(serving, "ollama", {**body, **attack}, key="small")
        assert answer.status == 200, answer.body
    [sent] = behind.asked
    assert (sent["model"], sent["options"]) == ("m1", {"num_predict": 9})
    assert sent.keys() <= {"model", "messages", "options", "stream"}
    assert set(answer.headers[LOSSES].split("; ", 1)[1].split(", ")[0].split(": ")) >= {"model"}


def test_unknown_fields_still_pass() -> None:
    """What means nothing to policy goes to the provider as it came, in the same bytes."""
    fields = {"logit_bias": {"1": 2}, "Foo": 1, "foo": 2, "x_y": {"A": 1, "a": 2}, "models2": []}
    for front in FRONTS:
        with _gateway(front) as (serving, behind, _):
            answer = _post(serving, front, {**body_for(front), **fields})
            assert answer.status == 200, answer.body
            assert fields.items() <= behind.asked[-1].items(), front
            assert LOSSES not in answer.headers


# --- names that stand twice


def _twice(body: dict[str, Any], path: tuple[str, ...], separator: str) -> bytes:
    """The body with one name twice, as bytes."""
    mark = "\ue000"
    made = _with(_with(body, path, path[-1], 1), path, mark, 2)
    text = json.dumps(made, separators=(f",{separator}", f":{separator}"), ensure_ascii=False)
    return text.replace(mark, path[-1]).encode()


@pytest.mark.parametrize("front", FRONTS)
def test_names_that_stand_twice_are_refused(front: str) -> None:
    """At the top level and in settings objects, however they are spaced or escaped."""
    paths = [("model",), ("logit_bias",), *_paths(known_fields(dialect(front)))]
    with _gateway(front) as (serving, behind, _):
        for number, path in enumerate(paths):
            data = _twice(body_for(front), path, ("", " ", "\n\t")[number % 3])
            if number % 2:  # one of them escaped
                at = data.rindex(b'"%b"' % path[-1].encode()) + 1
                data = data[:at] + b"\\u00%02x" % data[at] + data[at + 1 :]
            answer = _post(serving, front, data)
            assert answer.status == 400, (path, answer.body)
            assert b"twice" in answer.body
        assert not behind.asked


@pytest.mark.parametrize("front", FRONTS)
def test_an_object_has_a_thousand_fields_at_most(front: str) -> None:
    """Each of them is compared with the known ones; at the top level and in settings objects."""
    known = known_fields(dialect(front))
    inside = next(name for name in known.inside if known.inside[name].exact)

    def asked(count: int, path: str | None) -> None:
        fields = {f"x{number}": 1 for number in range(count)}
        body = json.dumps(fields if path is None else {path: fields}).encode()
        split = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
        assert not accepted(body, split, known).losses

    for path in (None, inside):
        asked(1_000, path)
        with pytest.raises(InvalidRequest, match="more than 1,000 fields"):
            asked(100_000, path)


def test_two_spellings_of_one_field_are_refused() -> None:
    """Gemini's fields have two names: with both, it would be open which one counts."""
    config = {"generationConfig": {"maxOutputTokens": 1}}
    both = [
        {**config, "generation_config": {"maxOutputTokens": 50_000}},
        {"generationConfig": {"maxOutputTokens": 1, "max_output_tokens": 50_000}},
    ]
    with _gateway("gemini") as (serving, behind, _):
        for each in both:
            assert _post(serving, "gemini", {**body_for("gemini"), **each}).status == 400
        assert not behind.asked


def test_services_take_no_other_spellings() -> None:
    """Embeddings, prompts and token counts: the same holds for their fields."""
    requests = [
        ("openai-chat", "/v1/embeddings", {"model": "m1", "input": "x"}),
        ("openai-chat", "/v1/completions", {"model": "m1", "prompt": "x"}),
        ("ollama", "/api/embed", {"model": "m1", "input": "x"}),
        ("ollama", "/api/generate", {"model": "m1", "prompt": "x", "stream": False}),
        ("anthropic", "/v1/messages/count_tokens", body_for("anthropic")),
    ]
    for back, path, body in requests:
        with _gateway(back) as (serving, behind, _):
            attack = {"Model": "secret", "Messages": ["secret"], "Input": "secret"}
            ask(serving.url, path, {**body, **attack}, x_api_key="plain")
            assert behind.asked, path
            assert "secret" not in json.dumps(behind.asked), path
            answer = ask(serving.url, path, b'{"model":"a",' + json.dumps(body).encode()[1:],
                         x_api_key="plain")  # fmt: skip
            assert answer.status == 400, (path, answer.body)
            assert len(behind.asked) == 1


def _pairs(data: bytes) -> bool:
    """Whether a name stands twice at the top level, according to the standard library."""
    found: list[list[tuple[str, Any]]] = []

    def note(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found.append(pairs)
        return dict(pairs)

    json.loads(data, object_pairs_hook=note)
    return len({name for name, _ in found[-1]}) < len(found[-1])


def test_repeated_names_are_found_as_the_standard_library_finds_them() -> None:
    """Random objects with few names, odd values and any spacing."""
    draw, nothing = Random(11), KnownFields(frozenset(), {}, {}, {})
    values = ["1", "12", '"a"', '"a,\\"b\\":1"', "{}", '{"a":1}', "[1,2]", "null", '"}"', '""']
    names = ["a", "b", "\\u0061", "", 'a\\"', "\\\\", "é", "\\u00e9"]
    for _ in range(5_000):
        spaces = ["", draw.choice(["", " ", "\n"]), draw.choice(["", " ", "\t\r\n"])]
        fields = [
            f'{draw.choice(spaces)}"{draw.choice(names)}"{draw.choice(spaces)}:{draw.choice(spaces)}'
            f"{draw.choice(values)}{draw.choice(spaces)}"
            for _ in range(draw.randrange(6))
        ]
        data = f"{draw.choice(spaces)}{{{','.join(fields)}{draw.choice(spaces)}}}".encode()
        split = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
        try:
            accepted(data, split, nothing)
        except InvalidRequest:
            is_repeated = True
        else:
            is_repeated = False
        assert is_repeated is _pairs(data), data


@pytest.mark.corpus
def test_no_recorded_request_loses_a_field(corpus: Corpus) -> None:
    """No client that was recorded, and no SDK, spells a field in a way that is dropped."""
    for name in FRONTS:
        known, seen = known_fields(dialect(name)), 0
        for body in (each for each in bodies(corpus, name) if each.kind == "request"):
            data = msgspec.json.encode(body.wire)
            split = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
            assert not accepted(data, split, known).losses, sorted(body.wire)
            seen += 1
        assert seen > 5


# --- fields of messages, where middleware reads them

_OF_USERS = {"arguments", "args", "parameters", "properties", "metadata"}


def _objects(value: Any, *path: str) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    """The objects in a value, apart from those whose names are the user's."""
    if isinstance(value, dict):
        yield path, value
    for key, each in value.items() if isinstance(value, dict) else ():
        if key not in _OF_USERS:
            yield from _objects(each, *path, key)
    for each in value if isinstance(value, list) else ():
        yield from _objects(each, *path)


@pytest.mark.parametrize("name", ["ollama", "openai-chat"])
def test_no_field_in_a_message_is_hidden_from_middleware(name: str) -> None:
    """At any depth of recorded and made messages, in the cases that Go takes for a known name."""
    speaker, hidden, seen = dialect(name), "zz-hidden", set[tuple[str, ...]]()
    for seed in (each for each in seeds() if (each.kind, each.dialect) == ("request", name)):
        for path, found in _objects(seed.value.get("messages")):
            for key in [*found]:
                if (*path, key) in seen or path[-1:] == ("thinking",):  # an opaque part
                    continue
                seen.add((*path, key))
                other = key.replace("s", "\u017f") if "s" in key else key.title()
                found[other] = hidden
                try:
                    request, _ = without_lookalikes(speaker.decode_request(seed.value), speaker)
                    sent = speaker.encode_request(request).to_bytes()
                except DragomanError:
                    continue
                finally:
                    del found[other]
                assert hidden.encode() not in sent, (*path, other)
    assert len(seen) > 10


# --- fields that choose a model, a host or an address

_SELECTING = [
    (each, name, kind)
    for each in provider_names()
    for name, kind in provider(each).selectors.items()
]


@contextmanager
def _router(name: str, **route: Any) -> Generator[tuple[Serving, Provider]]:
    with ExitStack() as stack:
        behind = Provider("openai-chat")
        at = place("hub", name, stack.enter_context(upstream(behind)), dialect="openai-chat")
        settings = RouteSettings(**{"model": "*", "to": (Hop(place=at),), **route})
        if "to" in route:
            settings = RouteSettings(model="*", to=(Hop(place=at, model=route["to"]),))
        config = GatewayConfig(places={"hub": at}, routes=(settings,))
        serving = stack.enter_context(running(config))
        keys: Any = test_keys.ScriptedKeys()
        serving.gateway.keys = keys
        yield serving, behind


_BY_PROVIDER = sorted({each for each, _, _ in _SELECTING})
_RECORDS = {
    "rich": KeyRecord(id="rich", budgets=(Budget("cost", test_keys.RICH[0].amount),)),
    "few": KeyRecord(id="few", models=("m1*",)),
}


@pytest.mark.parametrize("name", _BY_PROVIDER)
def test_selecting_fields_follow_the_keys_list_and_the_route(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What `model` could not request, no other field of a router selects."""
    for key, record in _RECORDS.items():
        monkeypatch.setitem(test_keys.RECORDS, key, record)
    fields = [(field, kind) for each, field, kind in _SELECTING if each == name]
    body = body_for("openai-chat", model="m1")

    def sent(field: str, value: Any, key: str) -> Any:
        answer = _post(serving, "openai-chat", {**body, field: value}, key=key)
        assert answer.status == 200, answer.body
        is_sent = field in behind.asked[-1]
        assert is_sent is (LOSSES not in answer.headers), field
        return is_sent

    with _router(name) as (serving, behind):
        for field, kind in fields:
            assert not sent(field, ["m2"], "few") or kind == "host", field
            assert sent(field, ["m1", "m1-large"], "few") is (kind != "address"), field
            assert sent(field, ["m2"], "plain") is (kind != "address"), field
            assert not sent(field, ["m1"], "rich"), field
            for odd in spellings(field):
                assert not sent(odd, ["m1"], "plain"), odd
    with _router(name, to="pinned") as (serving, behind):
        for field, _ in fields:
            assert not sent(field, ["m1"], "plain"), field


def test_no_name_is_two_models() -> None:
    """To some routers, commas separate models: a pattern for one doesn't allow the others."""
    with _gateway("openai-chat") as (serving, behind, _):
        for name in ("m1,m2", "m1-mini, m2", "m1,"):
            answer = _post(serving, "openai-chat", body_for("openai-chat", model=name), key="small")
            assert answer.status == 403, name
        assert _post(serving, "openai-chat", body_for("openai-chat", model="m2,m3")).status == 200
    with _gateway("openai-chat", model="m1*") as (serving, behind, _):
        answer = _post(serving, "openai-chat", body_for("openai-chat", model="m1,m2"))
        assert (answer.status, behind.asked) == (404, [])


@pytest.mark.parametrize("named", ["models/secret", "m1", "models/m1", 5, None, ["secret"]])
def test_a_model_beside_that_of_the_path_is_left_out(named: Any) -> None:
    """Gemini's path names the model that was checked; its body has a field for one, too."""
    with _gateway("gemini") as (serving, behind, _):
        body = {**body_for("gemini"), "model": named}
        answer = _post(serving, "gemini", body, key="small", model="m1")
        assert answer.status == 200, answer.body
    assert "model" not in behind.asked[-1]
    assert (LOSSES in answer.headers) is (named not in ["m1", "models/m1"])


def test_names_fold_as_lenient_readers_compare_them() -> None:
    """Every spelling that these tests send folds to the name that it stands for."""
    for front in FRONTS:
        for path in _paths(known_fields(dialect(front))):
            assert {folded(each) for each in spellings(path[-1])} == {folded(path[-1])}


def test_a_fixed_setting_holds_beside_another_spelling_of_it() -> None:
    """A client that repeats the route's value in one field can't exceed it in another."""
    body = {**body_for("openai-chat"), "max_completion_tokens": 9, "max_tokens": 50_000,
            "n_predict": -1}  # fmt: skip
    with _gateway("openai-chat", fixed={"max_tokens": 9}) as (serving, behind, _):
        assert _post(serving, "openai-chat", body).status == 200
    [sent] = behind.asked
    assert [sent.get(name) for name in ("max_completion_tokens", "max_tokens")].count(9) == 1
    assert {50_000, -1}.isdisjoint(each for each in sent.values() if isinstance(each, int))
