"""That type checkers find in `accepted.py` nothing and in `rejected.py` all that is wrong there.

`make lint` checks both files as they are. And what the same types are when a program runs.
"""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any, get_args, get_overloads, get_type_hints

import pytest
from msgspec import UNSET

from dragoman import Agent, Request, Result, RunContext, tool
from dragoman.agent import AgentChat, Hooks, Settings
from dragoman.agent.options import AgentOptions, CallOptions, ChatOptions
from dragoman.errors import InvalidInputError
from dragoman.model import Sampling, Tool
from dragoman.testing import ScriptedModel
from tests.typing import accepted, rejected

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
MARK = re.compile(r"  # type: ignore\[.*?\]")
ERROR = re.compile(r":(\d+)(?::\d+)?(?: -|:) error")
CHECKERS = {
    "mypy": ["-m", "mypy", "--no-incremental", "--follow-imports=silent"],
    "pyright": ["-m", "pyright", "--pythonpath", sys.executable],
}
METHODS = ["send", "stream", "send_sync", "stream_sync"]


@pytest.mark.slow
@pytest.mark.parametrize("checker", CHECKERS)
def test_checkers_find_what_is_wrong_and_nothing_else(checker: str) -> None:
    """Without the marks, `rejected.py` has an error on each line that had one, and on no other."""
    lines = (HERE / "rejected.py").read_text("utf-8").splitlines()
    wrong = {number for number, line in enumerate(lines, 1) if MARK.search(line)}
    unmarked = HERE / f"unmarked_for_{checker}.py"  # beside it, or else imports fail
    unmarked.write_text("\n".join(MARK.sub("", line) for line in lines) + "\n", "utf-8")
    try:
        found = _errors(checker, unmarked)
    finally:
        unmarked.unlink()
    assert found == wrong
    assert _errors(checker, HERE / "accepted.py") == set()


@pytest.mark.slow
def test_mypy_names_a_misspelled_option_first_and_says_no_more_than_it_must() -> None:
    """Of each call: the option and the one that was meant; then each overload, with all options."""
    calls = ['Agent("echo:", temprature=1)']
    calls += [f'{one}.{name}("Hi", temprature=1)' for one in ("agent", "chat") for name in METHODS]
    head = 'from dragoman import Agent; agent = Agent("echo:"); chat = agent.chat()'
    file = HERE / "misspelled_options.py"  # beside the others, or else imports fail
    file.write_text("\n".join([head, *calls]) + "\n", "utf-8")
    try:
        told = _told("mypy", file)
    finally:
        file.unlink()
    for number, call in enumerate(calls, 2):
        about = [line for line in told if f"{file.name}:{number}:" in line]
        assert 'argument "temprature"' in about[0]
        assert 'did you mean "temperature"' in about[0]
        limit = 12_000 if call.startswith("Agent") else 7_500
        assert sum(map(len, about)) < limit, call


def _errors(checker: str, file: Path) -> set[int]:
    """The lines of a file that a checker finds fault with."""
    told = _told(checker, file)
    return {int(match[1]) for line in told if (match := ERROR.search(line))}


def _told(checker: str, file: Path) -> list[str]:
    """What a checker says of a file."""
    done = subprocess.run(
        [sys.executable, *CHECKERS[checker], str(file)],
        capture_output=True, cwd=ROOT, encoding="utf-8", check=False, env=_environment(),
    )  # fmt: skip
    assert done.returncode in {0, 1}, done.stderr
    return [line for line in done.stdout.splitlines() if file.name in line]


def _environment() -> dict[str, str]:
    return {**os.environ, "MYPYPATH": str(ROOT / "src")}


# --- when a program runs


def test_the_settings_are_those_of_a_request() -> None:
    """Whatever setting a request has, checkers know; and none that it has not."""
    of_requests = {*Request.__struct_fields__, *Sampling.__struct_fields__}
    others = {"model", "system", "messages", "tools", "stream", "output"}
    assert set(Settings.__annotations__) == of_requests - others


def test_the_options_of_an_agent_are_its_parameters() -> None:
    """The options declared for type checkers are the parameters of `__init__`."""
    shown = set(inspect.signature(Agent).parameters)
    assert shown == {"model", "output", *AgentOptions.__annotations__}


