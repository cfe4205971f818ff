"""`dragoman providers`: what there is, what is configured, what answers."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner, Result

from dragoman.cli.commands import dragoman as command
from dragoman.cli.provider_status import described, shown_address
from dragoman.providers import registry
from dragoman.providers.provider import Provider
from dragoman.wire.target import Target
from tests.cli.loopback import Goes, Vendor, listed, refused, serving
from tests.cli.samples import SECRET


@pytest.fixture(autouse=True)
def own_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that others registered."""
    monkeypatch.setattr(registry, "_registered", {})


def run(*arguments: str) -> Result:
    """Run the command."""
    return CliRunner().invoke(command, ["providers", *arguments])


def rows(*arguments: str) -> dict[str, Any]:
    """What it lists, by name."""
    return {row["name"]: row for row in json.loads(run(*arguments).stdout)}


def acme(vendor: Vendor, name: str = "acme", **fields: Any) -> None:
    """Register a provider that is on loopback."""
    target = (Target(dialect="openai-chat"),)
    registry.register(Provider(name, target, f"{vendor.url}/v1", **fields))


def test_all_are_listed_without_any_key() -> None:
    """With what each needs; in a pipe as JSON."""
    found = rows()
    assert {*registry.provider_names(), "local", "echo", "scripted"} == set(found)
    assert found["google"]["needs"] == ["GEMINI_API_KEY or GOOGLE_API_KEY"]
    assert found["openai"]["base_url"] == "https://api.openai.com/v1"
    assert found["ollama"]["configured"]
    assert found["echo"]["configured"]
    assert not found["openai"]["configured"]
    assert found["openai-compatible"]["needs"] == ["--base-url"]
    assert found["azure"]["needs"] == ["AZURE_OPENAI_API_KEY", "AZURE_OPENAI_RESOURCE"]


@pytest.mark.parametrize("form", ["--json", "--table"])
@pytest.mark.parametrize("check", [(), ("--check",)])
def test_a_key_is_named_and_never_shown(
    form: str, check: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The variable is; whether it is asked or not."""
    monkeypatch.setenv("ACME_API_KEY", SECRET)
    with serving(listed("large")) as vendor:
        acme(vendor, keys=("ACME_API_KEY",))
        done = run("acme", form, *check)
    assert done.exit_code == 0
    assert "ACME_API_KEY" in done.stdout
    assert SECRET not in done.output


def test_blanks_are_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client would not take them for one either."""
    monkeypatch.setenv("OPENAI_API_KEY", "  ")
    assert rows("openai")["openai"]["key_set"] is None


def test_addresses_hide_what_may_be_a_key() -> None:
    """Users, passwords and queries."""
    place = Provider("acme", (Target(dialect="openai-chat"),), "https://a:pw@acme.example/v1?key=1")
    assert described(place)["base_url"] == "https://acme.example/v1"
    assert shown_address("http://[broken/") is None


def test_a_table_says_what_to_set() -> None:
    """Or that nothing has to be."""
    lines = {line.split()[0]: line for line in run("--table").stdout.splitlines()}
    assert lines["openai"].endswith("needs OPENAI_API_KEY")
    assert lines["echo"].endswith("none needed")
    assert "on this machine" in lines["local"]


def test_those_that_are_configured_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """And no others; one that answers tells how many models it has."""
    monkeypatch.setenv("ACME_API_KEY", "k")
    with serving(listed("large", "small")) as vendor:
        acme(vendor, keys=("ACME_API_KEY",))
        acme(vendor, "other", keys=("OTHER_API_KEY",))
        found = rows("--check", "acme", "other", "echo")
        table = run("--check", "--table", "acme", "other").stdout
    assert [came.path for came in vendor.came] == ["/v1/models"] * 2
    assert vendor.came[0].headers["Authorization"] == "Bearer k"
    assert (found["acme"]["answers"], found["acme"]["models"]) == (True, 2)
    assert found["other"]["answers"] is None
    assert found["echo"]["answers"] is True
    assert "yes, 2 models" in table
    assert "not checked" in table


def test_one_that_refuses_says_why_and_it_shows_in_the_exit_code(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With what it said, without the key; its status and request id are for its support."""
    monkeypatch.setenv("ACME_API_KEY", SECRET)
    with serving(refused(401, "invalid_api_key", quoted=SECRET)) as vendor:
        acme(vendor, keys=("ACME_API_KEY",))
        done = run("--check", "acme")
    row = json.loads(done.stdout)[0]
    assert done.exit_code == 1
    assert row["answers"] is False
    assert row["problem"] == (
        "the provider rejected the API key (status 401, invalid_api_key); request req_7;"
        " provider message: no: ***"
    )
    assert SECRET not in done.output


def test_one_that_says_nothing_is_not_waited_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """All are asked at once, and each has so many seconds."""
    monkeypatch.setattr(registry, "provider_names", lambda: ("acme", "quick"))
    with serving(Goes(pieces=[b"{"], hangs=True)) as silent, serving(listed("m")) as quick:
        acme(silent, auth=None)
        acme(quick, "quick", auth=None)
        done = run("--check", "--timeout", "0.5")
    found = {row["name"]: row["answers"] for row in json.loads(done.stdout)}
    assert (found["acme"], found["quick"]) == (False, True)
    assert done.exit_code == 0  # servers of one's own need not run


def test_what_has_no_list_of_models_can_t_be_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which is no failure."""
    monkeypatch.setenv("VERTEX_ACCESS_TOKEN", "t")
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "p")
    done = run("--check", "vertex")
    assert done.exit_code == 0
    assert json.loads(done.stdout)[0]["answers"] is None


def test_a_broken_package_is_nobody_else_s_trouble(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its row says what is wrong."""
    monkeypatch.setattr(registry, "provider_names", lambda: ("gone", "openai"))
    found = rows()
    assert found["gone"]["needs"][0].startswith("unknown provider")
    assert "openai" in found


def test_an_unknown_one_is_a_mistake() -> None:
    """Of the command line."""
    done = run("nonsense")
    assert done.exit_code == 2
    assert done.stderr.startswith("dragoman: unknown provider")
