"""The files around the code: release notes, workflows, issue forms, policies."""

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

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = ROOT / ".ci" / "release_notes.py"
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("[!c]*.yml"))  # config.yml is no form

pytestmark = pytest.mark.skipif(not SCRIPT.exists(), reason="only in the repository")

CHANGELOG = """\
# Changelog

## [Unreleased]

## [1.2.0] - 2027-01-05

### Added

- A thing. [The page](docs/thing.md), [the site](https://example.com/), [a heading](#x).

## [1.1.0]

- Older.

[1.2.0]: https://example.com/1.2.0
"""


def load(path: Path) -> Any:
    """A YAML file."""
    yaml: Any = pytest.importorskip("yaml")
    return yaml.safe_load(path.read_text(encoding="utf-8"))


class TestReleaseNotes:
    """Release notes are taken from the changelog."""

    def test_a_section_without_its_heading(self) -> None:
        """Only the requested version; links to files in the repository become text."""
        notes_of = runpy.run_path(str(SCRIPT))["notes_of"]
        assert notes_of("1.2.0", CHANGELOG) == (
            "### Added\n\n- A thing. The page, [the site](https://example.com/), [a heading](#x).\n"
        )
        assert notes_of("1.1.0", CHANGELOG) == "- Older.\n"

    @pytest.mark.parametrize("version", ["Unreleased", "1.3.0", "1.2"])
    def test_missing_notes_are_an_error(self, version: str) -> None:
        """An empty section and a missing one."""
        notes_of = runpy.run_path(str(SCRIPT))["notes_of"]
        with pytest.raises(LookupError, match=re.escape(f"no notes for {version};")):
            notes_of(version, CHANGELOG)

    def test_a_tag_must_match_the_package_version(self) -> None:
        """A tag that was set before the version was raised stops the release."""
        run = subprocess.run(
            [sys.executable, str(SCRIPT), "99.0"], capture_output=True, text=True, check=False
        )
        assert (run.returncode, run.stdout) == (1, "")
        assert "not 99.0" in run.stderr

    def test_our_changelog_can_be_read(self) -> None:
        """The unreleased section can be released."""
        run = subprocess.run(
            [sys.executable, str(SCRIPT), "Unreleased"],
            capture_output=True, text=True, check=True, encoding="utf-8",
        )  # fmt: skip
        assert run.stdout.startswith("### Added\n")
        assert "](docs/" not in run.stdout


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
class TestWorkflows:
    """Hosted CI: few permissions, bounded time, commands that exist."""

    def test_permissions_are_minimal(self, path: Path) -> None:
        """A workflow declares its permissions; only single jobs may write."""
        workflow = load(path)
        assert workflow["permissions"] in ({}, {"contents": "read"})
        assert all("timeout-minutes" in job for job in workflow["jobs"].values())

    def test_its_commands_exist(self, path: Path) -> None:
        """Its scripts and make targets are in the repository."""
        steps = [step for job in load(path)["jobs"].values() for step in job["steps"]]
        commands = "\n".join(step["run"] for step in steps if "run" in step)
        targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
        assert set(re.findall(r"\bmake (?:--\S+ )*([\w-]+)", commands)) <= targets
        assert ".ci/run" in commands
        assert (ROOT / ".ci" / "run").stat().st_mode & 0o111

    def test_actions_are_pinned(self, path: Path) -> None:
        """None follows a branch."""
        steps = [step for job in load(path)["jobs"].values() for step in job["steps"]]
        used = [step["uses"] for step in steps if "uses" in step]
        assert used
        assert [name for name in used if not re.search(r"@(release/)?v\d", name)] == []


def test_paths_of_the_portable_tests_exist() -> None:
    """A renamed folder would silently not be tested on other platforms."""
    legs = load(ROOT / ".github" / "workflows" / "ci.yml")["jobs"]["portable"]["strategy"]
    words = {word for leg in legs["matrix"]["include"] for word in leg["tests"].split()}
    paths = {word.removeprefix("--ignore=") for word in words}
    assert len(paths) > 4
    assert [path for path in sorted(paths) if not (ROOT / path).exists()] == []


def test_claimed_python_versions_are_tested() -> None:
    """The classifiers name no version that only a job marked `new` runs."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    claimed = {c.rpartition(" ")[2] for c in project["classifiers"] if ":: 3." in c}
    linux = load(ROOT / ".github" / "workflows" / "ci.yml")["jobs"]["linux"]
    assert claimed
    assert claimed <= set(linux["strategy"]["matrix"]["python"])


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.name)
def test_issue_forms_are_complete(path: Path) -> None:
    """GitHub requires a name, a description, fields with a label, and distinct ids."""
    form = load(path)
    assert form["name"]
    assert form["description"]
    fields = [field for field in form["body"] if field["type"] != "markdown"]
    assert {field["type"] for field in fields} <= {"input", "textarea", "dropdown", "checkboxes"}
    assert all(field["attributes"]["label"] for field in fields)
    assert len({field["id"] for field in fields}) == len(fields)


def test_the_commit_hooks_run_what_lint_runs() -> None:
    """Each tool of `make lint`, with the same options."""
    hooks = load(ROOT / ".pre-commit-config.yaml")["repos"][0]["hooks"]
    entries = [hook["entry"].removeprefix(".venv/bin/") for hook in hooks]
    lint = (ROOT / "Makefile").read_text().replace("$(VENV)", ".venv").replace("\t@", "")
    assert len(entries) == 5
    wanted = [entry.replace(" --force-exclude", "") for entry in entries]
    assert [entry for entry in wanted if f".venv/bin/{entry}" not in lint] == []


def test_the_dev_container_is_valid() -> None:
    """Plain JSON, and its command is a target of the Makefile."""
    container = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text())
    assert container["postCreateCommand"] == "make --silent .venv/.dev"
    assert "\n$(VENV)/.dev:" in (ROOT / "Makefile").read_text()


def test_the_threat_model_names_modules_that_exist() -> None:
    """Also after modules have moved."""
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([a-z_]+(?:/[a-z_]+)*(?:\.py|/))`", text))
    assert len(named) > 20
    places = {name: ROOT if name.startswith("tests/") else ROOT / "src/dragoman" for name in named}
    assert [name for name, place in sorted(places.items()) if not (place / name).exists()] == []
