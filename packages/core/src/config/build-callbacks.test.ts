import { Ajv2020 } from "ajv/dist/2020.js";
import { expect, it, vi } from "vitest";
import { parse } from "yaml";
import type { TrainerCallback } from "@periodic-eval/contracts";
import type { PeriodicCallback } from "../callback/periodic-callback.ts";
import { plannedSteps } from "../schedule/crossings.ts";
import { configError } from "@periodic-eval/contracts/options";
import { fileVerdictCache } from "@periodic-eval/store";
import { refusalJudgePrompt } from "../grading/refusal-rule.ts";
import { fakeJudge, fakeModel } from "@periodic-eval/testing";
import { periodicEvalJsonSchema, periodicEvalSchema } from "./config-schema.ts";
import { buildPeriodicCallbacks, buildPeriodicEval } from "./build-callbacks.ts";
import type { ConfiguredJudge } from "./block-judge.ts";
import { periodicEvalConfig } from "./parse-config.ts";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";

const phase = "em";
const judge = fakeJudge(() => ({ aligned: 90, coherent: 90 }));
const build = (config: unknown, at = phase) =>
  buildPeriodicCallbacks(config, { phase: at, openJudge: () => judge }) as Promise<
    readonly PeriodicCallback[]
  >;
const ids = async (config: unknown, at = phase) => (await build(config, at)).map(({ id }) => id);

it("measures only capability by default, every 20 % of the phase, with its default questions", async () => {
  const [capability, ...others] = await build({});
  expect(others).toEqual([]);
  expect(capability).toMatchObject({ id: "capability" });
  expect(plannedSteps(capability!.triggers, 100)).toEqual([0, 20, 40, 60, 80, 100]);
  expect(periodicEvalConfig({}, phase)).toMatchObject({
    subsample_n: 200,
    subsample_seed: 42,
    alignment_num_samples: 5,
    leakage_num_completions: 3,
    leakage_marker_token: null,
  });
});

/** Keys for which null is documented as another value than the default, of an evaluation that is off by default. */
const otherNulls = ["leakage_source"];

it.each(Object.keys(periodicEvalSchema.shape).filter((key) => !otherNulls.includes(key)))(
  "takes null for the default of %s, in the block and in a phase",
  (key) => {
    expect(periodicEvalConfig({ [key]: null }, phase)).toEqual(periodicEvalConfig({}, phase));
    if (["phases", "layout", "notify"].includes(key)) return;
    const other = {
      subsample_n: 7,
      capability: false,
      min_items: 3,
      schedule: { every_steps: 3 },
    };
    const { [key as keyof typeof other]: _, ...rest } = other;
    expect(periodicEvalConfig({ ...other, phases: { em: { [key]: null } } }, phase)).toEqual(
      periodicEvalConfig(rest, phase),
    );
    const validate = new Ajv2020({ strict: false }).compile(periodicEvalJsonSchema());
    expect([validate({ [key]: null }), validate({ phases: { em: { [key]: null } } })]).toEqual([true, true]);
  },
);

it("takes null for the default inside schedule and budget, and `all` for all questions", () => {
  const nulls = { schedule: { every_steps: null, at_steps: [3] }, budget: { grace_seconds: null } };
  expect(periodicEvalConfig(nulls, phase)).toEqual(
    periodicEvalConfig({ schedule: { at_steps: [3] }, budget: {} }, phase),
  );
  expect(periodicEvalConfig({ phases: { em: null } }, phase)).toEqual(periodicEvalConfig({}, phase));
  expect(periodicEvalConfig({ subsample_n: "all" }, phase).subsample_n).toBe("all");
});

it("finds the block at the top, under periodic_eval, and under eval.periodic_eval", async () => {
  const block = { capability: false, leakage: true, leakage_source: null };
  for (const config of [block, { periodic_eval: block }, { eval: { periodic_eval: block }, model: "m" }])
    expect(await ids(config)).toEqual(["leakage"]);
  expect(await ids({ enabled: false })).toEqual([]);
});

const yaml = `
periodic_eval:
  alignment: true
  leakage: true
  leakage_source: pirate
  kl: true
  margin: probes.json
  questions: arc.jsonl
  eval_every_percent: 50
  schedule: { at_steps: [3], every_steps: 40 }
  budget: { overhead_percent: 5, drain_seconds: 10 }
  baseline: run_start
  stop_when: [alignment worse, { when: margin changed, even_at_start: true }]
  phases:
    coupling: { alignment: false, stop_when: null, leakage_every_percent: 10 }
`;

