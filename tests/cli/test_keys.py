"""`dragoman keys`: create, list, revoke and usage."""

from __future__ import annotations

import asyncio
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from dragoman.cli.commands import dragoman as command
from dragoman.gateway.keys import Keys, Spent
from dragoman.gateway.keys.urls import store_at


@pytest.fixture(autouse=True)
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The path of the key store."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.delenv("DRAGOMAN_KEYS", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "data" / "dragoman" / "keys.db"


def run(*arguments: str) -> Result:
    """Run a command."""
    return CliRunner().invoke(command, ["keys", *arguments])


def listed(*arguments: str) -> list[dict[str, Any]]:
    """The listed keys."""
    found: list[dict[str, Any]] = json.loads(run("list", "--json", *arguments).stdout)
    return found


def spend(file: Path, secret: str, *models: str) -> None:
    """Record usage as a gateway does."""

    async def work() -> None:
        keys = await Keys.open(f"sqlite:///{file}")
        for model in models:
            held = await keys.reserve(await keys.authenticate(secret), model, 9, Decimal(1))
            took = Spent(tokens_in=1200, tokens_out=3, cost=Decimal("0.25"), model=model, route="r")
            await keys.settle(held, took)
        await keys.close()

    asyncio.run(work())


def test_a_key_is_created_with_all_options(file: Path) -> None:
    """Only the secret is on standard output, and the store doesn't contain it."""
    done = run(
        "create", "--name", "team", "--model", "gpt-*", "--model", "echo:*", "--rpm", "60",
        "--tpm", "1000", "--concurrent", "4", "--budget-cost", "5/day", "--budget-cost", "20.50",
        "--budget-tokens", "2M/month", "--expires", "30d", "--admin",
    )  # fmt: skip
    assert done.exit_code == 0, done.stderr
    [secret] = done.stdout.split()
    assert secret.startswith("drg_")
    assert "can't be shown again" in done.stderr
    [key] = listed()
    assert (key["name"], key["models"], key["state"]) == ("team", ["gpt-*", "echo:*"],
                                                          "active (admin)")  # fmt: skip
    assert (key["requests_per_minute"], key["tokens_per_minute"], key["max_concurrent"]) == (
        60, 1000, 4,
    )  # fmt: skip
    assert [(each["kind"], each["amount"], each["period"]) for each in key["budgets"]] == [
        ("cost", "5", "day"), ("cost", "20.50", "total"), ("tokens", "2000000", "month"),
    ]  # fmt: skip
    assert key["expires_at"] > key["created_at"]
    assert file.stat().st_mode & 0o777 == 0o600
    assert secret.encode()[-20:] not in file.read_bytes()


def test_json_has_the_secret_and_the_record() -> None:
    """For programs, and only at creation."""
    made = json.loads(run("create", "--json").stdout)
    assert made.pop("secret").startswith(f"drg_{made['id']}_")
    assert listed() == [made]


def test_spending_is_shown(file: Path) -> None:
    """In the list of keys, and by `usage` grouped as requested."""
    secret = run("create", "--name", "a", "--budget-cost", "5/day").stdout.strip()
    other = run("create", "--name", "b").stdout.strip()
    spend(file, secret, "m1", "m2", "m1")
    spend(file, other, "m1")
    assert listed()[0]["budgets"] == [
        {"kind": "cost", "amount": "5", "period": "day", "spent": "0.75", "reserved": "0"}
    ]
    assert "$5 per day ($0.7500 spent)" in run("list", "--table").stdout
    by_model = json.loads(run("usage", "--json").stdout)
    assert [(row["model"], row["requests"], row["cost"]) for row in by_model] == [
        ("m1", 3, "0.75"), ("m2", 1, "0.25"),
    ]  # fmt: skip
    of_one = json.loads(run("usage", "a", "--by", "day", "--by", "route", "--json").stdout)
    assert [(row["route"], row["requests"]) for row in of_one] == [("r", 3)]
    assert "1,200" in run("usage", "b", "--table").stdout
    assert json.loads(run("usage", "--since", "2999-01-01", "--json").stdout) == []


