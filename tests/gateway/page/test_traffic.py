"""The latest requests: recorded, listed, summed up, and shown as they come."""

from __future__ import annotations

import json
import socket
import sqlite3
import stat
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from decimal import Decimal
from pathlib import Path
from time import time
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
from aiohttp import web
from msgspec.structs import replace

from dragoman.gateway.config.settings import GatewayConfig, Place, ServerSettings
from dragoman.gateway.page import traffic_queries as queries
from dragoman.gateway.page import traffic_store
from dragoman.gateway.page.traffic import Reader
from dragoman.gateway.page.traffic_store import (
    Traffic,
    bin_of,
    opened_traffic,
    seconds_of,
    traffic_file,
)
from dragoman.gateway.records import RequestRecord
from dragoman.model.usage import Usage
from tests.gateway.answers import Provider
from tests.gateway.client_requests import ask as ask_front
from tests.gateway.client_requests import body_for, path_for
from tests.gateway.page.asked import ask
from tests.gateway.running import Serving, running
from tests.gateway.test_chat import gateway_to

ECHO = GatewayConfig(places={"echo:": Place(name="echo:", model_url="echo:")})
DONE = RequestRecord("chat", "openai-chat", 200, 0.5, 0.1, "r", "p", "m", "k",
                     Usage(input=3, output=4), Decimal("0.002"), attempts=1)  # fmt: skip


@contextmanager
def recorded(path: Path, **settings: Any) -> Generator[Traffic]:
    """A traffic store in a folder."""
    store = Traffic(path / "traffic.db", pause=0.02, **settings)
    try:
        yield store
    finally:
        store.close()


@contextmanager
def watched(serving: Serving, path: Path, **settings: Any) -> Generator[Traffic]:
    """A gateway whose requests are recorded."""
    with recorded(path, **settings) as store:
        serving.gateway.traffic = store
        serving.gateway.observers.append(store)
        yield store


def put(store: Traffic, *records: RequestRecord) -> None:
    """Record requests, and wait until they are written."""
    for record in records:
        store(record)
    store.flush()


def listing(serving: Serving, store: Traffic) -> Any:
    """The requests, as soon as there are any: a client has its answer before it is recorded."""
    found: Any = {"items": []}
    while not found["items"]:
        store.flush()
        found = ask(serving, "traffic").body
    return found


# --- the file


def test_the_oldest_are_dropped(tmp_path: Path) -> None:
    """Rows beyond the limit are deleted with their details and bodies."""
    with recorded(tmp_path, most=100) as store:
        put(store, *[replace(DONE, answer_body=b"x") for _ in range(250)])
        counts = [store.read(lambda at, name=name: at.execute(  # type: ignore[misc]  # bound now
            f"SELECT count(*), min(id) FROM {name}").fetchone())  # noqa: S608 - names of ours
            for name in ("requests", "details", "bodies")]  # fmt: skip
    assert counts == [(100, 151)] * 3


def test_the_file_is_private(tmp_path: Path) -> None:
    """The file is readable by its owner only."""
    with recorded(tmp_path / "new") as store:
        put(store, DONE)
        for each in (tmp_path / "new").iterdir():
            assert stat.S_IMODE(each.stat().st_mode) == 0o600, each.name
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700


def test_several_workers_share_it(tmp_path: Path) -> None:
    """Rows written by one worker are visible to the others, and none is lost."""
    with recorded(tmp_path) as one, recorded(tmp_path) as other:
        for _ in range(20):
            one(DONE)
            other(DONE)
        one.flush()
        other.flush()
        assert one.read(queries.newest) == 40
        assert len(other.read(lambda at: queries.page(at, ([], []), 100))) == 40


def test_a_damaged_file_is_set_aside(tmp_path: Path) -> None:
    """A new file is created; foreign files are left alone, and the gateway still serves."""
    with recorded(tmp_path) as store:
        put(store, *[DONE] * 500)
    file = tmp_path / "traffic.db"
    with closing(sqlite3.connect(file)) as at:
        at.execute("PRAGMA user_version = 99")
    with recorded(tmp_path) as store:
        assert store.read(queries.newest) == 0
    assert (tmp_path / "traffic.db.damaged-1").exists()
    foreign = tmp_path / "notes.txt"
    foreign.write_text("not a database, and long enough to be looked at" * 20)
    assert opened_traffic(ServerSettings(traffic=str(foreign))) is None
    assert foreign.read_text().startswith("not a database")