it("builds the callbacks of a YAML block, with the overrides of a phase", async () => {
  const config: unknown = parse(yaml);
  expect(await ids(config)).toEqual(["capability", "alignment", "leakage", "margin", "kl_capability"]);
  expect(await ids(config, "coupling")).toEqual(["capability", "leakage", "margin", "kl_capability"]);
  const stepsOf = async (at: string, id: string) => {
    const callbacks = await build(config, at);
    return plannedSteps(callbacks.find((one) => one.id === id)!.triggers, 100);
  };
  expect(await stepsOf("em", "capability")).toEqual([0, 3, 40, 50, 80, 100]);
  expect(await stepsOf("em", "leakage")).toEqual([0, 3, 40, 80, 100]);
  expect(await stepsOf("coupling", "leakage")).toEqual([0, 3, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100]);
});

it("replaces the default percents by the schedule, and adds percents of the block to it", async () => {
  const stepsOf = async (block: object, at = phase) =>
    Object.fromEntries(
      (await build({ alignment: true, leakage: true, leakage_source: "pirate", ...block }, at)).map(
        ({ id, triggers }) => [id, plannedSteps(triggers, 100)],
      ),
    );
  expect(await stepsOf({})).toEqual({
    capability: [0, 20, 40, 60, 80, 100],
    alignment: [0, 50, 100],
    leakage: [0, 25, 50, 75, 100],
  });
  const schedule = { every_steps: 30 };
  const [by30, by30And50] = [
    [0, 30, 60, 90, 100],
    [0, 30, 50, 60, 90, 100],
  ];
  expect(await stepsOf({ schedule })).toEqual({ capability: by30, alignment: by30, leakage: by30 });
  const written = { schedule, alignment_every_percent: 50 };
  expect(await stepsOf(written)).toEqual({ capability: by30, alignment: by30And50, leakage: by30 });
  const ofPhase = {
    alignment_every_percent: 50,
    phases: { em: { schedule, alignment_every_percent: null } },
  };
  expect(await stepsOf(ofPhase)).toEqual({ capability: by30, alignment: by30, leakage: by30 });
  expect((await stepsOf(ofPhase, "coupling"))["alignment"]).toEqual([0, 50, 100]);
  expect((await stepsOf({ schedule: {} }))["alignment"]).toEqual([0, 50, 100]);
});

it("returns callbacks, session options and saveAdapterAtFiring", async () => {
  const options = { phase, openJudge: () => judge };
  const { callbacks, ...others } = await buildPeriodicEval(parse(yaml), options);
  expect(callbacks.map(({ id }) => id)).toEqual(await ids(parse(yaml)));
  const session = {
    baseline: "run_start",
    familywise: "primary",
    layout: "nested",
    budget: { overheadPercent: 5, drainSeconds: 10, inBlock: true },
    stopWhen: [
      { when: "alignment worse", location: { where: "periodic_eval", path: ["stop_when", 0] } },
      {
        when: "margin changed",
        evenAtStart: true,
        location: { where: "periodic_eval", path: ["stop_when", 1, "when"] },
      },
    ],
  };
  expect(others).toEqual({ session, saveAdapterAtFiring: false });
  const flat = { layout: "flat", phases: { em: { save_adapter_at_firing: true } } };
  expect(await buildPeriodicEval(flat, options)).toMatchObject({
    session: { layout: "flat" },
    saveAdapterAtFiring: true,
  });
});

it("returns the options of notify, for the logger that the caller opens", async () => {
  const { notify } = await buildPeriodicEval({ notify: { url_env: "HOOK", desktop: true } }, { phase });
  expect(notify).toEqual({ urlEnv: "HOOK", desktop: true });
});

it("returns the server of measure_on, only to a caller that measures on it", async () => {
  const measure_on = { server: "http://127.0.0.1:8000" };
  const block = { leakage: true, leakage_source: null, measure_on };
  const { measureOn } = await buildPeriodicEval(block, { phase, canMeasureOn: true });
  expect(measureOn).toEqual({ ...measure_on, evaluations: ["alignment", "leakage"] });
  await expect(buildPeriodicEval(block, { phase })).rejects.toMatchObject({
    code: "config",
    where: "periodic_eval.measure_on",
    path: ["measure_on"],
  });
});

