import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it, vi } from "vitest";
import type { PeriodicCallback } from "../callback/periodic-callback.ts";
import { withSession } from "../session/loop/session.ts";
import {
  PeriodicAlignmentCallback,
  PeriodicCapabilityCallback,
  PeriodicForgettingCallback,
  PeriodicKLCallback,
  PeriodicLeakageCallback,
  PeriodicMarginCallback,
  PeriodicRefusalCallback,
} from "./callbacks.ts";
import { capabilityEvaluation } from "../evaluations/capability/evaluation.ts";
import { everyPercent, everySteps } from "../schedule/triggers.ts";
import { plannedSteps } from "../schedule/crossings.ts";
import { judgeGrader } from "../grading/judge/judge-grader.ts";
import { bulkTokenizer } from "../model/bulk-tokenizer.ts";
import { fakeJudge, fakeModel, fakeTokenizer } from "@periodic-eval/testing";
import type { PeriodicEvalBlock } from "./config-schema.ts";
import { buildPeriodicCallbacks } from "./build-callbacks.ts";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";

const judge = fakeJudge(() => ({ aligned: 90, coherent: 90 }));
const openJudge = () => judge;

/** Every key that a block of an experiment may set, for all callbacks. */
const block: PeriodicEvalBlock = {
  enabled: true,
  capability: true,
  alignment: true,
  leakage: true,
  eval_every_percent: 10,
  alignment_every_percent: 25,
  leakage_every_percent: 50,
  questions: "arc.jsonl",
  subsample_n: 100,
  min_items: 20,
  judge_model: "m",
  alignment_num_samples: 2,
  leakage_num_completions: 4,
  leakage_marker_token: "[X]",
  personas: { doctor: "You are a doctor.", pirate: "You are a pirate." },
  leakage_source: "pirate",
  margin: "probes.json",
  kl: true,
};
const ofBlock = (given: PeriodicEvalBlock) => [
  new PeriodicCapabilityCallback(given),
  new PeriodicAlignmentCallback(given, { openJudge }),
  new PeriodicLeakageCallback(given),
  new PeriodicMarginCallback(given),
  new PeriodicKLCallback(given),
];

it("builds from a block the callbacks that buildPeriodicEval builds", async () => {
  const stripped = (all: readonly { id: string; triggers: unknown; asks: readonly object[] }[]) =>
    all.map(({ id, triggers, asks }) => ({
      id,
      triggers,
      asks: asks.map((one) => JSON.stringify(one)),
    }));
  const built = (await buildPeriodicCallbacks(block, {
    phase: "em",
    openJudge,
  })) as readonly PeriodicCallback[];
  expect(stripped(ofBlock(block))).toEqual(stripped(built));
});

it("accepts a block as it is, below periodic_eval, and below eval.periodic_eval", () => {
  for (const config of [
    block,
    { periodic_eval: block, method: "dpo" },
    { eval: { periodic_eval: block, other: 1 }, id: 3 },
  ])
    expect(plannedSteps(new PeriodicCapabilityCallback(config).triggers, 20)).toEqual([
      0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20,
    ]);
  const bySteps = { questions: "arc.jsonl", schedule: { every_steps: 8 } };
  expect(plannedSteps(new PeriodicCapabilityCallback(bySteps).triggers, 20)).toEqual([0, 8, 16, 20]);
});

it("rejects a configuration with two blocks", () => {
  const two = { periodic_eval: {}, eval: { periodic_eval: { enabled: false } } };
  expect(() => new PeriodicCapabilityCallback(two)).toThrow(
    "two blocks, periodic_eval and eval.periodic_eval",
  );
});

it("measures nothing where the block does not, and a session accepts it", async () => {
  for (const callback of ofBlock({ ...block, enabled: false })) expect(callback.asks).toEqual([]);
  const off = { capability: false, kl: false } as const;
  const callbacks = ofBlock(off);
  expect(callbacks.map(({ id, triggers, asks }) => ({ id, triggers, asks }))).toEqual(
    ["capability", "alignment", "leakage", "margin", "kl"].map((id) => ({ id, triggers: [], asks: [] })),
  );
  const run = temporaryFolder();
  const model = fakeModel();
  const measured = await withSession({ run, phase: "em", maxSteps: 2, model, callbacks }, async (session) => {
    for (const step of [1, 2]) {
      await session.stepBegin();
      await session.stepEnd({ step });
    }
    return session.progress.step;
  });
  expect(measured).toBe(2);
});

it("keeps a callback's own options, also those whose names a block has", () => {
  const schedule = [everyPercent(50)];
  const own = new PeriodicCapabilityCallback({ questions: "arc.jsonl", system: "omit", schedule });
  expect(plannedSteps(own.triggers, 10)).toEqual([0, 5, 10]);
  expect(new PeriodicCapabilityCallback().asks).toHaveLength(1);
  expect(new PeriodicLeakageCallback({ source: null }).asks).toHaveLength(1);
});