def test_where_the_file_is() -> None:
    """The default file name contains the port."""
    found = traffic_file(ServerSettings(port=8421))
    assert found is not None
    assert found.name == "traffic-8421.db"
    assert traffic_file(ServerSettings(traffic="off")) is None
    assert traffic_file(ServerSettings(traffic="/x/y.db")) == Path("/x/y.db")


def test_odd_records_are_stored(tmp_path: Path) -> None:
    """Any model name and any number can be stored."""
    odd = replace(
        DONE, model="\udc80\0'; DROP TABLE requests; --" + "x" * 1000, cost=Decimal(10**12),
        usage=Usage(input=2**70, output=0), seconds=-1.0, losses=("a\0",) * 1000,
    )  # fmt: skip
    with recorded(tmp_path) as store:
        put(store, odd, DONE)
        rows = store.read(lambda at: queries.page(at, ([], []), 10))
    assert len(rows) == 2
    assert len(rows[1]["model"]) == 256


def test_what_waits_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that can't keep up costs records, not memory."""
    monkeypatch.setattr(traffic_store, "_MAX_QUEUED", 10)
    with recorded(tmp_path) as store:
        store._pause = 60
        store.flush()
        for _ in range(50):
            store(DONE)
        assert store.dropped >= 1
        assert len(store._waiting) <= 10


def test_durations_are_told_from_their_classes() -> None:
    """Percentiles from bins are accurate to five per cent."""
    for seconds in (1e-5, 0.003, 0.25, 1.0, 59.0, 3600.0):
        assert seconds_of(bin_of(seconds)) == pytest.approx(seconds, rel=0.06)
    bins = {bin_of(each / 100): 1 for each in range(1, 101)}
    assert queries.percentile({}, 0.5) is None
    counted: dict[int, int] = {}
    for each in range(1, 101):
        counted[bin_of(each / 100)] = counted.get(bin_of(each / 100), 0) + 1
    assert bins
    assert queries.percentile(counted, 0.5) == pytest.approx(0.5, rel=0.1)
    assert queries.percentile(counted, 0.95) == pytest.approx(0.95, rel=0.1)


def test_since_is_found_without_looking_at_everything(tmp_path: Path) -> None:
    """The id found is at or before the first request of that time, despite gaps."""
    with recorded(tmp_path, most=150) as store:
        put(store, *[DONE] * 200)
        with closing(sqlite3.connect(store.path)) as at:
            at.execute("UPDATE requests SET time = 1000 + id * 10")
            at.commit()
        assert store.read(lambda at: queries.first_since(at, 2500.0)) <= 150
        rows = store.read(lambda at: queries.page(at, ([], []), 500, 2500.0))
        assert [row["time"] for row in rows] == [1000.0 + id * 10 for id in range(200, 149, -1)]
        assert store.read(lambda at: queries.page(at, ([], []), 5, 1e12)) == []


# --- over a socket


def test_a_request_is_listed_with_its_path(tmp_path: Path) -> None:
    """A request is listed with its layers, tokens and cost."""
    with gateway_to(Provider("anthropic")) as (serving, _), watched(serving, tmp_path) as store:
        answer = ask_front(serving.url, path_for("openai-chat"), body_for("openai-chat"))
        assert answer.status == 200
        listed = listing(serving, store)
        [item] = listed["items"]
        assert (item["front"], item["status"], item["tokens_in"]) == ("openai-chat", 200, 11)
        assert listed["facets"]["models"] == ["m"]
        shown = ask(serving, f"traffic/{item['id']}").body
    steps = shown["path"]
    assert [step["layer"] for step in steps] == [
        "gateway", "router", "wire", "provider", "front", "gateway",
    ]  # fmt: skip
    assert [step["at"] for step in steps] == sorted(step["at"] for step in steps)
    assert steps[-1]["at"] == pytest.approx(item["seconds"])
    assert "request_body" not in shown


class Broken(Provider):
    """A provider that is overloaded."""

    async def __call__(self, _request: web.Request) -> web.StreamResponse:
        """Say so."""
        return web.Response(status=503, body=b"{}")