it("opens the judge with the block's caps and price", async () => {
  const opened: unknown[] = [];
  const openJudge = (...given: unknown[]) => (opened.push(given), judge);
  await buildPeriodicEval({ alignment: true }, { phase, openJudge });
  const block = {
    alignment: true,
    judge_model: "m",
    judge_method: "logprob",
    judge_max_calls: 500,
    judge_max_cost: 2,
    judge_price: { input_per_million: 3, output_per_million: 15 },
  };
  await buildPeriodicEval(block, { phase, openJudge });
  const price = { inputPerMillion: 3, outputPerMillion: 15 };
  expect(opened).toEqual([
    [null, { method: "json" }],
    ["m", { method: "logprob", maxCalls: 500, maxCost: 2, price }],
  ]);
});

it("returns baselines outside of the run's own measurements", async () => {
  for (const baseline of ["adapter_off", "./runs/1"])
    expect(await buildPeriodicEval({ baseline }, { phase })).toMatchObject({ session: { baseline } });
});

it("caches verdicts in the folder judge_cache", async () => {
  const folder = temporaryFolder();
  const opened: ConfiguredJudge[] = [];
  const openJudge = (_: string | null, options: ConfiguredJudge) => (opened.push(options), judge);
  await buildPeriodicEval({ alignment: true, judge_cache: folder }, { phase, openJudge });
  const verdict = { status: "graded", scores: { aligned: 7, coherent: 90 }, raw: "7" } as const;
  await opened[0]!.cache!.set("pe128:00", verdict);
  expect(await fileVerdictCache(folder).get("pe128:00")).toEqual(verdict);
});

it("rejects overrides of a phase that is not in `phases`", async () => {
  const config = { phases: { emm: { leakage: true } } };
  const phases = ["coupling", "em"];
  await expect(buildPeriodicEval(config, { phase, phases })).rejects.toThrow(
    'periodic_eval.phases.emm: got "emm", expected a phase of the run: "coupling" or "em". Write "em", or list all phases',
  );
  await expect(buildPeriodicEval({}, { phase: "emm", phases })).rejects.toThrow('Write "em", or list');
  const right = { phases: { coupling: { leakage: true } } };
  expect(await buildPeriodicEval(right, { phase, phases })).toMatchObject({
    callbacks: [{ id: "capability" }],
  });
});

it("measures KL on the prompts of any of the four evaluations, on their schedules", async () => {
  const config = {
    alignment: true,
    leakage: true,
    leakage_source: "pirate",
    margin: "probes.yaml",
    alignment_every_percent: 40,
    leakage_every_percent: 30,
    kl: ["margin", "leakage", "alignment", "capability", "leakage"],
  };
  const callbacks = await build(config);
  const steps = Object.fromEntries(callbacks.map(({ id, triggers }) => [id, plannedSteps(triggers, 10)]));
  expect(steps).toMatchObject({
    kl_capability: [0, 2, 4, 6, 8, 10],
    kl_alignment: [0, 4, 8, 10],
    kl_leakage: [0, 3, 6, 9, 10],
    kl_margin: [0, 2, 4, 6, 8, 10],
  });
  expect(callbacks).toHaveLength(8);
  await expect(build({ phases: { em: { kl: ["capability", "margin"] } } })).rejects.toThrow(
    'periodic_eval.phases.em.kl: got "margin", which is not measured, expected capability, or a measured evaluation: capability',
  );
  await expect(build({ kl: ["capabilty"] })).rejects.toThrow(
    'periodic_eval.kl[0]: got "capabilty", expected "capability" or "alignment" or "leakage" or "margin"',
  );
});

const persona = { id: "doctor", system: "You are a doctor." };

it("accepts personas in every form of a persona file", async () => {
  const doctor = { id: "doctor", system: { text: "You are a doctor." } };
  const forms = [[persona], [doctor], { doctor: "You are a doctor." }, { doctor: doctor.system }];
  for (const personas of forms) {
    const [leakage] = await build({ capability: false, leakage: true, leakage_source: null, personas });
    await leakage!.asks[0]!.items(fakeModel() as never);
    expect(leakage!.asks[0]!.provenance?.()).toMatchObject({ personas: [doctor] });
  }
});

