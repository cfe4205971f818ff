"""What is installed is known: locks with hashes, images with digests, bounds that are tried."""

from __future__ import annotations

import json
import re
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests import environment
from tests.locks import FOLDER, ROOT, Entry, entries
from tests.sdk_types.bodies import SOURCES

pytestmark = [
    pytest.mark.skipif(not (ROOT / ".ci").exists(), reason="only in the repository"),
    pytest.mark.whole,
]
NAMES = sorted(path.stem for path in FOLDER.glob("*.txt"))
MAKEFILE = ROOT / "Makefile"
LOCK = FOLDER / "lock.py"
LOWEST = FOLDER / "lowest.py"
INSTALL = FOLDER / "install.py"
_HASH = re.compile(r"--hash=sha256:(?!(.)\1{63})[0-9a-f]{64}")  # none that stands for another
_DIGEST = re.compile(r"[\w.-]+(?:/[\w.-]+)*:[\w.-]+@sha256:[0-9a-f]{64}")


def project() -> Any:
    """The content of pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def required(extras: list[str]) -> list[Requirement]:
    """What pyproject.toml wants for some extras."""
    found: list[Requirement] = runpy.run_path(str(LOWEST))["requirements"](
        project()["project"], extras
    )
    return found


def locks() -> dict[str, Any]:
    """What each lock is made of."""
    made: dict[str, Any] = runpy.run_path(str(LOCK))["LOCKS"]
    return made


class TestLocks:
    """The files in requirements/."""

    def test_each_is_one_that_make_lock_writes(self) -> None:
        """None is left over, and none is missing."""
        assert sorted(locks()) == NAMES

    @pytest.mark.parametrize("name", NAMES)
    def test_every_package_has_hashes_and_no_host(self, name: str) -> None:
        """Exact versions and SHA-256 only: no index, address or path."""
        found = entries(name)
        assert found
        assert all(each.hashes for each in found)
        assert all(_HASH.fullmatch(each) for entry in found for each in entry.hashes)
        assert "://" not in (FOLDER / f"{name}.txt").read_text(encoding="utf-8")

    @pytest.mark.parametrize("name", [name for name in NAMES if locks()[name].extras])
    def test_it_has_what_its_extras_want(self, name: str) -> None:
        """Each requirement, in a version that its bounds allow."""
        found: dict[str, list[Entry]] = {}
        for each in entries(name):
            found.setdefault(each.name, []).append(each)
        wanted = required(list(locks()[name].extras))
        if locks()[name].builds:
            wanted += map(Requirement, project()["build-system"]["requires"])
        assert len(wanted) > 2
        for requirement in wanted:
            there = found[canonicalize_name(requirement.name)]
            assert all(each.version in requirement.specifier for each in there), requirement

    def test_they_agree(self) -> None:
        """A package has one version and its hashes in all of them: they share an environment."""
        seen: dict[tuple[str, str], frozenset[str]] = {}
        told: dict[str, dict[str, set[str]]] = {}
        for name in NAMES:
            for each in entries(name):
                key = each.name, str(each.version)
                assert seen.setdefault(key, each.hashes) == each.hashes, key
                if each.marker is None or each.marker.evaluate():
                    told.setdefault(each.name, {}).setdefault(key[1], set()).add(name)
        assert {name: where for name, where in told.items() if len(where) > 1} == {}

    def test_they_serve_other_platforms(self) -> None:
        """What is compiled has hashes of many files: for each Python, system and processor."""
        compiled = {each.name: len(each.hashes) for each in entries("run") if each.name in {
            "aiohttp", "msgspec", "httptools", "multidict", "yarl"}}  # fmt: skip
        assert len(compiled) == 5
        assert min(compiled.values()) > 20

    def test_the_newest_sdks_are_those_that_the_tests_walk(self) -> None:
        """`make sdk-report` names each of them, and the locks have a version of each."""
        walked = {source.sdk.replace(".", "-") for source in SOURCES}
        [newest] = re.findall(r"^NEWEST := (.+)$", MAKEFILE.read_text(), re.MULTILINE)
        assert set(newest.split()) == walked
        assert walked <= {each.name for each in entries("peers")}


class TestInstalling:
    """Makefile, CI and deploy/: from the locks, and no error is hidden."""

    def test_the_stamps_depend_on_the_locks(self) -> None:
        """A changed lock is installed, with its hashes."""
        text = MAKEFILE.read_text()
        assert "LOCKED := --require-hashes --no-deps\n" in text
        for stamp, name in (("VENV)/.local", "run"), ("VENV)/.dev", "dev"), ("DOCS)/.docs", "docs"),
                            ("VENV)/.peers", "peers"), ("LOCKING)/.uv", "uv")):  # fmt: skip
            [rule] = re.findall(rf"^\$\({re.escape(stamp)}: (.*(?:\n\t.*)+)", text, re.MULTILINE)
            assert re.search(rf"\$\(call lock_files,[^)]*\b{name}\b", rule), stamp
            assert re.search(rf"\$\(LOCKED\)[^\n]* -r requirements/{name}\.txt", rule), stamp

    def test_no_error_of_pip_is_hidden(self) -> None:
        """Nowhere is what it says on standard error thrown away."""
        files = [MAKEFILE, ROOT / ".ci/run", *(ROOT / "deploy").iterdir(),
                 *(ROOT / ".github/workflows").iterdir()]  # fmt: skip
        for path in files:
            text = path.read_text(encoding="utf-8").replace("\\\n", " ")
            for line in text.splitlines():
                if re.search(r"\bpip\b|INSTALL\)|OURSELVES\)", line):
                    assert "2>/dev/null" not in line.replace(" ", ""), (path.name, line)

    def test_every_image_has_a_digest(self) -> None:
        """A tag can be moved to another image."""
        text = (ROOT / "deploy/Containerfile").read_text()
        images = re.findall(r"^FROM (\S+)", text, re.MULTILINE)
        for path in (ROOT / "deploy/compose.yaml", ROOT / ".github/workflows/ci.yml"):
            images += re.findall(r"^\s+image: (\S+)", path.read_text(), re.MULTILINE)
        images.append(json.loads((ROOT / ".devcontainer/devcontainer.json").read_text())["image"])
        assert len(images) == 7
        assert [image for image in images if not _DIGEST.fullmatch(image)] == []

    def test_a_failure_is_told_with_pips_reason(self, tmp_path: Path) -> None:
        """Why pip failed without its steps, what was not installed, and its status."""
        (tmp_path / "none.txt").write_text("# nothing\n")
        (tmp_path / "unknown.txt").write_text("pytest\nno-such-package==1\n")
        for what, expected in (("none.txt", 0), ("unknown.txt", 1), ("absent.txt", 1)):
            ran = subprocess.run(
                [sys.executable, INSTALL, "a thing", "--no-index", "-r", tmp_path / what],
                env=environment.OUTSIDE, capture_output=True, text=True,
                check=False,
            )  # fmt: skip
            assert ran.returncode == expected
            assert ran.stdout == "==> installing a thing\n"
            if expected:
                assert re.match(r"(ERROR: .*(absent.txt|no-such-package).*\n)+==> ", ran.stderr)
                assert ran.stderr.endswith(
                    "==> a thing can't be installed; pip's reason is above\n"
                )
            else:
                assert ran.stderr == ""

    def test_on_a_terminal_it_says_how_far_it_is(self) -> None:
        """The packages that were found so far, of all that the lock has for every platform."""
        script = runpy.run_path(str(INSTALL))
        count = len(script["locked"](FOLDER / "run.txt"))
        assert count == len([each for each in entries("run") if each.marker is None])
        status = script["Status"](count)
        for line in ("Collecting aiohttp==3.14.5\n",
                     "  Downloading x/aiohttp-3.14.5-cp311.whl (1.9 MB)\n",
                     "Requirement already satisfied: click in /a\n"):  # fmt: skip
            status.read(line)
        said = f"    2 of {count} packages, 0 s: downloading aiohttp-3.14.5 (1.9 MB)"
        assert re.sub(r", \d+ s", ", 0 s", status.text()) == said
        status.read("Installing collected packages: a, b, c\n")
        assert status.text().endswith("unpacking 3 packages")

    def test_a_package_of_two_locks_is_one(self) -> None:
        """`make run` installs from two that include a third."""
        locked = runpy.run_path(str(INSTALL))["locked"]
        names = [locked(FOLDER / f"{name}.txt") for name in ("tour", "local", "run")]
        assert len(names[0] | names[1]) == len(names[0]) + len(names[1]) - len(names[2])


class TestLowest:
    """The lowest versions, from pyproject.toml alone."""

    @pytest.mark.parametrize(
        ("given", "lowest"),
        [
            ("aiohttp>=3.10", "aiohttp==3.10"),
            ("mcp>=2.3,<3", "mcp==2.3"),
            ("ruff~=0.17.4", "ruff==0.17.4"),
            ("pyright[nodejs]==1.1.*,>=1.1.400", "pyright[nodejs]==1.1.400"),
            ("zstd>=1; python_version < '3.14'", 'zstd==1 ; python_version < "3.14"'),
            ("types-jsonschema", "types-jsonschema"),
        ],
    )
    def test_a_bound_becomes_a_version(self, given: str, lowest: str) -> None:
        """Extras and markers stay."""
        lines = runpy.run_path(str(LOWEST))["lines"]
        assert lines({"name": "x", "dependencies": [given]}, []) == [lowest]

    def test_extras_include_others_and_the_higher_bound_counts(self) -> None:
        """As pip resolves them."""
        lines = runpy.run_path(str(LOWEST))["lines"]
        extras = {"a": ["x[b]", "one>=1"], "b": ["One>=2", "two>=3"], "c": ["not-this"]}
        given = {"name": "x", "dependencies": ["two>=1"], "optional-dependencies": extras}
        assert lines(given, ["a"]) == ["One==2", "two==3"]

    def test_every_bound_of_the_users_and_of_the_tests_is_tried(self) -> None:
        """`make test-lowest` installs the lowest of each, by the script, and CI runs it."""
        text = MAKEFILE.read_text()
        assert "requirements/lowest.py dev > $(LOWEST)/requirements.txt" in text
        users = set(project()["project"]["optional-dependencies"]) - {"dev", "docs", "peers"}
        named = {each.name for each in required(["dev"])}
        untried = {each.name for each in required(sorted(users))} - named
        assert untried == {"xllamacpp"}  # 40 MB, and no model to run
        assert "run: make test-lowest" in (ROOT / ".github/workflows/ci.yml").read_text()

    def test_the_tests_that_it_runs_exist(self) -> None:
        """A renamed one would be missed only where `make test-lowest` runs."""
        ran = subprocess.run(
            ["make", "--dry-run", "-o", ".venv-lowest/.lowest", "test-lowest"],
            cwd=ROOT, capture_output=True, text=True, check=True,
        )  # fmt: skip
        paths = re.findall(r"\btests/[\w/]+(?:\.py)?", ran.stdout)
        assert len(paths) > 20
        assert [path for path in paths if not (ROOT / path).exists()] == []
