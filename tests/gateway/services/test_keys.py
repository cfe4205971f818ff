"""Virtual keys on endpoints other than chat: permissions and charges."""

from __future__ import annotations

import io
from collections.abc import Generator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

import openai
import pytest

from dragoman.errors import AuthenticationError, PermissionDenied
from dragoman.gateway.keys import Budget, KeyRecord, Reservation, Spent
from dragoman.gateway.keys.patterns import may_use
from tests.gateway.running import Serving, routed, running
from tests.gateway.services.clients import (
    anthropic_client,
    gemini_client,
    gemini_errors,
    ollama_client,
    openai_client,
)
from tests.gateway.services.conftest import Stage

RICH = (Budget("cost", Decimal(5)),)
RECORDS = {
    "plain": KeyRecord(id="plain"),
    "small": KeyRecord(id="small", models=("m1*",), budgets=RICH),
    "files": KeyRecord(id="files", models=("*", "hosted:openai", "hosted:gemini")),
    "admin": KeyRecord(id="admin", is_admin=True),
}


class ScriptedKeys:
    """Test keys whose id is their secret; reservations and settlements are recorded."""

    def __init__(self) -> None:
        self.reserved: list[tuple[str, str, int, Decimal | None]] = []
        self.settled: list[Spent] = []
        self.released = 0

    def recall(self, _presented: str) -> None:
        """Nothing is remembered."""

    async def authenticate(self, presented: str | None, *_: Any) -> KeyRecord:
        """The record of a secret."""
        if presented not in RECORDS:
            msg = "the key is not known"
            raise AuthenticationError(msg, status=401)
        return RECORDS[presented]

    async def expect_open(self, *_given: Any, **_more: Any) -> None:
        """Every key has something left."""

    async def reserve(
        self, key: KeyRecord, model: str, tokens: int, cost: Decimal | None
    ) -> Reservation:
        """As the real ones do, without a store."""
        if key.models and not may_use(key.models, model):
            msg = "the key may not use this model"
            raise PermissionDenied(msg, status=403)
        self.reserved.append((key.id, model, tokens, cost))
        return Reservation(id="r", key=key, tokens=tokens, nanos=0, day="2026-01-01")

    async def settle(self, _: Reservation, spent: Spent) -> None:
        """Keep it."""
        self.settled.append(spent)

    async def release(self, _: Reservation) -> None:
        """Count it."""
        self.released += 1

    async def close(self) -> None:
        """Nothing to close."""


@contextmanager
def _keyed(stage: Stage, *dialects: str) -> Generator[tuple[Serving, ScriptedKeys]]:
    places = [stage.upstream(each).place() for each in dialects]
    with running(routed(*places)) as serving:
        keys: Any = ScriptedKeys()
        serving.gateway.keys = keys
        yield serving, keys


def test_lists_show_what_a_key_may_use(stage: Stage) -> None:
    """Models that the key may not use are hidden, also by name."""
    with _keyed(stage, "openai") as (serving, _):
        client = openai_client(serving.url, "small")
        assert [model.id for model in client.models.list()] == ["m1"]
        assert client.models.retrieve("m1").id == "m1"
        with pytest.raises(openai.NotFoundError):
            client.models.retrieve("m2")
        assert [each.model for each in ollama_client(serving.url, "small").list().models] == ["m1"]
        assert len(anthropic_client(serving.url, "plain").models.list().data) == 3


def test_embeddings_are_reserved_and_settled(stage: Stage) -> None:
    """Usage is reserved by body size, then settled by the actual usage."""
    with _keyed(stage, "openai") as (serving, keys):
        client = openai_client(serving.url, "small")
        client.embeddings.create(model="m1", input="x" * 300)
        with pytest.raises(openai.PermissionDeniedError):
            client.embeddings.create(model="m2", input="x")
        client.models.list()
    (name, model, tokens, _), spent = keys.reserved[0], keys.settled[0]
    assert (name, model, tokens > 100) == ("small", "m1", True)
    assert (spent.tokens_in, spent.tokens_out, spent.model) == (7, 0, "m1")


def test_counts_and_loads_are_free(stage: Stage) -> None:
    """A key with a cost budget may count the tokens of a model without a price."""
    with _keyed(stage, "anthropic") as (serving, keys):
        anthropic_client(serving.url, "small").messages.count_tokens(
            model="m1", messages=[{"role": "user", "content": "Hi"}]
        )
        ollama_client(serving.url, "small").generate(model="m1")
        openai_client(serving.url, "small").models.list()
    assert [each[2:] for each in keys.reserved] == [(0, Decimal(0)), (0, Decimal(0))]
    assert [(each.tokens_in, each.cost) for each in keys.settled] == [(0, Decimal(0))] * 2


def test_several_prompts_reserve_an_answer_for_each(stage: Stage) -> None:
    """Usage is reserved and charged for every prompt."""
    with _keyed(stage, "openai") as (serving, keys):
        client = openai_client(serving.url, "small")
        client.completions.create(model="m1", prompt=["a", "b", "c"], max_tokens=100)
        client.models.list()
    assert keys.reserved[0][2] >= 300
    assert keys.settled[0].tokens_in + keys.settled[0].tokens_out == 21


def test_embeddings_that_are_refused_cost_nothing(stage: Stage) -> None:
    """A rejected request releases its reservation."""
    with _keyed(stage, "anthropic") as (serving, keys):
        with pytest.raises(openai.BadRequestError):
            openai_client(serving.url, "small").embeddings.create(model="m1", input="x")
        openai_client(serving.url, "small").models.list()
    assert (keys.settled, keys.released) == ([], 1)


def test_files_are_for_admins_and_keys_that_say_so(stage: Stage) -> None:
    """Files belong to the operator's account, so keys could read each other's."""
    with _keyed(stage, "openai") as (serving, keys):
        for name in ("plain", "small"):
            with pytest.raises(openai.PermissionDeniedError, match="operator's account"):
                openai_client(serving.url, name).files.list()
        for name in ("files", "admin"):
            assert openai_client(serving.url, name).files.list().data
        with pytest.raises(openai.AuthenticationError):
            openai_client(serving.url, "nobody").files.list()
    assert [each[:2] for each in keys.reserved] == [("files", "hosted:openai")]


def test_a_gemini_upload_goes_on_with_the_clients_key(stage: Stage) -> None:
    """The SDK sends no key header with the content, so its key is part of the URL."""
    with _keyed(stage, "gemini") as (serving, _):
        client = gemini_client(serving.url, "files")
        made = client.files.upload(file=io.BytesIO(b"abc"), config={"mime_type": "text/plain"})
        assert made.name == "files/f1"
        assert set(stage.upstream("gemini").asked[-1].query) == {"upload_id", "upload_protocol"}
        refused = gemini_client(serving.url, "plain")
        with pytest.raises(gemini_errors.ClientError, match="operator's account"):
            refused.files.get(name="files/f1")