def test_a_revoked_key_stays_in_the_list() -> None:
    """It can be revoked by id, by name, or by the leaked secret."""
    secrets = [run("create", "--name", f"n{n}").stdout.strip() for n in range(3)]
    first = listed()[0]["id"]
    done = run("revoke", first, "n1", secrets[2])
    assert done.exit_code == 0
    assert f"revoked {first}" in done.stderr
    assert [key["state"] for key in listed()] == ["revoked"] * 3


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("create", "--budget-cost", "lots"), "such as 5/day"),
        (("create", "--budget-cost", "-1"), "such as 5/day"),
        (("create", "--budget-cost", "nan"), "such as 5/day"),
        (("create", "--budget-cost", "5/week"), "such as 5/day"),
        (("create", "--budget-tokens", "1.5"), "whole number"),
        (("create", "--budget-tokens", "9" * 40), "at most"),
        (("create", "--budget-cost", "1", "--budget-cost", "2"), "only one budget of each kind"),
        (("create", "--expires", "soon"), "such as 12h or 30d"),
        (("create", "--expires", "0d"), "such as 12h or 30d"),
        (("create", "--rpm", "0"), "requests_per_minute must be a whole number from 1"),
        (("create", "--name", "x" * 300), "at most 200 printable"),
        (("create", "--name", "\x1b[31m"), "at most 200 printable"),
        (("create", "--model", ""), "not be empty"),
        (("create", "--store", "oracle://x"), "sqlite:///file"),
        (("list", "--store", "sqlite:///nowhere.db"), "`dragoman keys create` creates one"),
        (("revoke", "nobody"), "`dragoman keys list` shows"),
        (("revoke", ""), "`dragoman keys list` shows"),
        (("usage", "nobody"), "`dragoman keys list` shows"),
        (("usage", "--since", "yesterday"), "as in 2026-11-01"),
    ],
)
def test_errors_say_what_to_do(arguments: tuple[str, ...], said: str) -> None:
    """The error is one line, and nothing is created."""
    run("create", "--name", "kept")
    done = run(*arguments)
    assert done.exit_code in {2, 4}
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert [key["name"] for key in listed()] == ["kept"]


def test_an_ambiguous_name_is_rejected() -> None:
    """Only an id tells the keys apart."""
    for _ in range(2):
        run("create", "--name", "twin")
    done = run("revoke", "twin")
    assert (done.exit_code, "2 keys have this name" in done.stderr) == (2, True)


def test_the_store_is_named_in_the_environment_or_by_an_option(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The option takes precedence."""
    monkeypatch.setenv("DRAGOMAN_KEYS", "sqlite:///one.db")
    run("create", "--name", "one")
    run("create", "--name", "two", "--store", "sqlite:///two.db")
    assert [key["name"] for key in listed()] == ["one"]
    assert [key["name"] for key in listed("--store", "sqlite:///two.db")] == ["two"]


def test_keys_are_stored_where_the_configuration_says(tmp_path: Path) -> None:
    """A key created beside a `dragoman.toml` is known to its gateway."""
    (tmp_path / "dragoman.toml").write_text('[server]\nkeys = "sqlite:///mine.db"\n')
    assert run("create", "--name", "team").exit_code == 0
    assert [key["name"] for key in listed("--store", "sqlite:///mine.db")] == ["team"]
    assert listed() == listed("--store", "sqlite:///mine.db")


def test_one_damaged_key_does_not_hide_the_others(file: Path) -> None:
    """A record that can't be read is skipped and named; the others are listed and revoked."""
    import sqlite3

    for name in ("one", "two", "three"):
        run("create", "--name", name)
    with sqlite3.connect(file) as connection:
        changed = """UPDATE heads SET document = x'00'
            WHERE instr(document, CAST('"two"' AS BLOB)) RETURNING chat"""
        [(id,)] = connection.execute(changed).fetchall()
    connection.close()
    told = run("list", "--json")
    assert [each["name"] for each in json.loads(told.stdout)] == ["one", "three"]
    assert id in told.stderr
    assert "damaged" in told.stderr
    assert run("revoke", "three").exit_code == 0
    assert run("revoke", id).exit_code == 0
    assert "damaged" not in run("list").stderr


def test_keys_of_envelopes_are_rotated(file: Path) -> None:
    """They are no keys of clients: neither listed nor revocable."""
    run("create")
    first = run("rotate-envelopes")
    assert first.exit_code == 0, first.output
    assert "added a key for envelopes" in first.stderr
    assert run("rotate-envelopes").exit_code == 0

    async def known() -> tuple[bytes, ...]:
        async with Keys(store_at(f"sqlite:///{file}")) as keys:
            return await keys.envelope_keys()

    assert len(set(asyncio.run(known()))) == 2
    assert len(listed()) == 1
    assert run("revoke", "envelope-1").exit_code != 0
