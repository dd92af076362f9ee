import { Ajv2020 } from "ajv/dist/2020.js";
import { expect, it } from "vitest";
import { parse } from "yaml";
import * as z from "zod";
import { defineEvaluation } from "../evaluations/kit/define.ts";
import { parseOptions } from "@periodic-eval/contracts/options";
import { plannedSteps } from "../schedule/crossings.ts";
import { periodicEvalJsonSchema } from "./config-schema.ts";
import { type EvaluationRegistry, buildPeriodicEval } from "./build-callbacks.ts";

const taskSchema = z.strictObject({
  task: z.string(),
  limit: z.int().optional(),
  data: z.string().optional(),
});
const requested: (readonly [string, object])[] = [];
const evaluations: EvaluationRegistry = {
  task(options, where) {
    requested.push([where, options]);
    parseOptions(where, taskSchema, options);
    return named(String(options["task"]));
  },
  benchmark: async ({ benchmark }) => {
    parseOptions("benchmark", z.strictObject({ folder: z.number().optional() }), { [String(benchmark)]: 1 });
    return named("benchmark");
  },
};

const named = (name: string) =>
  defineEvaluation({
    name,
    version: "1",
    needs: [],
    items: () => [{ id: "1" }],
    measure: (_, items) => Promise.resolve(items),
    metrics: ({ rate }) => ({ accuracy: rate(() => true, { higherIsBetter: true }) }),
  });

const yaml = `
periodic_eval:
  capability: false
  evaluations:
    - { task: gsm8k, data: d, limit: 50, every_percent: 25 }
    - { task: gsm8k, id: gsm8k.short, schedule: { at_steps: [7] } }
    - { benchmark: folder }
  phases:
    coupling: { evaluations: [] }
    em: { schedule: { every_steps: 40 } }
`;
const build = (config: unknown, phase = "em") => buildPeriodicEval(config, { phase, evaluations });
const stepsOf = async (config: unknown, phase?: string) =>
  (await build(config, phase)).callbacks.map(({ id, triggers }) => [id, plannedSteps(triggers!, 100)]);

it("builds a callback for each entry, with the entry's percents or schedule, else the block's", async () => {
  const own = [
    ["gsm8k", [0, 25, 50, 75, 100]],
    ["gsm8k.short", [0, 7, 100]],
  ];
  requested.length = 0;
  expect(await stepsOf(parse(yaml), "other")).toEqual([...own, ["benchmark", [0, 20, 40, 60, 80, 100]]]);
  expect(requested).toEqual([
    ["periodic_eval.evaluations[0]", { task: "gsm8k", data: "d", limit: 50 }],
    ["periodic_eval.evaluations[1]", { task: "gsm8k" }],
  ]);
  expect(await stepsOf(parse(yaml))).toEqual([...own, ["benchmark", [0, 40, 80, 100]]]);
});

it("uses the entries of a phase instead of the block's", async () => {
  expect(await stepsOf(parse(yaml), "coupling")).toEqual([]);
  const of = { capability: false, phases: { em: { evaluations: [{ task: "mmlu" }] } } };
  expect(await stepsOf(of)).toEqual([["mmlu", [0, 20, 40, 60, 80, 100]]]);
});

it.each([
  [{}, "evaluations[0]: got no kind, expected one of task, benchmark. Name the evaluation, as task: name."],
  [{ tsk: "gsm8k" }, 'evaluations[0]: got tsk, expected one of task, benchmark. Did you mean "task"?'],
  [{ task: "a", benchmark: "b" }, "evaluations[0]: got task and benchmark, expected one of task"],
  [{ task: "a", limt: 3 }, 'evaluations[0].limt: got the unknown option "limt"'],
  [{ benchmark: "foldr" }, "evaluations[0].foldr: got the unknown option"],
  [{ task: "a", id: "a b" }, "evaluations[0].id: got"],
  [{ task: "a", every_percent: 0 }, "evaluations[0].every_percent: got 0"],
  [
    { task: "a", schedule: { every_step: 3 } },
    'evaluations[0].schedule.every_step: got the unknown option "every_step"',
  ],
  ["gsm8k", 'evaluations[0]: got "gsm8k"'],
])("rejects %j: %s", async (entry, message) => {
  await expect(build({ evaluations: [entry] })).rejects.toThrow(`periodic_eval.${message}`);
});

it("rejects a repeated id, and an evaluation of an unknown kind", async () => {
  const twice = { evaluations: [{ task: "a" }, { task: "a" }] };
  await expect(build(twice)).rejects.toThrow(
    'periodic_eval.evaluations[1]: got "a", the name of another evaluation',
  );
  await expect(build({ evaluations: [{ task: "a", id: "capability" }] })).rejects.toThrow('got "capability"');
  await expect(buildPeriodicEval(twice, { phase: "em" })).rejects.toThrow(
    "expected the option `evaluations`",
  );
  const ofPhase = { evaluations: [{ task: "a" }], phases: { em: { evaluations: [{ taks: "a" }] } } };
  await expect(build(ofPhase)).rejects.toThrow("periodic_eval.phases.em.evaluations[0]: got taks");
  await expect(build({ phases: { em: { evaluations: 3 } } })).rejects.toThrow("phases.em.evaluations: got 3");
});

it("publishes a JSON Schema that accepts and rejects the same entries", () => {
  const validate = new Ajv2020({ strict: false }).compile(periodicEvalJsonSchema());
  const { periodic_eval: block } = parse(yaml) as { periodic_eval: unknown };
  expect(validate(block)).toBe(true);
  for (const wrong of [{ task: "a", every_percent: 0 }, { task: "a", id: "a b" }, "gsm8k"])
    expect(validate({ evaluations: [wrong] })).toBe(false);
});
