import { defaultDate, strftimeOn } from "@periodic-eval/tokenizers";
import { describe, expect, it } from "vitest";
import { fuzzVariables } from "../testing/template-fuzz-parts.test-data.ts";
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
  ["{% macro f(a, b=a) %}{{ a }}{{ b }}{% endmacro %}{{ f(1) }}{{ f() }}", "11"],
  ["{% macro f(n) %}{{ n }}{% if n %}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(3) }}", "3210"],
  ["{% filter upper %}a{{ 'b' }}{% endfilter %}", "AB"],
  ["{% filter replace('a', 'b') | upper %}a{% endfilter %}", "B"],
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
    "{{ 10000000000 * 100000000000000000000 }} {{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7 / 2 }} {{ 4 / 2 }} {{ 7.5 // 2 }}",
    "1000000000000000000000000000000 3 -4 2 3.5 2.0 3.0",
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
  ["{{ d.items is defined }} {{ d['items'] is defined }} {{ d.text }} {{ d.pop }}|", "True True x |"],
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
    "{{ 'abcabc'.find('c') }}{{ 'abc'.find('x') }}{{ '\ud835\udfdca'.find('a') }}{{ 'abcabc'.rfind('c') }}{{ 'abcabc'.index('b') }}",
    "2-1151",
  ],
  ["{{ 'abc'.startswith(('x', 'a')) }}{{ 'abc'.endswith('b') }}", "TrueFalse"],
  [
    "{{ 'aXbX'.replace('X', '-') }}{{ 'aXbX'.replace('X', '-', 1) }}{{ 'ab'.replace('', '.') }}",
    "a-b-a-bX.a.b.",
  ],
  [
    "{{ 'hello wORLD it\\'s'.title() }} {{ 'hELLO'.capitalize() }} {{ 'stra\u00dfe'.upper() }}",
    "Hello World It'S Hello STRASSE",
  ],
  [
    "{{ 'a\\nb\\r\\nc\\x1cd'.splitlines() }}{{ 'a\\nb'.splitlines(true) }}",
    "['a', 'b', 'c', 'd']['a\\n', 'b']",
  ],
  ["{{ 'prefix.x'.removeprefix('prefix') }}{{ 'x.py'.removesuffix('.py') }}", ".xx"],
  ["{{ ', '.join(['a', 'b']) }}{{ 'banana'.count('an') }}", "a, b2"],
  ["{{ '%s is %d%%' % ('a', 3.7) }}", "a is 3%"],
  ["{{ '{} {}'.format('a', none) }}{{ '{0}{a}{1}{{'.format(1, 'b', a='c') }}", "a None1cb{"],
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
  ["{{ 'a\\nb\\n\\nc'|indent(2) }}|{{ 'a\\nb'|indent('> ', true) }}", "a\n  b\n\n  c|> a\n> b"],
  ["{{ ' x '|trim }}|{{ 'xax'|trim('x') }}|{{ 'aXbX'|replace('X', '', 1) }}", "x|a|abX"],
  [
    "{{ '42.7'|int }}{{ 'x'|int(5) }}{{ '0x1f'|int }}{{ 3.9|int }}{{ '1.5'|float }}{{ none|int }}",
    "425031.50",
  ],
  [
    "{{ missing|default('d') }}{{ ''|default('d') }}{{ ''|default('d', true) }}{{ none|default('d') }}{{ none|d('e', boolean=true) }}",
    "ddNonee",
  ],
  [
    "{{ 'abc'|reverse }}{{ [1, 2]|reverse|list }}{{ 'ab'|list }}{{ 5|string }}{{ none|string }}",
    "cba[2, 1]['a', 'b']5None",
  ],
  ["{{ '<a>'|safe }}{{ '<'|safe + '&' }}", "<a><&amp;"],
  ["{{ '%s=%s'|format('a', 1) }}", "a=1"],
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
    "{{ 1 is odd }}{{ 2 is even }}{{ 1 is in [1] }}{{ 'a' is in 'abc' }}{{ 1 is eq 1.0 }}{{ 2 is gt 1 }}{{ 1 is ne 2 }}{{ 1 is not none }}",
    "TrueTrueTrueTrueTrueTrueTrueTrue",
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

// Goldens: transformers 5.24's environment of jinja2 3.1.6, through ../testing/jinja-reference.test-data.py.
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

it.each([
  ["{% call m() %}{% endcall %}", "the tag call"],
  ["{% for x in [1] recursive %}{% endfor %}", "a recursive loop"],
  ["{% for x in [1] %}{{ loop.cycle(1, 2) }}{% endfor %}", "loop.cycle"],
  ["{% macro m() %}{{ varargs }}{% endmacro %}", "the variable varargs of a macro"],
  ["{% macro m() %}{% endmacro %}{{ m.name }}", "the attribute name of a macro"],
  ["{{ self }}", "the variable self"],
  ["{{ joiner() }}", "the function joiner"],
  ["{{ range(*[1]) }}", "* or ** in a call"],
  ["{{ 2 ** 3 }}", "the operator **"],
  ["{{ 9007199254740993 / 2 }}", "/ with an integer beyond 2^53"],
  ["{{ '7'.zfill(3) }}", "the attribute zfill of a str"],
  ["{{ 'abc'.find('c', 1) }}", "find() with 2 arguments"],
  ["{{ '1f'|int(base=16) }}", "int() with the argument base"],
  ["{{ '%.2f' % 1.5 }}", "% with the format %."],
  ["{{ '{:>5}'.format(1) }}", "format() with the field {:>5}"],
  ["{{ '\u01c6'.title() }}", "the titlecase of \u01c6"],
  ["{{ 1|round }}", "the filter round"],
  ["{{ 1|rounded }}", "the filter rounded"],
  ["{{ 1 is sameas 1 }}", "the test sameas"],
  ["{{ [1]|select('callable')|list }}", "the test callable"],
])("the interpreter refuses by name what no published template uses: %j", (template, what) => {
  const message = `the template uses ${what}, which is not supported. Write the template without it.`;
  expect(() => render(template)).toThrow(expect.objectContaining({ name: "UnsupportedError", message }));
});
