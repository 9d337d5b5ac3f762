"""Writes what Jinja2 makes of chat templates: pip install jinja2 (3.1.6), then
python3 make_template_goldens.py > goldens/templates.json

The environment is that of Hugging Face's apply_chat_template: trim_blocks, lstrip_blocks, loop
controls, tojson without HTML escapes, raise_exception.
"""
import json

import jinja2
import jinja2.ext
from jinja2.sandbox import ImmutableSandboxedEnvironment

CHATML = ("{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content']"
          " + '<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}"
          "{{ '<|im_start|>assistant\n' }}{% endif %}")
SMOLLM2 = ("{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}"
           "{{ '<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face"
           "<|im_end|>\n' }}{% endif %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + "
           "'<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}"
           "{% endif %}")
LLAMA3 = ("{% set loop_messages = messages %}{% for message in loop_messages %}{% set content = "
          "'<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n'+ message['content'] | trim + "
          "'<|eot_id|>' %}{% if loop.index0 == 0 %}{% set content = bos_token + content %}{% endif %}"
          "{{ content }}{% endfor %}{% if add_generation_prompt %}"
          "{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}")
LLAMA31 = """{{- bos_token }}
{%- if not date_string is defined %}
    {%- if strftime_now is defined %}
        {%- set date_string = strftime_now("%d %b %Y") %}
    {%- else %}
        {%- set date_string = "26 Jul 2024" %}
    {%- endif %}
{%- endif %}
{%- if not tools is defined %}
    {%- set tools = none %}
{%- endif %}

{#- This block extracts the system message, so we can slot it into the right place. #}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}
{{- "<|start_header_id|>system<|end_header_id|>\\n\\n" }}
{%- if tools is not none %}
    {{- "Environment: ipython\\n" }}
{%- endif %}
{{- "Cutting Knowledge Date: December 2023\\n" }}
{{- "Today Date: " + date_string + "\\n\\n" }}
{{- system_message }}
{{- "<|eot_id|>" }}
{%- for message in messages %}
    {%- if not (message.role == 'ipython' or message.role == 'tool' or 'tool_calls' in message) %}
        {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n'+ message['content'] | trim + '<|eot_id|>' }}
    {%- elif 'tool_calls' in message %}
        {%- if not message.tool_calls|length == 1 %}
            {{- raise_exception("This model only supports single tool-calls at once!") }}
        {%- endif %}
    {%- elif message.role == "tool" or message.role == "ipython" %}
        {{- "<|start_header_id|>ipython<|end_header_id|>\\n\\n" }}
        {%- if message.content is mapping or message.content is iterable %}
            {{- message.content | tojson }}
        {%- else %}
            {{- message.content }}
        {%- endif %}
        {{- "<|eot_id|>" }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
{%- endif %}
"""
MISTRAL = ("{{ bos_token }}{% for message in messages %}{% if (message['role'] == 'user') != "
           "(loop.index0 % 2 == 0) %}{{ raise_exception('Conversation roles must alternate "
           "user/assistant/user/assistant/...') }}{% endif %}{% if message['role'] == 'user' %}"
           "{{ '[INST] ' + message['content'] + ' [/INST]' }}{% elif message['role'] == 'assistant' %}"
           "{{ message['content'] + eos_token + ' ' }}{% else %}{{ raise_exception('Only user and "
           "assistant roles are supported!') }}{% endif %}{% endfor %}")
GEMMA = ("{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not "
         "supported') }}{% endif %}{% for message in messages %}{% if (message['role'] == 'user') != "
         "(loop.index0 % 2 == 0) %}{{ raise_exception('Conversation roles must alternate') }}{% endif %}"
         "{% if (message['role'] == 'assistant') %}{% set role = 'model' %}{% else %}{% set role = "
         "message['role'] %}{% endif %}{{ '<start_of_turn>' + role + '\n' + message['content'] | trim + "
         "'<end_of_turn>\n' }}{% endfor %}{% if add_generation_prompt %}{{'<start_of_turn>model\n'}}{% endif %}")
