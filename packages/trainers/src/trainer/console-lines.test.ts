import { PeriodicCapabilityCallback } from "@periodic-eval/core";
import { beforeAll, beforeEach, expect, it, vi } from "vitest";
import { DPOTrainer } from "../dpo/dpo-trainer.ts";
import { runPipeline } from "../pipeline/run-pipeline.ts";
import { SFTTrainer } from "../sft/sft-trainer.ts";
import { tinyLM } from "../testing/tiny-lm.test-data.ts";
import {
  preferences,
  questionFile,
  rows,
  temporaryFolder,
  tokenizer,
  useWasm,
} from "../testing/tiny-run.test-data.ts";

beforeAll(useWasm);

const lines: string[] = [];
beforeEach(() => {
  lines.length = 0;
  vi.spyOn(console, "log").mockImplementation((text: string) => void lines.push(text));
});

/** Returns the lines without what a machine's speed or a seed decides. */
const shape = () =>
  lines.map((line) =>
    line
      .replaceAll(/loss [\d.]+/g, "loss N")
      .replaceAll(/[\d.]+ %(?=, training| \(| within)/g, "N %")
      .replaceAll(/[\d.]+ (steps\/s|s\/step)/g, "N steps/s")
      .replaceAll(/[\d.]+ tokens\/s/g, "N tokens/s")
      .replaceAll(/\d+ s of training left/g, "N s of training left")
      .replaceAll(/[\d.]+ % \[.*?\]/g, "N % [N, N]")
      .replaceAll(/measuring [\d.]+ s,/g, "measuring N s,")
      .replaceAll(/[\d.]+ s of measuring/g, "N s of measuring"),
  );

const config = { maxSteps: 2, batchSize: 3, learningRate: 1e-3, schedule: "constant" } as const;
const openModel = () => tinyLM({ vocabSize: tokenizer.vocabSize });
const step = (phase: string, at: number) =>
  `${phase} step ${at}/2  loss N  learning rate 1.0e-3  N steps/s  N tokens/s${at === 2 ? "" : "  N s of training left"}`;

it("prints steps, measurements, the plan and a closing line that says yes, with nothing but a callback given", async () => {
  const model = openModel();
  const runDir = await temporaryFolder();
  const trainer = new SFTTrainer({ model, tokenizer, dataset: rows(9), runDir, config });
  trainer.addCallback(new PeriodicCapabilityCallback({ questions: await questionFile() }));
  await trainer.train();
  expect(shape()).toEqual([
    "train step 0  measuring capability 0/3",
    "train step 0  capability  accuracy N % [N, N]",
    'plan: between start and end 1 measurement "capability" of 3 of 3 items; N s of measuring expected with start and end, within the 60 s that the budget always allows',
    step("train", 1),
    "train step 1  capability  accuracy N % [N, N]  no evidence",
    step("train", 2),
    "train step 2  capability  accuracy N % [N, N]  no evidence",
    `${runDir}: 3 measurements, measuring N s, within the 60 s that the budget always allows, training undisturbed: yes. See the page: npx periodic-eval report ${runDir}`,
  ]);
  model.dispose();
});

it("prints nothing with an empty array of loggers", async () => {
  const model = openModel();
  const options = { model, tokenizer, config, loggers: [], callbacks: [] };
  await new SFTTrainer({ ...options, dataset: rows(9), runDir: await temporaryFolder() }).train();
  await new DPOTrainer({ ...options, dataset: preferences(9), runDir: await temporaryFolder() }).train();
  await runPipeline([{ phase: "one", dataset: rows(9) }], {
    model,
    tokenizer,
    config,
    loggers: [],
    runDir: await temporaryFolder(),
  });
  expect(lines).toEqual([]);
  model.dispose();
});

it("prints one closing line for all phases of a pipeline", async () => {
  const model = openModel();
  const runDir = await temporaryFolder();
  const callbacks = () => [new PeriodicCapabilityCallback({ questions, schedule: [] })];
  const questions = await questionFile();
  await runPipeline(
    [
      { phase: "first", dataset: rows(9), callbacks: callbacks() },
      { phase: "second", method: "dpo", dataset: preferences(9), callbacks: callbacks() },
    ],
    { model, tokenizer, config, runDir },
  );
  const found = shape().filter((line) => !line.startsWith("plan: "));
  expect(found.filter((line) => / step 2\/2 /.test(line))).toEqual([
    step("first", 2),
    expect.stringMatching(
      /^second step 2\/2 {2}loss N {2}learning rate 1\.0e-3 {2}N steps\/s {2}N tokens\/s$/,
    ),
  ]);
  expect(
    found
      .filter((line) => line.includes("training undisturbed"))
      .map((line) => line.replaceAll(/[\d.]+ s (?=\()/g, "N s ")),
  ).toEqual([
    `${runDir}: 4 measurements, measuring N s (first), N s (second) at start and end, training undisturbed: yes. See the page: npx periodic-eval report ${runDir}`,
  ]);
  expect(found.at(-1)).toContain("training undisturbed");
  model.dispose();
});
