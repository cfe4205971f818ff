"""Loads middleware from files and installed packages.

```toml
[server]
middleware = ["guard.py:redact", "guard.py", "acme_rules"]
```

File paths are relative to the configuration file. `file.py:name` uses an object in the file,
`file.py` the module's own functions. Any other name is an entry point of the group
`dragoman.middleware`.
"""

from __future__ import annotations

import sys
from hashlib import sha256
from importlib.util import module_from_spec, spec_from_file_location
from inspect import isclass, iscoroutinefunction, isfunction
from pathlib import Path
from types import ModuleType
from typing import Any

from dragoman.errors import ConfigError
from dragoman.gateway.config.settings import GatewayConfig
from dragoman.gateway.middleware.filters import HOOKS, Hooks, Middleware
from dragoman.wire.entry_points import EntryPoints

GROUP = "dragoman.middleware"
_PLAIN = ("route", "on_event")
_INSTALLED: EntryPoints[Any] = EntryPoints(GROUP, "middleware", lambda _name, _value: None)


def load_middleware(config: GatewayConfig) -> Middleware | None:
    """Load the configured middleware, in order; None: none is configured."""
    server = config.server
    if not server.middleware:
        return None
    folder = Path.cwd() if config.source is None else config.source.resolve().parent
    found = [_load(name, folder) for name in server.middleware]
    digest = sha256(b"\0".join(each for _, each in found)).hexdigest()
    return Middleware([hooks for hooks, _ in found], server.middleware_timeout, digest)


def _load(name: str, folder: Path) -> tuple[Hooks, bytes]:
    """Load one middleware; returns its hooks and a fingerprint of its version."""
    file, colon, attribute = name.rpartition(":")
    if name.endswith(".py"):
        file, colon, attribute = name, "", ""
    if not file.endswith(".py"):
        return _load_installed(name)
    module, source = _module(name, folder / file)
    if colon and not hasattr(module, attribute):
        raise _unusable(name, "the file does not define this name")
    value = getattr(module, attribute) if colon else module
    return hooks_of(name, value), name.encode() + b"\0" + sha256(source).digest()


def _load_installed(name: str) -> tuple[Hooks, bytes]:
    value = _INSTALLED.load(name)
    if value is None:
        known = ", ".join(_INSTALLED.names()) or "none"
        text = f"no entry point of the group {GROUP} has this name (installed: {known}), and"
        raise _unusable(name, f"{text} a file name must end in .py")
    point = _INSTALLED.installed().entries[name].point
    version = "" if point.dist is None else point.dist.version
    return hooks_of(name, value), f"{name}\0{point.value}\0{version}".encode()


def _module(name: str, path: Path) -> tuple[ModuleType, bytes]:
    try:
        source = path.read_bytes()
    except (OSError, ValueError):
        raise _unusable(name, f"the file {path} does not exist or can't be read") from None
    called = f"dragoman_middleware_{sha256(str(path).encode()).hexdigest()[:16]}"
    spec = spec_from_file_location(called, path)
    if spec is None or spec.loader is None:
        raise _unusable(name, "it is not a Python file")
    module = module_from_spec(spec)
    before = sys.modules.get(called)
    sys.modules[called] = module  # dataclasses and pickles look there
    try:
        exec(compile(source, path, "exec", dont_inherit=True), module.__dict__)  # noqa: S102 - the operator's own
    except BaseException as error:  # noqa: BLE001 - whatever it is, `sys.exit()` included
        sys.modules.pop(called)
        if before is not None:
            sys.modules[called] = before
        problem = _describe_error(error, path)
    else:
        return module, source
    raise _unusable(name, problem)


def _describe_error(error: BaseException, path: Path) -> str:
    """Describe an error by its type and the last line of the file that was executed."""
    line = error.lineno if isinstance(error, SyntaxError) else None
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(path):
            line = trace.tb_lineno
        trace = trace.tb_next
    return f"{type(error).__name__}" + (f" on line {line}" if line is not None else "")


def hooks_of(name: str, value: Any) -> Hooks:
    """The hooks of an object, a class (instantiated once), a module or a single function."""
    if isclass(value):
        try:
            value = value()
        except BaseException as error:  # noqa: BLE001 - as above
            problem = f"{type(error).__name__} on instantiation; it is called without arguments"
            raise _unusable(name, problem) from None
    if isfunction(value):
        return Hooks(name, before=value)
    found = {hook: getattr(value, hook, None) for hook in HOOKS}
    functions = {hook: function for hook, function in found.items() if function is not None}
    for hook, function in functions.items():
        if not callable(function):
            raise _unusable(name, f"its `{hook}` is not a function")
        if hook in _PLAIN and iscoroutinefunction(function):
            raise _unusable(name, f"its `{hook}` must not be async")
    if not functions:
        raise _unusable(name, f"it defines none of the functions {', '.join(HOOKS)}")
    return Hooks(name, **functions)


def _unusable(name: str, problem: str) -> ConfigError:
    return ConfigError(f"the middleware {name} can't be used: {problem}")