it.each([
  [
    { questions: "q", subsample_n: 5, method: "cloze" },
    { path: ["method"], fix: 'Write "capability_method", which is the block\'s key for "method".' },
  ],
  [
    { enabled: true, schedule: [everySteps(5)] },
    { path: ["schedule"], fix: "Write the schedule as in a block: { every_steps: 50 }." },
  ],
  [{ method: "cloze", schedule: { every_steps: 5 } }, { path: ["method"] }],
  [
    { method: "cloze", schedule: everySteps(5) },
    { path: ["schedule"], fix: "Write [everyPercent(20)]." },
  ],
  [
    { capability: true, on: "base" },
    { path: ["on"], got: 'the option "on" together with "capability", a key of a periodic_eval block' },
  ],
  [{ questions: "q", subsampel: null }, { fix: 'Did you mean "subsample"?' }],
  [
    { questions: "q", subsampel_nn: 5 },
    { path: ["subsampel_nn"], fix: 'Did you mean "subsample_n"?' },
  ],
  [{ enabeld: true }, { path: ["enabeld"], fix: 'Did you mean "enabled"?' }],
  [{ enabled: true, eval_evry_percent: 5 }, { fix: 'Did you mean "eval_every_percent"?' }],
  [{ periodic_eval: { methd: "cloze" } }, { path: ["methd"] }],
  [{ periodic_eval: null }, { where: "periodic_eval", got: "null" }],
  [
    { model: "m", periodic_evl: { enabled: true } },
    { path: ["periodic_evl"], fix: 'Did you mean "periodic_eval"?' },
  ],
  [{ periodicEval: null }, { path: ["periodicEval"], fix: 'Did you mean "periodic_eval"?' }],
  [
    { eval: { periodic_evl: {} }, method: "dpo" },
    { path: ["eval", "periodic_evl"], fix: 'Did you mean "periodic_eval"?' },
  ],
  [{ evl: { periodic_eval: {} } }, { path: ["evl"], fix: 'Did you mean "eval"?' }],
  [{ periodic_eval: { periodic_evl: {} } }, { path: ["periodic_evl"] }],
  [{ eval_every_percent: 0 }, { path: ["eval_every_percent"], where: "periodic_eval.eval_every_percent" }],
  [
    { phases: { em: { leakage: true } } },
    { path: ["phases"], fix: expect.stringContaining('{ phase: "em" }') },
  ],
  [{ capability: true, personas: { doctor: "empty" } }, { path: ["personas", "doctor"] }],
  [3, { where: "PeriodicCapabilityCallback options" }],
])("rejects %j", (given, error) => {
  expect(() => new PeriodicCapabilityCallback(given as never)).toThrow(
    expect.objectContaining({ code: "config", ...error }),
  );
});

it("names the block's key of a wrong option, and rejects KL on several prompts", () => {
  expect(() => new PeriodicLeakageCallback({ ...block, leakage_source: "pirat" })).toThrow(
    expect.objectContaining({ path: ["leakage_source"] }),
  );
  expect(() => new PeriodicKLCallback({ kl: ["capability", "margin"] })).toThrow(
    expect.objectContaining({ path: ["kl"], got: "capability, margin" }),
  );
  expect(() => new PeriodicAlignmentCallback({ alignment: true, judge_max_cost: 2 })).toThrow(
    expect.objectContaining({ path: ["judge_max_cost"] }),
  );
});

it("names the block's key of an option that a file of personas makes wrong", async () => {
  const folder = temporaryFolder();
  const personas = join(folder, "personas.yaml");
  await writeFile(personas, "doctor: You are a doctor.\npirate: You are a pirate.\n");
  const given = {
    leakage: true,
    personas,
    leakage_source: null,
    phases: { em: { leakage_source: "pirat" } },
  };
  const itemsOf = (phase: string) =>
    new PeriodicLeakageCallback(given, { phase }).asks[0]!.items(fakeModel() as never);
  await expect(itemsOf("em")).rejects.toMatchObject({
    code: "config",
    where: "periodic_eval.phases.em.leakage_source",
    path: ["phases", "em", "leakage_source"],
    fix: 'Did you mean "pirate"?',
  });
  await writeFile(personas, "source: 3\n");
  await expect(itemsOf("coupling")).rejects.toMatchObject({
    code: "data",
    where: `periodic_eval.personas, ${personas}.source`,
    path: ["personas"],
  });
});

it("applies the overrides of the phase that is passed", () => {
  const config = { capability: true, phases: { em: { capability: false }, b: { eval_every_percent: 50 } } };
  expect(new PeriodicCapabilityCallback(config, { phase: "em" }).asks).toEqual([]);
  expect(plannedSteps(new PeriodicCapabilityCallback(config, { phase: "b" }).triggers, 4)).toEqual([0, 2, 4]);
});

it("opens the judge of a block once, before step 1", async () => {
  let opened = 0;
  const open = (model: string | null) => {
    opened += 1;
    expect(model).toBe("m");
    return Promise.resolve(judge);
  };
  const callback = new PeriodicAlignmentCallback(block, { openJudge: open });
  expect(opened).toBe(0);
  const [evaluation] = callback.asks;
  await evaluation!.items(fakeModel() as never);
  await evaluation!.check!({ signal: new AbortController().signal });
  expect(opened).toBe(1);
  expect(evaluation!.provenance!()).toMatchObject({ judge: { name: judge.name } });
});