QWEN = """{%- if tools %}
    {{- '<|im_start|>system\\n' }}
    {%- for tool in tools %}
        {{- "\\n" }}
        {{- tool | tojson }}
    {%- endfor %}
{%- else %}
    {%- if messages[0]['role'] == 'system' %}
        {{- '<|im_start|>system\\n' + messages[0]['content'] + '<|im_end|>\\n' }}
    {%- else %}
        {{- '<|im_start|>system\\nYou are Qwen, created by Alibaba Cloud. You are a helpful assistant.<|im_end|>\\n' }}
    {%- endif %}
{%- endif %}
{%- set ns = namespace(multi_step_tool=true, last_query_index=messages|length - 1) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if ns.multi_step_tool and message.role == "user" and not(message.content.startswith('<tool_response>') and message.content.endswith('</tool_response>')) %}
        {%- set ns.multi_step_tool = false %}
        {%- set ns.last_query_index = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}
    {%- elif message.role == "assistant" %}
        {%- set content = message.content %}
        {%- set reasoning_content = '' %}
        {%- if message.reasoning_content is defined and message.reasoning_content is not none %}
            {%- set reasoning_content = message.reasoning_content %}
        {%- else %}
            {%- if '</think>' in message.content %}
                {%- set content = message.content.split('</think>')[-1].lstrip('\\n') %}
                {%- set reasoning_content = message.content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}
            {%- endif %}
        {%- endif %}
        {%- if loop.index0 > ns.last_query_index %}
            {{- '<|im_start|>' + message.role + '\\n<think>\\n' + reasoning_content.strip('\\n') + '\\n</think>\\n\\n' + content.lstrip('\\n') }}
        {%- else %}
            {{- '<|im_start|>' + message.role + '\\n' + content }}
        {%- endif %}
        {{- '<|im_end|>\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\\n\\n</think>\\n\\n' }}
    {%- endif %}
{%- endif %}
"""
PHI3 = ("{% for message in messages %}{% if message['role'] == 'system' %}{{'<|system|>\n' + "
        "message['content'] + '<|end|>\n'}}{% elif message['role'] == 'user' %}{{'<|user|>\n' + "
        "message['content'] + '<|end|>\n'}}{% elif message['role'] == 'assistant' %}{{'<|assistant|>\n' + "
        "message['content'] + '<|end|>\n'}}{% endif %}{% endfor %}{% if add_generation_prompt %}"
        "{{ '<|assistant|>\n' }}{% else %}{{ eos_token }}{% endif %}")
ZEPHYR = """{% for message in messages %}
{% if message['role'] == 'user' %}
{{ '<|user|>
' + message['content'] + eos_token }}
{% elif message['role'] == 'system' %}
{{ '<|system|>
' + message['content'] + eos_token }}
{% elif message['role'] == 'assistant' %}
{{ '<|assistant|>
'  + message['content'] + eos_token }}
{% endif %}
{% if loop.last and add_generation_prompt %}
{{ '<|assistant|>' }}
{% endif %}
{% endfor %}
"""

USER = [{"role": "user", "content": " Hello <|im_end|> there \n"}]
TALK = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "<think>\nhm\n</think>\n\nHello!"},
        {"role": "user", "content": "Größe? 你好"}]
NO_SYSTEM = TALK[1:]

