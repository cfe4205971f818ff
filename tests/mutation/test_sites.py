"""Mutants: what is changed, and what is not."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

from tests.mutation.__main__ import Sum, chosen, summed_up, told
from tests.mutation.selection import likely_tests, packages
from tests.mutation.sites import sites
from tests.mutation.switches import switched
from tests.mutation.trials import Mutant, Trial, Workshop

ROOT = Path(__file__).resolve().parent.parent.parent


def mutants(source: str) -> set[str]:
    """The mutants of a source."""
    return {site.applied(source) for site in sites(source)}


@pytest.mark.parametrize(
    ("source", "mutant"),
    [
        ("x = a < b", "x = (a <= b)"),
        ("x = a == b", "x = (a != b)"),
        ("x = a in b", "x = (a not in b)"),
        ("x = a is None", "x = (a is not None)"),
        ("x = a and b and c", "x = (a or b or c)"),
        ("x = not a", "x = (a)"),
        ("x = a + b", "x = (a - b)"),
        ("x = 3", "x = (4)"),
        ("flag = True", "flag = False"),
        ('kind = "user"', "kind = 'userXX'"),
        ("f(a, b, c)", "f(b, a, c)"),
        ("f(a)", "pass"),
        ("self.x = 1", "pass"),
        ("def f():\n    return 7", "def f():\n    return None"),
        ("def f():\n    raise E(x)", "def f():\n    pass"),
        ("if a:\n    b()", "if (not (a)):\n    b()"),
        ("@property\ndef f(): ...", "\ndef f(): ..."),
        ("class A(frozen=True): ...", "class A(frozen=False): ..."),
        ("def f(x=1): ...", "def f(x=(2)): ..."),
        ('x = "ä" if a > b else c', 'x = "ä" if (a >= b) else c'),
    ],
)
def test_each_kind_of_change_is_made(source: str, mutant: str) -> None:
    """In its place, and nowhere else."""
    assert mutant in mutants(source)


@pytest.mark.parametrize(
    "source",
    [
        '"""A module."""',
        'def f() -> None:\n    """A function."""',
        "x: Literal['a', 'b']",
        "X = Literal['a', 'b']",
        "from a import b",
        "if TYPE_CHECKING:\n    x = 1",
        'msg = "say" + "so"',
        "def f(x: 'Y') -> 'Z': ...",
        "@overload\ndef f(x: int) -> int: ...",
        "def __repr__(self):\n    return 'x' + y",
        "__all__ = ['a']",
        "_PAGE = 500",
        "_log.warning('lost', 3)",
        "T = TypeVar('T')",
        "class P(Protocol):\n    x = 1",
        "x = 1  # pragma: no cover",
        "class A(gc=False): ...",
        "x = f'{a} of {b}'",
        "x = 'words for people'",
    ],
)
def test_undetectable_code_is_not_changed(source: str) -> None:
    """Texts for people, types, and tuning constants."""
    assert mutants(source) == set()


def test_the_text_of_an_error_is_not_changed_but_raising_it_is() -> None:
    """Whether it is raised can be detected."""
    assert mutants("raise E('text', 3)") == {"pass"}


def test_the_name_of_a_value_in_errors_is_not_changed() -> None:
    """Whether the value is checked can be detected."""
    assert mutants("expect(x, str, 'name')") == {"pass", "expect(str, x, 'name')"}


@pytest.mark.parametrize(
    "file",
    [
        "history/stored_session.py",
        "providers/documents/splitting.py",
        "providers/registry.py",
        "wire/framing.py",
    ],
)
def test_every_mutant_of_our_source_is_a_different_valid_program(file: str) -> None:
    """Otherwise any test would detect it."""
    source = (ROOT / "src/dragoman" / file).read_text()
    original = ast.dump(ast.parse(source))
    found = sites(source)
    assert len(found) > 20
    for site in found[:: max(1, len(found) // 40)]:
        assert ast.dump(ast.parse(site.applied(source))) != original
        before, _ = site.shown(source)
        assert before


def test_all_source_is_in_a_package() -> None:
    """Dialects, storages and other large parts are sampled separately."""
    found = packages(ROOT)
    assert {"model", "history", "history/storage", "wire", "wire/gemini", "cli"} <= found.keys()
    for name, files in found.items():
        assert all(file.is_relative_to(Path("src/dragoman") / name) for file in files)
    assert len({file for files in found.values() for file in files}) == sum(
        map(len, found.values())
    )


def test_the_same_seed_gives_the_same_mutants() -> None:
    """So that a survivor can be tried again."""
    first = chosen(ROOT, ["history", "interop"], 5, 7)
    assert (
        first
        == chosen(ROOT, ["history", "interop"], 5, 7)
        != chosen(ROOT, ["history", "interop"], 5, 8)
    )
    assert [mutant.package for mutant in first] == ["history"] * 5 + ["interop"] * 5
    with pytest.raises(SystemExit, match="no package nonsense"):
        chosen(ROOT, ["nonsense"], 1, 1)


def test_the_tests_that_mention_a_file_come_first() -> None:
    """All others of its layer follow."""
    order = likely_tests(ROOT, Path("src/dragoman/history/identity.py"))
    assert order[0] == Path("tests/history/test_identity.py")
    assert set(order) >= {
        path.relative_to(ROOT) for path in (ROOT / "tests/history").glob("test_*.py")
    }


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A small tree: a function with tests for one of its two lines."""
    root = tmp_path / "project"
    for folder in ("src/dragoman", "src/dragoman/model", "tests", "tests/model"):
        (root / folder).mkdir(parents=True)
        (root / folder / "__init__.py").touch()
    (root / "pyproject.toml").write_text("[tool.pytest.ini_options]\npythonpath = ['src']\n")
    (root / "src/dragoman/model/sums.py").write_text(
        "def more(x):\n    return x + 1\n\ndef less(x):\n    return x - 1\n"
    )
    (root / "tests/model/test_sums.py").write_text(
        "from dragoman.model.sums import less, more\n\n"
        "def test_broken():\n    assert False\n\n"
        "def test_more():\n    assert more(1) == 2\n\n"
        "def test_less():\n    less(1)\n"
    )
    mutation = Path(__file__).parent
    (root / "tests/mutation").mkdir()
    for name in ("__init__.py", "forking.py", "sites.py", "switches.py", "watching.py"):
        (root / "tests/mutation" / name).write_text((mutation / name).read_text())
    return root


