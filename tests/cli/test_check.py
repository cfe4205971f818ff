"""`dragoman check`: its findings, output and exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import dragoman
from dragoman import Message, Request
from dragoman.cli.commands import dragoman as command
from dragoman.providers.documents.batches import CHUNK
from dragoman.wire.anthropic.codec import DIALECT as ANTHROPIC_DIALECT
from tests.cli.samples import ANSWERS, ANTHROPIC, HISTORIES, REQUESTS, SECRET, chat, jsonl

BAD: dict[str, Any] = {
    "model": "m",
    "max_tokens": 10,
    "messages": [
        {"role": "assistant", "content": "Hi"},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": SECRET}]},
    ],
}
SHAKY: dict[str, Any] = {**BAD, "messages": [{"role": "assistant", "content": "Hi"},
                                             {"role": "user", "content": "Hi"}]}  # fmt: skip


def check(*arguments: str, stdin: bytes | None = None) -> Result:
    """Run the command."""
    return CliRunner().invoke(command, ["check", *arguments], input=stdin)


@pytest.mark.parametrize("name", sorted(REQUESTS))
def test_valid_documents_pass(name: str) -> None:
    """Standard output is empty, and the totals are on standard error."""
    done = check("-", "--as", name, stdin=jsonl(REQUESTS[name]))
    assert (done.exit_code, done.stdout) == (0, "")
    assert done.stderr == "dragoman: 0 errors and 0 warnings in 1 document\n"


def test_errors_are_a_table() -> None:
    """The table has the dialect's findings with their lines, and quotes nothing."""
    done = check("-", "--to", "anthropic", "--table", stdin=jsonl(ANTHROPIC, BAD))
    assert done.exit_code == 1
    head, *lines = done.stdout.splitlines()
    assert head.split() == ["where", "rule", "severity", "path", "message"]
    expected = ANTHROPIC_DIALECT.check(BAD)
    assert len(expected) > 1
    assert [line.split()[:4] for line in lines] == [
        ["-:2", found.rule, found.severity, found.path] for found in expected
    ]
    assert SECRET not in done.output


def test_findings_are_json_for_programs(tmp_path: Path) -> None:
    """Findings are JSON Lines with their location."""
    (tmp_path / "in.json").write_text(json.dumps([ANTHROPIC, BAD]))
    done = check(str(tmp_path / "in.json"), "--as", "anthropic", "--json")
    assert done.exit_code == 1
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(row["document"], row["rule"], row["message"]) for row in found] == [
        (2, violation.rule, violation.message) for violation in ANTHROPIC_DIALECT.check(BAD)
    ]
    assert set(found[0]) == {"file", "line", "document", "rule", "severity", "path", "message"}


def test_warnings_count_if_strict() -> None:
    """Otherwise they are only shown."""
    assert {found.severity for found in ANTHROPIC_DIALECT.check(SHAKY)} == {"warning"}
    lenient = check("-", "--as", "anthropic", stdin=jsonl(SHAKY))
    assert (lenient.exit_code, "warning" in lenient.stdout) == (0, True)
    assert check("-", "--as", "anthropic", "--strict", stdin=jsonl(SHAKY)).exit_code == 1


def test_a_provider_has_rules_of_its_own() -> None:
    """So have its models, however they are named."""
    body = {**chat(), "store": True}
    assert check("-", "--as", "openai-chat", stdin=jsonl(body)).exit_code == 0
    assert check("-", "--as", "groq", stdin=jsonl(body)).exit_code == 1
    asked = {**ANTHROPIC, "thinking": {"type": "enabled", "budget_tokens": 50}, "max_tokens": 2000}
    for model in ("claude-sonnet-4-5", "claude-opus-4-5"):
        target = dragoman.provider("anthropic").target(model)
        expected = ANTHROPIC_DIALECT.check({**asked, "model": model}, target=target)
        done = check(
            "-", "--as", f"anthropic:{model}", "--json", stdin=jsonl({**asked, "model": model})
        )
        assert len(done.stdout.splitlines()) == len(expected)


@pytest.mark.parametrize("name", sorted(HISTORIES))
def test_only_the_messages_of_a_history_are_checked(name: str) -> None:
    """Fields that only a request needs are not missed."""
    assert check("-", "--as", name, stdin=jsonl(HISTORIES[name])).exit_code == 0


def test_invalid_histories_are_reported() -> None:
    """Invalid messages give findings with their rule."""
    done = check("-", "--as", "anthropic", stdin=jsonl(BAD["messages"]))
    assert done.exit_code == 1
    assert "W42" in done.stdout


def test_our_own_documents_are_checked_as_they_would_be_sent() -> None:
    """Encoding for the target makes them valid."""
    request = Request(model="m", messages=(Message.assistant("Hi"), Message.user("Hi")))
    for target in ("anthropic", "gemini", "groq:m"):
        assert check("-", "--as", target, stdin=request.to_json()).exit_code == 0


@pytest.mark.parametrize(
    "line",
    [b"rubbish", b"7", jsonl(ANSWERS["anthropic"]), jsonl({"role": "user", "content": SECRET}),
     dragoman.dialect("anthropic").decode_response(ANSWERS["anthropic"]).to_json()],
)  # fmt: skip
def test_unreadable_documents_are_reported(line: bytes) -> None:
    """The rest is still checked."""
    done = check(
        "-", "--to", "anthropic", "--table", stdin=jsonl(BAD) + line.strip() + b"\n" + jsonl(BAD)
    )
    assert done.exit_code == 3
    assert "dragoman: -:2: " in done.stderr
    assert "-:3" in done.stdout
    assert SECRET not in done.output


def test_a_long_table_is_cut() -> None:
    """The findings that are not shown are counted."""
    number = len(ANTHROPIC_DIALECT.check(BAD)) * 1000
    done = check("-", "--to", "anthropic", "--table", stdin=jsonl(*[BAD] * 1000))
    assert len(done.stdout.splitlines()) == 501
    assert f"and {number - 500} more; --json lists all" in done.stderr


def test_an_unknown_target_is_a_usage_error() -> None:
    """The exit code is 2."""
    assert check("-", "--as", "esperanto", stdin=b"").exit_code == 2


def test_several_processes_find_the_same(tmp_path: Path) -> None:
    """In the same order, with the same numbers, whatever can't be read among them."""
    file = tmp_path / "many.jsonl"
    file.write_bytes(jsonl(*[ANTHROPIC, BAD, SHAKY] * 700) + b"not json\n" + jsonl(BAD) * 2_000)
    assert file.stat().st_size > 3 * CHUNK // 4
    alone = check(str(file), "--to", "anthropic", "--json")
    several = check(str(file), "--to", "anthropic", "--json", "--jobs", "2")
    assert alone.stdout == several.stdout
    assert alone.stderr == several.stderr
    assert alone.exit_code == several.exit_code == 3
    assert json.loads(several.stdout.splitlines()[-1])["document"] == 4_101


def test_an_unknown_target_is_an_error_at_once() -> None:
    """Whatever the number of processes."""
    for jobs in ("1", "2"):
        done = check("-", "--to", "nowhere", "--jobs", jobs, stdin=jsonl(BAD))
        assert done.exit_code == 2
        assert "unknown" in done.stderr
