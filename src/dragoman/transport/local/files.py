"""Which file a local model is."""

from __future__ import annotations

from pathlib import Path

from dragoman.errors import ConfigError
from dragoman.transport.local.catalogue import PACKAGED, Packaged

_MAGIC = b"GGUF"
_FORMS = "name a file (local:/path/to/model.gguf) or one of: " + ", ".join(
    f"local:{name}" for name in PACKAGED
)


def found(name: str) -> Packaged | Path:
    """What is named: a model that can be fetched, or a file. Whether it is there is not asked."""
    if not name:
        msg = f"which local model? {_FORMS}"
        raise ConfigError(msg)
    if known := PACKAGED.get(name.lower()):
        return known
    if not name.lower().endswith(".gguf") and "/" not in name and "\\" not in name:
        msg = f"there is no local model of that name; {_FORMS}"
        raise ConfigError(msg)
    try:
        return Path(name).expanduser().absolute()
    except RuntimeError:
        msg = "the home directory in the path of the model is not known; give the whole path"
    raise ConfigError(msg)


def check_file(path: Path) -> None:
    """Raise unless a file can be read and says that it is a model."""
    try:
        with path.open("rb") as file:
            problem = "" if file.read(len(_MAGIC)) == _MAGIC else "is not a GGUF file"
    except OSError as error:
        problem = f"can't be read ({error.strerror or type(error).__name__})"
    if problem:
        msg = f"the model {path.name} {problem}; {_FORMS}"
        raise ConfigError(msg)
