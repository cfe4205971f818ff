"""Without a history store: responses in a worker's memory, for a limited time, within limits."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import httpx
import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from dragoman.gateway.config.settings import GatewayConfig, Hop, RouteSettings, ServerSettings
from dragoman.gateway.recent_responses import MAX_IDLE, RecentStorage
from dragoman.gateway.state import Gateway
from dragoman.gateway.summary import summary
from dragoman.history.identity import SessionIdentity
from dragoman.history.storage.memory import MemoryStorage
from dragoman.history.storage.protocol import Entry
from tests.environment import PATIENCE
from tests.gateway.answers import KINDS, Provider, said
from tests.gateway.responses.conftest import client_of, config_for
from tests.gateway.responses.identified import NamedKeys
from tests.gateway.responses.upstreams import Model
from tests.gateway.running import Serving, place, running, upstream

BACKS = ("openai-chat", "anthropic", "ollama", "gemini")
QUESTIONS = ("Where is the bridge?", "How old is it?", "Who built it?")
ANSWERS = ("In Mostar.", "460 years.", "Hayruddin.")


@contextmanager
def serving_to(provider: Provider, **changes: Any) -> Generator[Serving]:
    """A gateway without a history store, in front of a provider."""
    with upstream(provider) as url:
        path = {"gemini": "/v1beta", "ollama": ""}.get(provider.name, "/v1")
        behind = place("behind", KINDS[provider.name], f"{url}{path}", dialect=provider.name)
        route = RouteSettings(model="*", to=(Hop(place=behind),))
        config = GatewayConfig(places={"behind": behind}, routes=(route,))
        with running(config, **changes) as serving:
            yield serving


def created(client: Any, question: str, *, stream: bool = False, **more: Any) -> Any:
    """The response to a question, by OpenAI's client."""
    made = client.responses.create(model="m", input=question, stream=stream, **more)
    return list(made)[-1].response if stream else made


@pytest.mark.whole
@pytest.mark.parametrize("back", BACKS)
@pytest.mark.parametrize("stream", [False, True])
def test_a_conversation_goes_on_by_id(back: str, *, stream: bool) -> None:
    """The provider gets all earlier turns, whoever it is; what came is read again and deleted."""
    provider = Provider(back, *(said(text) for text in ANSWERS))
    with serving_to(provider) as serving, client_of(serving) as client:
        last: Any = None
        for question, text in zip(QUESTIONS, ANSWERS, strict=True):
            previous = {} if last is None else {"previous_response_id": last.id}
            last = created(client, question, stream=stream, **previous)
            assert last.output_text == text
            assert last.model_extra["store"] is True
        sent = json.dumps(provider.asked[-1])
        turns = [each for pair in zip(QUESTIONS, ANSWERS, strict=True) for each in pair][:-1]
        assert [sent.index(turn) for turn in turns] == sorted(sent.index(turn) for turn in turns)
        assert "previous_response_id" not in sent
        assert client.responses.retrieve(last.id).to_dict() == last.to_dict()
        [item] = client.responses.input_items.list(last.id).data
        assert item.content[0].text == QUESTIONS[-1]
        client.responses.delete(last.id)
        with pytest.raises(openai.NotFoundError, match="in memory only"):
            client.responses.retrieve(last.id)


def test_items_are_referred_to_by_id() -> None:
    """What Vercel's AI SDK sends unless it is told not to store: references to earlier items."""
    provider = Provider("anthropic", *(said(text) for text in ANSWERS))
    with serving_to(provider) as serving, client_of(serving) as client:
        first = created(client, QUESTIONS[0])
        given = [
            {"role": "user", "content": QUESTIONS[0]},
            {"type": "item_reference", "id": first.output[0].id},
            {"role": "user", "content": QUESTIONS[1]},
        ]
        assert created(client, given).output_text == ANSWERS[1]  # type: ignore[arg-type]
        assert ANSWERS[0] in json.dumps(provider.asked[-1])


@pytest.mark.whole
@pytest.mark.parametrize("back", BACKS)
@pytest.mark.parametrize("stream", [False, True])
def test_what_the_gateway_stores_is_no_loss(back: str, *, stream: bool) -> None:
    """The provider is told nothing that it could not carry out, so nothing is reported."""
    asked = {"model": "m", "input": QUESTIONS[0], "stream": stream}
    with serving_to(Provider(back)) as serving:
        for more in ({}, {"store": True}):
            answer = httpx.post(f"{serving.url}/v1/responses", json={**asked, **more})
            assert answer.status_code == 200
            assert "x-dragoman-losses" not in answer.headers


