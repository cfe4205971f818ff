"""The router: the route of a name, and the order of its targets."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from dragoman.errors import AuthenticationError, ConnectError, ModelNotFound, RateLimited
from dragoman.gateway.config import health, routing
from dragoman.gateway.config.catalogue import Catalogue, ListedModel
from dragoman.gateway.config.routing import Route, Router
from dragoman.gateway.config.settings import GatewayConfig, Hop, Place, RouteSettings
from dragoman.model.catalogue import ModelInfo
from dragoman.providers.registry import provider

OPENAI = Place(name="openai", provider=provider("openai"))
GROQ = Place(name="groq", provider=provider("groq"))
LAB = Place(name="lab", provider=provider("openai-compatible"), base_url="http://127.0.0.1:9/v1")
MIRROR = Place(name="mirror", provider=provider("openai"), base_url="http://127.0.0.1:9/v1")
ECHO = Place(name="echo:", model_url="echo:")
SMALL = Place(name="local:smollm2", model_url="local:smollm2")


class Clock:
    """A clock that only moves when told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        """The time."""
        return self.now


class Listing(Catalogue):
    """Model lists of providers, without requests."""

    def __init__(self, config: GatewayConfig, **lists: tuple[str, ...]) -> None:
        super().__init__(config)
        self.said = {name: tuple(map(ModelInfo, ids)) for name, ids in lists.items()}

    async def _fetch(self) -> dict[str, tuple[ModelInfo, ...]]:
        return self.said


def route(model: str, *hops: Hop | Place, name: str = "") -> RouteSettings:
    """A route to hops, or to places that keep the client's name."""
    to = tuple(hop if isinstance(hop, Hop) else Hop(place=hop) for hop in hops)
    return RouteSettings(model=model, to=to, name=name)


def router(*routes: RouteSettings, aliases: dict[str, str] | None = None) -> Router:
    """A router of these routes, with the same random draws each time."""
    config = GatewayConfig(routes=routes, aliases=aliases or {})
    return Router(config, clock=Clock(), draw=Random(7).random)


def serving(*places: Place) -> Router:
    """A router without routes."""
    return Router(GatewayConfig(places={place.name: place for place in places}))


def found(table: Router, model: str | None) -> Route:
    """The route that is known without a request."""
    known = table.find(model)
    assert known is not None
    return known


def asked(known: Route) -> list[tuple[str, str | None]]:
    """The providers and models, in order."""
    return [(hop.place.name, hop.model) for hop in known.order()]


def test_the_most_specific_route_is_used() -> None:
    """Exact before patterns, then the longest literal part, then the order of the file."""
    table = router(
        route("*", LAB),
        route("gpt-*", GROQ),
        route("*-mini", OPENAI, name="first"),
        route("mini-*", OPENAI, name="second"),
        route("gpt-5", OPENAI),
    )
    names = ("gpt-5", "gpt-4", "mini-mini", "mini-x", "claude", None)
    routes = [found(table, name).name for name in names]
    assert routes == ["gpt-5", "gpt-*", "first", "second", "*", "*"]


def test_only_stars_are_special_in_patterns() -> None:
    """Brackets, question marks and dots are literal."""
    table = router(route("a[b]?.c*", LAB))
    assert table.find("a[b]?.cd") is not None
    assert table.find("abx.cd") is None


def test_a_provider_keeps_the_clients_name_and_a_model_replaces_it() -> None:
    """`lab` gets the client's model name, `openai:gpt-5-mini` its own model."""
    table = router(route("*", LAB, Hop(place=OPENAI, model="gpt-5-mini")))
    assert asked(found(table, "llama")) == [("lab", "llama"), ("openai", "gpt-5-mini")]