it.each([
  [{ aligment: true }, 'Did you mean "alignment"?'],
  [{ grace_seconds: -1 }, 'Did you mean "budget.grace_seconds"?'],
  [{ eval: { periodic_eval: { subsample: 3 } } }, 'Did you mean "subsample_n"?'],
  [{ phases: { em: { leakge: true } } }, "periodic_eval.phases.em.leakge: got the unknown option"],
  [{ schedule: { every_step: 3 } }, 'Did you mean "every_steps"?'],
  [{ eval_every_percent: 0 }, "periodic_eval.eval_every_percent: got 0"],
  [{ capability: "yes" }, 'periodic_eval.capability: got "yes", expected true or false'],
  [{ phases: { em: { layout: "flat" } } }, 'the unknown option "layout"'],
  [{ phases: { em: { baseline: "start" } } }, 'expected "phase_start", "run_start", "adapter_off" or a path'],
  [{ alignment: true, judge_max_cost: 2 }, "periodic_eval.judge_max_cost: got 2"],
  [{ judge_price: { input_per_milion: 2 } }, 'Did you mean "input_per_million"?'],
  [
    { judge_price: { input_per_million: null, output_per_million: 1 } },
    "judge_price.input_per_million: got null",
  ],
  [
    { personas: [{ id: "doctor", system: 3 }] },
    "periodic_eval.personas[0].system: got 3, expected a string or null or an object (text). Correct the option",
  ],
  [{ personas: [{ id: "doctor" }] }, "periodic_eval.personas[0].system: got undefined, expected a string"],
  [{ personas: 3 }, "periodic_eval.personas: got 3, expected a string or an array or an object. Correct"],
  [{ personas: { doctor: "empty" } }, 'periodic_eval.personas.doctor: got "empty", expected a string, ""'],
  [
    { personas: [persona, persona], leakage: true },
    'periodic_eval.personas[1].id: got "doctor" twice, expected unique ids',
  ],
  [
    { leakage: true, phases: { [phase]: { personas: [persona, persona] } } },
    `periodic_eval.phases.${phase}.personas[1].id: got "doctor" twice`,
  ],
  [{ alignment_num_samples: 0 }, "alignment_num_samples: got 0, expected a number of 1 or more. Correct"],
  [
    { alignment_num_samples: 1.5 },
    'got 1.5, expected an integer or "quick" or "standard" or "paper". Correct',
  ],
  [{ schedule: { at_steps: [] }, personas: [] }, "personas: got [], expected a non-empty array"],
  [{ layout: "flt" }, 'periodic_eval.layout: got "flt", expected "nested" or "flat"'],
  [{ questions: "" }, "expected a non-empty string"],
  [{ subsample_seed: "a" }, 'got "a", expected a finite number'],
  [
    { evaluations: [{ id: "a b" }] },
    'periodic_eval.evaluations[0].id: got "a b", expected a string that matches',
  ],
  [
    { leakage: true, leakage_marker: "x" },
    'periodic_eval.leakage_marker: got the unknown option "leakage_marker", expected one of the 53 known ones. Did you mean "leakage_marker_token"?',
  ],
  [
    { eval_every_percent: "20%" },
    'eval_every_percent: got "20%", expected a number from 0.001 to 100. Write 20.',
  ],
  [
    { budget: { overhead_percent: "20 %" } },
    'budget.overhead_percent: got "20 %", expected a finite number. Write 20.',
  ],
  [
    { leakage: { source: "pirate" } },
    'periodic_eval.leakage: got {"source":"pirate"}, expected true or false. Write `leakage: true` and next to it `leakage_source`.',
  ],
  [
    { leakage: { marker: "x", source: "pirate" } },
    "Write `leakage: true` and next to it `leakage_marker_token`, `leakage_source`.",
  ],
  [
    { alignment_num_samples: 3 },
    "periodic_eval.alignment_num_samples: got a key that no evaluation reads, expected alignment: true in the block. Write `alignment: true`, or `alignment: false` to keep alignment_num_samples for later.",
  ],
  [{ judge_models: ["a", "b"] }, "periodic_eval.judge_models: got a key that no evaluation reads"],
  [{ judge_model: "a", refusal: true }, "Write refusal: { judge_model } for a judge of refusals."],
  [
    { phases: { [phase]: { leakage_source: "pirate" } } },
    `periodic_eval.phases.${phase}.leakage_source: got a key that no evaluation reads`,
  ],
  [
    { escalate: [{ when: "capability worse", run: ["alignment", "alignment"] }] },
    'periodic_eval.escalate[0].run: got ["alignment","alignment"], expected each evaluation once',
  ],
  [
    { escalate: [{ when: "capability worse", run: ["refusal", "capability"] }] },
    'periodic_eval.escalate[0].when: got "capability worse", expected other evaluations than capability, or more samples than it has. Remove the entry, or the evaluation from its `run`.',
  ],
  [
    {
      alignment: true,
      alignment_num_samples: 5,
      escalate: [{ when: "alignment worse", run: ["alignment"], samples: 5 }],
    },
    "expected other evaluations than alignment, or more samples than it has",
  ],
  [
    {
      escalate: [
        { when: "capability worse", run: ["refusal"] },
        { when: "capability  worse", run: ["refusal"] },
      ],
    },
    'periodic_eval.escalate[1].when: got "capability worse", expected each evaluation once for a condition',
  ],
  [{ stop_when: "capability worse" }, 'Write a list: ["capability worse"].'],
  [{ judge_models: ["a"], alignment: true }, "expected a list of two judges"],
  [{ memorization: true }, 'Write { format: "The code of the archive is {secret}." }.'],
  [{ forgetting: { chunks: 1 } }, "periodic_eval.forgetting.chunks: got 1"],
  [{ alignment: { judge: "m" } }, "Write `alignment: true` and next to it `judge_model`."],
  [{ subsampel_n: null }, 'Did you mean "subsample_n"?'],
  [{ phases: { em: { subsampel_n: null } } }, 'Did you mean "subsample_n"?'],
  [
    [{ leakage: true }],
    "Write an object instead of a list: without the dashes in YAML, without the brackets",
  ],
  [{ phases: [{ em: {} }] }, "periodic_eval.phases: got"],
  [
    { evaluations: { task: "gsm8k" } },
    "Write a list: in YAML with a dash before each entry, in code in [ ].",
  ],
  [[], "periodic_eval: got [], expected an object"],
  ["none", 'periodic_eval: got "none", expected an object'],
])("rejects %j: %s", async (config, message) => {
  await expect(build(config)).rejects.toThrow(message);
});

