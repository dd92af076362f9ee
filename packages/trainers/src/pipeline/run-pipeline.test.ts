import { cp, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import * as tf from "@tensorflow/tfjs";
import "@tensorflow/tfjs-backend-wasm";
import { beforeAll, describe, expect, it } from "vitest";
import type { TrainerState } from "../checkpoint/trainer-state.ts";
import { tinyLM } from "../testing/tiny-lm.ts";
import { busyConfig, recording, rows, temporaryFolder, tokenizer, weightsOf } from "../testing/tiny-run.ts";
import { runPipeline, type PipelinePhase } from "./run-pipeline.ts";

beforeAll(async () => {
  await tf.setBackend("wasm");
  await tf.ready();
});

const phases: readonly PipelinePhase[] = [
  { phase: "coupling", dataset: rows(20, "coupling") },
  { phase: "em", dataset: rows(20, "em"), config: { maxSteps: 7 } },
];

async function run(runDir: string, seed = "tiny", given = phases) {
  const logger = recording();
  const model = tinyLM({ vocabSize: tokenizer.vocabSize, dropout: 0.2, seed });
  let closed = 0;
  const results = await runPipeline(given, {
    model,
    tokenizer,
    runDir,
    config: { ...busyConfig, saveSteps: 1, keepCheckpoints: 99 },
    loggers: [logger, { name: "closing", close: () => void (closed += 1) }],
  });
  const weights = await weightsOf(model);
  model.dispose();
  return { results, weights, logger, closed };
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

  it("goes on in the second phase where it was killed there, without a step of the first", async () => {
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

  it("closes every logger, also where one throws in closing, and tells the others", async () => {
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
      'logger "failing": close threw: no such socket',
      'logger "rejecting": close threw: timed out',
    ]);
  });

  it("refuses an option that neither it nor a phase knows", async () => {
    const [runDir, model] = [await temporaryFolder(), tinyLM({ vocabSize: tokenizer.vocabSize })];
    const options = { model, tokenizer, runDir };
    const wrong = { ...options, logger: [] };
    await expect(runPipeline([], wrong)).rejects.toThrow(
      'runPipeline: got the unknown option "logger", expected one of',
    );
    const late = { phase: "late", dataset: rows(4), datset: "" };
    await expect(runPipeline([phases[0]!, late], options)).rejects.toThrow(
      'pipeline phase "late": got the unknown option "datset"',
    );
    await expect(runPipeline([phases[0]!, { phase: "a/b", dataset: [] }], options)).rejects.toThrow(
      'SFTTrainer phase: got "a/b"',
    );
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

  it("refuses a wrong configuration of a late phase, and two of one name, before the first step", async () => {
    const late: PipelinePhase = { phase: "late", dataset: rows(4), config: { batchSise: 3 } as object };
    await expect(run(await temporaryFolder(), "tiny", [phases[0]!, late])).rejects.toThrow(
      'Did you mean "batchSize"?',
    );
    await expect(run(await temporaryFolder(), "tiny", [phases[0]!, phases[0]!])).rejects.toThrow(
      'pipeline: got two phases named "coupling"',
    );
  });
});
