"""`dragoman models`: the available models."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from dragoman.cli.commands import dragoman as command
from dragoman.providers import registry
from dragoman.transport.local.catalogue import PACKAGED
from dragoman.transport.local.fetching import kept_at, models_folder
from tests.cli.loopback import acme, listed, refused, serving
from tests.cli.samples import SECRET
from tests.transport.package_index import MODEL, packaged, wheel


@pytest.fixture(autouse=True)
def own_registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty registry of providers and an empty cache."""
    monkeypatch.setattr(registry, "_registered", {})
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def run(*arguments: str) -> Result:
    """Run the command."""
    return CliRunner().invoke(command, ["models", *arguments])


def test_a_provider_s_models_are_listed() -> None:
    """The names are those to pass, with the context window if known."""
    with serving(listed("gpt-5", "mystery")) as vendor:
        done = run("openai", "--base-url", f"{vendor.url}/v1")
    rows = json.loads(done.stdout)
    assert [(row["model"], row["context_window"]) for row in rows] == [
        ("openai:gpt-5", 400_000),
        ("openai:mystery", None),
    ]


def test_a_table_is_for_people() -> None:
    """Numbers have thousands separators."""
    with serving(listed("gpt-5")) as vendor:
        done = run("openai", "--base-url", f"{vendor.url}/v1", "--table")
    assert done.stdout.splitlines()[1].split() == ["openai:gpt-5", "400,000"]


def test_a_missing_key_names_the_variable() -> None:
    """Before a request is sent."""
    done = run("google")
    assert done.exit_code == 2
    want = "dragoman: google needs an API key: set GEMINI_API_KEY or GOOGLE_API_KEY\n"
    assert done.stderr == want


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("openai-compatible",), "openai-compatible has no default address: pass --base-url"),
        (("--base-url", "http://x"), "--base-url needs a PROVIDER"),
        (
            ("local", "--base-url", "http://x"),
            "local runs on this machine, and doesn't accept --base-url",
        ),
        (("nonsense",), "unknown provider"),
    ],
)
def test_usage_errors_are_reported(arguments: tuple[str, ...], said: str) -> None:
    """One line, and exit code 2."""
    done = run(*arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert said in done.stderr


def test_a_refusal_has_its_own_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """The line has the provider's error without the key."""
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    with serving(refused(401, "invalid_api_key", quoted=SECRET)) as vendor:
        done = run("openai", "--base-url", f"{vendor.url}/v1")
    assert (done.exit_code, done.stdout) == (5, "")
    assert done.stderr == (
        "dragoman: openai: the provider rejected the API key (status 401, invalid_api_key);"
        " request req_7; provider message: no: ***\n"
    )


def test_without_a_key_there_are_still_local_models(monkeypatch: pytest.MonkeyPatch) -> None:
    """Models that run on this machine are listed."""
    monkeypatch.setattr(registry, "provider_names", lambda: ("openai",))
    done = run("--table")
    assert done.exit_code == 0
    assert "local:smollm2  can be downloaded, 92.9 MB, Apache-2.0" in done.stdout
    assert "echo:" in done.stdout


def test_all_configured_providers_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A failure is reported and doesn't affect the others."""
    monkeypatch.setattr(registry, "provider_names", lambda: ("acme", "poor", "down", "openai"))
    monkeypatch.setenv("ACME_API_KEY", "k")
    with serving(listed("m")) as good, serving(refused(500, "server_error")) as bad:
        acme(good, keys=("ACME_API_KEY",))
        acme(bad, "poor", keys=("ACME_API_KEY",))
        acme(bad, "down", auth=None)  # a local server, which need not run
        done = run()
    assert "acme:m" in [row["model"] for row in json.loads(done.stdout)]
    assert done.exit_code == 5
    assert done.stderr == (
        "dragoman: poor: the provider reported an internal error (status 500, server_error);"
        " request req_7; provider message: no:\n"
    )


def test_local_models_are_downloaded_and_available_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A file without a known name is listed by its path."""
    tiny = packaged(wheel())
    monkeypatch.setitem(PACKAGED, "tiny", tiny)
    models_folder().mkdir(parents=True)
    kept_at(tiny).write_bytes(MODEL)
    other = models_folder() / "other.gguf"
    other.write_bytes(b"GGUF")
    found = {row["model"]: row for row in json.loads(run("local").stdout)}
    assert not found["local:smollm2"]["fetched"]
    assert found["local:tiny"]["fetched"]
    assert found[f"local:{other}"]["bytes"] == 4
    assert "on this machine, 512.0 kB" in run("local", "--table").stdout


def test_echo_is_listed_and_scripted_has_no_list() -> None:
    """Scripted models are files of the user."""
    assert [row["model"] for row in json.loads(run("echo").stdout)] == ["echo:"]
    assert json.loads(run("scripted").stdout) == []


# --- facts


def test_facts_are_shown_with_their_sources() -> None:
    """For one model, each fact that applies to it."""
    rows = json.loads(run("--facts", "claude:claude-opus-5-5").stdout)
    found = {row["name"]: row for row in rows}
    assert found["context_window"]["value"] == 1_000_000
    assert found["thinking.efforts"]["value"] == ["low", "medium", "high", "xhigh", "max"]
    assert all(row["source"] and row["date"] for row in rows)
    assert {row["models"] for row in rows} == {"anthropic:claude-opus-5-5"}


@pytest.mark.parametrize("about", [(), ("openai",), ("gpt-6-sol",), ("vllm",), ("qwen3-8b",)])
def test_facts_of_everything_a_provider_or_a_name(about: tuple[str, ...]) -> None:
    """Each query gives rows, as JSON and as a table."""
    rows = json.loads(run("--facts", *about).stdout)
    table = run("--facts", "--table", *about).stdout.splitlines()
    assert len(table) == len(rows) + 1 > 1
    assert table[0].split() == ["models", "dialect", "fact", "value", "source", "date"]


def test_facts_of_unknown_models_are_empty() -> None:
    """An unknown provider is a usage error."""
    assert json.loads(run("--facts", "who-knows").stdout) == []
    assert run("--facts", "nowhere:who-knows").exit_code == 2
    assert run("--facts", "openai", "--base-url", "https://x.example").exit_code == 2


def test_own_facts_are_shown_and_a_broken_file_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The user's facts override the built-in ones."""
    file = tmp_path / "facts.toml"
    file.write_text('["gpt-5"]\ncontext_window = 5\ndate = 2026-12-01')
    monkeypatch.setenv("DRAGOMAN_FACTS", str(file))
    (row,) = [
        row
        for row in json.loads(run("--facts", "openai:gpt-5").stdout)
        if row["name"] == "context_window"
    ]
    assert (row["value"], row["source"], row["date"]) == (5, "the user", "2026-12-01")
    file.write_text("[")
    done = run("--facts")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "DRAGOMAN_FACTS" in done.stderr
