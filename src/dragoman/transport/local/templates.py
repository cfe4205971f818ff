"""Chat templates for models whose own templates omit tools.

llama.cpp drops tools if the template doesn't mention them. A template that does also tells it the
syntax of calls, from which it derives the grammar that constrains them.
"""

from __future__ import annotations

import msgspec


class Template(msgspec.Struct, frozen=True, kw_only=True):
    """A chat template, and the text that a call starts with."""

    text: str
    call_opening: str


# SmolLM2's own template, unchanged if there are no tools. Calls are written as by its larger
# variant; in one list, because for single calls llama.cpp's grammar can't end after the first.
# Results are in tool messages: the model answers from them. In user messages, it repeats them.
SMOLLM2 = Template(
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
