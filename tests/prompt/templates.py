"""Small templates in the manners that model files have."""

from __future__ import annotations

from functools import cache

from app.engine.gguf import GgufFile
from app.engine.tokenizer import GgufTokenizer
from app.prompt.language import Language, language
from app.prompt.template import ChatTemplate
from tests.prompt.chunks import ChunkTokenizer
from tests.shared import shared_file

XML = """\
{%- macro block(role, text) %}{{- '<|im_start|>' + role + '\\n' + text + '<|im_end|>\\n' }}{% endmacro %}
{%- set ns = namespace(query=-1) %}
{%- for m in messages[::-1] %}
{%- if m.role == 'user' and ns.query < 0 %}{% set ns.query = messages | length - 1 - loop.index0 %}{% endif %}
{%- endfor %}
{%- if ns.query < 0 %}{{- raise_exception('No question.') }}{% endif %}
{%- if tools %}
{{- '<|im_start|>system\\n' }}
{%- for tool in tools %}
{{- '<fn>' + tool.function.name + ': ' + tool.function.description }}
{%- for key, node in tool.function.parameters.properties | items %}
{{- '\\n<arg>' ~ key ~ ' is ' ~ (node.type | string) ~ ' ' ~ node | tojson }}
{%- for word in node if word not in ['type'] %}{{- ' ' ~ word ~ '=' ~ (node[word] | string) }}{% endfor %}
{%- endfor %}
{{- '</fn>\\n' }}
{%- endfor %}
{{- messages[0].content | trim if messages[0].role == 'system' else '' }}
{{- '<|im_end|>\\n' }}
{%- endif %}
{%- for m in messages %}
{%- set content = m.content | trim %}
{%- if m.role == 'system' %}
{%- if not loop.first %}{{- raise_exception('System first.') }}{% endif %}
{%- if not tools %}{{- block('system', content) }}{% endif %}
{%- elif m.role == 'user' %}
{{- block('user', content) }}
{%- elif m.role == 'assistant' %}
{{- '<|im_start|>assistant\\n' }}
{%- set reasoning = '' %}
{%- if m.reasoning_content is string %}{% set reasoning = m.reasoning_content %}{% endif %}
{%- if '</think>' in content %}
{%- set reasoning = content.split('</think>')[0].split('<think>')[-1] %}
{%- set content = content.split('</think>')[-1].lstrip('\\n') %}
{%- endif %}
{%- if reasoning and loop.index0 > ns.query %}{{- '<think>\\n' + reasoning.strip() + '\\n</think>\\n\\n' }}{% endif %}
{{- content }}
{%- for call in m.tool_calls or [] %}
{%- set call = call.function %}
{{- '\\n' if content or not loop.first }}{{- '<tool_call>\\n<function=' + call.name + '>\\n' }}
{%- for key, value in call.arguments | items %}
{{- '<parameter=' + key + '>\\n' }}
{{- value | tojson if value is mapping or (value is sequence and value is not string) else value | string }}
{{- '\\n</parameter>\\n' }}
{%- endfor %}
{{- '</function>\\n</tool_call>' }}
{%- endfor %}
{{- '<|im_end|>\\n' }}
{%- elif m.role == 'tool' %}
{%- if loop.previtem and loop.previtem.role != 'tool' %}{{- '<|im_start|>user' }}{% endif %}
{{- '\\n<tool_response>\\n' + content + '\\n</tool_response>' }}
{%- if loop.last or loop.nextitem.role != 'tool' %}{{- '<|im_end|>\\n' }}{% endif %}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
{{- '<|im_start|>assistant\\n' }}
{{- '<think>\\n' if enable_thinking else '<think>\\n\\n</think>\\n\\n' }}
{%- endif %}
"""

PLAIN = (
    "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('No system role.') }}{% endif %}"
    "<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)

LEVELS = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if reasoning_effort == 'low' %}Think little.{% elif reasoning_effort == 'xhigh' %}Think long.{% endif %}"
)


def written_in(source: str) -> Language:
    tokenizer = ChunkTokenizer()
    return Language(tokenizer, ChatTemplate(source, tokenizer))


@cache
def real() -> Language:
    """A whole model's own template and tokenizer."""
    tokenizer = GgufTokenizer(GgufFile.open(shared_file("models/nano-qwen35moe-Q8_0.gguf")).metadata)
    return language(tokenizer, tokenizer.template, tokenizer.bos_text, tokenizer.eos_text)
