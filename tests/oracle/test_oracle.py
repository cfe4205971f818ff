"""The oracle itself: equal trees agree, and a tree that behaves otherwise is noticed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.oracle import __main__ as oracle
from tests.oracle.observing import Case, Observer

_ASKED = b'{"model":"m","max_tokens":5,"messages":[{"role":"user","content":"hi \\ud83d"}]}'
_ANSWERED = (
    b'{"id":"msg_1","type":"message","role":"assistant","model":"m","stop_reason":"end_turn",'
    b'"content":[{"type":"text","text":"a"}],"usage":{"input_tokens":1,"output_tokens":2}}'
)
_STREAMED = (
    b'{"model":"m","message":{"role":"assistant","content":"a"},"done":false}\n'
    b'{"model":"m","message":{"role":"assistant","content":""},"done":true}\n'
)
_CASES: list[Case] = [
    ("asked", "request", "openai-chat", _ASKED, None),
    ("answered", "response", "anthropic", _ANSWERED, None),
    ("streamed", "stream", "ollama", _STREAMED, None),
]


@pytest.mark.parametrize("case", _CASES, ids=lambda case: case[0])
def test_an_observation_is_the_same_twice(case: Case) -> None:
    """Ids made while decoding are left out, and every section has something to compare."""
    observer = Observer()
    seen = observer.observed(case)
    assert len(seen) > 20
    assert seen == observer.observed(case)


def test_a_changed_tree_is_noticed(tmp_path: Path) -> None:
    """One word of one writer: the observations of that section part, and no others do."""
    source, changed = oracle.ROOT / "src", tmp_path / "src"
    shutil.copytree(source, changed, ignore=shutil.ignore_patterns("__pycache__"))
    file = changed / "dragoman/wire/ollama/request.py"
    written = file.read_text(encoding="utf-8")
    assert 'PATH = "/api/chat"' in written
    file.write_text(written.replace('PATH = "/api/chat"', 'PATH = "/api/x"'), encoding="utf-8")
    trees = oracle.Tree(source), oracle.Tree(changed)
    try:
        [(_, old, new)] = oracle.compared(trees, iter(_CASES[:1]))
    finally:
        for tree in trees:
            tree.close()
    parted = {name for name in old.keys() | new.keys() if old.get(name) != new.get(name)}
    assert parted
    assert all(name.endswith("to ollama place") for name in parted)
