import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import {
  everyPercent,
  PeriodicCapabilityCallback,
  type CallbackContext,
  type SessionEvent,
} from "@periodic-eval/core";
import { readRun } from "@periodic-eval/store";
import { beforeAll, expect, it } from "vitest";
import { SFTTrainer } from "../sft/sft-trainer.ts";
import { tinyLM } from "../testing/tiny-lm.test-data.ts";
import {
  questionFile,
  rows,
  temporaryFolder,
  tokenizer,
  ungoverned,
  useWasm,
} from "../testing/tiny-run.test-data.ts";

let questions: string;

beforeAll(async () => {
  await useWasm();
  questions = await questionFile();
});

const snapshotsOf = async (runDir: string) => (await readRun(runDir)).phases[0]!.snapshots;

/** Trains to `maxSteps`, or until an interrupt after `stopAt`. Returns the warnings. */
async function train(runDir: string, maxSteps: number, stopAt?: number): Promise<readonly string[]> {
  const stop = new AbortController();
  const onStepEnd = ({ progress }: CallbackContext) => void (progress.step === stopAt && stop.abort());
  const model = tinyLM({ vocabSize: tokenizer.vocabSize });
  const warnings: string[] = [];
  const event = (one: SessionEvent) => void (one.kind === "warning" && warnings.push(one.message));
  const trainer = new SFTTrainer({
    model,
    tokenizer,
    runDir,
    dataset: rows(4),
    config: { maxSteps, batchSize: 2, learningRate: 0.01, schedule: "constant", saveSteps: 2 },
    loggers: [{ name: "recorder", event }],
    session: ungoverned,
    signal: stop.signal,
    callbacks: [{ id: "stop", onStepEnd }],
  });
  trainer.addCallback(new PeriodicCapabilityCallback({ questions, schedule: [everyPercent(50)] }));
  await trainer.train();
  model.dispose();
  return warnings;
}

it.each(["model.safetensors", "trainer_state.json"])(
  "measures nothing twice and misses nothing when %s of the newest checkpoint is damaged",
  async (file) => {
    const [runDir, whole] = [await temporaryFolder(), await temporaryFolder()];
    await train(whole, 8);
    await train(runDir, 8, 6);
    const before = await snapshotsOf(runDir);
    expect(before.map(({ step }) => step)).toEqual([0, 4]);
    await writeFile(join(runDir, "checkpoints/train/step_6", file), "{");
    const warnings = await train(runDir, 8);
    expect(warnings).toContainEqual(expect.stringContaining("skipped a damaged checkpoint"));
    const numbers = async (run: string) =>
      (await snapshotsOf(run)).map(({ step, status, metrics }) => [step, status, metrics]);
    expect(await numbers(runDir)).toEqual(await numbers(whole));
    // The start stands as it was.
    expect((await snapshotsOf(runDir))[0]).toEqual(before[0]);
    expect((await readRun(runDir)).problems).toEqual([]);
  },
);
