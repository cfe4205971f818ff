"""The wheel and the sdist: contents, metadata and installation.

`make dist` builds both in isolation and passes them in `DRAGOMAN_DIST`; without it they are
built here from the checkout, with the build backend of the development environment.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from collections.abc import Iterable
from email.message import Message
from email.parser import BytesParser
from pathlib import Path, PurePosixPath

import pytest

from tests.environment import OUTSIDE

pytestmark = pytest.mark.slow  # builds, and installs from the package index

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "dragoman"
PAGE = "gateway/page/static/"
EXTRAS = {
    "all",
    "cli",
    "dev",
    "docs",
    "encryption",
    "gateway",
    "local",
    "mariadb",
    "mcp",
    "otel",
    "peers",
    "postgres",
    "prices",
    "redis",
}

# Runs in an environment with only the wheel installed.
PROBE = """
import sys
before = set(sys.modules)  # a system's own start-up files may load things
import dragoman
loaded = {name.partition(".")[0] for name in set(sys.modules) - before}
strangers = loaded - set(sys.stdlib_module_names) - {"dragoman", "msgspec"}
assert not strangers, strangers
from importlib.metadata import version
from importlib.resources import files
assert (files(dragoman) / "py.typed").is_file()
print(version("dragoman"))
for name in dragoman.__all__:
    getattr(dragoman, name)
"""


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one wheel and one sdist."""
    if ready := os.environ.get("DRAGOMAN_DIST"):
        return Path(ready).resolve()
    out = tmp_path_factory.mktemp("dist")
    call(sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(ROOT))
    return out


@pytest.fixture(scope="module")
def wheel(dist: Path) -> Path:
    """The one wheel: pure Python, for every platform."""
    (path,) = dist.glob("*.whl")
    assert path.name.endswith("-py3-none-any.whl")
    return path


@pytest.fixture(scope="module")
def sdist(dist: Path) -> Path:
    """The one source distribution."""
    (path,) = dist.glob("*.tar.gz")
    return path


@pytest.fixture(scope="module")
def metadata(wheel: Path) -> Message:
    """The metadata for the package index."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        return BytesParser().parsebytes(archive.read(name))


def call(*command: str) -> str:
    """The output of a command, which must succeed."""
    # With the user's settings for pip: a mirror, a proxy, a certificate.
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=ROOT.parent, env=OUTSIDE
    )
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def shipped(root: Path) -> set[str]:
    """The files below a folder that belong in a distribution."""
    files = (path for path in root.rglob("*") if path.is_file())
    return {path.relative_to(root).as_posix() for path in files if "__pycache__" not in path.parts}


def suffixes(names: Iterable[str]) -> set[str]:
    """The suffixes among these files."""
    return {PurePosixPath(name).suffix for name in names}


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    """Every module, `py.typed` and data file; no tests, no documentation, no leftovers."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    inside = {name.removeprefix("dragoman/") for name in names if name.startswith("dragoman/")}
    others = {name for name in names if not name.startswith("dragoman/")}
    assert inside == shipped(PACKAGE)
    assert "py.typed" in inside
    page = {name for name in inside if name.startswith(PAGE)}
    assert suffixes(page) == {".css", ".html", ".js", ".md", ".svg"}
    assert suffixes(inside - page - {"py.typed"}) <= {".py", ".json"}
    assert {name.partition("/")[0].rpartition(".")[2] for name in others} == {"dist-info"}
    assert any(name.endswith("dist-info/licenses/LICENSE") for name in others)


def test_the_sdist_holds_what_a_packager_needs(sdist: Path) -> None:
    """Sources, tests, documentation and project files."""
    names = sdist_names(sdist)
    needed = "CHANGELOG.md CONTRIBUTING.md LICENSE Makefile README.md SECURITY.md pyproject.toml"
    assert set(needed.split()) <= names
    assert {f"src/dragoman/{name}" for name in shipped(PACKAGE)} <= names
    assert {"tests/conftest.py", "tests/test_packaging.py"} <= names
    if (ROOT / "docs").is_dir():
        assert {f"docs/{name}" for name in shipped(ROOT / "docs")} <= names


def test_the_sdist_holds_nothing_stray(sdist: Path) -> None:
    """Each of its files is tracked by git, or would be."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    listed = (
        "git",
        "-C",
        str(ROOT),
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
    )
    assert sdist_names(sdist) - {"PKG-INFO"} <= set(call(*listed).split("\0"))


def sdist_names(sdist: Path) -> set[str]:
    """The files of a source distribution, relative to its top folder."""
    with tarfile.open(sdist) as archive:
        files = (member.name for member in archive.getmembers() if not member.isdir())
        return {name.partition("/")[2] for name in files}


def test_the_metadata_is_complete(metadata: Message) -> None:
    """Name, licence and the required Python."""
    assert metadata["Name"] == "dragoman"
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata.get_all("License-File") == ["LICENSE"]
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert "Typing :: Typed" in metadata.get_all("Classifier", [])


def test_the_core_needs_two_packages(metadata: Message) -> None:
    """Everything else is an extra, and the extras are the documented ones."""
    required = metadata.get_all("Requires-Dist", [])
    core = {line.partition(">")[0] for line in required if "extra ==" not in line}
    assert core == {"aiohttp", "msgspec"}
    assert set(metadata.get_all("Provides-Extra", [])) == EXTRAS


def test_all_is_the_union_of_the_others() -> None:
    """A new extra must be added there."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    (union,) = extras["all"]
    named = union.removeprefix("dragoman[").removesuffix("]").split(",")
    for_maintainers = {"dev", "docs", "peers"}
    assert set(named) == EXTRAS - {"all"} - for_maintainers


def test_it_installs_and_imports_in_an_empty_environment(
    wheel: Path, metadata: Message, tmp_path: Path
) -> None:
    """`import dragoman` works, and loads msgspec at most."""
    venv.create(tmp_path / "env", with_pip=True)
    python = str(tmp_path / "env" / "bin" / "python")
    pip = (python, "-m", "pip", "--disable-pip-version-check", "-qq")
    call(*pip, "install", str(wheel))
    call(*pip, "check")
    assert call(python, "-I", "-c", PROBE).strip() == metadata["Version"]
