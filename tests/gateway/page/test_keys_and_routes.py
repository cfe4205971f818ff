"""Keys with their budgets, and routes with their health, as the page shows them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from dragoman.gateway.config.settings import GatewayConfig, Hop, Place, RouteSettings
from dragoman.gateway.keys import Keys
from dragoman.gateway.keys.records import Budget
from tests.gateway.client_requests import ask as ask_front
from tests.gateway.client_requests import body_for, path_for
from tests.gateway.page.asked import Answer, ask
from tests.gateway.running import Serving, running

ECHO = Place(name="echo:", model_url="echo:")
ROUTE = RouteSettings(model="talk", to=(Hop(place=ECHO, model="echo:"),), name="talking",
                      max_tokens=1000, max_cost=Decimal("2.50"), budget_period="day")  # fmt: skip
CONFIG = GatewayConfig(places={"echo:": ECHO}, routes=(ROUTE,))


class Owned(NamedTuple):
    """A gateway with keys, and an admin key."""

    serving: Serving
    admin: str

    def ask(self, path: str, body: Any = None, **options: Any) -> Answer:
        """Sends a request with the admin key."""
        return ask(self.serving, path, body, key=self.admin, **options)


@contextmanager
def owned(folder: Path) -> Generator[Owned]:
    """A gateway whose keys are in a folder."""
    url = f"sqlite:///{folder / 'keys.db'}"

    async def first() -> str:
        keys = await Keys.open(url)
        _, secret = await keys.create(name="admin", is_admin=True)
        await keys.close()
        return secret

    secret = asyncio.run(first())
    with running(CONFIG) as serving:
        serving.gateway.keys = asyncio.run(Keys.open(url))
        yield Owned(serving, secret)


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Owned]:
    """A gateway for tests that leave it as it was, or nearly."""
    with owned(tmp_path_factory.mktemp("keys")) as found:
        yield found


def test_a_key_is_made_shown_and_revoked(gateway: Owned) -> None:
    """Its secret is shown once, and works until it is revoked."""
    asked = {
        "name": "team", "models": ["talk"], "requests_per_minute": 60, "tokens_per_minute": None,
        "budgets": [{"kind": "cost", "amount": "5.5", "period": "month"},
                    {"kind": "tokens", "amount": 100000, "period": "total"}],
        "expires_at": 4102444800, "is_admin": False,
    }  # fmt: skip
    status, made = gateway.ask("keys", asked)
    assert status == 200, made
    secret, id = made["secret"], made["key"]["id"]
    shown = next(each for each in gateway.ask("keys").body["keys"] if each["id"] == id)
    assert shown["name"] == "team"
    assert [(each["kind"], each["amount"], each["used"]) for each in shown["budgets"]] == [
        ("cost", "5.5", "0"), ("tokens", "100000", "0"),
    ]  # fmt: skip
    assert secret not in json.dumps(gateway.ask("keys").body)
    assert gateway.ask(f"keys/{id}/usage").body == {"items": []}
    assert gateway.ask(f"keys/{id}/revoke", {}).body["key"]["revoked_at"] is not None
    body = body_for("openai-chat", model="talk")
    answer = ask_front(gateway.serving.url, path_for("openai-chat"), body,
                       authorization=f"Bearer {secret}")  # fmt: skip
    assert answer.status == 401


def test_what_was_used_counts_against_the_budget(tmp_path: Path) -> None:
    """Tokens used by a key count in its budget, its usage and the route's budget."""
    with owned(tmp_path) as gateway:
        made = gateway.ask("keys", {
            "name": "x", "budgets": [{"kind": "tokens", "amount": 50_000, "period": "day"}],
        }).body  # fmt: skip
        body = body_for("openai-chat", model="talk")
        answer = ask_front(gateway.serving.url, path_for("openai-chat"), body,
                           authorization=f"Bearer {made['secret']}")  # fmt: skip
        assert answer.status == 200
        id = made["key"]["id"]
        [item] = gateway.ask(f"keys/{id}/usage").body["items"]
        used = item["tokens_in"] + item["tokens_out"]
        [budget] = next(each for each in gateway.ask("keys").body["keys"]
                        if each["id"] == id)["budgets"]  # fmt: skip
        [route] = gateway.ask("routes").body["routes"]
    assert item["requests"] == 1
    assert used > 0
    assert int(budget["used"]) == used
    assert route["name"] == "talking"
    assert [(each["kind"], each["period"]) for each in route["budgets"]] == [
        ("tokens", "day"), ("cost", "day"),
    ]  # fmt: skip
    assert int(route["budgets"][0]["used"]) == used


