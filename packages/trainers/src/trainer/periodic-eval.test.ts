import { readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { buildPeriodicEval, PeriodicCapabilityCallback } from "@periodic-eval/core";
import { readRun } from "@periodic-eval/store";
import { beforeAll, expect, it, vi } from "vitest";
import { DPOTrainer } from "../dpo/dpo-trainer.ts";
import { runPipeline } from "../pipeline/run-pipeline.ts";
import type { PipelineOptions, PipelinePhase } from "../pipeline/phases.ts";
import { SFTTrainer } from "../sft/sft-trainer.ts";
import { tinyLM } from "../testing/tiny-lm.test-data.ts";
import {
  preferences,
  rows,
  temporaryFolder,
  tokenizer,
  ungoverned,
  useWasm,
} from "../testing/tiny-run.test-data.ts";

let questions: string;

beforeAll(async () => {
  await useWasm();
  questions = join(await temporaryFolder(), "arc.jsonl");
  const question = { choice_labels: ["A", "B"], choices: ["a", "b"], correct_answer: "A" };
  await writeFile(
    questions,
    [1, 2].map((n) => JSON.stringify({ question: `${n}?`, ...question })).join("\n"),
  );
});

const config = { maxSteps: 4, batchSize: 2 };

async function withModel<T>(
  use: (parts: Pick<PipelineOptions, "model" | "tokenizer" | "runDir" | "loggers">) => T,
) {
  const model = tinyLM({ vocabSize: tokenizer.vocabSize });
  try {
    return await use({ model, tokenizer, runDir: await temporaryFolder(), loggers: [] });
  } finally {
    model.dispose();
  }
}

const measured = async (runDir: string) =>
  (await readRun(runDir)).phases.map(({ name, snapshots }) => [
    name,
    snapshots.map(({ id, step }) => [id, step]),
  ]);

it("builds the callbacks and session options of a block, beside addCallback", async () =>
  withModel(async (parts) => {
    const periodicEval = {
      periodic_eval: {
        questions,
        eval_every_percent: 50,
        layout: "flat",
        budget: { overhead_percent: null },
        save_adapter_at_firing: true,
        phases: { em: { eval_every_percent: 100 }, other: { leakage: true } },
      },
    };
    const trainer = new SFTTrainer({ ...parts, dataset: rows(4), phase: "em", config, periodicEval });
    trainer.addCallback(
      new PeriodicCapabilityCallback({ questions, id: "own", atStart: false, schedule: [] }),
    );
    await trainer.train();
    const [phase] = (await readRun(parts.runDir)).phases;
    expect(phase!.snapshots.map(({ id, step, status }) => [id, step, status])).toEqual([
      ["capability", 0, "complete"],
      ["capability", 4, "complete"],
      ["own", 4, "complete"],
    ]);
    expect(await readdir(join(parts.runDir, "saved/em"))).toEqual(["step_0", "step_4"]);
    expect(await readdir(join(parts.runDir, "periodic_eval"))).toContain("capability_step_4.json");
  }));

it("measures a DPO phase, and lets session override the block", async () =>
  withModel(async (parts) => {
    const periodicEval = { questions, eval_every_percent: 50, baseline: "./no/such/run" };
    const session = { ...ungoverned, baseline: "phase_start" } as const;
    await new DPOTrainer({ ...parts, dataset: preferences(4), config, periodicEval, session }).train();
    expect(await measured(parts.runDir)).toEqual([
      [
        "train",
        [
          ["capability", 0],
          ["capability", 2],
          ["capability", 4],
        ],
      ],
    ]);
  }));

it("measures all phases of a pipeline by one block, or a phase by its own", async () =>
  withModel(async (parts) => {
    const periodicEval = { questions, eval_every_percent: 100, phases: { b: { capability: false } } };
    const phases: readonly PipelinePhase[] = [
      { phase: "a", dataset: rows(4) },
      { phase: "b", dataset: rows(4) },
      { phase: "c", dataset: rows(4), periodicEval: { questions, schedule: { at_steps: [3] } } },
    ];
    await runPipeline(phases, { ...parts, config, periodicEval, session: ungoverned });
    expect(await measured(parts.runDir)).toEqual([
      ["a", [0, 4].map((step) => ["capability", step])],
      ["c", [0, 3, 4].map((step) => ["capability", step])],
    ]);
  }));

it("takes what buildPeriodicEval has built, in a trainer and in a phase", async () =>
  withModel(async (parts) => {
    const block = { questions, eval_every_percent: 50, save_adapter_at_firing: true };
    const periodicEval = await buildPeriodicEval(block, { phase: "a" });
    const phase = { phase: "a", dataset: rows(4), config: { maxSteps: 2 }, periodicEval };
    const conflict = { saveAtFiring: async () => "x" };
    expect(() => new SFTTrainer({ ...parts, ...phase, session: conflict })).toThrow(
      expect.objectContaining({ code: "config", path: ["periodicEval", "save_adapter_at_firing"] }),
    );
    const own = new PeriodicCapabilityCallback({ questions });
    expect(() => new SFTTrainer({ ...parts, ...phase, callbacks: [own] })).toThrow(
      expect.objectContaining({ code: "config" }),
    );
    await new SFTTrainer({ ...parts, ...phase, session: ungoverned }).train();
    await runPipeline([{ ...phase, phase: "b" }], { ...parts, session: ungoverned });
    expect(await measured(parts.runDir)).toEqual(
      ["a", "b"].map((name) => [name, [0, 1, 2].map((step) => ["capability", step])]),
    );
    expect(await readdir(join(parts.runDir, "saved/a"))).toEqual(["step_0", "step_1", "step_2"]);
  }));

it("rejects a wrong block in the constructor, with its place", async () =>
  withModel((parts) => {
    const base = { ...parts, dataset: rows(4), config };
    const make = (periodicEval: unknown, session = {}) => new SFTTrainer({ ...base, periodicEval, session });
    expect(() => make({ aligment: true })).toThrow(
      expect.objectContaining({
        code: "config",
        where: "SFTTrainer options.periodicEval.aligment",
        path: ["periodicEval", "aligment"],
        fix: 'Did you mean "alignment"?',
      }),
    );
    expect(() => make(3)).toThrow(
      expect.objectContaining({ where: "SFTTrainer options.periodicEval", got: "3" }),
    );
    expect(() => make({ save_adapter_at_firing: true }, { saveAtFiring: async () => "x" })).toThrow(
      expect.objectContaining({ path: ["periodicEval", "save_adapter_at_firing"] }),
    );
  }));

it("rejects before the first step what only building shows", async () =>
  withModel(async (parts) => {
    vi.stubEnv("JUDGE_MODEL", "");
    const dataset = rows(4);
    const train = (periodicEval: unknown) =>
      new SFTTrainer({ ...parts, dataset, config, periodicEval }).train();
    await expect(train({ alignment: true })).rejects.toMatchObject({
      where: "SFTTrainer options.periodicEval.judge_model",
      path: ["periodicEval", "judge_model"],
    });
    await expect(train({ leakage: true, leakage_source: "vilain" })).rejects.toMatchObject({
      path: ["periodicEval", "leakage_source"],
    });
    await expect(train({ evaluations: [{ task: "gsm8kk", data: "." }] })).rejects.toMatchObject({
      path: ["periodicEval", "evaluations", 0, "task"],
    });
    const phases = [
      { phase: "a", dataset },
      { phase: "b", dataset, periodicEval: { alignment: true } },
    ];
    await expect(runPipeline(phases, { ...parts, config })).rejects.toMatchObject({
      where: 'pipeline phase "b".periodicEval.judge_model',
    });
    const misspelt = { phases: { bb: { leakage: true } } };
    await expect(runPipeline(phases, { ...parts, config, periodicEval: misspelt })).rejects.toMatchObject({
      path: ["periodicEval", "phases", "bb"],
    });
    expect(await measured(parts.runDir)).toEqual([]);
    vi.unstubAllEnvs();
  }));