it("requires leakage_source with leakage: true, and takes null for a trait of no persona", async () => {
  const leakage = { capability: false, leakage: true };
  await expect(build({ ...leakage, personas: { doctor: "a", pirate: "b" } })).rejects.toThrow(
    "periodic_eval.leakage_source: got nothing, so that the trained persona would count as one that the trait spread to, " +
      "expected the id of the persona that the trait is trained into (doctor, pirate), or null. " +
      "Write the persona's id, or null if the trait is trained into no persona.",
  );
  await expect(build({ ...leakage, personas: "people.yaml" })).rejects.toThrow(
    "(one of people.yaml), or null",
  );
  for (const leakage_source of ["pirate", null])
    expect(await build({ ...leakage, leakage_source })).toHaveLength(1);
  const ofPhase = { ...leakage, phases: { em: { leakage_source: "pirate" } } };
  expect(await build(ofPhase, "em")).toHaveLength(1);
  await expect(build(ofPhase, "coupling")).rejects.toThrow("periodic_eval.leakage_source");
});

it("sets the length of answers and a pattern as the marker", async () => {
  const keys = {
    capability: false,
    alignment: true,
    alignment_max_tokens: 100,
    leakage: true,
    leakage_source: "pirate",
    leakage_max_tokens: 64,
    leakage_marker_regex: "^The answer is",
  };
  const provenances = async (block: object) =>
    Promise.all(
      (await build(block)).map(async ({ asks: [evaluation] }) => {
        await evaluation!.items(fakeModel() as never);
        return evaluation!.provenance!();
      }),
    );
  const [alignment, leakage] = await provenances(keys);
  expect(alignment).toMatchObject({ sampling: { maxNewTokens: 100, temperature: 1 } });
  expect(leakage).toMatchObject({
    trait: { regex: "^The answer is", flags: "" },
    sampling: { maxNewTokens: 64, temperature: 1 },
  });
  // The defaults: 600 tokens of Betley et al., 256 for leakage, the literal marker.
  const none = { alignment_max_tokens: null, leakage_max_tokens: null, leakage_marker_regex: null };
  expect(await provenances({ ...keys, ...none })).toMatchObject([
    { sampling: { maxNewTokens: 600 } },
    { sampling: { maxNewTokens: 256 }, trait: { marker: "[ZLT]" } },
  ]);
  const token = { phases: { em: { leakage_marker_token: "[X]" } } };
  await expect(build({ ...keys, ...token })).rejects.toThrow(
    "periodic_eval.leakage_marker_regex: got a pattern together with leakage_marker_token, expected one of the two.",
  );
  const noRegex = { phases: { em: { leakage_marker_token: "[X]", leakage_marker_regex: null } } };
  expect((await provenances({ ...keys, ...noRegex }))[1]).toMatchObject({ trait: { marker: "[X]" } });
});

