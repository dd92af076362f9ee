import { readFileSync } from "node:fs";
import { cp, readdir } from "node:fs/promises";
import { join } from "node:path";
import * as tf from "@tensorflow/tfjs";
import { type TrainerCallback } from "@periodic-eval/core";
import { beforeAll, describe, expect, it } from "vitest";
import {
  busyConfig,
  recording,
  rows,
  temporaryFolder,
  weightsOf,
  useWasm,
} from "../testing/tiny-run.test-data.ts";
import { openTiny, tinySFT } from "./tiny-sft.test-data.ts";

beforeAll(useWasm);

describe("SFTTrainer", () => {
  it("leaves no tensor if warm-up and decay are longer than the epochs", async () => {
    // 20 rows in batches of 3 are 7, in groups of 2 are 4 steps per epoch.
    const config = { ...busyConfig, maxSteps: null, epochs: 1, schedule: "wsd", decaySteps: 50 } as const;
    const { sft, model } = await tinySFT({ config });
    const before = tf.memory().numTensors;
    await expect(sft.train()).rejects.toMatchObject({
      where: "SFT config.schedule",
      got: "3 steps of warm-up and 50 of decay",
      expected: "at most the 4 steps of the phase",
    });
    expect(tf.memory().numTensors).toBe(before);
    model.dispose();
  });

  it("learns, and logs loss, learning rate, norm and speed of every step", async () => {
    const logger = recording();
    const seen: number[] = [];
    const { sft, model } = await tinySFT({
      loggers: [logger, { name: "speed", train: (metrics) => void seen.push(metrics["tokens_per_second"]!) }],
      config: { ...busyConfig, maxSteps: 40, schedule: "constant", warmupSteps: 0 },
    });
    const result = await sft.train();
    // 20 rows in batches of 3 are 7, in groups of 2 are 4 steps per epoch.
    expect(result).toMatchObject({
      phase: "train",
      steps: 40,
      maxSteps: 40,
      epochs: 10,
      stopReason: null,
      resumedFrom: null,
    });
    expect(logger.metrics.map(({ step }) => step)).toEqual(Array.from({ length: 40 }, (_, i) => i + 1));
    expect(logger.metrics[0]).toMatchObject({ learning_rate: 0.05 });
    expect(seen.every((tokensPerSecond) => tokensPerSecond > 0)).toBe(true);
    // A uniform guess among 261 tokens costs log 261 = 5.56 nats; the answers have eight letters and an end.
    expect(logger.metrics[0]!["loss"]).toBeGreaterThan(5);
    expect(result.finalLoss).toBeLessThan(3);
    model.dispose();
  });

  it("gives the same bits twice, and others for another seed", async () => {
    const run = async (seed: number) => {
      const { sft, model } = await tinySFT({ config: { ...busyConfig, seed } });
      await sft.train();
      return weightsOf(model);
    };
    const first = await run(42);
    expect(await run(42)).toEqual(first);
    expect(await run(43)).not.toEqual(first);
  });

  it("keeps the number of tensors constant from step to step, and leaves none behind", async () => {
    const counts: number[] = [];
    const watcher: TrainerCallback = {
      id: "watcher",
      onStepEnd: () => void counts.push(tf.memory().numTensors),
    };
    const model = openTiny();
    const before = tf.memory().numTensors;
    const { sft } = await tinySFT({ model, callbacks: [watcher] });
    await sft.train();
    expect(counts).toHaveLength(12);
    expect(new Set(counts).size).toBe(1);
    expect(tf.memory().numTensors).toBe(before);
    model.dispose();
  });

  it("stops and saves when a callback requests it, and finishes the phase", async () => {
    const asking: TrainerCallback = {
      id: "asking",
      onStepEnd(context) {
        if (context.progress.step === 2) context.requestSave("for safety");
        if (context.progress.step === 5) context.requestStop("enough");
      },
    };
    const { sft, runDir, model } = await tinySFT();
    const result = await sft.addCallback(asking).train();
    expect(result).toMatchObject({ steps: 5, stopReason: "enough" });
    expect((await readdir(join(runDir, "checkpoints/train"))).sort()).toEqual(["step_2", "step_5"]);
    const again = await tinySFT({ runDir, model: openTiny("other") });
    expect(await again.sft.train()).toMatchObject({ steps: 5, stopReason: "enough", resumedFrom: 5 });
    expect(await weightsOf(again.model)).toEqual(await weightsOf(model));
  });

  it("ends an aborted phase with a checkpoint from which it resumes", async () => {
    const abort = new AbortController();
    const aborting: TrainerCallback = {
      id: "aborting",
      onStepEnd: ({ progress }) => void (progress.step === 4 && abort.abort()),
    };
    const { sft, runDir } = await tinySFT({ callbacks: [aborting], signal: abort.signal });
    expect((await sft.train()).steps).toBe(4);
    expect(await (await tinySFT({ runDir })).sft.train()).toMatchObject({
      steps: 12,
      resumedFrom: 4,
      stopReason: null,
    });
  });

  it("reports the rows that cannot be trained on", async () => {
    const logger = recording();
    const bad = { messages: [{ role: "user", content: "only a question" }] };
    const { sft } = await tinySFT({ dataset: [...rows(8), bad], loggers: [logger], config: { maxSteps: 1 } });
    const { badRows } = await sft.train();
    expect(badRows).toEqual([
      { where: "dataset[8]", reason: "no_assistant_turn", got: expect.stringContaining("only user") },
    ]);
    expect(logger.warnings[0]).toContain(
      "dataset: 1 of 9 rows cannot be trained on and are left out: dataset[8]: no_assistant_turn",
    );
  });

  it("lists all bad rows of each source in the run, names the lists, and keeps them on resume", async () => {
    const logger = recording();
    const bad = Array.from({ length: 7 }, (_, i) => ({ text: " ".repeat(i) }));
    const options = { dataset: [...rows(8), ...bad], validation: [...rows(2), ...bad.slice(0, 6)] };
    const { sft, runDir } = await tinySFT({ ...options, loggers: [logger], config: { maxSteps: 1 } });
    const { badRows } = await sft.train();
    const listed = ["dataset", "validation"].map((of) => join(runDir, "bad_rows/train", `${of}.jsonl`));
    for (const [i, path] of listed.entries())
      expect(logger.warnings[i]).toMatch(
        new RegExp(
          `cannot be trained on and are left out: (dataset.*; ){5}… All bad rows are listed in ${path}.$`,
        ),
      );
    const lines = () =>
      listed.flatMap((path) =>
        readFileSync(path, "utf8")
          .trimEnd()
          .split("\n")
          .map((line) => JSON.parse(line) as unknown),
      );
    expect(lines()).toEqual(badRows);
    expect(badRows).toHaveLength(13);
    await (await tinySFT({ ...options, runDir, config: { maxSteps: 1 } })).sft.train();
    expect(lines()).toEqual(badRows);
    expect((await readdir(join(runDir, "bad_rows/train"))).sort()).toEqual([
      "dataset.jsonl",
      "validation.jsonl",
    ]);
  });

  it.each(["drop", "error"] as const)("lists bad rows even if it throws: %s", async (onBadRow) => {
    const bad = Array.from({ length: 7 }, () => ({ text: "" }));
    const { sft, runDir } = await tinySFT({ dataset: bad, config: { onBadRow } });
    const path = join(runDir, "bad_rows/train/dataset.jsonl");
    await expect(sft.train()).rejects.toThrow(`All bad rows are listed in ${path}.`);
    expect(readFileSync(path, "utf8").split("\n")).toHaveLength(8);
  });

  it("warns once of unused columns", async () => {
    const logger = recording();
    const dataset = rows(8).map((row, id) => ({ ...row, id }));
    const { sft } = await tinySFT({ dataset, loggers: [logger], config: { maxSteps: 1 } });
    await sft.train();
    expect(logger.warnings).toEqual(["dataset: unused columns: id"]);
  });

  it("reports truncated rows", async () => {
    const logger = recording();
    const long = { messages: [rows(1)[0]!.messages[0]!, { role: "assistant", content: "y".repeat(100) }] };
    const config = { maxSteps: 1, onBadRow: "truncate" } as const;
    const { sft } = await tinySFT({ dataset: [...rows(8), long], loggers: [logger], config });
    expect((await sft.train()).badRows).toMatchObject([{ where: "dataset[8]", reason: "too_long" }]);
    expect(logger.warnings[0]).toMatch(
      /^dataset: 1 of 9 rows cannot be trained on unchanged: dataset\[8\]: too_long \(\d+ tokens, cut to the first 64\)\. All bad rows are listed in /,
    );
  });

  it.each(["../elsewhere", "", ".hidden", "superseded", 3])(
    "throws for the phase %j before it looks for a checkpoint",
    async (phase) => {
      await expect(tinySFT({ phase: phase as string, resume: "never" })).rejects.toMatchObject({
        where: "SFTTrainer options.phase",
        got: JSON.stringify(phase),
        expected: expect.stringMatching(/^a name/),
      });
    },
  );

  it("throws for an unknown or invalid option", async () => {
    await expect(tinySFT({ callback: [] } as object)).rejects.toMatchObject({
      where: "SFTTrainer options.callback",
      got: 'the unknown option "callback"',
      fix: 'Did you mean "callbacks"?',
    });
    await expect(tinySFT({ budget: {} } as object)).rejects.toMatchObject({
      where: "SFTTrainer options.budget",
      fix: 'Did you mean "session.budget"? Set session: { budget: {} }.',
    });
    await expect(tinySFT({ resume: "always" as "auto" })).rejects.toMatchObject({
      where: "SFTTrainer options.resume",
      got: '"always"',
      expected: '"auto" or "never"',
    });
  });

  it("throws for session settings that belong to the trainer, and for callbacks with the same id", async () => {
    await expect(tinySFT({ session: { seed: "7" } as object })).rejects.toMatchObject({
      where: "SFTTrainer options.session.seed",
      got: 'the unknown option "seed"',
      expected: expect.stringMatching(/^one of onFailure,/),
    });
    await expect(tinySFT({ session: { baseline: "start" } })).rejects.toMatchObject({
      where: "session options.baseline",
      got: '"start"',
    });
    const { sft } = await tinySFT({ callbacks: [{ id: "a" }] });
    expect(() => sft.addCallback({ id: "a" })).toThrow('"a" twice');
  });

  it("saves before the first step if a callback requests it at the beginning, and resumes there", async () => {
    const asking: TrainerCallback = {
      id: "asking",
      onTrainBegin: (context) => context.requestSave("the untouched model"),
    };
    const logger = recording();
    const config = { ...busyConfig, keepCheckpoints: 9 };
    const first = await tinySFT({ callbacks: [asking], loggers: [logger], config });
    await first.sft.train();
    const folder = join(first.runDir, "checkpoints/train");
    expect((await readdir(folder)).sort()).toEqual(["step_0", "step_12"]);
    const runDir = await temporaryFolder();
    await cp(join(folder, "step_0"), join(runDir, "checkpoints/train/step_0"), { recursive: true });
    const resumed = recording();
    const again = await tinySFT({ runDir, model: openTiny("other"), loggers: [resumed], config });
    expect(await again.sft.train()).toMatchObject({ steps: 12, resumedFrom: 0 });
    expect(resumed.metrics).toEqual(logger.metrics);
  });

  it("throws for a wrong configuration at construction, and for maxLength above the model's context", async () => {
    await expect(tinySFT({ config: { lerningRate: 1 } as object })).rejects.toThrow(
      'Did you mean "learningRate"?',
    );
    await expect(tinySFT({ config: { maxLength: 65 } })).rejects.toMatchObject({
      where: "SFT config.maxLength",
      got: "65",
      expected: "at most 64, the model's context length",
    });
    // With a graph of fixed length, a token after it would be predicted from the next row.
    await expect(
      tinySFT({ model: { ...openTiny(), fixedLength: 16 }, config: { maxLength: 17 } }),
    ).rejects.toMatchObject({
      where: "SFT config.maxLength",
      got: "17",
      expected: "at most 16, the model's context length",
    });
  });
});