def test_a_fallback_is_in_the_path(tmp_path: Path) -> None:
    """The path shows both providers and the first one's error; the route shows its health."""
    providers = Broken("openai-chat"), Provider("anthropic")
    with gateway_to(*providers) as (serving, _), watched(serving, tmp_path) as store:
        serving.gateway.router.health._clock = lambda: 1000.0
        ask_front(serving.url, path_for("openai-chat"), body_for("openai-chat"))
        [item] = listing(serving, store)["items"]
        shown = ask(serving, f"traffic/{item['id']}").body
        [route] = ask(serving, "routes").body["routes"]
    assert item["attempts"] == 2
    asked = [step for step in shown["path"] if step["layer"] == "upstream"]
    assert [step["what"] for step in asked] == ["sent to place0", "sent to place1"]
    assert asked[0]["detail"] == "Overloaded"
    assert (route["requests"], route["errors"], route["fallbacks"]) == (1, 0, 1)
    assert [hop["healthy"] for hop in route["hops"]] == [False, True]
    assert route["hops"][0]["last_error"] == "Overloaded"
    assert route["hops"][0]["resting_until"] is not None


def test_bodies_are_kept_only_when_asked_for(tmp_path: Path) -> None:
    """Bodies are stored up to the limit, and never for the page's own requests."""
    providing = gateway_to(Provider("openai-chat"), keep_bodies=40)
    with providing as (serving, _), watched(serving, tmp_path) as store:
        body = body_for("openai-chat", "secret " * 50)
        ask_front(serving.url, path_for("openai-chat"), body)
        ask(serving, "lens", {"body": body, "left": "gemini", "right": "gemini"})
        [item] = listing(serving, store)["items"]
        shown = ask(serving, f"traffic/{item['id']}").body
    assert len(shown["request_body"]) == len(shown["answer_body"]) == 40
    assert json.dumps(body).startswith(shown["request_body"][:30])


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """A gateway with some requests of several models and keys."""
    folder = tmp_path_factory.mktemp("traffic")
    with running(ECHO) as serving, watched(serving, folder) as store:
        records = [
            replace(DONE, model=f"m{number % 3}", key=f"k{number % 2}", seconds=number / 100,
                    status=500 if number % 10 == 0 else 200, left=number % 25 == 1)
            for number in range(1, 201)
        ]  # fmt: skip
        put(store, *records)
        yield serving


def test_pages_follow_each_other(many: Serving) -> None:
    """Each request is listed once, the latest first."""
    seen, found = list[int](), ask(many, "traffic?limit=30").body
    while found["items"]:
        seen += [int(item["id"]) for item in found["items"]]
        if found["cursor"] is None:
            break
        found = ask(many, f"traffic?limit=30&cursor={found['cursor']}").body
    assert seen == list(range(200, 0, -1))


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("model=m1", 67), ("model=m1&key=k1", 34), ("status=error", 20), ("status=left", 8),
        ("status=ok", 172), ("status=500", 20), ("status=404", 0), ("front=gemini", 0),
        ("model=%27%20OR%201%3D1%20--", 0), ("key=k1%27%3BDROP%20TABLE%20requests%3B--", 0),
        ("route=%00", 0), ("model=%ED%B2%80", 0), ("since=9999999999999", 0), ("since=0", 200),
    ],
)  # fmt: skip
def test_filters(many: Serving, query: str, count: int) -> None:
    """Filters match exactly, and SQL in a name has no effect."""
    status, found = ask(many, f"traffic?limit=500&{query}")
    assert status == 200
    assert len(found["items"]) == count


@pytest.mark.parametrize(
    "path",
    [
        "traffic?limit=-5", "traffic?limit=1e9", "traffic?cursor=-1", "traffic?cursor=x' OR 1=1",
        "traffic?cursor=" + "9" * 30, "traffic?since=-1", "traffic?since=nan",
        "traffic?since=1e400",
        "traffic?status=ok' OR '1", "traffic?status=" + "9" * 25, "traffic/0", "traffic/-1",
        "traffic/99999", "traffic/1 OR 1=1", "traffic/" + "9" * 30, "traffic/series?by=seconds",
        "traffic/series?by=model;DROP", "traffic/series?step=-1", "traffic/1/2", "traffic/\u0661",
        "traffic?" + "&".join(f"a{i}=1" for i in range(100)),
    ],
)  # fmt: skip
def test_hostile_queries_are_refused(many: Serving, path: str) -> None:
    """The JSON error quotes nothing, and no rows are lost."""
    status, found = ask(many, quote(path, safe="/?&="))
    assert status in {400, 404}
    assert "OR 1=1" not in json.dumps(found)
    assert len(ask(many, "traffic?limit=1").body["items"]) == 1


