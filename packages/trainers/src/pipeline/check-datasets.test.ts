import { appendFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as tf from "@tensorflow/tfjs";
import type { Tokenizer } from "@periodic-eval/core";
import { beforeAll, expect, it } from "vitest";
import { tinyLM } from "../testing/tiny-lm.test-data.ts";
import {
  preferences,
  recording,
  rows,
  temporaryFolder,
  tokenizer,
  ungoverned,
} from "../testing/tiny-run.test-data.ts";
import { checkDatasets } from "./check-pipeline.ts";
import type { PipelinePhase } from "./phases.ts";
import { runPipeline } from "./run-pipeline.ts";

beforeAll(async () => {
  await tf.setBackend("cpu");
});

/** Counts the rendered chats. */
function counting() {
  const counted = { rendered: 0 };
  const counter: Tokenizer = {
    ...tokenizer,
    render(...given) {
      counted.rendered += 1;
      return tokenizer.render(...given);
    },
  };
  return { counted, counter };
}

async function prepared() {
  const folder = await temporaryFolder();
  const file = (name: string, list: readonly object[]) => {
    const path = join(folder, name);
    writeFileSync(path, list.map((row) => `${JSON.stringify(row)}\n`).join(""));
    return path;
  };
  const phases: readonly PipelinePhase[] = [
    {
      phase: "sft",
      dataset: file("sft.jsonl", [...rows(9), { text: " " }]),
      validation: file("held-out.jsonl", rows(3, "held out")),
    },
    { phase: "dpo", method: "dpo", dataset: file("dpo.jsonl", preferences(6)) },
  ];
  const model = tinyLM({ vocabSize: tokenizer.vocabSize });
  const { counted, counter } = counting();
  const options = {
    model,
    tokenizer: counter,
    runDir: join(folder, "run"),
    config: { maxSteps: 2, batchSize: 2 },
  };
  const check = async () => {
    for (const phase of phases) expect(await checkDatasets(phase, options)).toEqual([]);
  };
  const train = async () => {
    const logger = recording();
    const results = await runPipeline(phases, { ...options, loggers: [logger], session: ungoverned });
    return { results, warnings: logger.warnings };
  };
  return { phases, counted, check, train };
}

it("keeps the rows of the check for the trainers, which still report bad rows", async () => {
  const { counted, check, train } = await prepared();
  await check();
  // Each chat once; of each preference, the prompt and both completions.
  expect(counted.rendered).toBe(9 + 3 + 3 * 6);
  const { results, warnings } = await train();
  expect(counted.rendered).toBe(9 + 3 + 3 * 6);
  expect(results.map(({ steps, badRows }) => [steps, badRows.length])).toEqual([
    [2, 1],
    [2, 0],
  ]);
  expect(warnings[0]).toContain("1 of 10 rows cannot be trained on and are left out");
  // The rows are kept for one training only.
  await train();
  expect(counted.rendered).toBe(2 * (9 + 3 + 3 * 6));
});

it("reads a file again that has changed since the check", async () => {
  const { phases, counted, check, train } = await prepared();
  await check();
  const before = counted.rendered;
  appendFileSync(phases[0]!.dataset as string, `${JSON.stringify(rows(1, "late")[0])}\n`);
  const { results } = await train();
  expect(results[0]!.epochs).toBe(2 / 5);
  expect(counted.rendered).toBe(before + 10);
});
