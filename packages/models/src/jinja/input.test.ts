import { defaultDate, strftimeOn } from "@periodic-eval/tokenizers";
import { markNumbers } from "@periodic-eval/data";
import { describe, expect, it } from "vitest";
import { compileTemplate, type Input } from "./template.ts";

const render = (template: string, x: Input) => compileTemplate(template, strftimeOn(defaultDate))({ x }).text;

// Python: transformers 5.24.0, render_jinja_template([[]], chat_template=template, x=json.loads(json))[0][0].
const texts: readonly (readonly [template: string, json: string, text: string])[] = [
  ["{{ x|tojson }}", '{"b": 1, "1": 2}', '{"b": 1, "1": 2}'],
  ["{{ x }}", '{"b": 1, "1": {"7": 0.0, "a": 1, "0": 2}}', "{'b': 1, '1': {'7': 0.0, 'a': 1, '0': 2}}"],
  [
    "{{ x|tojson }}",
    '[1.0, 1, 0.5, 1e3, 9007199254740993, -2.50, -0.0, 1e22, "1.0"]',
    '[1.0, 1, 0.5, 1000.0, 9007199254740993, -2.5, -0.0, 1e+22, "1.0"]',
  ],
  [
    "{{ x }}",
    '[1.0, 1, 0.5, 1E3, 9007199254740993, -2.50, -0.0, 1e22, "1.0"]',
    "[1.0, 1, 0.5, 1000.0, 9007199254740993, -2.5, -0.0, 1e+22, '1.0']",
  ],
  ["{{ x|tojson(ensure_ascii=true) }}", '{"é": 1.0}', '{"\\u00e9": 1.0}'],
  [
    "{% for n in x %}{{ n is string }} {{ n is float }} {{ n is integer }} {{ n is number }} {{ n|length if n is string }}|{% endfor %}",
    '[1.0, 12345678901234567890, "1.0"]',
    "False True False True |False False True True |True False False False 3|",
  ],
  [
    "{{ x|int }} {{ x == x }} {{ x + 1 }} {{ x is number }}",
    "1152921504606846976",
    "1152921504606846976 True 1152921504606846977 True",
  ],
  [
    "{{ x['1'] }} {{ x|list }} {{ x|items|list }} {{ x|dictsort }}",
    '{"b": 1, "1": 2.0, "\\u0030": 3}',
    "2.0 ['b', '1', '0'] [('b', 1), ('1', 2.0), ('0', 3)] [('0', 3), ('1', 2.0), ('b', 1)]",
  ],
  [
    "{{ 1 in x }} {{ x|sum }} {{ x|unique|list }} {{ x|join(',') }}",
    "[1.0, 1, 2]",
    "True 4.0 [1.0, 2] 1.0,1,2",
  ],
  ["{% if x.weight %}yes{% else %}no{% endif %}", '{"weight": 0.0}', "no"],
  ["{{ x|string|length }} {{ x ~ '' }}", "1.0", "3 1.0"],
];

describe("a marked number or key", () => {
  it.each(texts)("is written by %s of %s as in Python", (template, json, text) => {
    expect(render(template, JSON.parse(markNumbers(json)) as Input)).toBe(text);
  });
});

it("refuses an unmarked integer whose digits JavaScript may have rounded, even if the template does not write it", () => {
  for (const template of ["{{ x|int }}", "{{ x == x }}", "{{ x is number }}", "hi"])
    expect(() => render(template, 2 ** 60)).toThrow(
      "the integer 1152921504606847000, whose digits JavaScript may have rounded, instead of a bigint",
    );
  expect(render("{{ x|int }} {{ x == x }} {{ x is number }}", 2n ** 60n)).toBe(
    "1152921504606846976 True True",
  );
  expect(render("{{ x }} {{ x is integer }}", 7n)).toBe("7 True");
});
