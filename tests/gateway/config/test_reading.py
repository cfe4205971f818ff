"""`dragoman.toml` and the environment: what is read, and how problems are reported."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from dragoman.errors import ConfigError
from dragoman.gateway.config.problems import ConfigFileError
from dragoman.gateway.config.reading import load_config, parse_config
from dragoman.gateway.config.settings import GatewayConfig, Place, ServerSettings
from dragoman.model.requests import BLANK, ThinkingConfig
from dragoman.providers.registry import provider_names
from dragoman.transport.protocol import Timeouts

SMALLEST = """\
[server]
host = "127.0.0.1"
port = 8421

[providers.lab]                          # a place of the user's own
kind = "openai-compatible"               # one of the providers
base_url = "http://127.0.0.1:9000/v1"
api_key_env = "LAB_KEY"                  # may be absent

[[routes]]
model = "*"
to = ["lab", "openai:gpt-5-mini"]
"""

EVERYTHING = """\
[server]
host = "::1"
port = 0
workers = 4
max_body = "8MiB"
max_ratio = 50
max_concurrent = 50
header_timeout = 5
body_timeout = "30s"
send_timeout = "1m"
request_timeout = "none"
drain_timeout = 1.5
keys = "sqlite:///keys.db"
history = "file:///var/chats"
response_ttl = "7d"
allowed_hosts = ["llm.example.org", "10.0.0.1"]
trusted_proxies = ["127.0.0.1", "10.0.0.0/8", "2001:db8::/32"]
log = "json"
middleware = ["guard.py:redact"]
path_prefix = "/llm/"
titles = "test"
prompts = "prompts"

[providers.team]
kind = "azure"
api_key_env = "TEAM_KEY"
dialect = "openai-responses"
parameters = { resource = "team" }
headers = { x-team = "a" }
timeouts = { connect = 2, total = "none" }
retries = 0

[providers.openai]
timeouts.first_byte = "1m"

[[routes]]
model = "gpt-*"
name = "gpt"
to = [{ to = "team", weight = 3 }, { to = "openai", weight = 1 }, "anthropic:claude-opus-4-5"]
session = "all"
store = true
cache = "10m"
budget = { tokens = 1_000_000, cost = 2.5, period = "day" }
timeouts = { attempt = 30 }
defaults = { max_tokens = 500, stop = ["END"], thinking = "low" }
fixed.temperature = 0

[[routes]]
model = "test"
to = "echo:"

[aliases]
fast = "gpt-5-mini"
"""


def problems(text: str, **environ: str) -> list[str]:
    """The problems of a file, line by line."""
    with pytest.raises(ConfigFileError) as raised:
        parse_config(text, environ)
    assert isinstance(raised.value, ConfigError)
    assert str(raised.value).splitlines() == [str(each) for each in raised.value.problems]
    first = raised.value.problems[0]
    assert (raised.value.line, raised.value.column) == (first.line, first.column)
    return str(raised.value).splitlines()


def hops(config: GatewayConfig) -> list[list[tuple[str, str | None, int | None]]]:
    """The targets of the routes."""
    return [[(h.place.name, h.model, h.weight) for h in route.to] for route in config.routes]


def test_the_smallest_file() -> None:
    """A provider keeps the client's model name, a model replaces it."""
    config = parse_config(SMALLEST, {"LAB_KEY": "k", "OPENAI_API_KEY": "o"})
    lab = config.places["lab"]
    assert config.server == ServerSettings()
    assert hops(config) == [[("lab", None, None), ("openai", "gpt-5-mini", None)]]
    assert (lab.base_url, lab.key({"LAB_KEY": " k "})) == ("http://127.0.0.1:9000/v1", "k")
    assert config.warnings == ()


