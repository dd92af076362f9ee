import { defaultDate, strftimeOn } from "@periodic-eval/tokenizers";
import { expect, it } from "vitest";
import { askJinja, compareWith } from "../testing/jinja-reference.test-data.ts";
import { needsPython, pythonHas } from "../testing/python.test-data.ts";
import { fuzzVariables } from "../testing/template-fuzz-parts.test-data.ts";
import { TemplateFuzz } from "../testing/template-fuzz.test-data.ts";
import { compileTemplate } from "./template.ts";

const firstSeed = 1;
const seed = Number(process.env["PERIODIC_EVAL_FUZZ_SEED"] ?? firstSeed);

/** The constructs of the first seed that the interpreter refuses, after "the template uses". */
const refusals = [
  "% with the format %(",
  "% with the format %.",
  "% with the format %5",
  "/ with an integer beyond 2^53",
  "a set",
  "defined() with 2 arguments",
  "digits other than 0 to 9 in a number",
  "format() with the field {!r}",
  "format() with the field {0.a}",
  "format() with the field {:>5}",
  "none() with 2 arguments",
  "odd() with 2 arguments",
  "string() with 2 arguments",
  "the filter missing",
  "the text of a builtin_function_or_method, in which Python writes an address",
  "the text of a generator, in which Python writes an address",
  "the titlecase of \u01c6",
];

// Reference: the function with which transformers compiles templates, in one Python process.
it.skipIf(!pythonHas("jinja2", "transformers"))(
  `renders random templates as transformers does (${needsPython("jinja2 and transformers")})`,
  { timeout: 300_000 },
  () => {
    const fuzz = new TemplateFuzz(seed);
    const many = (count: number, make: (i: number) => string) =>
      Array.from({ length: count }, (_, i) => make(i));
    const templates = [
      ...TemplateFuzz.filters().flatMap((name) => many(20, () => `{{ ${fuzz.filtered(name)} }}`)),
      ...TemplateFuzz.methods().flatMap((name) => many(20, () => `{{ ${fuzz.method(name)} }}`)),
      ...TemplateFuzz.tests().flatMap((name) => many(10, () => `{{ ${fuzz.tested(name)} }}`)),
      ...many(2000, () => `{{ ${fuzz.expression()} }}`),
      ...many(2000, (i) => (i % 2 === 0 ? "{% set ns = namespace(v=0) %}" : "") + fuzz.template()),
    ];
    const references = askJinja({
      templates: templates.map((template) => ({ template, variables: fuzzVariables })),
    });
    const refused = new Map<string, number>();
    const different: object[] = [];
    let rendered = 0;
    for (const [i, template] of templates.entries()) {
      const result = compareWith(references[i]!, () => {
        try {
          return compileTemplate(template, strftimeOn(defaultDate))(fuzzVariables);
        } catch (error) {
          const { name, message } = error as Error;
          if (name === "UnsupportedError") refused.set(message, (refused.get(message) ?? 0) + 1);
          throw error;
        }
      });
      if (result === null) rendered += "text" in references[i]! ? 1 : 0;
      else if (result !== "refused") different.push({ template, ...result });
    }
    // oxlint-disable-next-line no-console -- what is refused is part of the result
    console.log(`${templates.length} templates, ${rendered} rendered as in Python. Refused:`, refused);
    expect(different).toEqual([]);
    const refusedParts = [...refused.keys()].map((message) => /uses (.*), which is not/.exec(message)?.[1]);
    if (seed === firstSeed) expect(new Set(refusedParts)).toEqual(new Set(refusals));
    expect(rendered).toBeGreaterThan(templates.length / 2);
  },
);
