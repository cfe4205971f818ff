"""Chat templates for models whose own ones leave tools out.

llama.cpp drops tools, and every word about them, where the template does not mention them. One that
does also tells it how calls are written; from that it makes the grammar which calls are held to.
"""

from __future__ import annotations

import msgspec


class Template(msgspec.Struct, frozen=True, kw_only=True):
    """A chat template, and what a call begins with in it."""

    text: str
    call_opening: str


# SmolLM2's own, to the letter where there are no tools. Calls are as its larger sister writes them;
# one list for all, since for calls one by one llama.cpp's grammar has no way to end at the first.
# Results are in messages of the tool's own: the model answers from them. In a user's, it repeats.
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
