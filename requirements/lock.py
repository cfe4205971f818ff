"""Writes the locks beside it: every package that make installs, with its version and its hashes.

`make lock` runs it. Versions stay as they are where pyproject.toml still allows them;
`make lock UPGRADE=1` takes the newest, `make lock PACKAGE=openai` that of one package. The hashes
are those of all files that PyPI has of a version, so that a lock serves every platform. A lock
names no index: pip uses the one that it is configured for, and the hashes say if a file is PyPI's.

One resolution covers all locks, so that they agree. A lock that includes others (`-r`) holds only
what they don't.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
UV = Path(sys.executable).with_name("uv")
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")


class Lock(NamedTuple):
    """What is in one file."""

    says: str
    extras: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    """Others than the extras' own; with the bounds of pyproject.toml if it names them."""
    includes: tuple[str, ...] = ()
    builds: bool = False
    """Whether dragoman itself is built and installed with it: without isolation, from here."""
    alone: bool = False
    """Without its dependencies, and without a say in the versions of others."""


LOCKS = {
    "run": Lock("What `make run` and `make chat` need.", ("cli", "gateway"), builds=True),
    "tour": Lock(
        "The SDKs that `make run` shows in use; it does without them where they can't be had.",
        packages=("anthropic", "openai"), includes=("run",),
    ),
    "local": Lock(
        "What runs the local model of `make run`; it has no wheel for some platforms.",
        ("local",), includes=("run",),
    ),
    "image": Lock(
        "What deploy/Containerfile installs.",
        ("cli", "gateway", "otel", "postgres", "prices", "redis"),
        ("opentelemetry-sdk", "opentelemetry-exporter-otlp-proto-http"), ("run",),
    ),
    "dev": Lock("What `make test` and `make lint` need.", ("dev",), includes=("tour",)),
    "peers": Lock("What `make test-all` needs besides.", ("peers",), includes=("dev",)),
    "litellm": Lock(
        "LiteLLM without its dependencies: it wants an older openai, and runs with ours.",
        packages=("litellm",), alone=True,
    ),
    "docs": Lock("What `make docs` needs.", ("docs",), builds=True),
    "uv": Lock("What `make lock` needs.", packages=("uv",), alone=True),
}  # fmt: skip


def project() -> dict[str, object]:
    """The content of pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def inputs(lock: Lock) -> list[str]:
    """The requirements besides those of the extras."""
    read = project()
    build: list[str] = read["build-system"]["requires"]  # type: ignore[index]
    extras: dict[str, list[str]] = read["project"]["optional-dependencies"]  # type: ignore[index]
    bounds = {found[0]: each for all_ in extras.values() for each in all_
              if (found := _NAME.match(each))}  # fmt: skip
    return [bounds.get(name, name) for name in lock.packages] + (
        [*build, "editables"] if lock.builds else []  # hatchling wants it for `pip install -e`
    )


def entries(text: str) -> dict[str, str]:
    """The entries of a lock, by name and marker: each with its hashes."""
    joined = re.split(r"\n(?=\S)", text)
    found = [each for each in joined if re.match(r"[A-Za-z0-9]", each)]
    return {each.partition(" \\")[0]: each.rstrip() for each in found}


def includes_of(name: str) -> list[str]:
    """The locks that one includes, and theirs."""
    direct = LOCKS[name].includes
    return [*direct, *(more for each in direct for more in includes_of(each))]


def compiled(lock: Lock, output: Path, *options: str) -> str:
    """What uv resolves."""
    required = output.with_suffix(".in")
    required.write_text("\n".join(inputs(lock)) + "\n", encoding="utf-8")
    sources = [str(required)]
    if lock.extras:
        sources += ["pyproject.toml", *(f"--extra={extra}" for extra in lock.extras)]
    lowest = str(project()["project"]["requires-python"]).removeprefix(">=")  # type: ignore[index]
    subprocess.run(
        [
            UV, "pip", "compile", *sources, "--universal", f"--python-version={lowest}",
            "--generate-hashes", "--no-header", "--no-annotate", "--system-certs", "--quiet",
            f"--output-file={output}", *options, *(["--no-deps"] if lock.alone else []),
        ],
        cwd=ROOT, check=True,
    )  # fmt: skip
    return output.read_text(encoding="utf-8")


def main(options: list[str]) -> None:
    """Write all locks; `options` are uv's, and say what is upgraded."""
    with tempfile.TemporaryDirectory() as folder:
        every = Path(folder) / "every.txt"
        every.write_text(_before(), encoding="utf-8")  # uv keeps these versions
        together = [lock for lock in LOCKS.values() if not lock.alone]
        extras = sorted({extra for lock in together for extra in lock.extras})
        packages = sorted({name for lock in together for name in lock.packages})
        compiled(Lock("", tuple(extras), tuple(packages), builds=True), every, *options)
        made: dict[str, dict[str, str]] = {}
        for name, lock in LOCKS.items():
            output = Path(folder) / f"{name}.txt"
            if lock.alone:
                output.write_text(_read(name), encoding="utf-8")
                found = entries(compiled(lock, output, *options))
            else:
                found = entries(compiled(lock, output, f"--constraint={every}"))
            included = {key for each in includes_of(name) for key in made[each]}
            made[name] = {key: each for key, each in found.items() if key not in included}
            _write(name, lock, made[name])


def _read(name: str) -> str:
    path = HERE / f"{name}.txt"
    return path.read_text(encoding="utf-8") if path.exists() else ""


def _before() -> str:
    """What the locks say so far, once each."""
    found: dict[str, str] = {}
    for name, lock in LOCKS.items():
        if not lock.alone:
            found.update(entries(_read(name)))
    return "\n".join(found.values()) + "\n"


def _write(name: str, lock: Lock, found: dict[str, str]) -> None:
    head = f"# {lock.says} Written by `make lock` from pyproject.toml and requirements/lock.py.\n"
    included = "".join(f"-r {each}.txt\n" for each in lock.includes)
    body = "".join(f"{each}\n" for each in found.values())
    (HERE / f"{name}.txt").write_text(head + included + body, encoding="utf-8")
    print(f"requirements/{name}.txt: {len(found)} packages")


if __name__ == "__main__":
    main(sys.argv[1:])
