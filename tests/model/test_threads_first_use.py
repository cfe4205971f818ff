"""The first use of a type in several threads at once, each time in a fresh process."""

from __future__ import annotations

import subprocess
import sys
from textwrap import dedent

import pytest

_PROGRAM = """
import sys, threading
import msgspec
from dragoman import Message, Messages
from dragoman.model.jsontext import convert

class Leaf(msgspec.Struct):
    name: str

class Tree(msgspec.Struct):
    leaves: list[Leaf]
    trees: "list[Tree]" = []

messages = Messages(Message.user("x"))
sys.setswitchinterval(1e-6)
together = threading.Barrier(4)

def work():
    together.wait()
    WORK

threads = [threading.Thread(target=work) for _ in range(4)]
[each.start() for each in threads]
[each.join() for each in threads]
"""


@pytest.mark.parametrize(
    "work",
    ["messages[0].to_json()", "messages.to_json()", "convert({'leaves': [{'name': 'a'}]}, Tree)"],
)
def test_threads_may_use_a_type_for_the_first_time_at_once(work: str) -> None:
    """Writing, reading and converting never crash the process, as msgspec alone would."""
    program = dedent(_PROGRAM).replace("WORK", work)
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
        assert done.returncode == 0, done.stderr.decode()
