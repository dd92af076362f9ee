import { defaultDate, strftimeOn } from "@periodic-eval/core/internal";
import { expect, it } from "vitest";
import { askJinja, compareWith } from "../testing/jinja-reference.ts";
import { needsPython, pythonHas } from "../testing/python.ts";
import { TemplateFuzz, fuzzVariables } from "../testing/template-fuzz.test-data.ts";
import { compileTemplate } from "./template.ts";

const seed = Number(process.env["PERIODIC_EVAL_FUZZ_SEED"] ?? 1);

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
    expect(rendered).toBeGreaterThan(templates.length / 2);
  },
);
