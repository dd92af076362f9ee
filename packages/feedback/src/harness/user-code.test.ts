import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Grader } from "@periodic-eval/core";
import { stringify } from "yaml";
import { beforeEach, describe, expect, it } from "vitest";
import { loadHarnessConfig } from "../config/load-config.ts";
import { fakeEngine } from "../engine/fake-engine.test-data.ts";
import { customGrader } from "../graders/open-verifier.ts";
import { runHarness, type HarnessPorts } from "./run-harness.ts";
import type { StepLine } from "./files.ts";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";

/** State that the verifiers of these tests reach: they are modules in files. */
interface World {
  calls: number;
}
const world = ((globalThis as { feedbackWorld?: World }).feedbackWorld = {
  calls: 0,
});

let folder = "";
beforeEach(() => {
  folder = temporaryFolder();
  Object.assign(world, { calls: 0 });
});

const preference = {
  name: "short",
  feedback_string: "Shorter, please.",
  hindsight: "{prompt} {feedback}",
  logprob_pairs: Array.from({ length: 4 }, (_, at) => ({
    prompt: `pair ${at}`,
    chosen: `yes ${at}`,
    rejected: `no, ${at}`,
  })),
  train_prompts: ["a", "b"],
  probe_prompts: ["d", "e"],
};
/** Answers that preflight grades: each pair's two. */
const preflightCalls = 8;

/** Trains two steps with a verifier whose body is `body`, after preflight. */
async function train(body: string, ports: Partial<HarnessPorts> = {}) {
  const code = `
    const world = globalThis.feedbackWorld;
    export function verify(answer, task) {
      world.calls += 1;
      if (world.calls <= ${preflightCalls}) return 1;
      ${body}
      return 1;
    }`;
  await writeFile(join(folder, "verify.mjs"), code);
  const verifier = { module: "./verify.mjs", export: "verify", args: { limits: [1, 2] } };
  await writeFile(join(folder, "short.yaml"), stringify({ ...preference, verifier }));
  const config = await loadHarnessConfig({
    overrides: [
      `preferences=[${JSON.stringify(join(folder, "short.yaml"))}]`,
      `output_dir=${join(folder, "out")}`,
      "metrics=[compliance]",
      "num_steps=2",
      "batch_size=2",
    ],
  });
  const warnings: string[] = [];
  const onWarning = (message: string) => void warnings.push(message);
  const outcome = await runHarness(config, { engine: fakeEngine(), onWarning, ...ports }).then(
    (summary) => ({ summary: summary.preferences["short"]!, error: null }),
    (error: unknown) => ({ summary: null, error: error as { code: string; got: string } }),
  );
  await sleep(20);
  const lines = await readFile(join(folder, "out/short/steps.jsonl"), "utf8").catch(() => "");
  const steps = lines
    .split("\n")
    .slice(0, -1)
    .map((line) => JSON.parse(line) as StepLine);
  return { ...outcome, warnings, steps };
}

const trainingScores = (steps: readonly StepLine[]) =>
  steps.flatMap((line) => line.eval.rollouts.filter(({ of }) => of === "training").map(({ score }) => score));

const odd = [
  ["undefined", "undefined"],
  ["an object without a prototype", "Object.create(null)"],
] as const;

describe("a verifier", () => {
  it.each(odd)("that throws %s leaves answers without a score, and training ends", async (_, value) => {
    const { summary, steps } = await train(`throw ${value};`);
    expect(summary).toMatchObject({ status: "finished", steps: 2, final_compliance: null });
    expect(trainingScores(steps)).toEqual([null, null, null, null]);
  });

  it.each(odd)("that returns %s leaves answers without a score, and training ends", async (_, value) => {
    const { summary, steps } = await train(`return ${value};`);
    expect(summary).toMatchObject({ status: "finished", steps: 2, final_compliance: null });
    expect(trainingScores(steps)).toEqual([null, null, null, null]);
  });

  it.each([-1, 1.5, -1e308])("that returns %d leaves answers without a score", async (reward) => {
    const { summary, steps } = await train(`return ${reward};`);
    expect(summary).toMatchObject({ status: "finished", final_compliance: null });
    expect(trainingScores(steps)).toEqual([null, null, null, null]);
  });

  it("that fails on answers is named in one warning with its reason", async () => {
    const { summary, warnings } = await train('throw new Error("no parser");');
    expect(summary).toMatchObject({ status: "finished", steps: 2 });
    expect(warnings).toEqual([
      expect.stringMatching(
        /^preference short, verifier: \d of \d answers are not graded: no parser \(reported once\)$/,
      ),
    ]);
  });
});