@pytest.mark.parametrize("name", METHODS)
def test_a_call_has_few_overloads(name: str) -> None:
    """Mypy prints each of them, with all options, about every mistake in a call."""
    assert len(get_overloads(getattr(Agent, name))) <= 5
    assert len(get_overloads(getattr(AgentChat, name))) <= 4


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("bound", [True, False])
def test_signatures_show_every_option(name: str, bound: bool) -> None:
    """`agent.send?` in IPython lists every option with its type."""
    agent = Agent("echo:")
    owners: list[tuple[Any, type]] = [
        (agent if bound else Agent, CallOptions),
        (agent.chat() if bound else AgentChat, ChatOptions),
    ]
    for owner, options in owners:
        shown = dict(inspect.signature(getattr(owner, name)).parameters)
        if not bound:
            del shown["self"]
        assert set(shown) == {"content", "output", *options.__annotations__}
        assert shown["temperature"].annotation == "float | None"
        assert ("history" in shown) is (options is CallOptions)


@pytest.mark.parametrize("name", METHODS)
def test_every_option_of_a_signature_can_be_passed(name: str) -> None:
    """Passing each option with its default, unset, changes nothing."""
    for owner in (Agent("echo:"), Agent("echo:").chat()):
        method: Callable[..., Any] = getattr(owner, name)
        shown = inspect.signature(method).parameters.values()
        unset = {each.name: each.default for each in shown if each.default is UNSET}
        assert len(unset) > len(Settings.__annotations__)
        if name.endswith("_sync"):
            method("Hi", **unset)
        elif name == "stream":
            method("Hi", **unset).result  # noqa: B018 - nothing is raised


def test_a_chat_takes_no_history() -> None:
    """It has its own; one that is given was silently left out before."""
    chat = Agent("echo:").chat()
    with pytest.raises(InvalidInputError, match="history"):
        chat.send_sync("Hi", history=["Hello"])  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]


def test_type_arguments_may_be_left_out() -> None:
    """`Agent[Database]` gives text, on every version of Python."""
    assert get_args(Agent[int]) == get_args(AgentChat[int]) == (int, str)
    assert get_args(Agent[int, bool]) == (int, bool)
    assert get_args(Tool[..., int]) == (..., int, Any)

    class Own(Agent[int]):
        """Somebody's own."""

    assert isinstance(Own("echo:"), Agent)
    assert isinstance(Own("echo:").with_model("echo:other"), Own)
    assert Agent[int]("echo:").send_sync("Hi", deps=1).output == "Hi"


@pytest.mark.parametrize(
    ("kind", "fields"),
    [(Hooks, {}), (RunContext, {"deps": 1}), (Result, {"id": "a", "output": 1, "text": ""})],
)
def test_values_are_made_with_type_arguments(kind: Any, fields: dict[str, Any]) -> None:
    """`Hooks[Database](…)` is what people write; and it is still frozen."""
    made = kind[int](**fields)
    assert made == kind(**fields)
    with pytest.raises(FrozenInstanceError):
        made.step = 1


@pytest.mark.parametrize("kind", [Agent, AgentChat, Hooks, RunContext, Tool, tool])
def test_annotations_can_be_read(kind: Any) -> None:
    """All names in annotations exist at run time."""
    get_type_hints(kind)
    for name in ("__init__", *METHODS, "__call__"):
        member = vars(kind).get(name)
        if inspect.isfunction(member):
            get_type_hints(member)


def test_type_checker_packages_are_not_imported() -> None:
    """`typing_extensions` need not be installed."""
    code = (
        "import sys; sys.modules['typing_extensions'] = None\n"
        "from dragoman import Agent, tool; from dragoman.agent import Hooks\n"
        "print(Agent('echo:', output=str).send_sync('Hi').output)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=False
    )
    assert (done.stdout.strip(), done.stderr) == ("Hi", "")


def test_what_checkers_accept_works() -> None:
    """Each kind of output and hook that they are shown is one when the program runs."""
    accepted.of_outputs(ScriptedModel([]))
    accepted.of_hooks(ScriptedModel([]))


def test_a_misspelled_setting_raises() -> None:
    """Programs that use no type checker get an error as well."""
    with pytest.raises(InvalidInputError, match=r"temprature .*temperature"):
        rejected.of_settings(ScriptedModel([]), Agent("echo:"), Agent("echo:").chat())