@pytest.mark.slow
@pytest.mark.parametrize("is_loaded", [False, True])
def test_mutants_are_tried_on_a_copy(project: Path, is_loaded: bool) -> None:
    """One is detected, one survives; a test that always fails has detected nothing."""
    file = Path("src/dragoman/model/sums.py")
    source = (project / file).read_text()
    found = [site for site in sites(source) if site.kind == "plus/minus swapped"]
    workshop = Workshop(project, budget=60)
    mutants = [Mutant("model", file, site) for site in found]
    if is_loaded:
        workshop.load(mutants)
    caught, survived = map(workshop.tried, mutants)
    assert (caught.noticed_by, survived.noticed_by) == ("tests/model/test_sums.py::test_more", None)
    assert (project / file).read_text() == source == (workshop.copy / file).read_text()
    assert list(told(survived)) == [
        "src/dragoman/model/sums.py:5: plus/minus swapped", "  - return x - 1",
        "  + return (x + 1)",
    ]  # fmt: skip
    assert summed_up([caught, survived]) == {"model": Sum(caught=1, survived=1)}
    assert survived.described()["noticed_by"] is None
    workshop.close()
    assert not workshop.copy.exists()


@pytest.mark.slow
def test_a_mutant_that_hangs_is_ended(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From outside, if no test ends by itself."""
    monkeypatch.setattr("tests.mutation.trials._PATIENCE", 4)
    (project / "tests/model/test_sums.py").write_text(
        "from dragoman.model.sums import more\n\ndef test_loop():\n"
        "    x = 0\n    while x != 1: x = more(x)\n"
    )
    file = Path("src/dragoman/model/sums.py")
    site = next(s for s in sites((project / file).read_text()) if s.kind == "plus/minus swapped")
    workshop = Workshop(project, budget=5)
    trial = workshop.tried(Mutant("model", file, site))
    assert trial.noticed_by == "(the run did not end)"
    assert summed_up([trial]) == {"model": Sum(timed_out=1)}
    workshop.close()


@pytest.mark.slow
def test_a_mutant_that_hangs_in_a_fork_is_ended(project: Path) -> None:
    """By the CPU time of a test; code that runs at import needs a separate process.

    So does code that no test of the layer executes in its own process.
    """
    (project / "tests/model/test_sums.py").write_text(
        "import subprocess, sys\n"
        "from dragoman.model.sums import FIRST, more\n\ndef test_loop():\n"
        "    x = 0\n    while x != 1: x = more(x)\n\n"
        "def test_first():\n    assert FIRST == 2\n\n"
        "def test_child():\n"
        "    code = 'from dragoman.model.sums import last; assert last(3) == 2'\n"
        "    subprocess.run([sys.executable, '-c', code], check=True)\n"
    )
    forking = project / "tests/mutation/forking.py"
    forking.write_text(forking.read_text().replace("_CPU_PER_TEST = 30", "_CPU_PER_TEST = 1"))
    file = Path("src/dragoman/model/sums.py")
    (project / file).write_text(
        "def more(x):\n    return x + 1\n\n\ndef one():\n    return 1 + 1\n\n\nFIRST = one()\n\n\n"
        "def last(x):\n    return x - 1\n"
    )
    found = [s for s in sites((project / file).read_text()) if s.kind == "plus/minus swapped"]
    mutants = [Mutant("model", file, site) for site in found]
    workshop = Workshop(project, budget=20)
    workshop.load(mutants)
    trials = list(map(workshop.tried, mutants))
    assert [(trial.noticed_by, trial.has_timed_out) for trial in trials] == [
        ("tests/model/test_sums.py::test_loop", True),
        ("tests/model/test_sums.py::test_first", False),
        ("tests/model/test_sums.py::test_child", False),
    ]
    workshop.close()


@pytest.mark.parametrize(
    ("source", "kind", "before", "after"),
    [
        ("def f(x):\n    return x + 1", "plus/minus swapped", 8, 6),
        ("def f(x):\n    if x > 7:\n        x += 5\n    return x", "comparison changed", 7, 12),
        ("def f(x):\n    x += 5\n    return x", "statement removed", 12, 7),
        ("def f(x):\n    return [y and 3 for y in [x]][0]", "and/or swapped", 3, 7),
        ("def f(x):\n    def g():\n        return max(x, 9) if not x else 4\n    return g()",
         "not removed", 4, 9),
    ],
)  # fmt: skip
def test_a_mutant_behind_a_switch_is_the_mutant(
    source: str, kind: str, before: int, after: int
) -> None:
    """With the switch off, the source behaves as before."""
    site = next(site for site in sites(source) if site.kind == kind)
    tree, done = switched(source, {5: site})
    assert done == {5}
    for is_on, wanted in ((False, before), (True, after)):
        names: dict[str, Any] = {
            "__is_mutated__": lambda number, is_on=is_on: number == 5 and is_on
        }
        exec(compile(tree, "f.py", "exec"), names)  # noqa: S102 - the source is above
        assert names["f"](7) == wanted


@pytest.mark.parametrize(
    "source",
    [
        "X = 1 + 2",
        "def f(x=3):\n    return x",
        "class A:\n    x = True",
        "def f():\n    class A:\n        x = 1 < 2",
        "def f(x):\n    match x:\n        case 4:\n            y()",
        "@cached\ndef f(): ...",
    ],
)
def test_code_that_runs_once_has_no_switch(source: str) -> None:
    """Such a mutant is tried in a separate process."""
    found = [site for site in sites(source) if site.kind != "returned value gone"]
    tree, done = switched(source, dict(enumerate(found[:1])))
    assert not done
    assert ast.dump(tree) == ast.dump(ast.parse(source))


def test_a_trial_is_described_for_programs() -> None:
    """With everything that the text has."""
    file = Path("src/dragoman/model/x.py")
    site = sites("x = 1 < 2")[0]
    trial = Trial(Mutant("model", file, site), None, "a", "b", is_unfinished=True)
    assert trial.described() == {
        "package": "model", "file": "src/dragoman/model/x.py", "line": 1, "kind": site.kind,
        "before": "a", "after": "b", "noticed_by": None, "is_unfinished": True,
        "has_timed_out": False,
    }  # fmt: skip
    assert next(told(trial)).endswith("(not all tests were run: --budget)")
    assert "budget" not in next(told(trial._replace(is_unfinished=False)))


def test_timed_out_mutants_are_counted_separately() -> None:
    """They are neither detected nor survivors."""
    assert str(Sum(caught=19, survived=1)) == "19 of 20 caught (95.0 %)"
    assert str(Sum(caught=1, timed_out=2)) == "1 of 1 caught (100.0 %), 2 timed out"