@pytest.mark.parametrize(
    "asked",
    [
        [], {"name": 5}, {"name": "x" * 1000}, {"name": "a\nb"}, {"models": "all"}, {"models": [1]},
        {"models": [""]}, {"requests_per_minute": 0}, {"requests_per_minute": True},
        {"requests_per_minute": 1.5}, {"max_concurrent": 10**30}, {"budgets": {}},
        {"budgets": [5]}, {"budgets": [{"kind": "cost"}]}, {"is_admin": "yes"},
        {"budgets": [{"kind": "cost", "amount": "NaN", "period": "day"}]},
        {"budgets": [{"kind": "cost", "amount": "-1", "period": "day"}]},
        {"budgets": [{"kind": "cost", "amount": "1e999999999", "period": "day"}]},
        {"budgets": [{"kind": "cost", "amount": "1e-999999999", "period": "day"}]},
        {"budgets": [{"kind": "cost", "amount": "9" * 5000, "period": "day"}]},
        {"budgets": [{"kind": "soul", "amount": 1, "period": "day"}]},
        {"budgets": [{"kind": "cost", "amount": 1, "period": "eon"}]},
        {"budgets": [{"kind": "cost", "amount": 1, "period": "day"}] * 2},
        {"expires_at": 5}, {"expires_at": "tomorrow"}, {"expires_at": 1e400}, {"expires_at": -1},
    ],
)  # fmt: skip
def test_no_key_is_made_of_nonsense(gateway: Owned, asked: Any) -> None:
    """Invalid input gives an error, and no key is created."""
    before = len(gateway.ask("keys").body["keys"])
    status, found = gateway.ask("keys", asked)
    assert status == 400, found
    assert found["error"]["message"]
    assert len(gateway.ask("keys").body["keys"]) == before


@pytest.mark.parametrize("id", ["nobody", "..", "%00", "x'%20OR%20'1'='1", "a" * 5000])
def test_foreign_ids_are_not_found(gateway: Owned, id: str) -> None:
    """Any unknown id gives a 404."""
    assert gateway.ask(f"keys/{id}/revoke", {}).status == 404
    assert gateway.ask(f"keys/{id}/usage").status == 404


def test_the_key_in_use_is_not_revoked(gateway: Owned) -> None:
    """Users can't lock themselves out."""
    admin = next(each for each in gateway.ask("keys").body["keys"] if each["name"] == "admin")
    assert gateway.ask(f"keys/{admin['id']}/revoke", {}).status == 409


def test_only_administrators_see_any_of_it(gateway: Owned) -> None:
    """Requests without a key, with a wrong key or with a non-admin key are rejected."""
    secret = gateway.ask("keys", {"name": "team"}).body["secret"]
    for path in ("keys", "routes", "traffic", "traffic/live", "traffic/1", "rules"):
        assert ask(gateway.serving, path).status == 401
        assert ask(gateway.serving, path, key="sk-wrong").status == 401
        assert ask(gateway.serving, path, key=secret).status == 403
        assert ask(gateway.serving, path, key=gateway.admin, header=None).status == 403
    for path in ("lens", "snippet", "keys", "keys/x/revoke"):
        assert ask(gateway.serving, path, {}, key=secret).status == 403


def test_without_keys_there_are_none_to_make(tmp_path: Path) -> None:
    """Creating a key gives a 404; without routes, the providers are shown."""
    del tmp_path
    with running(GatewayConfig(places={"echo:": ECHO})) as serving:
        assert ask(serving, "keys", {"name": "x"}).status == 404
        [route] = ask(serving, "routes").body["routes"]
    assert (route["name"], route["hops"][0]["healthy"]) == ("echo:", True)


def test_budgets_of_keys_are_values() -> None:
    """A budget prints its amount and period."""
    assert str(Budget("cost", Decimal("5.5"), "month")) == "$5.5 per month"
