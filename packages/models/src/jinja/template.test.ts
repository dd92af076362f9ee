import { defaultDate, strftimeOn } from "@periodic-eval/core/internal";
import { describe, expect, it } from "vitest";
import { fuzzVariables } from "../testing/template-fuzz.test-data.ts";
import { compileTemplate } from "./template.ts";

const render = (template: string) => compileTemplate(template, strftimeOn(defaultDate))(fuzzVariables);

/** Templates by what they show, with the text from Python; null where Python raises. */
type Goldens = readonly (readonly [template: string, text: string | null])[];

const whitespace: Goldens = [
  ["a\r\n{% if true %}\r\nb\r\n{% endif %}\r\nc", "a\nb\nc"],
  ["a\rb\n", "a\nb"],
  ["a\n\n", "a\n"],
  ["  {% if true %}x{% endif %}\n y", "x y"],
  ["  {%+ if true %}x{% endif %}", "  x"],
  ["a {%- if true -%} b {%- endif -%} c", "abc"],
  ["{% if true +%}\nx{% endif %}", "\nx"],
  ["x  {{- 1 -}}  y", "x1y"],
  ["  {{ 1 }}\n{{ 2 }}\n", "  1\n2"],
  ["a {#- note -#} b", "ab"],
  ["  {# note #}\nb", "b"],
  ["{# note +#}\nb", "\nb"],
  ["{% raw %}{{ x }}{% if %}{% endraw %}", "{{ x }}{% if %}"],
  ["a {%- raw -%} {{ }} {%- endraw -%} b", "a{{ }}b"],
  [
    "{% for i in [1, 2] %}\n  {% if i == 1 %}\n  one\n  {% else %}\n  two\n  {% endif %}\n{% endfor %}",
    "  one\n  two\n",
  ],
  ["{{ 'a\r\nb' }}", "a\nb"],
  ["{}{ }%}", "{}{ }%}"],
];

const scopes: Goldens = [
  ["{% set x = 1 %}{% for i in [1, 2] %}{{ x }}{% set x = x + 1 %}{{ x }}{% endfor %}{{ x }}", "12121"],
  ["{% set ns = namespace(n=0) %}{% for i in [1, 2] %}{% set ns.n = ns.n + i %}{% endfor %}{{ ns.n }}", "3"],
  ["{% for i in [1] %}{{ messages|length }}{% endfor %}{% set messages = [] %}", "0"],
  [
    "{{ messages|length }}{% for i in [1] %}{{ messages|length }}{% endfor %}{% set messages = [] %}{{ messages|length }}",
    "220",
  ],
  ["{% if false %}{% set text = 1 %}{% endif %}{{ text }}", "It's a \u201ctest\u201d,\n  \ud835\udfdc ok\n"],
  ["{% if true %}{% set q = 1 %}{% endif %}{{ q }}", "1"],
  ["{% macro m() %}{{ q }}{% endmacro %}{% set q = 5 %}{{ m() }}", "5"],
  ["{% with a = 1, b = a %}{{ a }}{{ b }}{% endwith %}{{ a }}", "1"],
  ["{% with %}{% set c = 1 %}{{ c }}{% endwith %}{{ c }}", "1"],
  ["{% set b %}{% set c = 1 %}[{{ c }}]{% endset %}{{ b }}{{ c }}", "[1]"],
  ["{% set b | upper | trim %} ab {% endset %}{{ b }}", "AB"],
  ["{% set a, b = 1, 2 %}{{ a + b }}", "3"],
  [
    "{% set ns = namespace(a=1) %}{% set ns.a, x = 2, 3 %}{{ ns.a }}{{ x }}{{ ns }}",
    "23<Namespace {'a': 2}>",
  ],
  ["{% set loop = 1 %}{{ loop }}", "1"],
  ["{% generation %}{% set g = 1 %}{{ g }}{% endgeneration %}{{ g }}", "1"],
];

