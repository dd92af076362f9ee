import { cp, readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import * as tf from "@tensorflow/tfjs";
import { atEnd, atSteps, defineEvaluation, PeriodicCallback, type Trigger } from "@periodic-eval/core";
import { readRun } from "@periodic-eval/store";
import type { TrainableLM } from "@periodic-eval/tfjs";
import { beforeAll, describe, expect, it } from "vitest";
import type { TrainerState } from "../checkpoint/trainer-state.ts";
import { tinyLM } from "../testing/tiny-lm.test-data.ts";
import {
  busyConfig,
  preferences,
  recording,
  rows,
  temporaryFolder,
  tokenizer,
  weightsOf,
  ungoverned,
  useWasm,
} from "../testing/tiny-run.test-data.ts";
import type { PipelinePhase, SFTPhase } from "./phases.ts";
import { runPipeline } from "./run-pipeline.ts";

beforeAll(useWasm);

const phases: readonly SFTPhase[] = [
  { phase: "coupling", dataset: rows(20, "coupling") },
  { phase: "em", dataset: rows(20, "em"), config: { maxSteps: 7 } },
];

async function run(runDir: string, seed = "tiny", given: readonly PipelinePhase[] = phases) {
  const logger = recording();
  const model = tinyLM({ vocabSize: tokenizer.vocabSize, dropout: 0.2, seed });
  let closed = 0;
  const results = await runPipeline(given, {
    model,
    tokenizer,
    runDir,
    config: { ...busyConfig, saveSteps: 1, keepCheckpoints: 99 },
    session: ungoverned,
    loggers: [logger, { name: "closing", close: () => void (closed += 1) }],
  });
  const weights = await weightsOf(model);
  model.dispose();
  return { results, weights, logger, closed };
}

it("records the phases that have not begun, so that the run is not finished", async () => {
  const runDir = await temporaryFolder();
  const model = tinyLM({ vocabSize: tokenizer.vocabSize, seed: "tiny" });
  const stop = new AbortController();
  const loggers = [{ name: "stopping", end: () => stop.abort() }];
  const { signal } = stop;
  await runPipeline(phases, {
    model,
    tokenizer,
    runDir,
    config: busyConfig,
    session: ungoverned,
    loggers,
    signal,
  });
  model.dispose();
  const { closings, writer } = await readRun(runDir);
  expect(writer).toBeNull();
  expect(closings.find(({ phase }) => phase === "em")).toMatchObject({ step: 0, finished: false });
});

/** An evaluation that adds to a weight, by default at step 6. */
function changing(model: TrainableLM, schedule: readonly Trigger[] = [atSteps([6])]): PeriodicCallback {
  const evaluation = defineEvaluation({
    name: "changing",
    version: "1",
    needs: [],
    items: async () => [{ id: "one" }],
    async measure(_model, items) {
      const weight = model.trainables()[0]!;
      tf.tidy(() => weight.assign(tf.add(weight, 1e-3)));
      return items;
    },
    metrics: ({ rate }) => ({ share: rate(() => true) }),
  });
  return new PeriodicCallback(evaluation, { schedule, atStart: false, atEnd: false });
}

function raise(message: string): never {
  throw new Error(message);
}

describe("runPipeline", () => {
  it("trains the phases in order on one model, and closes the loggers once", async () => {
    const { results, logger, closed } = await run(await temporaryFolder());
    expect(results.map(({ phase, steps }) => [phase, steps])).toEqual([
      ["coupling", 12],
      ["em", 7],
    ]);
    expect(logger.metrics).toHaveLength(19);
    expect(closed).toBe(1);
  });

  it("resumes in the second phase after a kill there, without a step of the first", async () => {
    const whole = await temporaryFolder();
    const straight = await run(whole);
    for (const step of [null, 3]) {
      const runDir = await temporaryFolder();
      const last = join("checkpoints/coupling/step_12");
      await cp(join(whole, last), join(runDir, last), { recursive: true });
      const at = step === null ? null : join("checkpoints/em", `step_${step}`);
      if (at !== null) await cp(join(whole, at), join(runDir, at), { recursive: true });
      const resumed = await run(runDir, "another model");
      expect(resumed.results.map(({ resumedFrom }) => resumedFrom)).toEqual([12, step]);
      expect(resumed.logger.metrics).toEqual(straight.logger.metrics.slice(12 + (step ?? 0)));
      expect(resumed.weights).toEqual(straight.weights);
      await rm(runDir, { recursive: true });
    }
  });

  it("trains preferences after conversations, against the model at the start of the phase, and resumes there", async () => {
    const given: readonly PipelinePhase[] = [
      { phase: "sft", dataset: rows(20, "sft") },
      { phase: "dpo", method: "dpo", dataset: preferences(8), reference: "copy", config: { maxSteps: 5 } },
    ];
    const whole = await temporaryFolder();
    const straight = await run(whole, "tiny", given);
    expect(straight.logger.metrics[12]!["rewards/chosen"]).toBe(0);
    const runDir = await temporaryFolder();
    for (const at of ["checkpoints/sft/step_12", "checkpoints/dpo/step_3"])
      await cp(join(whole, at), join(runDir, at), { recursive: true });
    const resumed = await run(runDir, "another model", given);
    expect(resumed.results.map(({ resumedFrom }) => resumedFrom)).toEqual([12, 3]);
    expect(resumed.logger.metrics).toEqual(straight.logger.metrics.slice(15));
    expect(resumed.weights).toEqual(straight.weights);
  });

  it("stops after a phase whose measurement changed the weights, and resumes from before it when run again", async () => {
    const runDir = await temporaryFolder();
    const straight = await run(await temporaryFolder());
    for (const isMended of [false, true]) {
      const model = tinyLM({ vocabSize: tokenizer.vocabSize, dropout: 0.2 });
      const given = phases.map((phase) => ({ ...phase, callbacks: isMended ? [] : [changing(model)] }));
      const results = await runPipeline(given, {
        model,
        tokenizer,
        runDir,
        config: { ...busyConfig, saveSteps: 2 },
        session: ungoverned,
        loggers: [recording()],
      });
      if (!isMended) {
        expect(results).toMatchObject([
          {
            phase: "coupling",
            steps: 6,
            stopReason: expect.stringContaining('guard "variables"'),
            brokenReceipt: expect.stringContaining('the measurement "changing" at step 6'),
            checkpoint: join(runDir, "checkpoints/coupling/step_4"),
          },
        ]);
      } else {
        expect(results).toMatchObject([{ resumedFrom: 4 }, { brokenReceipt: null }]);
        expect(await weightsOf(model)).toEqual(straight.weights);
      }
      model.dispose();
    }
  });

  it("stops if the measurement at the end of a phase changed the weights", async () => {
    const model = tinyLM({ vocabSize: tokenizer.vocabSize });
    const given = phases.map((phase) => ({ ...phase, callbacks: [changing(model, [atEnd()])] }));
    const results = await runPipeline(given, {
      model,
      tokenizer,
      runDir: await temporaryFolder(),
      config: busyConfig,
      session: ungoverned,
      loggers: [recording()],
    });
    model.dispose();
    expect(results).toMatchObject([{ steps: 12, brokenReceipt: expect.stringContaining("changing") }]);
  });

  it("closes every logger even if one throws, and warns the others", async () => {
    const logger = recording();
    let closed = 0;
    const failing = { name: "failing", close: (): void => raise("no such socket") };
    const rejecting = { name: "rejecting", close: () => Promise.reject(new Error("timed out")) };
    const closing = { name: "closing", close: () => void (closed += 1) };
    const model = tinyLM({ vocabSize: tokenizer.vocabSize });
    const runDir = await temporaryFolder();
    const results = await runPipeline([{ phase: "one", dataset: rows(4), config: { maxSteps: 1 } }], {
      model,
      tokenizer,
      runDir,
      loggers: [failing, rejecting, closing, logger],
    });
    model.dispose();
    expect(results).toHaveLength(1);
    expect(closed).toBe(1);
    expect(logger.warnings).toEqual([
      'logger "failing": at close: no such socket',
      'logger "rejecting": at close: timed out',
    ]);
  });

  it("throws for an option that neither it nor a phase has", async () => {
    const [runDir, model] = [await temporaryFolder(), tinyLM({ vocabSize: tokenizer.vocabSize })];
    const options = { model, tokenizer, runDir };
    const wrong = { ...options, logger: [] };
    await expect(runPipeline([], wrong)).rejects.toMatchObject({
      where: "runPipeline options.logger",
      got: 'the unknown option "logger"',
      expected: expect.stringMatching(/^one of /),
    });
    const late = { phase: "late", dataset: rows(4), datset: "" };
    await expect(runPipeline([phases[0]!, late], options)).rejects.toMatchObject({
      where: 'pipeline phase "late".datset',
      got: 'the unknown option "datset"',
    });
    const other = { ...phases[0]!, method: "ppo" as "sft" };
    await expect(runPipeline([other], options)).rejects.toMatchObject({
      where: 'pipeline phase "coupling".method',
      got: '"ppo"',
      expected: '"sft" or "dpo"',
    });
    const unread = { ...phases[0]!, reference: "copy" } as PipelinePhase;
    await expect(runPipeline([unread], options)).rejects.toMatchObject({
      got: 'the unknown option "reference"',
    });
    await expect(runPipeline([phases[0]!, { phase: "a/b", dataset: [] }], options)).rejects.toMatchObject({
      where: "SFTTrainer options.phase",
      got: '"a/b"',
    });
    model.dispose();
  });

  it("counts the steps of earlier phases", async () => {
    const runDir = await temporaryFolder();
    await run(runDir);
    const { session } = JSON.parse(
      await readFile(join(runDir, "checkpoints/em/step_7/trainer_state.json"), "utf8"),
    ) as TrainerState;
    expect(session).toMatchObject({ phase: "em", runStepOffset: 12 });
  });

  it.each<[string, Partial<SFTPhase>, object]>([
    [
      "two callbacks with the same id",
      { callbacks: [{ id: "a" }, { id: "a" }] },
      { code: "config", got: expect.stringContaining('"a" twice') },
    ],
    [
      "rows longer than the context",
      { config: { maxLength: 65 } },
      { path: ["maxLength"], got: "65", expected: expect.stringMatching(/^at most 64/) },
    ],
    [
      "a missing dataset file",
      { dataset: "nowhere/rows.jsonl" },
      {
        code: "data",
        where: expect.stringMatching(/nowhere\/rows\.jsonl$/),
        got: "a path which does not exist",
      },
    ],
    ["no dataset", { dataset: undefined as never }, { where: "SFTTrainer options.dataset", got: "nothing" }],
    [
      "a decay that is longer than the phase",
      { config: { maxSteps: 7, schedule: "wsd", decaySteps: 5 } },
      { path: ["schedule"], got: expect.stringMatching(/ and 5 of decay$/) },
    ],
    [
      "an unknown metric in keepBest",
      { config: { validationShare: 0.2, keepBest: "loss" } },
      { path: ["keepBest"], got: '"loss"', expected: expect.stringMatching(/^"eval_loss"/) },
    ],
  ])("throws for %s in a late phase before the first step", async (_, late, error) => {
    const runDir = await temporaryFolder();
    const given = [phases[0]!, { ...phases[1]!, ...late }];
    await expect(run(runDir, "tiny", given)).rejects.toMatchObject(error);
    expect(await readdir(runDir)).toEqual([]);
  });

  it("throws for a wrong configuration of a late phase, and for a duplicate name, before the first step", async () => {
    const late: PipelinePhase = { phase: "late", dataset: rows(4), config: { batchSise: 3 } as object };
    await expect(run(await temporaryFolder(), "tiny", [phases[0]!, late])).rejects.toThrow(
      'Did you mean "batchSize"?',
    );
    const misnamed = {
      method: "dpo",
      phase: "late",
      dataset: preferences(4),
      config: { validationShare: 0.25, keepBest: "eval_perplexity" },
    } as const;
    await expect(run(await temporaryFolder(), "tiny", [phases[0]!, misnamed])).rejects.toMatchObject({
      where: "DPO config.keepBest",
      got: '"eval_perplexity"',
      expected: expect.stringMatching(/^"eval_loss" or /),
    });
    await expect(run(await temporaryFolder(), "tiny", [phases[0]!, phases[0]!])).rejects.toMatchObject({
      where: "pipeline phases[1].phase",
      got: 'a second phase named "coupling"',
    });
  });
});