FEATURES = [
    "{{ 1 + 2 * 3 - 4 / 2 }} {{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 2 ** 10 }} {{ 1.5 + 1 }} {{ 10 / 4 }}",
    "{{ 'a' ~ 1 ~ none ~ true ~ 1.0 ~ [1, 'x\\'y', none] ~ {'k': 'v', 'n': [1]} }}",
    "{{ 'b' in 'abc' }} {{ 'z' not in 'abc' }} {{ 2 in [1, 2] }} {{ 'k' in {'k': 1} }} {{ x in [] }}",
    "{{ 1 < 2 }} {{ 'a' <= 'b' }} {{ 1 == 1.0 }} {{ 'a' != 'a' }} {{ [1, 2] == [1, 2] }} {{ not 0 }}",
    "{{ none or 'x' }} {{ '' and 'y' }} {{ 0 or [] or 'z' }} {{ 'a' if false else 'b' }}{{ 'q' if false }}",
    "{{ 'abcdef'[1:3] }} {{ 'abcdef'[::-1] }} {{ 'abcdef'[-2:] }} {{ [1,2,3,4][1:] }} {{ [1,2,3][::2] }} {{ 'äöü'[1] }}",
    "{{ [1,2,3][-1] }} {{ [1][5] is defined }} {{ {'a': {'b': 7}}.a.b }} {{ {'a': 1}['zz'] }}|",
    "{{ ' x '|trim }}|{{ 'xxhixx'.strip('x') }}|{{ ' a '.lstrip() }}|{{ ' a '.rstrip() }}|{{ 'aB'|upper }}{{ 'aB'|lower }}",
    "{{ 'hello world'|title }} {{ 'hELLO'|capitalize }} {{ 'a,b,,c'.split(',') }} {{ ' a  b '.split() }} {{ 'a-b-c'.split('-', 1) }}",
    "{{ 'aXbX'.replace('X', 'yy') }} {{ 'aXbX'|replace('X', '') }} {{ 'abc'.startswith('ab') }} {{ 'abc'.endswith(('x', 'bc')) }}",
    "{{ [1, 2, 3]|join(', ') }} {{ ['a', 'b']|join }} {{ ','.join(['x', 'y']) }} {{ 'äbc'|length }} {{ [1,2]|count }}",
    "{{ u|default('d') }} {{ ''|default('e', true) }} {{ none|d('f') }} {{ u is defined }} {{ none is none }}",
    "{{ [3,1]|first }} {{ [3,1]|last }} {{ 'xyz'|first }} {{ '42'|int + 1 }} {{ 3|string + 'x' }} {{ 'ab'|list }}",
    "{{ {'a': 1, 'b': [true, none, 1.5], 'c': 'q\"\\n<é>'}|tojson }}",
    "{{ {'a': 1, 'b': [1, {'c': []}]}|tojson(indent=2) }}",
    "{% for k, v in {'x': 1, 'y': 2}.items() %}{{ k }}={{ v }};{% endfor %}{% for k in {'p': 1} %}{{ k }}{% endfor %}",
    "{% for i in range(3) %}{{ loop.index }}/{{ loop.length }}{{ loop.first }}{{ loop.last }}{{ loop.revindex0 }} {% endfor %}",
    "{% for i in range(10) %}{% if i == 2 %}{% continue %}{% endif %}{% if i > 4 %}{% break %}{% endif %}{{ i }}{% endfor %}",
    "{% for i in [] %}x{% else %}empty{% endfor %}{% for i in range(6) if i % 2 == 0 %}{{ i }}{{ loop.index }} {% endfor %}",
    "{% for i in [1, 2, 3] %}{{ loop.previtem|default('-') }}{{ i }}{{ loop.nextitem|default('-') }} {% endfor %}",
    "{% set x = 1 %}{% for i in [1, 2] %}{% set x = x + i %}{{ x }}{% endfor %}{{ x }}{% set ns = namespace(n=0) %}{% for i in [1, 2] %}{% set ns.n = ns.n + i %}{% endfor %}{{ ns.n }}",
    "{% macro greet(name, mark='!') %}Hi {{ name }}{{ mark }}{% endmacro %}{{ greet('Bo') }}{{ greet('Al', mark='?') }}{{ greet(name='Cy') }}",
    "{% set a, b = [1, 2] %}{{ a }}{{ b }}{% set t %}block {{ a }}{% endset %}{{ t|upper }}",
    "  {% if true %}\n  line\n  {% endif %}\nnext {# comment #} end\n\n",
    "a \n  {%- if true -%}  \n b {%- endif %} c {{- ' d ' -}} e",
    "x\n    {%+ if true %}kept{% endif +%}\n y {#- c -#}  z",
    "{% raw %}{{ not }} {% code %}{% endraw %} after",
    "{{ messages|selectattr('role', 'equalto', 'user')|list|length }} {{ messages|map(attribute='role')|join('-') }} {{ messages|rejectattr('role', 'eq', 'user')|map(attribute='content')|list|length }}",
    "{{ 4 is even }}{{ 3 is odd }}{{ 9 is divisibleby 3 }}{{ 'a' is string }}{{ 1 is number }}{{ {} is mapping }}{{ [] is sequence }}{{ 1 is not none }}{{ true is true }}{{ 'a' is in ['a'] }}",
    "{{ 'a' 'b' }}{{ \"d\\\"q\\u00e9\\x41\\t|\" }}{{ 'it''s' }}{{ (1, 2)[0] }}{{ 5|abs }}{{ -5|abs }}",
    "{{ 'line1\\nline2'.splitlines() }} {{ {'a': 1}.get('a') }}{{ {'a': 1}.get('b') }}{{ {'a': 1}.get('b', 9) }} {{ {'a': 1}.keys()|list }}{{ {'a': 1}.values()|list }}",
    "{{ [1, 2] + [3] }} {{ 'ab' * 3 }} {{ [[1, 2], [3]]|length }} {{ [3, 3, 1]|unique|list }} {{ 'abc'|reverse }} {{ [1,2]|reverse|list }}",
    "{{ 'a\\nb'|indent(2) }}|{{ 'abcabc'.find('c') }}{{ 'abcabc'.rfind('c') }}{{ 'x'.find('y') }}{{ 'aaa'.count('a') }}{{ '12'.isdigit() }}",
    "{{ 'prefix-x'.removeprefix('prefix-') }}{{ 'x.txt'.removesuffix('.txt') }} {{ 0.1 }} {{ 1e3 is defined }}",
    "{{ '<a & b>'|e }} {{ true and not false or none }} {{ 1 if 2 > 1 else 3 if true else 4 }} {{ undefined_name }}|",
    "{{ messages[0].missing }}|{{ messages[0]['missing'] is defined }}|{{ messages[-1].content[:3] }}",
]
ERRORS = [
    "{{ raise_exception('no, thank you') }}", "{{ missing.member }}", "{{ missing() }}", "{{ 1 / 0 }}",
    "{{ 'a' + 1 }}", "{{ missing + 'x' }}", "{% for x in messages %}", "{% if %}x{% endif %}", "{{ 'open }}",
    "{% unknown_tag %}", "{{ 1 | no_such_filter }}", "{{ 1 is no_such_test }}", "{{ (1 }}", "{{ }}", "{% endif %}",
    "{# open", "{{ 'x'.no_such_method() }}", "{% set a, b = [1] %}", "{% set x.y = 1 %}", "{{ 'a' < 1 }}",
    "{% for a, b in [[1]] %}{% endfor %}", "{{ [1, 2 }}", "{% macro f(a) %}{% endmacro %}{{ f(1, 2) }}",
]


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def render(source, messages, generation):
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[jinja2.ext.loopcontrols])
    environment.filters["tojson"] = lambda value, indent=None: json.dumps(
        value, ensure_ascii=False, indent=indent)
    environment.globals["raise_exception"] = raise_exception
    return environment.from_string(source).render(
        messages=messages, add_generation_prompt=generation, tools=None, documents=None,
        bos_token="<|im_start|>", eos_token="<|im_end|>", unk_token="<|endoftext|>")


def case(source, messages, generation):
    golden = {"template": source, "messages": messages, "generation": generation}
    try:
        golden["text"] = render(source, messages, generation)
    except Exception as error:  # Whatever Jinja raises, we answer kInvalid.
        golden["error"] = type(error).__name__
    return golden


def main():
    cases = []
    for source in (CHATML, SMOLLM2, LLAMA3, LLAMA31, MISTRAL, GEMMA, QWEN, PHI3, ZEPHYR):
        for messages in (USER, TALK, NO_SYSTEM, []):
            for generation in (False, True):
                cases.append(case(source, messages, generation))
    for source in FEATURES:
        golden = case(source, TALK, True)
        assert "text" in golden, (source, golden)
        cases.append(golden)
    for source in ERRORS:
        golden = case(source, TALK, True)
        assert "error" in golden, (source, golden)
        cases.append(golden)
    print("[\n" + ",\n".join(json.dumps(golden) for golden in cases) + "\n]")


main()
