import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { modelErrorOf } from "../testing/hostile.ts";
import { loadTokenizer } from "./load-tokenizer.ts";
import { temporaryFolder } from "../../../core/src/testing/temporary-folder.test-data.ts";

const byteLevel = { type: "ByteLevel", add_prefix_space: false, trim_offsets: true, use_regex: true };
const tokenizerFile = {
  version: "1.0",
  added_tokens: [],
  normalizer: null,
  pre_tokenizer: byteLevel,
  post_processor: null,
  decoder: byteLevel,
  model: { type: "BPE", vocab: { a: 0, b: 1, ab: 2 }, merges: [["a", "b"]] },
};

let folder = "";
beforeEach(async () => {
  folder = temporaryFolder();
  await write("tokenizer.json", JSON.stringify(tokenizerFile));
});
const write = (name: string, content: string) => writeFile(join(folder, name), content);

describe("rendering throws for a chat template that", () => {
  const steps = /more than \d+ steps/;
  const nested =
    "{% set ns = namespace(a=[1]) %}{% for i in range(60) %}{% set ns.a = [ns.a, ns.a] %}{% endfor %}";
  const long = "{% set x = 'abcdefgh' | indent(90000, true) %}";
  // A search compares half of `y` at each place of `x`: 10⁹ comparisons.
  const alike =
    "{% set x = 'a' | indent(60000, true) %}{% set y = ' ' | indent(15000, true) %}{% set y = y ~ 'b' ~ y %}";
  const cases: readonly (readonly [string, string, RegExp])[] = [
    ["raises", "{{ raise_exception('no') }}", /"no"/],
    [
      "requests a range of a billion",
      "{% for i in range(1000000000) %}{% endfor %}",
      /range\(\) returns more than/,
    ],
    [
      "requests an infinite range",
      "{% for i in range(0, 10, 0) %}{% endfor %}",
      /range\(\) returns more than/,
    ],
    ["nests loops", "{% for i in range(40000) %}{% for j in range(40000) %}{% endfor %}{% endfor %}", steps],
    [
      "loops over conditions",
      "{% for i in range(40000) %}{% if true %}{% for j in range(40000) if false %}{% endfor %}{% endif %}{% endfor %}",
      steps,
    ],
    ["calls itself", "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", /more than \d+ (steps|levels)/],
    [
      // Two ranges use 98,000 of the 100,000 steps, so that few calls remain; without a count of calls there are 2^60.
      "calls itself twice, 60 deep",
      "{% set a = range(49000) %}{% set b = range(49000) %}{% macro f(n) %}{% if n > 0 %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(60) }}",
      steps,
    ],
    [
      "doubles a string",
      "{% set ns = namespace(s='x') %}{% for i in range(60) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}",
      steps,
    ],
    [
      "doubles a list",
      "{% set ns = namespace(a=[1]) %}{% for i in range(60) %}{% set ns.a = ns.a + ns.a %}{% endfor %}",
      steps,
    ],
    [
      "doubles a list under a condition",
      "{% set ns = namespace(a=[1]) %}{% for i in range(60) %}{% if true %}{% set ns.a = ns.a + ns.a %}{% endif %}{% endfor %}",
      steps,
    ],
    ["doubles a list in calls", "{% macro f(a) %}{{ f(a + a) }}{% endmacro %}{{ f([1]) }}", steps],
    ["writes a long text", "{% set x = 'x' | indent(9000000, true) %}{{ x }}{{ x }}", steps],
    ["calls an array", "{{ messages() }}", /./],
    ["prints a list that contains itself 2^60 times", `${nested}{{ ns.a }}`, steps],
    ["writes such a list as JSON", `${nested}{{ ns.a | tojson }}`, steps],
    ["joins such a list", `${nested}{{ ns.a | join }}`, steps],
    ["appends such a list to a string", `${nested}{% set s = 'x' ~ ns.a %}`, steps],
    ["compares such lists", `${nested}{% if ns.a == [ns.a] %}{% endif %}`, steps],
    [
      "writes such an object as JSON",
      nested.replace("[ns.a, ns.a]", "{'a': ns.a, 'b': ns.a}") + "{{ ns.a | tojson }}",
      steps,
    ],
    ["contains itself", "{% set ns = namespace() %}{% set ns.a = [ns, ns] %}{{ ns.a }}", /./],
    [
      "doubles two strings in one set",
      "{% set ns = namespace(p=['x', 'x']) %}{% for i in range(60) %}{% set a, b = ns.p %}{% set ns.p = [a ~ b, b ~ a] %}{% endfor %}",
      steps,
    ],
    [
      "doubles a string in a loop with a condition",
      "{% set ns = namespace(s='x') %}{% for i in range(60) if i >= 0 %}{% set ns.s = ns.s + ns.s %}{% endfor %}",
      steps,
    ],
    [
      "doubles a string in a macro",
      "{% macro f(s, n) %}{% if n %}{{ f(s ~ s, n - 1) }}{% endif %}{% endmacro %}{{ f('x', 60) }}",
      steps,
    ],
    [
      "doubles a string in a call block",
      "{% macro f() %}{{ caller() }}{{ caller() }}{% endmacro %}" +
        "{% call f() %}".repeat(40) +
        "x" +
        "{% endcall %}".repeat(40),
      steps,
    ],
    [
      "doubles a string in a filter block",
      "{% set ns = namespace(s='x\\n') %}{% for i in range(60) %}{% set ns.s %}{% filter indent(9, true, true) %}{{ ns.s }}{{ ns.s }}{% endfilter %}{% endset %}{% endfor %}",
      steps,
    ],
    [
      "indents many lines",
      "{{ ('x\\n' | replace('x', range(9000) | join('\\n'))) | indent(9000, true, true) }}",
      steps,
    ],
    ["indents JSON", "{{ [[[[[1]]]]] | tojson(indent=90000000) }}", steps],
    ["separates JSON by a long string", `${long}{{ range(9000) | tojson(separators=(x, x)) }}`, steps],
    ["joins by a long string", `${long}{{ range(9000) | join(x) }}`, steps],
    ["joins characters by a long string", `${long}{{ x | join(x) }}`, steps],
    ["replaces by a long string", `${long}{{ x | replace(' ', x) }}`, steps],
    ["replaces the empty string by a long string", `${long}{{ x.replace('', x) }}`, steps],
    ["replaces by a method in a variable", `${long}{% set f = x.replace %}{{ f(' ', x) }}`, steps],
    [
      "searches a long string for another",
      "{% set x = 'a' | indent(90000, true) %}{% set y = ' ' | indent(45000, true) %}{{ x | replace('b' ~ y, '') }}",
      steps,
    ],
    [
      "changes a long string often",
      `${long}{% for i in range(9000) %}{% if x.upper() %}{% endif %}{% endfor %}`,
      steps,
    ],
    [
      "cuts a long string often",
      `${long}{% for i in range(9000) %}{% if x[1:2] %}{% endif %}{% endfor %}`,
      steps,
    ],
    [
      "searches a long string often",
      `${long}{% for i in range(9000) %}{% if 'y' in x %}{% endif %}{% endfor %}`,
      steps,
    ],
    ["looks for a long string in another", `${alike}{{ y in x }}`, steps],
    ["looks for the absence of a long string", `${alike}{{ y not in x }}`, steps],
    ["splits a long string by another", `${alike}{{ x.split(y) }}`, steps],
    ["splits by a method in a variable", `${alike}{% set f = x.split %}{{ f(y) }}`, steps],
    [
      "sorts long strings",
      `${long}{% set a = [x, x, x, x, x, x, x, x] %}{{ (a + a + a + a) | sort }}`,
      steps,
    ],
    ["sorts by a long path", `${long}{{ [ns, ns, ns] | sort(attribute=x.replace(' ', '.')) }}`, /./],
    [
      "maps by a long path",
      `${long}{% set y = x | replace(' ', '.') %}{{ messages | map(attribute=y) | list }}{{ messages | map(attribute=y) | list }}`,
      steps,
    ],
    [
      "sorts an object often",
      `{% set o = {${Array.from({ length: 500 }, (_, i) => `'k${i}': 1`).join()}} %}{% set f = o.dictsort %}{% for i in range(9000) %}{% if f() %}{% endif %}{% endfor %}`,
      steps,
    ],
    [
      "lists an object often",
      `{% set o = {${Array.from({ length: 500 }, (_, i) => `'k${i}': 1`).join()}} %}{% for i in range(9000) %}{% for k in o %}{% endfor %}{% endfor %}`,
      steps,
    ],
    [
      "passes a long list often",
      "{% macro f() %}{{ varargs | length }}{% endmacro %}{% set a = range(9000) %}{% for i in range(9000) %}{{ f(*a) }}{% endfor %}",
      steps,
    ],
    [
      "loops over a list in each loop",
      "{% set a = range(9000) %}{% for i in a %}{% for j in a %}{% break %}{% endfor %}{% endfor %}",
      steps,
    ],
    [
      "reads missing variables often",
      "{% for i in range(9000) %}{{ a }}{{ b }}{{ c }}{{ d }}{{ e }}{% endfor %}",
      steps,
    ],
    [
      "defines a long macro often",
      `{% for i in range(9000) %}{% macro f() %}${"{{ x }}".repeat(500)}{% endmacro %}{% endfor %}`,
      steps,
    ],
    [
      "nests macros in loops",
      "{% macro f(n) %}{% for i in range(9) %}{{ f(n) }}{% endfor %}{% endmacro %}{{ f(1) }}",
      /more than \d+ (steps|levels)/,
    ],
    ["raises a long error", `${long}{{ raise_exception(x) }}`, /^[^]{0,1000}$/],
  ];
  it.each(cases)("%s", async (_, template, message) => {
    await write("chat_template.jinja", template);
    const tokenizer = await loadTokenizer(folder);
    const error = await modelErrorOf(async () =>
      tokenizer.render({ messages: [{ role: "user", content: "ab" }] }),
    );
    expect(error.message).toMatch(message);
    expect(error.where).toContain(folder);
  });
});

describe("rendering a chat template", () => {
  // Each rendering takes 40,000 steps, all four together more than the limit of 100,000.
  it("counts steps separately in each rendering", async () => {
    await write("chat_template.jinja", "{% set a = range(40000) %}{{ messages[0].content }}");
    const tokenizer = await loadTokenizer(folder);
    for (let i = 0; i < 4; i++)
      expect(tokenizer.render({ messages: [{ role: "user", content: "ab" }] }).text).toBe("ab");
  });

  it("renders ranges as Python does", async () => {
    await write(
      "chat_template.jinja",
      "{{ range(3) | list }}{{ range(1, 6, 2) | list }}{{ range(3, 0, -1) | list }}{{ range(0) | list }}",
    );
    const { text } = (await loadTokenizer(folder)).render({ messages: [] });
    expect(text).toBe("[0, 1, 2][1, 3, 5][3, 2, 1][]");
  });
});