def test_every_field_is_read() -> None:
    """With units, dotted keys and inline tables."""
    config = parse_config(EVERYTHING, {"TEAM_KEY": "k"})
    assert config.server == ServerSettings(
        host="::1", port=0, workers=4, max_body=8 * 2**20, max_ratio=50, max_concurrent=50,
        header_timeout=5.0, body_timeout=30.0, send_timeout=60.0, request_timeout=None,
        drain_timeout=1.5,
        keys="sqlite:///keys.db", history="file:///var/chats", response_ttl=7 * 86400.0,
        allowed_hosts=("llm.example.org", "10.0.0.1"), log="json", middleware=("guard.py:redact",),
        path_prefix="/llm", titles="test", prompts="prompts",
        trusted_proxies=("127.0.0.1/32", "10.0.0.0/8", "2001:db8::/32"),
    )  # fmt: skip
    team, gpt = config.places["team"], config.routes[0]
    assert (team.provider and team.provider.name, team.dialect) == ("azure", "openai-responses")
    assert (team.parameters, team.headers) == ({"resource": "team"}, {"x-team": "a"})
    assert team.timeouts == Timeouts(connect=2.0, total=None)
    assert team.retries == 0
    assert config.places["openai"].timeouts == Timeouts(first_byte=60.0)
    claude = ("anthropic", "claude-opus-4-5", None)
    assert hops(config)[0] == [("team", None, 3), ("openai", None, 1), claude]
    assert hops(config)[1] == [("echo:", None, None)]
    assert (gpt.name, gpt.session, gpt.store, gpt.cache) == ("gpt", "all", True, 600.0)
    assert (gpt.max_tokens, gpt.max_cost, gpt.budget_period) == (10**6, Decimal("2.5"), "day")
    assert gpt.timeouts == Timeouts(attempt=30.0)
    assert config.aliases == {"fast": "gpt-5-mini"}


def test_settings_are_those_of_requests() -> None:
    """`Request.with_settings` accepts them."""
    route = parse_config(EVERYTHING, {}).routes[0]
    asked = BLANK.with_settings(**route.defaults, **route.fixed)
    assert (asked.sampling.max_tokens, asked.sampling.stop) == (500, ("END",))
    assert asked.sampling.temperature == 0
    assert asked.thinking == ThinkingConfig(enabled=True, effort="low", visible=True)


def test_all_problems_are_reported_at_once_by_line() -> None:
    """Each with its line and column, what is wrong and what would be right."""
    text = """\
[server]
hots = "x"
port = 70000
[providers.lab]
kind = "openai-compatibel"
[[routes]]
model = "a"
to = ["labb", "openai:"]
"""
    told = problems(text)
    assert [line.split(";")[0] for line in told] == [
        "dragoman.toml:2:1: unknown field hots (did you mean host?)",
        "dragoman.toml:3:8: this must be a whole number from 0 to 65535",
        (
            f"dragoman.toml:5:8: this must be one of the providers {', '.join(provider_names())}"
            " (did you mean openai-compatible?)"
        ),
        "dragoman.toml:8:7: there is no provider of that name",
        (
            'dragoman.toml:8:15: this must be a provider such as "lab", or a model such as'
            ' "openai:gpt-5"'
        ),
    ]
    assert "valid fields: host, port, workers" in told[0]