@pytest.mark.parametrize(
    ("name", "at_lab", "at_mirror"),
    [
        ("lab:llama", "llama", "lab:llama"),
        ("openai:gpt-5", "openai:gpt-5", "gpt-5"),
        ("OpenAI:gpt-5", "OpenAI:gpt-5", "gpt-5"),
        ("mirror:gpt-5", "mirror:gpt-5", "gpt-5"),
        ("llama3:8b", "llama3:8b", "llama3:8b"),
        ("lab:", "lab:", "lab:"),
        (":x", ":x", ":x"),
    ],
)
def test_a_prefix_is_removed_if_it_names_the_provider(
    name: str, at_lab: str, at_mirror: str
) -> None:
    """By its name or its type; otherwise it is part of the model's name."""
    table = router(route("*", LAB, MIRROR))
    assert asked(found(table, name)) == [("lab", at_lab), ("mirror", at_mirror)]


def test_an_alias_stands_for_another_name() -> None:
    """The provider gets the other name."""
    table = router(route("gpt-*", OPENAI), aliases={"fast": "gpt-5-mini"})
    assert asked(found(table, "fast")) == [("openai", "gpt-5-mini")]


def test_weights_are_shares_of_the_first_choice() -> None:
    """Weighted targets are drawn at random, the others follow in order."""
    table = router(
        route("*", Hop(place=LAB, weight=3), Hop(place=GROQ, weight=1), OPENAI, MIRROR),
    )
    orders = [tuple(name for name, _ in asked(found(table, "x"))) for _ in range(4000)]
    assert {order[2:] for order in orders} == {("openai", "mirror")}
    assert 0.72 < Counter(order[0] for order in orders)["lab"] / len(orders) < 0.78


def test_a_weight_of_zero_is_a_last_resort_of_its_group() -> None:
    """It is never drawn first."""
    table = router(route("*", Hop(place=LAB, weight=0), Hop(place=GROQ, weight=1)))
    assert {asked(found(table, "x"))[0][0] for _ in range(100)} == {"groq"}


def test_a_failed_target_goes_last_for_longer_each_time() -> None:
    """5 s, then 10 s; concurrent failures count once, and an answer resets it."""
    clock = Clock()
    table = Router(GatewayConfig(routes=(route("*", LAB, OPENAI),)), clock=clock)
    known = found(table, "x")
    lab = known.hops[0]
    for wait in (5.0, 10.0, 20.0):
        for _ in range(50):
            known.note_failure(lab, RateLimited("busy"))
        assert asked(known)[0][0] == "openai"
        clock.now += wait - 0.1
        assert asked(known)[0][0] == "openai"
        clock.now += 0.2
        assert asked(known)[0][0] == "lab"
    known.note_failure(lab)
    known.note_success(lab)
    assert asked(known)[0][0] == "lab"


def test_retry_after_is_obeyed_within_bounds() -> None:
    """A server that asks for a day is tried again after five minutes."""
    clock = Clock()
    known = found(Router(GatewayConfig(routes=(route("*", LAB, OPENAI),)), clock=clock), "x")
    known.note_failure(known.hops[0], RateLimited("busy", retry_after=86400.0))
    clock.now += 299
    assert asked(known)[0][0] == "openai"
    clock.now += 2
    assert asked(known)[0][0] == "lab"


def test_a_permanent_error_does_not_affect_health() -> None:
    """A wrong key stays wrong: the order of the file is kept."""
    known = found(router(route("*", LAB, OPENAI)), "x")
    known.note_failure(known.hops[0], AuthenticationError("no"))
    assert asked(known)[0][0] == "lab"


def test_an_unreachable_provider_goes_last_for_all_models() -> None:
    """Until any of them is answered."""
    table = router(route("*", LAB, OPENAI))
    first, second = found(table, "x"), found(table, "y")
    first.note_failure(first.hops[0], ConnectError("gone"))
    assert asked(second)[0][0] == "openai"
    second.note_success(second.hops[0])
    assert asked(first)[0][0] == "lab"


