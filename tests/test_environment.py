"""Settings and packages of a developer affect no test."""

from __future__ import annotations

import os
import ssl
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests import environment

HOSTILE = {
    "OPENAI_API_KEY": "sk-hostile",
    "AZURE_OPENAI_RESOURCE": "hostile",
    "HTTP_PROXY": "http://127.0.0.1:1",
    "https_proxy": "http://127.0.0.1:1",
    "SSL_CERT_FILE": "/nowhere",
    "PIP_INDEX_URL": "http://127.0.0.1:1",
    "PGHOST": "nowhere",
    "NO_COLOR": "1",
    "FORCE_COLOR": "1",
    "TERM": "dumb",
    "COLUMNS": "40",
    "LANG": "C",
    "LC_ALL": "C",
    "TZ": "Pacific/Kiritimati",
    "HOME": "/nowhere",
    "XDG_DATA_HOME": "/nowhere",
    "PYTHONWARNINGS": "error",
    "PYTHONUTF8": "0",
    "DRAGOMAN_HISTORY": "redis://nowhere",
    "DRAGOMAN_MODEL": "nobody:nothing",
    "DRAGOMAN_REVEAL": "1",
    "DRAGOMAN_TEST_ABSENT": "msgspec",
}
PROBE = "import importlib.util as u; print(u.find_spec('xllamacpp') is not None)"


def _finds_llama_elsewhere() -> bool:
    """Whether a Python that the test starts has the package."""
    command = [sys.executable, "-c", PROBE]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.strip() == "True"


def test_no_setting_of_the_user_is_visible() -> None:
    """Not in this process, and so not in its child processes."""
    for name in HOSTILE.keys() - {"HOME", "TZ", "PYTHONUTF8", "DRAGOMAN_TEST_ABSENT"}:
        assert name not in os.environ


def test_no_certificate_authority_of_the_machine_is_trusted() -> None:
    """No test can depend on those that are installed."""
    assert ssl.create_default_context().cert_store_stats()["x509_ca"] == 0


def test_the_time_zone_is_always_the_same() -> None:
    """Whatever the machine's is."""
    assert time.localtime(0)[:5] == (1970, 1, 1, 0, 0)


def test_the_home_is_empty() -> None:
    """And is not that of another test."""
    assert not Path.home().exists()
    (Path.home() / ".config").mkdir(parents=True)


test_the_home_is_empty_again = test_the_home_is_empty


def test_optional_packages_are_absent() -> None:
    """Installed or not, here and in processes that a test starts."""
    assert find_spec("xllamacpp") is None
    with pytest.raises(ModuleNotFoundError):
        __import__("xllamacpp")
    assert not _finds_llama_elsewhere()


@pytest.mark.usefixtures("fake_llama")
def test_a_test_can_offer_one() -> None:
    """The stand-in is used even if the real one is installed."""
    found = find_spec("xllamacpp")
    assert found is not None
    assert "fake_llama" in str(found.origin)
    assert _finds_llama_elsewhere()


@pytest.mark.skipif("PYTEST_HOSTILE" in os.environ, reason="it is this run")
def test_all_this_holds_in_a_hostile_environment(tmp_path: Path) -> None:
    """The tests above pass with conflicting variables set, from another folder."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n0", __file__]
    done = subprocess.run(
        command,
        env={**environment.OUTSIDE, **HOSTILE, "PYTEST_HOSTILE": "1"},
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    assert "7 passed, 1 skipped" in done.stdout