const loops: Goldens = [
  ["{% for x in [1,2,3] %}{{x}}{% if x==2 %}{% break %}{% endif %}{% endfor %}", "12"],
  ["{% for x in [1,2,3] %}{{x}}{% if x==2 %}{% continue %}{% endif %};{% endfor %}", "1;23;"],
  ["{% for x in [1,2] %}{% break %}{% else %}none{% endfor %}", "none"],
  ["{% for x in [] %}{% else %}none{% endfor %}", "none"],
  ["{% for x in missing %}a{% else %}none{% endfor %}", "none"],
  [
    "{% for x in range(6) if x is odd %}{{ loop.index }}/{{ loop.length }}:{{ x }} {% endfor %}",
    "1/3:1 2/3:3 3/3:5 ",
  ],
  ["{% for a, (b, c) in [(1, (2, 3))] %}{{ a }}{{ b }}{{ c }}{% endfor %}", "123"],
  ["{% for k, v in {'b': 1, 'a': 2}.items() %}{{ k }}{{ v }}{% endfor %}", "b1a2"],
  ["{% for k in {'b': 1, 'a': 2} %}{{ k }}{% endfor %}", "ba"],
  ["{% for x in 'a\u00e9\ud835\udfdc' %}[{{ x }}]{% endfor %}", "[a][\u00e9][\ud835\udfdc]"],
  [
    "{% for x in [1, 2, 3] %}{{ loop.previtem }}<{{ x }}>{{ loop.nextitem }}|{{ loop.revindex0 }}{{ loop.last }} {% endfor %}",
    "<1>2|2False 1<2>3|1False 2<3>|0True ",
  ],
  [
    "{% for x in [1, 1, 2] %}{{ loop.cycle('a', 'b') }}{{ loop.changed(x) }} {% endfor %}",
    "aTrue bFalse aTrue ",
  ],
  [
    "{% for t in tree recursive %}{{ loop.depth }}{{ t.v }}{% if t.c %}({{ loop(t.c) }}){% endif %}{% endfor %}",
    "11(22)13",
  ],
  [
    "{% for x in [[1], [2]] %}{% for y in x %}{{ loop.index }}{% endfor %}{{ loop.index }}{% endfor %}",
    "1112",
  ],
  [
    "{% for x in [1, 2] %}{% set b %}{{ x }}{% if x == 1 %}{% continue %}{% endif %}{% endset %}{{ b }}{% endfor %}",
    "2",
  ],
  ["{% for x in [1] %}{{ loop }}{% endfor %}", "<LoopContext 1/1>"],
];

const macros: Goldens = [
  [
    "{% macro f(a, b=2) %}{{ a }}{{ b }}{{ varargs }}{{ kwargs }}{% endmacro %}{{ f(1, 3, 4, z=5) }}",
    "13(4,){'z': 5}",
  ],
  ["{% macro f(a, b=a) %}{{ a }}{{ b }}{% endmacro %}{{ f(1) }}{{ f() }}", "11"],
  ["{% macro f(a) %}({{ caller('x') }}){% endmacro %}{% call(y) f(1) %}{{ y }}!{% endcall %}", "(x!)"],
  [
    "{% macro f() %}{{ caller() if caller else 'none' }}{% endmacro %}{{ f() }}{% call f() %}x{% endcall %}",
    "nonex",
  ],
  ["{% macro f(n) %}{{ n }}{% if n %}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(3) }}", "3210"],
  ["{% macro f() %}{% endmacro %}{{ f.name }}{{ f }}{{ f is callable }}", "f<Macro 'f'>True"],
  ["{% macro f(a) %}{{ a }}{% endmacro %}{{ f(*[1]) }}{{ f(**{'a': 2}) }}", "12"],
  ["{% filter upper %}a{{ 'b' }}{% endfilter %}", "AB"],
  ["{% filter replace('a', 'b') | upper %}a{% endfilter %}", "B"],
  ["{% set j = joiner(';') %}{{ j() }}a{{ j() }}b", "a;b"],
  ["{% set c = cycler(1, 2) %}{{ c.next() }}{{ c.next() }}{{ c.next() }}{{ c.current }}", "1212"],
];