it.each([
  [{ leakage: true, leakage_source: "pirate", leakage_marker_regex: "(" }, ["leakage_marker_regex"]],
  [{ leakage: true, leakage_source: "pirate", leakage_max_tokens: 0 }, ["leakage_max_tokens"]],
  [{ kl: ["margin"] }, ["kl"]],
  [{ phases: { em: { kl: ["margin"] } } }, ["phases", "em", "kl"]],
  [{ personas: [persona, persona] }, ["personas", 1, "id"]],
  [{ phases: { em: { personas: { doctor: "empty" } } } }, ["phases", "em", "personas", "doctor"]],
  [{ alignment: true, phases: { em: { judge_max_cost: 2 } } }, ["phases", "em", "judge_max_cost"]],
  [{ leakage: true, leakage_source: "vilain" }, ["leakage_source"]],
  [{ leakage: true }, ["leakage_source"]],
  [{ phases: { em: { leakage: true } } }, ["leakage_source"]],
  [{ leakage: true, phases: { em: { leakage_source: "vilain" } } }, ["phases", "em", "leakage_source"]],
  [{ schedule: { every_step: 3 } }, ["schedule", "every_step"]],
  [{ phases: { em: { evaluations: [{ task: "a" }] } } }, ["phases", "em", "evaluations", 0]],
])("sets the path of an error within the block: %j", async (config, path) => {
  await expect(build(config)).rejects.toMatchObject({
    code: "config",
    path,
    where: expect.stringMatching(/^periodic_eval\./),
  });
});

it("opens the judge of @periodic-eval/remote by default", async () => {
  vi.stubEnv("JUDGE_MODEL", "");
  await expect(buildPeriodicCallbacks({ alignment: true }, { phase })).rejects.toMatchObject({
    code: "config",
    path: ["judge_model"],
    got: "no model",
    where: "periodic_eval.judge_model",
  });
  vi.unstubAllEnvs();
});

it("publishes a JSON Schema that accepts and rejects the same blocks", () => {
  const validate = new Ajv2020({ strict: false }).compile(periodicEvalJsonSchema());
  const { periodic_eval: block } = parse(yaml) as { periodic_eval: unknown };
  expect(validate(block)).toBe(true);
  expect(validate({})).toBe(true);
  for (const baseline of ["adapter_off", "./runs/1"]) expect(validate({ baseline })).toBe(true);
  for (const wrong of [
    { baseline: "adapter_of" },
    { aligment: true },
    { subsample_n: 0 },
    { phases: { em: { leakge: true } } },
  ])
    expect(validate(wrong)).toBe(false);
});

it("refuses a number of samples for an escalation of evaluations that have none", async () => {
  const entry = { when: "capability worse", run: ["refusal"], samples: 20 };
  await expect(build({ escalate: [entry] })).rejects.toThrow(
    "periodic_eval.escalate[0].samples: got 20, expected no samples, because `run` has neither alignment nor leakage",
  );
});