def test_large_limits_are_cut(many: Serving) -> None:
    """Limits above the maximum are capped."""
    assert len(ask(many, "traffic?limit=999999999").body["items"]) == 200


def test_plots(many: Serving) -> None:
    """Time series have the sums of each step, by model."""
    found = ask(many, f"traffic/series?since={time() - 300:.0f}&step=60&by=model").body
    assert len(found["steps"]) in {5, 6, 7}
    assert {each["name"] for each in found["series"]} == {"m0", "m1", "m2"}
    for each in found["series"]:
        assert {len(each[name]) for name in each if name != "name"} == {len(found["steps"])}
    sums = {name: sum(sum(each[name]) for each in found["series"])
            for name in ("requests", "errors", "tokens_in", "tokens_out")}  # fmt: skip
    assert sums == {"requests": 200, "errors": 20, "tokens_in": 600, "tokens_out": 800}
    assert sum(sum(each["cost"]) for each in found["series"]) == pytest.approx(0.4)
    medians = [value for each in found["series"] for value in each["p50"] if value is not None]
    assert medians
    assert all(0.5 < value < 1.5 for value in medians)


@pytest.mark.parametrize("query", ["since=0&step=1", "step=999999999", "since=99999999999&step=7"])
def test_plots_have_an_end(many: Serving, query: str) -> None:
    """The number of steps is limited, for any time range."""
    found = ask(many, f"traffic/series?{query}").body
    assert 1 <= len(found["steps"]) <= 501


def _live(serving: Serving) -> socket.socket:
    place = urlsplit(serving.url)
    link = socket.create_connection((place.hostname or "", place.port or 0), timeout=20)
    head = b"GET /ui/api/traffic/live HTTP/1.1\r\nhost: 127.0.0.1\r\n"
    link.sendall(head + b"x-dragoman-page: 1\r\n\r\n")
    return link


def _until(link: socket.socket, wanted: bytes) -> bytes:
    found = b""
    while wanted not in found:
        piece = link.recv(65536)
        assert piece, found
        found += piece
    return found


def test_requests_come_live_from_every_worker(tmp_path: Path) -> None:
    """Rows of other processes are streamed too; disconnected pages are removed."""
    with running(ECHO) as serving, watched(serving, tmp_path) as own, recorded(tmp_path) as other:
        put(own, replace(DONE, model="before"))
        with closing(_live(serving)) as link:
            _until(link, b"\r\n\r\n")
            put(other, replace(DONE, model="elsewhere"))
            put(own, replace(DONE, model="here"))
            found = _until(link, b'"here"')
        assert b'"elsewhere"' in found
        assert b'"before"' not in found


def test_a_slow_reader_loses_the_oldest() -> None:
    """The queue of a watching page is limited."""
    reader = Reader()
    for start in range(0, 5000, 500):
        reader.put([{"id": number} for number in range(start, start + 500)])
    assert len(reader._rows) == 1000
    assert reader._rows[-1] == {"id": 4999}


def test_without_a_record_the_page_is_told() -> None:
    """With recording off, the API returns an error and `info` reports it."""
    with running(ECHO) as serving:
        assert ask(serving, "traffic").status == 404
        assert ask(serving, "traffic/live").status == 404


@pytest.mark.slow
def test_a_hundred_thousand_requests_are_listed_fast(tmp_path: Path) -> None:
    """Lists and filters over all rows take less than 0.1 seconds of CPU time."""
    from time import process_time

    with recorded(tmp_path) as store:
        for start in range(0, 100_000, 10_000):
            put(store, *[replace(DONE, model=f"m{number % 50}", seconds=number % 7 + 0.1)
                         for number in range(start, start + 10_000)])  # fmt: skip
        for where in (([], []), (["model = ?"], ["nobody"]), (["id < ?"], [500])):
            begun = process_time()
            store.read(lambda at, where=where: queries.page(at, where, 50))  # type: ignore[misc]
            assert process_time() - begun < 0.1