LAB = '[providers.lab]\nkind = "openai-compatible"\nbase_url = "http://h/v1"\n'


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        ("a = 1\nb", "2:2", "this is not valid TOML: expected"),
        ("a = [1,", "1:8", "this is not valid TOML"),
        ("[server]\n[server]", "2:8", "this is not valid TOML: cannot declare twice"),
        ("[serve]", "1:2", "unknown field serve (did you mean server?)"),
        ("server = 1", "1:10", "this must be a table"),
        ("providers = 1", "1:13", "this must be a table of tables, as in [providers.lab]"),
        ("routes = {}", "1:10", "write [[routes]]"),
        ("routes = [1]", "1:11", "this must be a table"),
        ("[[routes]]\nmodel='a'", "1:3", "to is missing"),
        ("[[routes]]\nto='openai'", "1:3", "model is missing"),
        ("[[routes]]\nmodel=''\nto='openai'", "2:7", "the name of a model"),
        ("[[routes]]\nmodel='a'\nto=[]", "3:4", "must not be empty"),
        ("[[routes]]\nmodel='a'\nto=[1]", "3:5", "this must be a provider"),
        ("[[routes]]\nmodel='a'\nto='openai:gpt-*'", "3:4", "patterns are not allowed"),
        ("[[routes]]\nmodel='a'\nto=['openai','openai']", "3:14", "already in the list"),
        ("[[routes]]\nmodel='a'\nto=[{to='openai', weight=-1}]", "3:26", "from 0 to 1000000"),
        ("[[routes]]\nmodel='a'\nto=[{weight=1}]", "3:5", "to is missing"),
        ("[[routes]]\nmodel='a'\nto='openai-compatible:x'", "3:4", "a table with a base_url"),
        ("[[routes]]\nmodel='a'\nto='local'", "3:4", "as in local:NAME"),
        ("[[routes]]\nmodel='a'\nto='local:nothing'", "3:4", "no such model or file"),
        ("[[routes]]\nmodel='a'\nto='scripted:/no/file'", "3:4", "no such file"),
        ("[[routes]]\nmodel='a'\nto='echo:'\nsession='s'", "4:9", "needs a history store"),
        ("[[routes]]\nmodel='a'\nto='echo:'\nbudget={period='day'}", "4:8", "tokens, a cost"),
        ("[[routes]]\nmodel='a'\nto='echo:'\ndefaults.max_tokens='x'", "4:21", "max_tokens"),
        ("[[routes]]\nmodel='a'\nto='echo:'\ndefaults.max_tokens=-1", "4:21", "negative"),
        ("[[routes]]\nmodel='a'\nto='echo:'\nfixed.thinking='hard'", "4:16", "one of none"),
        ("[[routes]]\nmodel='a'\nto='echo:'\nfixed.tempreature=1", "4:7", "temperature?"),
        (
            "[[routes]]\nmodel='a'\nto='echo:'\n[[routes]]\nmodel='a'\nto='echo:'",
            "5:7",
            "another route has this model",
        ),
        ("[aliases]\na='b'\nb='c'", "2:3", "itself an alias b"),
        ("[aliases]\na='b*'", "2:3", "not a pattern"),
        ("[aliases]\na='z'\n[[routes]]\nmodel='b'\nto='echo:'", "2:3", "no route matches"),
        ("[aliases]\nb='b'\n[[routes]]\nmodel='b'\nto='echo:'", "2:3", "itself an alias"),
        ("[providers.x]\nbase_url='http://h'", "1:12", "kind is missing"),
        ("[providers.x]\nkind='openai-compatible'", "1:12", "base_url is missing"),
        ("[providers.echo]\nkind='openai'", "1:12", "another name"),
        ("[providers.'a b']\nkind='openai'", "1:12", "a name here has"),
        ("[providers.a]\nkind='groq'\n[providers.A]\nkind='groq'", "3:12", "name already"),
        (LAB + "dialect='anthropic'", "4:9", "it supports openai-chat"),
        (LAB + "parameters={x='y'}", "4:13", "has no such parameter"),
        (LAB + "retries=true", "4:9", "from 0 to 10"),
        (LAB + "timeouts={connect=0}", "4:19", "a positive number"),
        (LAB + "timeouts={read=1}", "4:11", "unknown field read"),
        (LAB + "headers={'a b'='c'}", "4:10", "not a valid header name"),
        (LAB + "headers={a='b\u000b'}", "4:14", "not valid TOML"),
        (LAB + 'headers={a="b\\u000a"}', "4:12", "a single-line string"),
        (LAB + "headers={a='b', A='c'}", "4:9", "a header is given twice"),
        (LAB + "api_key_env='sk-secret-0123456789'", "4:13", "not a key"),
        ("[server]\nhost='a b'", "2:6", "a host name"),
        ("[server]\nhost='127.0.0.256'", "2:6", "a host name"),
        ("[server]\nport=true", "2:6", "a whole number"),
        ("[server]\nkeys='oracle://x'", "2:6", "the URL of a store"),
        ("[server]\nlog='xml'", "2:5", "one of json, text, off"),
        ("[server]\nmax_body='1 TB'", "2:10", "64MiB"),
        ("[server]\nbody_timeout='5 parsecs'", "2:14", "seconds"),
        ("[server]\nbody_timeout=nan", "2:14", "seconds"),
        ("[server]\npath_prefix='x'", "2:13", "a path"),
        ("[server]\npath_prefix='/../x'", "2:13", "a path"),
        ("[server]\nallowed_hosts='x'", "2:15", "a list of hosts"),
        ("[server]\nallowed_hosts=['a', 'b/c']", "2:21", "a host name"),
        ("[server]\ntrusted_proxies=['10.0.0.1/8']", "2:18", "an IP address or network"),
        ("[server]\ntrusted_proxies=['proxy']", "2:18", "an IP address or network"),
        ("[server]\nport=" + "1" * 5000, "", "out of range"),
        ("a=" + "[" * 100, "1:35", "nested too deep"),
    ],
)
def test_problems_have_a_position_and_a_correction(text: str, place: str, said: str) -> None:
    """One problem, one line."""
    lines = problems(text)
    assert len(lines) == 1, lines
    assert lines[0].startswith(f"dragoman.toml:{place}")
    assert said in lines[0]