def test_health_is_shared_between_routes() -> None:
    """The same model of the same provider fails on every route."""
    table = router(route("a", Hop(place=LAB, model="m"), OPENAI), route("b", LAB, OPENAI))
    found(table, "a").note_failure(found(table, "a").hops[0])
    shared = router(
        route("a", Hop(place=LAB, model="m"), OPENAI), route("c", Hop(place=LAB, model="m"), GROQ)
    )
    found(shared, "a").note_failure(found(shared, "a").hops[0])
    assert asked(found(table, "b"))[0][0] == "lab"
    assert asked(found(shared, "c"))[0][0] == "groq"


def test_unknown_names_take_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many and however long."""
    monkeypatch.setattr(routing, "_MAX_CACHED_NAMES", 10)
    monkeypatch.setattr(health, "_MAX_TRACKED", 10)
    table = router(route("*", LAB, OPENAI))
    for number in range(100):
        known = found(table, f"model-{number}")
        known.note_failure(known.hops[0])
        found(table, "x" * 300 + str(number))
    assert len(table._found) <= 10
    assert len(table._remembered) <= 10
    assert len(table._health._failing) <= 10


def test_without_routes_every_provider_is_served() -> None:
    """As `provider:model`, and by plain names that a vendor lists."""
    table = serving(LAB, OPENAI, ECHO, SMALL)
    assert asked(found(table, "lab:llama")) == [("lab", "llama")]
    assert asked(found(table, "gpt-5")) == [("openai", "gpt-5")]
    assert asked(found(table, "openai:brand-new")) == [("openai", "brand-new")]
    for name in ("echo:", "echo"):
        assert asked(found(table, name)) == [("echo:", None)]
    for name in ("local:smollm2", "smollm2"):
        assert asked(found(table, name)) == [("local:smollm2", None)]


@pytest.mark.parametrize(
    "name", ["local:/etc/passwd", "local:~/x.gguf", "scripted:/etc/passwd", "local:", "anthropic:x"]
)
async def test_clients_can_not_open_files_or_other_providers(name: str) -> None:
    """Only what the operator configured is served."""
    table = serving(ECHO, SMALL)
    with pytest.raises(ModelNotFound):
        await table.resolve(name)


def test_a_configured_provider_overrides_a_known_one() -> None:
    """`openai:` means the configured one of that name, wherever it is listed."""
    assert asked(found(serving(MIRROR, OPENAI), "openai:gpt-5")) == [("openai", "gpt-5")]
    assert asked(found(serving(MIRROR), "openai:gpt-5")) == [("mirror", "gpt-5")]


async def test_plain_names_are_found_by_asking() -> None:
    """The first provider that lists it; Ollama's `:latest` may be omitted."""
    config = GatewayConfig(places={"groq": GROQ, "lab": LAB})
    listing = Listing(config, groq=("openai/gpt-oss", "both"), lab=("llama:latest", "both"))
    table = Router(config, listing)
    assert table.find("both") is None
    assert asked(await table.resolve("both")) == [("groq", "both")]
    assert table.find("both") is not None
    assert asked(await table.resolve("openai/gpt-oss")) == [("groq", "openai/gpt-oss")]
    assert asked(await table.resolve("llama")) == [("lab", "llama:latest")]
    assert asked(await table.resolve("lab/anything")) == [("lab", "anything")]
    assert await listing.holder("both") == ListedModel(GROQ, "both")


async def test_an_unknown_name_gets_suggestions() -> None:
    """With and without routes; the error is a 404."""
    config = GatewayConfig(places={"lab": LAB})
    tables = (Router(config, Listing(config, lab=("llama-4",))), router(route("llama-4", LAB)))
    for table in tables:
        with pytest.raises(ModelNotFound, match=r"did you mean (lab:)?llama-4\?") as raised:
            await table.resolve("lama-4")
        assert raised.value.status == 404
        assert raised.value.model == "lama-4"


async def test_a_request_without_a_model_needs_a_default() -> None:
    """The route `*`, or the only provider."""
    assert asked(found(serving(LAB), None)) == [("lab", None)]
    for table in (serving(LAB, OPENAI), router(route("gpt-*", OPENAI))):
        with pytest.raises(ModelNotFound, match="does not name a model"):
            await table.resolve(None)