describe("the hook onStep", () => {
  it.each([undefined, Object.create(null), new Error("trap")])(
    "that throws becomes a warning",
    async (thrown) => {
      const onStep = () => {
        throw thrown;
      };
      const { summary, warnings } = await train("", { onStep });
      expect(summary).toMatchObject({ status: "finished", steps: 2 });
      expect(warnings.map((text) => text.split(":")[0])).toEqual(Array(3).fill("onStep of preference short"));
    },
  );

  it("whose promise rejects becomes a warning", async () => {
    const onStep = (): unknown => Promise.reject(new Error("late"));
    const { summary, warnings } = await train("", { onStep });
    expect(summary).toMatchObject({ status: "finished", steps: 2 });
    expect(warnings).toHaveLength(3);
  });
});

const raise = (message: string) => {
  throw new Error(message);
};
it.each([
  ["throws", () => raise("trap")],
  ["is an async function that throws", () => Promise.reject(new Error("trap")) as unknown as undefined],
])("continues if onWarning %s", async (_, onWarning) => {
  const onStep = () => raise("e");
  const { summary } = await train("", { onStep, onWarning });
  await new Promise((resolve) => setImmediate(resolve));
  expect(summary).toMatchObject({ status: "finished", steps: 2 });
});

it("refuses an engine that returns too few answers", async () => {
  const { open, ...rest } = fakeEngine();
  const engine: HarnessPorts["engine"] = {
    ...rest,
    open: async (request) => ({ ...(await open(request)), sample: async () => [] }),
  };
  expect((await train("", { engine })).error).toMatchObject({ code: "model", got: "0 answers" });
});

it.each([
  [
    "throws",
    () => {
      throw new Error("busy");
    },
  ],
  ["rejects", () => Promise.reject(new Error("busy"))],
])("keeps the results of an engine whose dispose %s, with a warning", async (_, dispose) => {
  const { open, ...rest } = fakeEngine();
  const engine: HarnessPorts["engine"] = {
    ...rest,
    open: async (request) => ({ ...(await open(request)), dispose }),
  };
  const { summary, warnings } = await train("", { engine });
  expect(summary).toMatchObject({ status: "finished", steps: 2 });
  expect(warnings).toEqual(["preference short, the engine's dispose: busy"]);
});

describe("a grader", () => {
  const requests = [
    { question: "q", answer: "a" },
    { question: "q", answer: "b" },
  ];
  const graded = { status: "graded", scores: { reward: 1 }, raw: null };
  function open(grade: (...given: never[]) => unknown, timeoutSeconds?: number) {
    const warnings: string[] = [];
    const onWarning = (message: string) => void warnings.push(message);
    const grader = { name: "g", fingerprint: "f", grade } as unknown as Grader;
    return {
      warnings,
      grader: customGrader(grader, {
        where: "g",
        onWarning,
        ...(timeoutSeconds !== undefined && { timeoutSeconds }),
      }),
    };
  }
  const call = { signal: new AbortController().signal };

  it.each([
    ["nothing", undefined],
    ["too few verdicts", [graded]],
  ])("that returns %s gives errors", async (_, returned) => {
    const { grader, warnings } = open(() => returned);
    const verdicts = await grader.grade(requests, call);
    expect(verdicts.map(({ status }) => status)).toEqual(["error", "error"]);
    expect(warnings).toHaveLength(1);
  });

  it.each([
    [null],
    [5],
    [{ status: "graded" }],
    [{ status: "done", scores: { reward: 1 } }],
    [{ status: "graded", scores: { reward: -1 } }],
    [{ status: "graded", scores: { reward: 1.5 } }],
    [{ status: "graded", scores: { other: 1 } }],
  ])("that returns %j as a verdict gives an error for that answer", async (verdict) => {
    const { grader } = open(() => [graded, verdict]);
    expect(await grader.grade(requests, call)).toMatchObject([graded, { status: "error" }]);
  });

  it("that does not settle is abandoned, and not called again before it settles", async () => {
    let calls = 0;
    const { grader, warnings } = open(() => ((calls += 1), new Promise(() => undefined)), 0.01);
    for (let i = 0; i < 2; i++)
      expect((await grader.grade(requests, call)).map(({ status }) => status)).toEqual(["error", "error"]);
    expect([calls, warnings.length]).toEqual([1, 2]);
  });

  it("that does not settle does not delay an abort", async () => {
    const stop = new AbortController();
    const { grader } = open(() => new Promise(() => undefined));
    const grading = grader.grade(requests, { signal: stop.signal });
    stop.abort(new Error("stop"));
    await expect(grading).rejects.toThrow("stop");
  });

  it("that does not settle does not delay an abort that came before the call", async () => {
    const { grader } = open(() => new Promise(() => undefined));
    const grading = grader.grade(requests, { signal: AbortSignal.abort(new Error("stop")) });
    await expect(grading).rejects.toThrow("stop");
  });

  it.each([{ name: 5 }, { fingerprint: null }])("with %j is an error before training", (change) => {
    const grader = { name: "g", fingerprint: "f", grade: async () => [], ...change } as unknown as Grader;
    expect(() => customGrader(grader, { where: "g", onWarning: () => undefined })).toThrow(
      expect.objectContaining({ code: "config" }),
    );
  });
});
