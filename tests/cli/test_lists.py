"""`dragoman dialects` and `dragoman schema`: lists of dialects and types."""

from __future__ import annotations

import json

import jsonschema
import pytest
from click.testing import CliRunner, Result

import dragoman
from dragoman import Message, Messages
from dragoman.cli.commands import dragoman as command
from dragoman.cli.screen import print_table, size_of


def run(*arguments: str) -> Result:
    """Run a command."""
    return CliRunner().invoke(command, arguments)


def test_every_dialect_is_listed() -> None:
    """With its description, endpoints and providers."""
    lines = run("dialects", "--table").stdout.splitlines()[1:]
    assert [line.split()[0] for line in lines] == list(dragoman.dialects())
    gemini = next(line for line in lines if line.startswith("gemini"))
    assert "Google Gemini" in gemini
    assert "generateContent" in gemini
    assert "google, vertex" in gemini


def test_dialects_are_json_for_programs() -> None:
    """The JSON has all endpoints."""
    found = {row["name"]: row for row in json.loads(run("dialects").stdout)}
    assert set(found) == set(dragoman.dialects())
    assert found["ollama"]["about"].startswith("Ollama")
    assert len({row["about"] for row in found.values()}) == len(found)
    assert found["anthropic"]["endpoints"]["count"] == "/v1/messages/count_tokens"
    assert "groq" in found["openai-chat"]["providers"]
    assert all(row["about"] and row["endpoints"]["generate"] for row in found.values())


def test_types_are_listed() -> None:
    """One per line, with the whole document first."""
    names = run("schema", "--table").stdout.splitlines()
    assert names[0] == "document"
    assert {"Message", "Messages", "Request", "Response", "ConversationHistory"} <= set(names)


@pytest.mark.parametrize("name", run("schema", "--table").stdout.splitlines())
def test_every_type_has_a_schema(name: str) -> None:
    """A valid one, in which nothing is missing; that of `document`, the first, has all of them."""
    schema = json.loads(run("schema", name).stdout)
    jsonschema.Draft202012Validator.check_schema(schema)
    text = json.dumps(schema)
    for needed in schema["$defs"]:
        assert name == "document" or f"#/$defs/{needed}" in text


def test_a_schema_accepts_valid_and_rejects_invalid_documents() -> None:
    """For readers that don't use this library."""
    document = json.loads(Messages(Message.user("Hi")).to_json())
    jsonschema.validate(document, json.loads(run("schema", "document").stdout))
    schema = json.loads(run("schema", "Message").stdout)
    jsonschema.validate(document["value"][0], schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"role": "pope", "parts": []}, schema)


def test_an_unknown_type_is_a_usage_error() -> None:
    """The exit code is 2."""
    done = run("schema", "Nonsense")
    assert done.exit_code == 2
    assert "`dragoman schema` lists them" in done.stderr


@pytest.mark.parametrize(
    ("count", "said"),
    [(0, "0 bytes"), (999, "999 bytes"), (1000, "1.0 kB"), (999_949, "999.9 kB"),
     (12_345_678, "12.3 MB"), (5_000_000_000, "5.0 GB")],
)  # fmt: skip
def test_sizes_are_readable(count: int, said: str) -> None:
    """They have one decimal digit."""
    assert size_of(count) == said


def test_table_cells_stay_on_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever the name of a file."""
    print_table(("a", "b"), [("x\ny\x1b[2J", "z")])
    assert capsys.readouterr().out == "a        b\nx␊y␛[2J  z\n"


def test_the_types_are_json_in_a_pipe() -> None:
    """The table has the same names, one per line."""
    names = json.loads(run("schema").stdout)
    assert names == run("schema", "--table").stdout.splitlines()