const printing: Goldens = [
  ["{{ none }} {{ true }} {{ false }} {{ missing }}|{{ none ~ '' }}", "None True False |None"],
  ["{{ [1, 2.0, 'a', none, true, [], {}, ()] }}", "[1, 2.0, 'a', None, True, [], {}, ()]"],
  ["{{ (1,) }}{{ (1, 2) }}", "(1,)(1, 2)"],
  ["{{ {'a': \"it's\", 1: 'b\"\\n'} }}", "{'a': \"it's\", 1: 'b\"\\n'}"],
  [
    "{{ 1e16 }} {{ 1e15 }} {{ 1.5e-5 }} {{ 0.0001 }} {{ 1e300 * 1e10 }} {{ -0.0 }}",
    "1e+16 1000000000000000.0 1.5e-05 0.0001 inf -0.0",
  ],
  [
    "{{ 10 ** 30 }} {{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7 / 2 }} {{ 4 / 2 }} {{ 7.5 // 2 }} {{ 2 ** 10 }}",
    "1000000000000000000000000000000 3 -4 2 3.5 2.0 3.0 1024",
  ],
  ["{{ '\u00e9\\u2028\\x00\ud835\udfdc'|list }}", "['\u00e9', '\\u2028', '\\x00', '\ud835\udfdc']"],
  [
    "{{ range(3) }} {{ range(5, 0, -2)|list }} {{ range(10)[2:8:3] }}",
    "range(0, 3) [5, 3, 1] range(2, 8, 3)",
  ],
  ["{{ {'a': 1}.items() }} {{ {'a': 1}.keys() }}", "dict_items([('a', 1)]) dict_keys(['a'])"],
  ["{{ 'a' 'b' }}", "ab"],
  ["{{ 1 if false }}|{{ (1 if false) is undefined }}", "|True"],
  [
    "{{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }} {{ 'a' < 'b' }} {{ [1, 2] < [1, 3] }} {{ 1 == 1.0 }} {{ 1 == true }} {{ '1' == 1 }} {{ '' != false }}",
    "True False True True True True False True",
  ],
  ["{{ 'b' in 'abc' }} {{ 1 in [1] }} {{ 'a' in {'a': 1} }} {{ 2 not in (1,) }}", "True True True True"],
  ["{{ not '' }} {{ 0 or 'x' }} {{ 1 and '' }}|", "True x |"],
  [
    "{{ 'abc'[1] }}{{ 'abc'[-1] }}{{ 'abc'[5] }}{{ 'a\u00e9\ud835\udfdcc'[2] }}{{ '\ud835\udfdcab'[::-1] }}{{ [1, 2, 3, 4][-3::2] }}",
    "bc\ud835\udfdcba\ud835\udfdc[2, 4]",
  ],
  ["{{ 'a' * 3 }}{{ [1] * 2 }}{{ [1] + [2] }}{{ 1 ~ none ~ [1] }}", "aaa[1, 1][1, 2]1None[1]"],
  [
    "{{ 9007199254740993 + 1 }} {{ 1 / 3 }} {{ 0.1 + 0.2 }}",
    "9007199254740994 0.3333333333333333 0.30000000000000004",
  ],
  ["{{ messages[1].content ~ '' }}|{{ messages[1].nothing }}|{{ messages[9] }}", "None||"],
  ["{{ d.items is callable }} {{ d['items'] is callable }} {{ d.text }} {{ d.pop }}|", "True True x |"],
];