@pytest.mark.parametrize("stream", [False, True])
def test_store_false_is_honoured_in_memory(*, stream: bool) -> None:
    """Such a response says so, and nobody finds it."""
    with serving_to(Provider("openai-chat")) as serving, client_of(serving) as client:
        got = created(client, QUESTIONS[0], stream=stream, store=False)
        assert got.model_extra["store"] is False
        with pytest.raises(openai.NotFoundError):
            client.responses.retrieve(got.id)
        assert not asyncio.run(serving.gateway.recent.storage()).size  # type: ignore[attr-defined]


@pytest.mark.parametrize("stream", [False, True])
def test_a_provider_that_stores_goes_on_storing(scripted: Model, *, stream: bool) -> None:
    """Its responses pass through with its ids, and `store` as the client wrote it."""
    with running(config_for(scripted.url)) as serving, client_of(serving) as client:
        made = client.responses.create(model="gpt", input="Hello", stream=stream)
        got = list(made)[-1].response if stream else made
    assert got.id == "resp_up1"
    assert got.model_extra["store"] is True
    assert "store" not in scripted.asked[-1]
    assert "include" not in scripted.asked[-1]


def test_a_conversation_moves_to_a_provider_that_stores(scripted: Model) -> None:
    """What was begun here goes on here: the provider gets all of it, and stores nothing."""
    with running(config_for(scripted.url)) as serving, client_of(serving) as client:
        first = client.responses.create(model="claude", input="Hello")
        moved = client.responses.create(
            model="gpt", input="And then?", previous_response_id=first.id
        )
        assert scripted.asked[-1]["store"] is False
        assert "answer 1" in json.dumps(scripted.asked[-1])
        assert moved.model_extra["store"] is True
        back = client.responses.create(model="chat", input="Go on", previous_response_id=moved.id)
        assert "answer 2" in json.dumps(scripted.asked[-1])
        assert client.responses.retrieve(back.id).previous_response_id == moved.id


def test_keys_find_only_their_own() -> None:
    """Another key's id, an expired one and an invented one get the same answer."""
    with serving_to(Provider("openai-chat")) as serving:
        serving.gateway.keys = NamedKeys()  # type: ignore[assignment]  # only what is used
        with client_of(serving, "sk-ana") as ana, client_of(serving, "sk-bob") as bob:
            got = created(ana, QUESTIONS[0])
            problems = []
            for id in (got.id, f"resp_dgm{'0' * 32}"):
                for ask in (bob.responses.retrieve, bob.responses.delete):
                    with pytest.raises(openai.NotFoundError):
                        ask(id)
                with pytest.raises(openai.BadRequestError) as failure:
                    created(bob, "x", previous_response_id=id)
                problems.append((failure.value.code, str(failure.value).replace(id, "ID")))
            assert problems[0] == problems[1]
            assert problems[0][0] == "previous_response_not_found"
            assert "in memory only" in problems[0][1]
            assert created(ana, "x", previous_response_id=got.id).output_text


@pytest.mark.parametrize("is_off", [False, True])
def test_where_nothing_is_kept_the_error_says_so(*, is_off: bool) -> None:
    """Several workers share no memory, so none of them stores; nor if it is off."""
    with serving_to(Provider("openai-chat"), is_only_worker=is_off) as serving:
        if is_off:
            config = serving.gateway.config
            server = replace(config.server, response_memory=0)
            serving.gateway.apply(replace(config, server=server))
        with client_of(serving) as client:
            got = created(client, QUESTIONS[0], store=True)
            assert got.model_extra["store"] is False
            with pytest.raises(openai.BadRequestError, match="stores no responses") as failure:
                created(client, "x", previous_response_id=f"resp_dgm{'0' * 32}")
            assert failure.value.code == "previous_response_not_found"


def test_a_cache_comes_first() -> None:
    """A stored response is another one each time: on a route with a cache, only if asked for."""
    provider = Provider("openai-chat")
    with serving_to(provider) as serving:
        config = serving.gateway.config
        route = replace(config.routes[0], cache=60.0)
        serving.gateway.apply(replace(config, routes=(route,)))
        with client_of(serving) as client:
            first, second = (created(client, QUESTIONS[0]) for _ in range(2))
            assert len(provider.asked) == 1
            assert first.id == second.id
            kept = created(client, QUESTIONS[0], store=True)
            assert client.responses.retrieve(kept.id).id == kept.id


