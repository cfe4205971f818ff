"""Resolves the name of a local model to a file."""

from __future__ import annotations

from pathlib import Path

from dragoman.errors import ConfigError
from dragoman.transport.local.catalogue import PACKAGED, Packaged

_MAGIC = b"GGUF"
_FORMS = "use a file (local:/path/to/model.gguf) or one of: " + ", ".join(
    f"local:{name}" for name in PACKAGED
)


def found(name: str) -> Packaged | Path:
    """The model that a name refers to: a downloadable one, or a file, which may not exist."""
    if not name:
        msg = f"no local model given; {_FORMS}"
        raise ConfigError(msg)
    if known := PACKAGED.get(name.lower()):
        return known
    if not name.lower().endswith(".gguf") and "/" not in name and "\\" not in name:
        msg = f"there is no local model with this name; {_FORMS}"
        raise ConfigError(msg)
    try:
        return Path(name).expanduser().absolute()
    except RuntimeError:
        msg = "the home directory in the model's path can't be resolved; use an absolute path"
    raise ConfigError(msg)


def check_file(path: Path) -> None:
    """Raise unless the file is readable and is a GGUF file."""
    try:
        with path.open("rb") as file:
            problem = "" if file.read(len(_MAGIC)) == _MAGIC else "is not a GGUF file"
    except OSError as error:
        problem = f"can't be read ({error.strerror or type(error).__name__})"
    if problem:
        msg = f"the model {path.name} {problem}; {_FORMS}"
        raise ConfigError(msg)
