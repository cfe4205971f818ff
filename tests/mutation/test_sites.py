"""The mutants: what is changed, and what is left alone."""

from __future__ import annotations

import ast
from math import inf
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

from tests.mutation.__main__ import Sum, chosen, summed_up, told
from tests.mutation.patching import patch
from tests.mutation.probing import LOADING, PLACE, probed, reached, read
from tests.mutation.selection import lines_to_run, packages
from tests.mutation.sites import sites
from tests.mutation.trials import SAMPLED, WHOLE, Mutant, Trial, Verdict, Workshop

ROOT = Path(__file__).resolve().parent.parent.parent


def mutants(source: str) -> set[str]:
    """What can become of a source."""
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
def test_what_nobody_notices_is_left_alone(source: str) -> None:
    """Texts for people, types, and what only tunes."""
    assert mutants(source) == set()


def test_the_text_of_an_error_is_left_alone_but_not_the_error() -> None:
    """Whether it is raised is noticed."""
    assert mutants("raise E('text', 3)") == {"pass"}


def test_what_an_error_calls_a_value_is_left_alone() -> None:
    """Whether the value is looked at is noticed, and whose it is."""
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
def test_every_mutant_of_our_source_is_another_program(file: str) -> None:
    """One that can be read; otherwise it would be caught by nothing but its spelling."""
    source = (ROOT / "src/dragoman" / file).read_text()
    original = ast.dump(ast.parse(source))
    found = sites(source)
    assert len(found) > 20
    for site in found[:: max(1, len(found) // 40)]:
        assert ast.dump(ast.parse(site.applied(source))) != original
        before, _ = site.shown(source)
        assert before


def test_all_source_is_in_a_package() -> None:
    """And dialects, storages and the rest are sampled by themselves."""
    found = packages(ROOT)
    assert {"model", "history", "history/storage", "wire", "wire/gemini", "cli"} <= found.keys()
    for name, files in found.items():
        assert all(file.is_relative_to(Path("src/dragoman") / name) for file in files)
    assert len({file for files in found.values() for file in files}) == sum(
        map(len, found.values())
    )


def test_the_same_seed_has_the_same_mutants() -> None:
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


@pytest.mark.parametrize(
    ("line", "wanted", "is_early"),
    [
        (8, {"a.py": {8, 9, 10}}, False),  # a statement of three lines
        (7, {"a.py": {7}}, False),  # a condition
        (1, {"a.py": {1, 2, 8}, "b.py": {2}}, True),  # through another constant
        (5, {"a.py": {5, 7, 8, 9, 10, 11}, "b.py": {1, 2}}, True),  # a default
    ],
)
def test_the_lines_that_show_a_change(
    line: int, wanted: dict[str, set[int]], is_early: bool
) -> None:
    """Those of the statement; for a constant or default, those that use what it defines."""
    sources = {
        "a.py": "_ONE = 1\nTWO = _ONE + 1\n\n\ndef sum_of(x=3):\n    # why\n    if x:\n"
        "        x += max(_ONE,\n            3,\n        )\n    return x\n",
        "b.py": "from a import sum_of\nY = sum_of(TWO)\n",
    }
    assert lines_to_run(sources, "a.py", line) == (wanted, is_early)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A small tree: a function that is tested for one of its two lines."""
    root = tmp_path / "project"
    for folder in ("src/dragoman", "src/dragoman/model", "tests", "tests/model"):
        (root / folder).mkdir(parents=True)
        (root / folder / "__init__.py").touch()
    (root / "pyproject.toml").write_text("[tool.pytest.ini_options]\npythonpath = ['src']\n")
    (root / "src/dragoman/model/sums.py").write_text(
        "FIRST = 1 + 1\n\n\n"
        "def more(x):\n    return x + 1\n\n\n"
        "def less(x):\n    return x - 1\n\n\n"
        "def last(x):\n    return x - 1\n\n\n"
        "def never(x):\n    return x - 1\n\n\n"
        "def first():\n    return FIRST\n"
    )
    (root / "tests/model/test_sums.py").write_text(
        "import subprocess, sys\n"
        "from dragoman.model.sums import first, less, more\n\n"
        "def test_broken():\n    assert not more(1)\n\n"
        "def test_loop():\n    x = 0\n    while x != 1: x = more(x)\n\n"
        "def test_less():\n    less(1)\n\n"
        "def test_first():\n    assert first() == 2\n\n"
        "def test_child():\n"
        "    code = 'from dragoman.model.sums import last; assert last(3) == 2'\n"
        "    subprocess.run([sys.executable, '-c', code], check=True)\n"
    )
    mutation = Path(__file__).parent
    (root / "tests/mutation").mkdir()
    for name in ("__init__.py", "forking.py", "patching.py", "probing.py"):
        text = (mutation / name).read_text()
        text = text.replace("_CPU_PER_TEST = 20", "_CPU_PER_TEST = 1")
        (root / "tests/mutation" / name).write_text(text)
    return root


@pytest.mark.slow
def test_mutants_are_tried_on_a_copy(project: Path) -> None:
    """By the tests that run them, in a child, too; one that fails anyway has noticed nothing."""
    file = Path("src/dragoman/model/sums.py")
    source = (project / file).read_text()
    found = [site for site in sites(source) if site.kind == "plus/minus swapped"]
    workshop = Workshop(project, budget=60)
    mutants = [Mutant("model", file, site) for site in found]
    found_by = {trial.mutant: trial for trial in workshop.trials(mutants, inf)}
    trials = [found_by[mutant] for mutant in mutants]
    place = "tests/model/test_sums.py::"
    assert [(trial.verdict, trial.noticed_by, trial.tests) for trial in trials] == [
        (Verdict.CAUGHT, f"{place}test_first", 0),  # before it was known what reaches it
        (Verdict.TIMED_OUT, f"{place}test_loop", 0),
        (Verdict.SURVIVED, None, 1),
        (Verdict.CAUGHT, f"{place}test_child", 0),
        (Verdict.SURVIVED, None, 0),
    ]
    assert (project / file).read_text() == source == (workshop.copy / file).read_text()
    assert list(told(trials[2])) == [
        "src/dragoman/model/sums.py:9: plus/minus swapped: survived, 1 tests are known to run it",
        "  - return x - 1", "  + return (x + 1)",
    ]  # fmt: skip
    assert next(told(trials[4])).endswith("0 tests are known to run it")
    assert summed_up(trials) == {"model": Sum(caught=2, survived=2, timed_out=1)}
    workshop.close()
    assert not workshop.copy.exists()


@pytest.mark.slow
def test_tests_that_are_left_over_leave_a_mutant_undecided(project: Path) -> None:
    """It counts as neither caught nor survived."""
    file = Path("src/dragoman/model/sums.py")
    site = next(site for site in sites((project / file).read_text()) if site.line == 9)
    workshop = Workshop(project, budget=-1)
    (trial,) = workshop.trials([Mutant("model", file, site)], inf)
    assert trial.verdict is Verdict.UNDECIDED
    workshop.close()


@pytest.mark.slow
def test_what_a_sample_leaves_out_is_tried_on_demand(project: Path) -> None:
    """A mutant that only a thorough case notices survives without it, and not with it."""
    thorough = project / "tests/model/test_thorough.py"
    thorough.write_text(
        "import pytest\nfrom dragoman.model.sums import less\n\n"
        "@pytest.mark.thorough\ndef test_thorough():\n    assert less(1) == 0\n"
    )
    file = Path("src/dragoman/model/sums.py")
    site = next(site for site in sites((project / file).read_text()) if site.line == 9)
    verdicts = []
    for cases in (SAMPLED, WHOLE):
        workshop = Workshop(project, budget=60, cases=cases)
        verdicts += [each.verdict for each in workshop.trials([Mutant("model", file, site)], inf)]
        workshop.close()
    assert verdicts == [Verdict.SURVIVED, Verdict.CAUGHT]


def test_probes_are_in_front_of_the_statements_of_functions() -> None:
    """Of the innermost that holds the line; what runs while a module is loaded has none."""
    source = "X = 1\n\ndef f(x):\n    if x:\n        return max(\n            x, 1)\n    return 2"
    probe = "__import__('tests.mutation.probing', fromlist=['reached']).reached({})"
    assert probed(source, {1: [0], 4: [1], 6: [2, 3]}) == "\n".join([
        "X = 1", "", "def f(x):", f"    {probe.format(1)}", "    if x:",
        f"        {probe.format(2)}", f"        {probe.format(3)}", "        return max(x, 1)",
        "    return 2",
    ])  # fmt: skip


def test_a_probe_is_noted_once_for_each_test(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever runs between tests belongs to none."""
    monkeypatch.setenv(PLACE, str(tmp_path / "probes"))
    for test in ("a.py::b (setup)", "a.py::b (call)", "a.py::b (call)", "a.py::c[x y] (call)"):
        monkeypatch.setenv("PYTEST_CURRENT_TEST", test)
        reached(7)
    monkeypatch.delenv("PYTEST_CURRENT_TEST")
    reached(7)
    assert read((tmp_path / "probes").read_text()) == {7: ["a.py::b", "a.py::c[x y]"]}


def test_a_probe_that_loading_reaches_belongs_to_no_test(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A function that makes a constant: whoever loads the module first runs it."""
    monkeypatch.setenv(PLACE, str(tmp_path / "probes"))
    monkeypatch.setenv("PYTEST_CURRENT_TEST", "a.py::b (call)")
    code = compile("reached(8)", "/x/src/dragoman/a.py", "exec")
    exec(code, {"reached": reached})  # noqa: S102 - as a module is loaded
    assert read((tmp_path / "probes").read_text()) == {8: [LOADING]}


@pytest.mark.parametrize(
    ("source", "kind", "before", "after"),
    [
        ("def f(x):\n    return x + 1", "plus/minus swapped", 8, 6),
        ("def f(x):\n    if x > 7:\n        x += 5\n    return x", "comparison changed", 7, 12),
        ("def f(x):\n    x += 5\n    return x", "statement removed", 12, 7),
        ("def f(x):\n    return [y and 3 for y in [x]][0]", "and/or swapped", 3, 7),
        ("def f(x):\n    def g():\n        return max(x, 9) if not x else 4\n    return g()",
         "not removed", 4, 9),
        ("def g():\n    return 1\n\nh = lambda x: x - 1\n\ndef f(x):\n    return h(x)",
         "plus/minus swapped", 6, 8),
    ],
)  # fmt: skip
def test_loaded_functions_get_the_code_of_a_mutant(
    source: str, kind: str, before: int, after: int
) -> None:
    """Inner ones with those around them, and others not at all."""
    site = next(site for site in sites(source) if site.kind == kind)
    names: dict[str, Any] = {}
    exec(compile(source, "f.py", "exec"), names)  # noqa: S102 - the source is above
    functions = [each for each in names.values() if isinstance(each, FunctionType)]
    assert names["f"](7) == before
    assert not patch(functions, "other.py", source, site.applied(source))
    assert names["f"](7) == before
    assert patch(functions, "f.py", source, site.applied(source))
    assert names["f"](7) == after


def test_what_is_decided_while_loading_is_not_patched() -> None:
    """Such a mutant is tried in a process of its own."""
    source = "X = 1 + 2\n\ndef f(x=3):\n    return x"
    names: dict[str, Any] = {}
    exec(compile(source, "f.py", "exec"), names)  # noqa: S102 - the source is above
    for site in sites(source):
        is_within = site.line == 4
        assert patch([names["f"]], "f.py", source, site.applied(source)) is is_within


def test_a_trial_is_described_for_programs() -> None:
    """With all that a person is told."""
    file = Path("src/dragoman/model/x.py")
    site = sites("x = 1 < 2")[0]
    trial = Trial(Mutant("model", file, site), Verdict.UNDECIDED, "a", "b", None, 7)
    assert trial.described() == {
        "package": "model", "file": "src/dragoman/model/x.py", "line": 1, "kind": site.kind,
        "before": "a", "after": "b", "verdict": "undecided", "noticed_by": None, "tests": 7,
    }  # fmt: skip


def test_only_decided_mutants_count() -> None:
    """Undecided ones and those on which a test does not end are told of beside the share."""
    assert str(Sum(caught=19, survived=1)) == "19 of 20 caught (95.0 %)"
    whole = Sum(caught=1, undecided=3, timed_out=2)
    assert str(whole) == "1 of 1 caught (100.0 %), 3 undecided, 2 timed out"