SECRET = "sk-proj-abcdef0123456789"


@pytest.mark.parametrize(
    "text",
    [
        f'{LAB}api_key = "{SECRET}"',
        f'{LAB}api-key = "{SECRET}"',
        f'{LAB}Token = "{SECRET}"',
        f'{LAB}api_key_env = "{SECRET}"',
        f'{LAB}api_key_env = "sk_abcdef0123456789"',
        f'{LAB}api_key_env = "AIzaSyAbcdef0123456789"',
        f'{LAB}headers = {{ Authorization = "Bearer {SECRET}" }}',
        f'{LAB}headers = {{ x-api-key = "{SECRET}" }}',
        f"{LAB}{SECRET} = 1",
        f'{LAB}dialect = "{SECRET}"',
        f'{LAB}kind2 = "{SECRET}"',
        f'[providers.x]\nkind = "{SECRET}"',
        f'[providers.x]\nkind = "openai"\nbase_url = "https://me:{SECRET}@h/v1"',
        f'[providers.x]\nkind = "openai"\nbase_url = "https://h/v1?key={SECRET}"',
        f'[server]\nkeys = "oracle://me:{SECRET}@h"',
        f'[server]\nlog = "{SECRET}"',
        f'[[routes]]\nmodel = "a"\nto = "{SECRET}"',
        f"{SECRET}",
        f'"{SECRET}" = 1\n"{SECRET}" = 2',
        f'[a."{SECRET}"]\n[a."{SECRET}"]',
        f'[providers."{SECRET} x"]',
        f'[aliases]\na = "{SECRET}"\n"{SECRET}" = "x"',
    ],
)
def test_no_problem_quotes_a_key(text: str) -> None:
    """Wherever it was pasted: only its position is reported."""
    with pytest.raises(ConfigFileError) as raised:
        parse_config(text, {})
    shown = f"{raised.value} {raised.value!r} {raised.value.problems} {raised.value.__dict__}"
    assert SECRET not in shown
    assert raised.value.__context__ is None


def test_a_broken_table_is_one_problem() -> None:
    """Routes to it are not reported as well."""
    text = "[providers.lab]\nkind='x'\n[[routes]]\nmodel='a'\nto=['lab', 'lab:m']"
    assert [line.split(":")[1] for line in problems(text)] == ["2"]


def test_a_key_in_the_file_is_an_error() -> None:
    """It says to name an environment variable instead."""
    assert "set api_key_env to the variable" in problems(f'{LAB}api_key = "x"')[0]


def test_no_repr_of_a_configuration_shows_secrets() -> None:
    """Neither URLs of stores nor headers."""
    text = '[server]\nkeys = "postgresql://me:hidden@h/db"\n' + LAB + 'headers = {x="hidden"}'
    config = parse_config(text, {})
    assert config.server.keys == "postgresql://me:hidden@h/db"
    assert "hidden" not in f"{config!r} {config.server!r} {config.places!r}"
    assert "password" in str(config.warnings[0])
    assert "hidden" not in str(config.warnings)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://postgres@127.0.0.1:5432/db",
        "postgresql://h/db",
        "postgresql:///db?host=/run/postgresql",
        "redis://cache@127.0.0.1:6379/0",
        "sqlite:///keys.db",
    ],
)
def test_a_store_url_without_a_password_is_no_warning(url: str) -> None:
    """A user's name is no secret."""
    assert not parse_config(f'[server]\nkeys = "{url}"\n', {}).warnings


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:pw@h/db",
        "postgresql://:pw@h/db",
        "postgresql://h/db?password=pw",
        "postgresql://h/db?user=me&sslpassword=pw",
        "redis://:pw@h",
        "redis://h/0?password=pw",
        "postgresql://me:p/w@h/db",
        "postgresql://me@team:pw@h/db",
    ],
)
@pytest.mark.whole
def test_a_store_url_with_a_password_is_a_warning(url: str) -> None:
    """Wherever it is, also in a URL that is not escaped."""
    [warning] = parse_config(f'[server]\nkeys = "{url}"\n', {}).warnings
    assert "use DRAGOMAN_KEYS instead" in str(warning)
    assert "pw" not in str(warning)