const strings: Goldens = [
  ["{{ '    return x + 1\\n'.strip('\\n') }}|", "    return x + 1|"],
  ["{{ '\\n\\n  a'.lstrip('\\n') }}|", "  a|"],
  ["{{ 'xxaxx'.strip('x') }}{{ 'abc'.rstrip('cb') }}", "aa"],
  ["{{ ' a\\u3000'.strip() }}|{{ '\\ufeffa'.strip() }}|", "a|\ufeffa|"],
  [
    "{{ 'a,b,c'.split(',') }}{{ 'a,b,c'.split(',', 1) }}{{ 'a,b,c'.rsplit(',', 1) }}{{ ' a  b '.split() }}{{ ' a  b c'.split(none, 1) }}",
    "['a', 'b', 'c']['a', 'b,c']['a,b', 'c']['a', 'b']['a', 'b c']",
  ],
  ["{{ '</think>a</think>b'.split('</think>')[-1] }}", "b"],
  [
    "{{ 'abcabc'.find('c') }}{{ 'abc'.find('x') }}{{ '\ud835\udfdca'.find('a') }}{{ 'abcabc'.rfind('c', 0, 4) }}{{ 'abcabc'.index('b', 2) }}",
    "2-1124",
  ],
  ["{{ 'abc'.startswith(('x', 'a')) }}{{ 'abc'.endswith('c', 0, 2) }}", "TrueFalse"],
  [
    "{{ 'aXbX'.replace('X', '-') }}{{ 'aXbX'.replace('X', '-', 1) }}{{ 'ab'.replace('', '.') }}",
    "a-b-a-bX.a.b.",
  ],
  ["{{ 'a-b-c'.partition('-') }}{{ 'a-b-c'.rpartition('-') }}", "('a', '-', 'b-c')('a-b', '-', 'c')"],
  [
    "{{ 'hello wORLD it\\'s'.title() }} {{ 'hELLO'.capitalize() }} {{ 'stra\u00dfe'.upper() }}",
    "Hello World It'S Hello STRASSE",
  ],
  [
    "{{ 'a\\nb\\r\\nc\\x1cd'.splitlines() }}{{ 'a\\nb'.splitlines(true) }}",
    "['a', 'b', 'c', 'd']['a\\n', 'b']",
  ],
  ["{{ 'prefix.x'.removeprefix('prefix') }}{{ 'x.py'.removesuffix('.py') }}", ".xx"],
  [
    "{{ '7'.zfill(3) }}{{ '-7'.zfill(4) }}{{ 'a'.center(4, '*') }}{{ '\ud835\udfdc'.ljust(3) }}|{{ 'a'.rjust(3, '.') }}",
    "007-007*a**\ud835\udfdc  |..a",
  ],
  ["{{ ', '.join(['a', 'b']) }}{{ 'banana'.count('an') }}", "a, b2"],
  [
    "{{ 'abc'.isalpha() }}{{ '\u00b2'.isdigit() }}{{ '\u00b2'.isdecimal() }}{{ 'aB'.islower() }}{{ ' '.isspace() }}{{ '\u00e9_1'.isidentifier() }}",
    "TrueTrueFalseFalseTrueTrue",
  ],
  [
    "{{ '%s is %d and %.2f' % ('a', 3.7, 2.675) }}{{ '%(a)05d|%-4s|' % {'a': 7} if false else '%05d|%-4s|%x' % (7, 'b', 255) }}",
    "a is 3 and 2.6700007|b   |ff",
  ],
  ["{{ '%r %% %5.1e' % ('a', 12345.678) }}", "'a' % 1.2e+04"],
  [
    "{{ '{} {1}'.format(1) if false else '{} {}'.format('a', none) }}{{ '{0}{a:>4}{1!r}'.format(1, 'b', a='c') }}{{ '{:,}|{:.3f}|{:08.2f}|{:x}|{:^5}|{:e}'.format(1234567, 2.0005, -3.14159, 255, 'a', 12345.6789) }}",
    "a None1   c'b'1,234,567|2.001|-0003.14|ff|  a  |1.234568e+04",
  ],
  ["{{ 'a' ~ 1 ~ 2.0 ~ true }}", "a12.0True"],
  ["{{ '\\x41\\101\\u00e9\\U0001d7dc\\q\\'' }}", "AA\u00e9\ud835\udfdc\\q'"],
  [
    "{{ {'a': 1}.get('b') }}{{ {'a': 1}.get('b', 2) }}{{ [1, 2, 1].index(2) }}{{ (1, 2, 1).count(1) }}",
    "None212",
  ],
];