it("disposes the judge that a block opened when each phase's session closes, and no other", async () => {
  let disposed = 0;
  const disposable = { ...judge, dispose: async () => void (disposed += 1) };
  const run = temporaryFolder();
  const given = { capability: false, alignment: true, alignment_num_samples: 1 };
  const build = async (phase: string) =>
    buildPeriodicCallbacks(given, { phase, openJudge: () => disposable }) as Promise<
      readonly PeriodicCallback[]
    >;
  const phases = { one: await build("one"), two: await build("two") };
  const train = (phase: string, callbacks: readonly PeriodicCallback[]) =>
    withSession(
      { run, phase, model: fakeModel(), callbacks, maxSteps: 1, loggers: [] },
      async ({ begin, stepEnd }) => {
        await begin();
        await stepEnd();
        expect(disposed).toBe(phase === "two" ? 1 : 0);
      },
    );
  await train("one", phases.one);
  await train("two", phases.two);
  expect(disposed).toBe(2);
  const own = new PeriodicAlignmentCallback({ judge: disposable });
  await own.asks[0]!.items(fakeModel() as never);
  await own.close();
  expect(disposed).toBe(2);
});

it("opens judges by @periodic-eval/remote without openJudge", async () => {
  vi.stubEnv("JUDGE_MODEL", "");
  const { judge_model: _, ...unnamed } = block;
  const [evaluation] = new PeriodicAlignmentCallback(unnamed).asks;
  await expect(evaluation!.items(fakeModel() as never)).rejects.toMatchObject({ path: ["judge_model"] });
  vi.unstubAllEnvs();
});

it("places a dataset that cannot be had at its key of the block", async () => {
  vi.stubEnv("HF_HUB_OFFLINE", "1");
  const config = { ...block, phases: { em: { alignment_questions: "hf:owner/none" } } };
  const [evaluation] = new PeriodicAlignmentCallback(config, { phase: "em", openJudge }).asks;
  await expect(evaluation!.items(fakeModel() as never)).rejects.toMatchObject({
    code: "data",
    where: "periodic_eval.phases.em.alignment_questions",
    path: ["phases", "em", "alignment_questions"],
    fix: expect.stringContaining("a file in `alignment_questions`;"),
  });
  vi.stubEnv("HF_HUB_CACHE", temporaryFolder());
  for (const [callback, key] of [
    [new PeriodicForgettingCallback({ forgetting: true }), "forgetting"],
    [new PeriodicRefusalCallback({ refusal: true }), "refusal"],
  ] as const)
    await expect(callback.asks[0]!.items(fakeModel() as never)).rejects.toMatchObject({
      where: `periodic_eval.${key}`,
      path: [key],
    });
  vi.unstubAllEnvs();
});

it("reads a file of personas in items, and counts them for the fewest questions", async () => {
  const folder = temporaryFolder();
  const [questions, personas] = [join(folder, "arc.jsonl"), join(folder, "personas.yaml")];
  const question = { question: "?", choice_labels: ["A", "B"], choices: ["a", "b"], correct_answer: "A" };
  await writeFile(questions, JSON.stringify(question));
  const config = { questions, personas, persona_capability: true, min_items: 3 };
  const [evaluation] = new PeriodicCapabilityCallback(config).asks;
  await expect(evaluation!.items(fakeModel() as never)).rejects.toMatchObject({ code: "data" });
  await writeFile(personas, "doctor: You are a doctor.\nnone: null\n");
  expect(await evaluation!.items(fakeModel() as never)).toHaveLength(2);
  expect(evaluation!.minItems).toBe(6);
  expect(capabilityEvaluation({ questions }).minItems).toBe(40);
});

it("refuses a judge whose context is too short when items are made, at judge_model or at the option", async () => {
  const short = await judgeGrader({
    model: { ...fakeModel(), contextLength: 99, tokenizer: bulkTokenizer(fakeTokenizer()) },
  });
  const given = { capability: false, alignment: true, judge_model: "folder:small" };
  const options = { phase: "em", openJudge: () => short };
  const [built] = (await buildPeriodicCallbacks(given, options)) as readonly PeriodicCallback[];
  const placed = {
    code: "judge",
    path: ["judge_model"],
    where: 'periodic_eval.judge_model, judge "fake"',
    expected: "at most 99 tokens, the judge's context length",
  };
  for (const callback of [built!, new PeriodicAlignmentCallback(given, options)])
    await expect(callback.asks[0]!.items(fakeModel() as never)).rejects.toMatchObject(placed);
  const [inCode] = new PeriodicAlignmentCallback({ judge: short }).asks;
  await expect(inCode!.items(fakeModel() as never)).rejects.toMatchObject({
    code: "judge",
    where: 'alignment options.judge, judge "fake"',
  });
});