@pytest.mark.whole
@pytest.mark.parametrize(
    ("kind", "url", "end"),
    [
        ("google", "https://g.example/v1beta", "/v1beta"),
        ("google", "https://g.example/v1/", "/v1"),
        ("google", "https://g.example/v1beta/models", "/v1beta/models"),
        ("anthropic", "https://a.example/v1", "/v1"),
        ("anthropic", "https://a.example/v1/messages", "/v1/messages"),
        ("ollama", "http://127.0.0.1:11434/api", "/api"),
        ("openai", "https://o.example/v1/chat/completions", "/chat/completions"),
        ("google", "https://g.example", None),
        ("google", "https://proxy.example/gemini", None),
        ("anthropic", "https://a.example/anthropic", None),
        ("openai", "https://o.example/v1", None),
        ("ollama", "http://127.0.0.1:11434", None),
    ],
)
def test_a_base_url_with_a_part_of_the_paths_is_noticed(
    kind: str, url: str, end: str | None
) -> None:
    """Requests would go to `/v1beta/v1beta/models`, which looks like a missing model."""
    text = f'[providers.p]\nkind = "{kind}"\nbase_url = "{url}"\n'
    found = [str(each) for each in parse_config(text, {}).warnings]
    said = f"dragoman.toml:3:12: leave out {end} at the end: requests have it in their path"
    assert found == ([] if end is None else [said])


def test_warnings_name_unset_variables() -> None:
    """An unset key variable is likely a mistake, but not always."""
    config = parse_config(SMALLEST, {})
    assert [str(each) for each in config.warnings] == [
        "dragoman.toml:8:15: this environment variable is not set",
        "dragoman.toml:12:14: openai needs OPENAI_API_KEY, which is not set",
    ]


def test_a_providers_key_is_not_sent_to_another_address() -> None:
    """A custom address only gets the key that it names."""
    around = {"OPENAI_API_KEY": "o", "MINE": "m"}
    text = '[providers.p]\nkind = "openai"\nbase_url = "http://h/v1"\n'
    place = parse_config(text, around).places["p"]
    assert place.key(around) is None
    assert place.provider is not None
    assert place.provider.keys == ()
    assert parse_config(f'{text}api_key_env = "MINE"', around).places["p"].key(around) == "m"
    same = parse_config('[providers.openai]\nbase_url = "https://eu/v1"', around)
    assert same.places["openai"].key(around) == "o"
    other = parse_config('[providers.p]\nkind = "openai"', around)
    assert other.places["p"].key(around) == "o"


def test_the_environment_overrides_the_file() -> None:
    """Lists have commas, numbers are parsed; empty variables are ignored."""
    config = parse_config(
        SMALLEST,
        {
            "DRAGOMAN_HOST": "0.0.0.0",  # noqa: S104 - a text
            "DRAGOMAN_PORT": "9000",
            "DRAGOMAN_KEYS": "redis://h",
            "DRAGOMAN_HISTORY": "memory:",
            "DRAGOMAN_ALLOWED_HOSTS": "a, b",
            "DRAGOMAN_MAX_BODY": "1MiB",
            "DRAGOMAN_WORKERS": "",
        },
    )
    server = config.server
    assert (server.host, server.port, server.workers) == ("0.0.0.0", 9000, 1)  # noqa: S104 - as above
    assert (server.keys, server.history) == ("redis://h", "memory:")
    assert (server.allowed_hosts, server.max_body) == (("a", "b"), 2**20)


def test_problems_of_the_environment_name_the_variable() -> None:
    """They have no line."""
    assert problems("", DRAGOMAN_PORT="http") == [
        "DRAGOMAN_PORT: this must be a whole number from 0 to 65535"
    ]