const filters: Goldens = [
  [
    "{{ {'a': 1, 'b': ['x', none, true, 1.5], '\u00e9': '<\"\\n'}|tojson }}",
    '{"a": 1, "b": ["x", null, true, 1.5], "\u00e9": "<\\"\\n"}',
  ],
  ["{{ {'b': 1, 'a': [1, {}]}|tojson(indent=2) }}", '{\n  "b": 1,\n  "a": [\n    1,\n    {}\n  ]\n}'],
  [
    "{{ {'b': 1, 'a': '\u00e9\ud835\udfdc'}|tojson(ensure_ascii=true, sort_keys=true, separators=(',', ':')) }}",
    '{"a":"\\u00e9\\ud835\\udfdc","b":1}',
  ],
  [
    "{{ [1, 2, 3, 4]|select('odd')|list }}{{ [1, none]|reject('none')|list }}{{ [0, 1]|select|list }}{{ [1, 2, 3]|select('>', 1)|list }}",
    "[1, 3][1][1][2, 3]",
  ],
  [
    "{{ messages|selectattr('role', 'equalto', 'user')|list|length }}{{ messages|rejectattr('content')|map(attribute='role')|list }}",
    "1['assistant']",
  ],
  [
    "{{ [1, 2, 3]|sum }}{{ rows|sum(attribute='v', start=10) if false else [1.5, 2]|sum }}{{ [[1], [2]]|sum(start=[]) }}",
    "63.5[1, 2]",
  ],
  ["{{ words|count }}{{ 'a\u00e9\ud835\udfdc'|length }}{{ missing|length }}", "530"],
  [
    "{{ ['a', 'b']|map('upper')|join('-') }}{{ ['1', 'x']|map('int', default=7)|list }}{{ rows|map(attribute='t.s', default='?')|list }}{{ [' a ']|map('trim')|first }}",
    "A-B[1, 7]['y', '?', 'x']a",
  ],
  [
    "{{ words|sort }}{{ words|sort(case_sensitive=true, reverse=true) }}{{ rows|sort(attribute='k')|map(attribute='k')|list }}",
    "['A', 'a b', 'b', 'B', 'c']['c', 'b', 'a b', 'B', 'A']['A', 'a', 'b']",
  ],
  [
    "{{ d|dictsort|list if false else {'b': 1, 'A': 2}|dictsort }}{{ {'b': 1, 'A': 2}|dictsort(by='value') }}{{ {'a': 1}|items|list }}",
    "[('A', 2), ('b', 1)][('b', 1), ('A', 2)][('a', 1)]",
  ],
  [
    "{{ ['a', 'A', 'b']|unique|list }}{{ [3, 1]|min }}{{ ['b', 'A']|max }}{{ []|first is undefined }}{{ [1, 2]|last }}",
    "['a', 'b']1bTrue2",
  ],
  [
    "{{ range(5)|batch(2, 'x')|list }}{{ range(5)|slice(2)|list }}",
    "[[0, 1], [2, 3], [4, 'x']][[0, 1, 2], [3, 4]]",
  ],
  [
    "{{ rows|groupby('k') }}",
    "[('A', [{'k': 'A', 'v': 1}, {'k': 'a', 'v': None, 't': {'s': 'x'}}]), ('b', [{'k': 'b', 'v': 2, 't': {'s': 'y'}}])]",
  ],
  ["{{ 'a\\nb\\n\\nc'|indent(2) }}|{{ 'a\\nb'|indent('> ', true) }}", "a\n  b\n\n  c|> a\n> b"],
  [
    "{{ 'hello world'|title }} {{ 'it is'|wordcount }} {{ 'foo bar baz qux'|truncate(9) }} {{ 'abc'|center(7) }}|",
    "Hello World 2 foo...   abc  |",
  ],
  ["{{ ' x '|trim }}|{{ 'xax'|trim('x') }}|{{ 'aXbX'|replace('X', '', 1) }}", "x|a|abX"],
  [
    "{{ '42.7'|int }}{{ 'x'|int(5) }}{{ '0x1f'|int(base=16) }}{{ 3.9|int }}{{ '1.5'|float }}{{ none|int }}",
    "4253131.50",
  ],
  [
    "{{ 2.5|round }}{{ 3.14159|round(2) }}{{ 7|round }}{{ 2.1|round(method='ceil') }}{{ -5|abs }}",
    "2.03.1473.05",
  ],
  [
    "{{ missing|default('d') }}{{ ''|default('d') }}{{ ''|default('d', true) }}{{ none|default('d') }}{{ none|d('e', boolean=true) }}",
    "ddNonee",
  ],
  [
    "{{ 'abc'|reverse }}{{ [1, 2]|reverse|list }}{{ 'ab'|list }}{{ 5|string }}{{ none|string }}",
    "cba[2, 1]['a', 'b']5None",
  ],
  ["{{ '<a>'|e }}{{ '<a>'|safe }}{{ '<'|e + '&' }}", "&lt;a&gt;<a>&lt;&amp;"],
  ["{{ '%s=%s'|format('a', 1) }}", "a=1"],
  ["{{ d|attr('text') }}|{{ 'a'|upper|lower }}", "|a"],
  [
    "{{ {'a': none}|tojson }}{{ 'a\"b'|tojson }}{{ 1.0|tojson }}{{ (1, 2)|tojson }}",
    '{"a": null}"a\\"b"1.0[1, 2]',
  ],
];