def test_a_request_that_is_too_large_is_answered_all_the_same() -> None:
    """Its response says that it isn't stored."""
    with serving_to(Provider("openai-chat")) as serving, client_of(serving) as client:
        most = serving.gateway.recent.most_input
        got = created(client, "x" * (most + 1))
        assert got.model_extra["store"] is False
        assert created(client, "x" * (most // 2)).model_extra["store"] is True


def test_the_start_says_what_is_kept() -> None:
    """One line: where responses are kept, for how long, and why they are not."""

    def line(**server: Any) -> str:
        config = GatewayConfig(server=ServerSettings(**server))
        [found] = [each for each in summary(config, {}) if each.startswith("stored responses")]
        return found

    assert "in memory, up to 64 MiB and 4,000, for 60 minutes" in line()
    assert "for 10 minutes" in line(response_ttl=600.0)
    assert "workers share no memory" in line(workers=2)
    assert "none" in line(response_memory=0)
    assert "in the history store" in line(history="memory:", workers=2)


async def test_a_configuration_changes_the_limits() -> None:
    """A store that is configured later takes over, and the memory is free again."""
    gateway = Gateway(GatewayConfig())
    storage = await gateway.recent.storage()
    identity = SessionIdentity(chat="1")
    await storage.append(identity, [Entry("1", b"x" * 5000, 0.0)])
    gateway.apply(GatewayConfig(server=ServerSettings(response_memory=20_000)))
    assert await (await gateway.recent.storage()).rows(identity)
    gateway.apply(GatewayConfig(server=ServerSettings(history="memory:")))
    assert not gateway.recent.is_on
    assert not await (await gateway.recent.storage()).rows(identity)
    await gateway.close()


# --- the limits

KEYS = st.sampled_from([None, "ana", "bob", "eva", "ida", "leo"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), KEYS, st.integers(0, 9), st.integers(0, 9000)),
        st.tuples(st.just("read"), KEYS, st.integers(0, 9)),
        st.tuples(st.just("delete"), KEYS, st.integers(0, 9)),
        st.tuples(st.just("wait"), st.integers(1, 40)),
    ),
    max_size=60,
)


@given(STEPS)
def test_the_limits_hold(steps: list[Any]) -> None:
    """Number, bytes and age, of one key and of all; what is there is what was used last."""
    asyncio.run(_play(steps))


async def _play(steps: list[Any]) -> None:
    now = [0.0]
    storage = RecentStorage(60_000, 50.0, max_number=12, clock=lambda: now[0])
    used: dict[SessionIdentity, float] = {}
    written = 0
    for kind, *given_values in steps:
        if kind == "wait":
            now[0] += given_values[0]
            continue
        key, number = given_values[:2]
        identity = SessionIdentity(chat=str(number), user=key)
        if kind == "add":
            written += 1
            await storage.append(identity, [Entry(str(written), b"x" * given_values[2], 0.0)])
            used[identity] = now[0]
        elif kind == "read":
            if await storage.rows(identity):
                assert now[0] - used[identity] < 50.0
                used[identity] = now[0]
        else:
            await storage.delete(identity)
            assert not await storage.rows(identity)
        await _expect_limits(storage)


async def _expect_limits(storage: RecentStorage) -> None:
    kept = await storage.sessions()
    sizes: dict[str | None, list[int]] = {}
    for session in kept:
        rows = await MemoryStorage.rows(storage, session.identity)
        sizes.setdefault(session.identity.user, []).append(sum(len(row.body) for row in rows))
    assert len(kept) <= 12
    assert sum(map(sum, sizes.values())) <= storage.size <= 60_000
    for key, own in sizes.items():
        number, size = storage.share_of(key)
        assert len(own) <= number
        assert sum(own) <= size


async def test_a_conversation_in_progress_stays_whole() -> None:
    """Reading uses a session: what others add pushes out what nobody reads, and time too."""
    now = [0.0]
    storage = RecentStorage(10**6, 100.0, max_number=4, clock=lambda: now[0])
    first, *others = (SessionIdentity(chat=str(number)) for number in range(9))
    await storage.append(first, [Entry("1", b"x", 0.0)])
    for other in others:
        now[0] += 60
        assert await storage.rows(first)
        await storage.append(other, [Entry("1", b"x", 0.0)])
    assert len(await storage.sessions()) == 3  # the rest has expired
    now[0] += 101
    assert await storage.session(first) is None
    assert not await storage.sessions()
    assert storage.size == 0


def test_the_time_limit_is_an_hour() -> None:
    """Shorter if `response_ttl` is."""
    assert Gateway(GatewayConfig()).recent.max_idle == MAX_IDLE == 3600
    server = ServerSettings(response_ttl=60.0)
    assert Gateway(GatewayConfig(server=server)).recent.max_idle == 60


async def test_what_has_expired_is_freed_without_requests() -> None:
    """The sweep removes it."""
    gateway = Gateway(GatewayConfig(server=ServerSettings(response_ttl=0.01)))
    storage = await gateway.recent.storage()
    await storage.append(SessionIdentity(chat="1"), [Entry("1", b"x", 0.0)])
    async with asyncio.timeout(PATIENCE):
        while await storage.sessions():  # noqa: ASYNC110 - the sweep has no event for it
            await asyncio.sleep(0.05)
    await gateway.close()