def test_which_file_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The argument, else the variable, else `dragoman.toml` if it exists, else none."""
    monkeypatch.chdir(tmp_path)
    named, other = tmp_path / "named.toml", tmp_path / "other.toml"
    named.write_text("[server]\nport = 1")
    other.write_text("\ufeff[server]\r\nport = 2\r\n", encoding="utf-8")
    assert load_config(None, {}).source is None
    Path("dragoman.toml").write_text("[server]\nport = 3")
    around = {"DRAGOMAN_CONFIG": str(other)}
    ports = [
        load_config(path, environ, **options).server.port
        for path, environ, options in (
            (named, around, {}),
            (None, around, {}),
            (None, {}, {}),
            (None, {}, {"default": None}),
        )
    ]
    assert ports == [1, 2, 3, 8421]
    assert load_config(named, {}).source == named


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "there is no such file"),
        (b"\xff", "not encoded in UTF-8"),
        (b"#" * (2**20 + 1), "larger than 1 MiB"),
    ],
)
def test_a_file_that_can_not_be_read(tmp_path: Path, content: bytes | None, said: str) -> None:
    """The error has the path and the reason."""
    path = tmp_path / "dragoman.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigFileError, match=said) as raised:
        load_config(path, {})
    assert (raised.value.path, raised.value.line) == (path, None)
    with pytest.raises(ConfigFileError, match="can't be read"):
        load_config(tmp_path, {})


def test_without_routes_everything_found_is_served() -> None:
    """Vendors with a key, local servers, other hosts, then in-process models."""
    around = {
        "OPENAI_API_KEY": "o", "GROQ_API_KEY": "g", "ANTHROPIC_API_KEY": " ",
        "AZURE_OPENAI_API_KEY": "a", "OLLAMA_HOST": "0.0.0.0:9",
    }  # fmt: skip
    config = load_config(None, around, default=None)
    own = [name for name in config.places if ":" not in name]
    assert own == ["openai", "llama.cpp", "lmstudio", "ollama", "vllm", "groq"]
    assert list(config.places)[-1] == "echo:"
    assert config.places["ollama"].base_url == "http://127.0.0.1:9"
    assert config.places["openai"].key(around) == "o"
    assert config.routes == ()


def test_declared_providers_come_first_without_routes() -> None:
    """They keep their settings."""
    config = parse_config(f"{LAB}\n[providers.openai]\nretries = 5", {"OPENAI_API_KEY": "o"})
    assert list(config.places)[:2] == ["lab", "openai"]
    assert config.places["openai"].retries == 5


def test_with_routes_only_their_targets_are_served() -> None:
    """Nothing else is reachable, whatever keys are set."""
    around = {"OPENAI_API_KEY": "o", "GROQ_API_KEY": "g"}
    config = parse_config("[[routes]]\nmodel='a'\nto=['grok:x', 'echo:']", around)
    assert list(config.places) == ["xai", "echo:"]


def test_a_provider_is_the_same_object_everywhere() -> None:
    """Connections and health are kept per provider."""
    config = parse_config(EVERYTHING, {})
    places: list[Place] = [hop.place for route in config.routes for hop in route.to]
    assert all(config.places[place.name] is place for place in places)


def test_an_alias_of_a_broken_route_is_no_second_problem() -> None:
    """The route's problem is reported once."""
    found = problems("""
        [[routes]]
        model = "gpt-*"
        to = "opnai"
        [aliases]
        fast = "gpt-5"
        lost = "claude"
    """)
    assert len(found) == 2
    assert "no provider of that name" in found[0]
    assert "no route matches" in found[1]


def test_a_misspelt_provider_of_a_price_is_a_warning() -> None:
    """If a similar provider exists; a colon in a model's name is fine."""
    config = parse_config(
        """
        [providers.lab]
        kind = "openai-compatible"
        base_url = "http://127.0.0.1:1"
        [prices]
        "labb:*" = { input = 1 }
        "anthopic:claude-*" = { input = 1 }
        "lab:x" = { input = 1 }
        "openai:x" = { input = 1 }
        "llama3.2:3b" = { input = 1 }
        """,
        {},
    )
    told = [str(each) for each in config.warnings]
    assert len(told) == 2
    assert "did you mean lab?" in told[0]
    assert "did you mean anthropic?" in told[1]


def test_a_model_for_titles_that_no_route_serves_is_a_warning() -> None:
    """An alias or a route serves it; without routes, any name may be served."""
    route = '[[routes]]\nmodel = "test"\nto = "echo:"\n[aliases]\nshort = "test"\n'
    for name, count in (("test", 0), ("short", 0), ("tset", 1)):
        config = parse_config(f'[server]\ntitles = "{name}"\n{route}', {})
        assert len([each for each in config.warnings if "titles" in str(each)]) == count
    assert parse_config('[server]\ntitles = "tset"\n', {}).warnings == ()