const tests: Goldens = [
  [
    "{{ 1 is defined }}{{ missing is defined }}{{ missing is undefined }}{{ none is none }}{{ none is defined }}",
    "TrueFalseTrueTrueTrue",
  ],
  [
    "{{ {} is mapping }}{{ [] is sequence }}{{ 'a' is sequence }}{{ {} is sequence }}{{ missing is sequence }}{{ 1 is iterable }}{{ 'a' is iterable }}{{ missing is iterable }}",
    "TrueTrueTrueTrueTrueFalseTrueTrue",
  ],
  [
    "{{ 'a' is string }}{{ 1 is string }}{{ 1 is number }}{{ true is number }}{{ 1.0 is number }}{{ true is integer }}{{ 1 is integer }}{{ 1.0 is float }}{{ true is boolean }}{{ 1 is true }}{{ false is false }}",
    "TrueFalseTrueTrueTrueFalseTrueTrueTrueFalseTrue",
  ],
  [
    "{{ 1 is odd }}{{ 2 is even }}{{ 9 is divisibleby 3 }}{{ 1 is sameas 1 }}{{ true is sameas true }}{{ 1 is in [1] }}{{ 'a' is in 'abc' }}{{ 1 is eq 1.0 }}{{ 2 is gt 1 }}{{ 1 is ne 2 }}{{ 1 is not none }}",
    "TrueTrueTrueTrueTrueTrueTrueTrueTrueTrueTrue",
  ],
  [
    "{{ 'a' is lower }}{{ 'A' is upper }}{{ 'upper' is filter }}{{ 'nope' is filter }}{{ 'odd' is test }}{{ range is callable }}",
    "TrueTrueTrueFalseTrueTrue",
  ],
];

const errors: Goldens = [
  ["{{ raise_exception('No: ' ~ 1) }}", null],
  ["{{ missing.a }}", null],
  ["{{ missing.a.b }}", null],
  ["{{ none + 1 }}", null],
  ["{{ 'a' + 1 }}", null],
  ["{{ missing + 1 }}", null],
  ["{{ missing() }}", null],
  ["{{ 1() }}", null],
  ["{% for x in 1 %}{% endfor %}", null],
  ["{% for x in none %}{% endfor %}", null],
  ["{{ none|length }}", null],
  ["{{ missing|tojson }}", null],
  ["{{ [1].append(2) }}", null],
  ["{{ {}.update({'a': 1}) }}", null],
  ["{{ 'a'|nope }}", null],
  ["{% if false %}{{ 'a'|nope }}{% endif %}ok", "ok"],
  ["{% break %}", null],
  ["{{ 1 / 0 }}", null],
  ["{{ range(100001) }}", null],
  ["{% set d.x = 1 %}", null],
  ["{% set ns = namespace(_a=1) %}", null],
  ["{% macro f(a) %}{% endmacro %}{{ f(1, 2) }}", null],
  ["{% macro f(a) %}{% endmacro %}{{ f(b=2) }}", null],
  ["{{ 1 < 'a' }}", null],
  ["{{ 1 in 'a' }}", null],
  ["{% if %}{% endif %}", null],
  ["{% for x in [1] %}", null],
  ["{{ 'a }}", null],
  ["{{ (1 }}", null],
  ["{% nope %}", null],
  ["{{ {[]: 1} }}", null],
  ["{% set true = 1 %}", null],
  ["{{ ''.join([1]) }}", null],
  ["{{ 'a'.index('b') }}", null],
  ["{{ [3, 'a']|sort }}", null],
  ["{{ '%d' % 'a' }}", null],
  ["{{ '{}'.format() }}", null],
  ["{% for loop in [1] %}{% endfor %}", null],
  ["{{ strftime_now('%d %b %Y') }}", "26 Jul 2024"],
];

// Goldens: transformers 5.24's environment of jinja2 3.1.6, through ../testing/jinja-reference.py.
describe.each([
  ["controls whitespace", whitespace],
  ["scopes variables", scopes],
  ["loops", loops],
  ["calls macros, blocks and global objects", macros],
  ["computes and prints values", printing],
  ["has Python's methods", strings],
  ["has the filters", filters],
  ["has the tests", tests],
  ["raises", errors],
] as const)("the interpreter %s", (_, goldens) => {
  it.each(goldens)("as Python does: %j", (template, text) => {
    if (text !== null) return expect(render(template).text).toBe(text);
    expect(() => render(template)).toThrow(expect.objectContaining({ name: "TemplateError" }));
  });
});