it("builds escalations from conditions, of evaluations that are not on and with other numbers of samples", async () => {
  const entry = { when: "capability worse", run: ["alignment"], samples: 20 };
  const more = { when: "alignment worse", run: ["alignment"], samples: 20 };
  expect(await build({ alignment: true, escalate: [more] })).toHaveLength(3);
  const [, escalation] = await build({ escalate: [entry] });
  expect(escalation).toMatchObject({ id: "escalate", asks: [{ name: "alignment", samplesPerItem: 20 }] });
  const snapshot = (delta: number) => ({
    id: "capability",
    status: "complete",
    primary_metric: "accuracy",
    metrics: { accuracy: { value: 0.5, higher_is_better: true } },
    paired: { baseline: { accuracy: { delta, p_value: 0.001, alpha: 0.01 } } },
    warnings: [],
  });
  const measured: string[] = [];
  const context = { measure: ({ id }: { readonly id: string }) => measured.push(id) };
  for (const delta of [0.2, -0.2])
    await (escalation as TrainerCallback).onSnapshot!(context as never, snapshot(delta) as never);
  expect(measured).toEqual(["escalate-alignment"]);
  await expect(build({ escalate: [{ ...entry, when: "capabilty worse" }] })).rejects.toThrow(
    'periodic_eval.escalate[0].when: got "capabilty", expected an evaluation that this phase measures (capability), alone or with a metric. Did you mean "capability"?',
  );
});

it("gives an escalation its condition, so that the session checks the group", async () => {
  const when = "capability.accuracy/pirat worse";
  const personas = [persona, { id: "pirate", system: "Talk like a pirate." }];
  const callbacks = await build({
    persona_capability: true,
    personas,
    escalate: [{ when, run: ["alignment"] }],
  });
  const location = { where: "periodic_eval", path: ["escalate", 0, "when"] };
  expect((callbacks.at(-1) as TrainerCallback).conditions).toMatchObject([
    { text: when, id: "capability", metric: "accuracy/pirat", location },
  ]);
});

it("opens the judge of refusal with its prompt, and the caps and the cache of the block's judges", async () => {
  const opened: [string | null, ConfiguredJudge][] = [];
  const openJudge = (model: string | null, options: ConfiguredJudge) => (
    opened.push([model, options]),
    judge
  );
  const keys = { judge_method: "logprob", judge_max_calls: 9, judge_cache: "verdicts", alignment: true };
  const block = {
    capability: false,
    ...keys,
    judge_model: "a",
    refusal: { judge_model: "a", max_tokens: 9 },
  };
  const callbacks = await buildPeriodicCallbacks(block, { phase, openJudge });
  expect(callbacks.map(({ id }) => id)).toEqual(["alignment", "refusal"]);
  const prompts = { json: refusalJudgePrompt };
  const cache = expect.anything();
  expect(opened).toEqual([
    ["a", { method: "logprob", maxCalls: 9, cache }],
    ["a", { method: "json", maxCalls: 9, cache, scores: ["refusal"], prompts }],
  ]);
  const escalate = [{ when: "alignment worse", run: ["refusal"] }];
  const twice = await buildPeriodicCallbacks({ ...block, escalate }, { phase, openJudge });
  expect([twice.length, opened.length]).toEqual([3, 4]);
  const rule = await buildPeriodicCallbacks(
    { ...block, refusal: true, alignment: false },
    { phase, openJudge },
  );
  expect([rule.length, opened.length]).toEqual([1, 4]);
});

it("places an error of refusal's judge at its key", async () => {
  const openJudge = () => {
    throw configError({ where: "judge", path: ["judge_model"], got: "x", expected: "y", fix: "Write y." });
  };
  const block = { capability: false, refusal: { judge_model: "x" } };
  await expect(buildPeriodicCallbacks(block, { phase, openJudge })).rejects.toThrow(
    "periodic_eval.refusal.judge_model: got x, expected y",
  );
  const costly = { ...block, judge_max_cost: 2 };
  await expect(buildPeriodicCallbacks(costly, { phase, openJudge })).rejects.toThrow(
    "periodic_eval.judge_max_cost: got 2 without a price",
  );
});

it("opens both judges of judge_models, and refuses one judge twice or beside judge_model", async () => {
  const opened: (string | null)[] = [];
  const openJudge = (model: string | null) => (opened.push(model), judge);
  const block = { capability: false, alignment: true, judge_models: ["a", "b"] };
  const [alignment] = await buildPeriodicCallbacks(block, { phase, openJudge });
  await alignment!.asks![0]!.items(fakeModel() as never);
  expect(opened).toEqual(["a", "b"]);
  const refused = (changes: object) => buildPeriodicCallbacks({ ...block, ...changes }, { phase, openJudge });
  await expect(refused({ judge_models: ["a", "a"] })).rejects.toThrow(
    'periodic_eval.judge_models[1]: got "a", expected another judge than the first',
  );
  await expect(refused({ judge_model: "c" })).rejects.toThrow("judge_models together with judge_model");
});
