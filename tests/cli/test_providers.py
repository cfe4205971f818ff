"""`dragoman providers`: which exist, are configured and answer."""

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
from tests.cli.loopback import Goes, acme, listed, refused, serving
from tests.cli.samples import SECRET


@pytest.fixture(autouse=True)
def own_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty registry of providers."""
    monkeypatch.setattr(registry, "_registered", {})


def run(*arguments: str) -> Result:
    """Run the command."""
    return CliRunner().invoke(command, ["providers", *arguments])


def rows(*arguments: str) -> dict[str, Any]:
    """The listed rows by name."""
    return {row["name"]: row for row in json.loads(run(*arguments).stdout)}


def test_all_are_listed_without_any_key() -> None:
    """The list says what each needs; in a pipe it is JSON."""
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
    """The output names the variable, with and without --check."""
    monkeypatch.setenv("ACME_API_KEY", SECRET)
    with serving(listed("large")) as vendor:
        acme(vendor, keys=("ACME_API_KEY",))
        done = run("acme", form, *check)
    assert done.exit_code == 0
    assert "ACME_API_KEY" in done.stdout
    assert SECRET not in done.output


def test_a_blank_variable_is_not_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client ignores it as well."""
    monkeypatch.setenv("OPENAI_API_KEY", "  ")
    assert rows("openai")["openai"]["key_set"] is None


def test_addresses_hide_secrets() -> None:
    """Users, passwords and queries are removed."""
    place = Provider("acme", (Target(dialect="openai-chat"),), "https://a:pw@acme.example/v1?key=1")
    assert described(place)["base_url"] == "https://acme.example/v1"
    assert shown_address("http://[broken/") is None


def test_a_table_says_which_variable_to_set() -> None:
    """Or that none is needed."""
    lines = {line.split()[0]: line for line in run("--table").stdout.splitlines()}
    assert lines["openai"].endswith("needs OPENAI_API_KEY")
    assert lines["echo"].endswith("none needed")
    assert "on this machine" in lines["local"]


def test_configured_providers_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """No others are; the result has the number of models."""
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


def test_a_failing_provider_gives_a_reason_and_an_exit_code(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The reason is the provider's error without the key, with status and request id."""
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


def test_a_silent_provider_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """All are asked concurrently, each with its own timeout."""
    monkeypatch.setattr(registry, "provider_names", lambda: ("acme", "quick"))
    with serving(Goes(pieces=[b"{"], hangs=True)) as silent, serving(listed("m")) as quick:
        acme(silent, auth=None)
        acme(quick, "quick", auth=None)
        done = run("--check", "--timeout", "0.5")
    found = {row["name"]: row["answers"] for row in json.loads(done.stdout)}
    assert (found["acme"], found["quick"]) == (False, True)
    assert done.exit_code == 0  # local servers need not run


def test_a_provider_without_a_list_of_models_can_t_be_checked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """That isn't a failure."""
    monkeypatch.setenv("VERTEX_ACCESS_TOKEN", "t")
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "p")
    done = run("--check", "vertex")
    assert done.exit_code == 0
    assert json.loads(done.stdout)[0]["answers"] is None


def test_a_broken_package_affects_only_its_own_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """The row says what is wrong."""
    monkeypatch.setattr(registry, "provider_names", lambda: ("gone", "openai"))
    found = rows()
    assert found["gone"]["needs"][0].startswith("unknown provider")
    assert "openai" in found


def test_an_unknown_provider_is_a_usage_error() -> None:
    """The exit code is 2."""
    done = run("nonsense")
    assert done.exit_code == 2
    assert done.stderr.startswith("dragoman: unknown provider")
