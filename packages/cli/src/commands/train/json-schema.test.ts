import { readFileSync } from "node:fs";
import { join } from "node:path";
import { periodicEvalJsonSchema } from "@periodic-eval/core/config";
import { isRecord } from "@periodic-eval/contracts/options";
import { snapshotJsonSchema } from "@periodic-eval/store";
import { Ajv2020 } from "ajv/dist/2020.js";
import { expect, it } from "vitest";
import { parse } from "yaml";
import { trainingJsonSchema } from "./json-schema.ts";

/** Returns the paths of all properties of a JSON Schema, and those without a description. */
function propertiesOf(
  schema: unknown,
  path = "",
): { readonly all: string[]; readonly undescribed: string[] } {
  const paths = { all: [] as string[], undescribed: [] as string[] };
  const add = (more: ReturnType<typeof propertiesOf>) => {
    paths.all.push(...more.all);
    paths.undescribed.push(...more.undescribed);
  };
  if (Array.isArray(schema)) schema.forEach((item) => add(propertiesOf(item, path)));
  if (!isRecord(schema)) return paths;
  for (const [key, value] of Object.entries(schema)) {
    if (key !== "properties" || !isRecord(value)) {
      add(propertiesOf(value, path));
      continue;
    }
    for (const [name, property] of Object.entries(value)) {
      const at = `${path}.${name}`;
      paths.all.push(at);
      const text = isRecord(property) ? property["description"] : undefined;
      if (typeof text !== "string" || !/\S.*\.$/s.test(text)) paths.undescribed.push(at);
      add(propertiesOf(property, at));
    }
  }
  return paths;
}

it.each([
  ["snapshot", snapshotJsonSchema, 80, ".timing.governor"],
  ["config", periodicEvalJsonSchema, 80, ".phases.schedule.every_steps"],
  ["train", trainingJsonSchema, 200, ".phases.config.maxSteps"],
] as const)("describes every property of the %s schema", (_, schema, least, known) => {
  const { all, undescribed } = propertiesOf(schema());
  expect(undescribed).toEqual([]);
  expect(all.length).toBeGreaterThan(least);
  expect(all).toContain(known);
});

it("accepts what train accepts, and rejects unknown keys", () => {
  const validate = new Ajv2020({ strict: false }).compile(trainingJsonSchema());
  const whole = parse(
    readFileSync(join(import.meta.dirname, "../../../assets/train.yaml"), "utf8"),
  ) as Readonly<Record<string, unknown>>;
  expect(validate(whole)).toBe(true);
  const more = { lora: { rank: 4 }, eval: { periodic_eval: { kl: true } }, loggers: { csv: { path: "a" } } };
  expect(validate({ ...whole, ...more })).toBe(true);
  const phase = { phase: "a", method: "dpo", dataset: "x", reference: "base", config: { beta: 0.2 } };
  expect(validate({ ...whole, phases: [phase] })).toBe(true);
  for (const wrong of [
    { modl: "x" },
    { config: { maxStep: 3 } },
    { config: { seed: 3 } },
    { lora: { rnk: 3 } },
    { loggers: { cvs: {} } },
    { periodic_eval: { aligment: true } },
    { phases: [] },
    { phases: [{ ...phase, config: { betta: 1 } }] },
    { phases: [{ phase: "a" }] },
  ])
    expect(validate({ ...whole, ...wrong })).toBe(false);
  const { model: _, ...incomplete } = whole;
  expect(validate(incomplete)).toBe(false);
});
