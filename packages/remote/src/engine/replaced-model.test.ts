import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { atSteps, PeriodicCapabilityCallback, withSession } from "@periodic-eval/core";
import { fileStore } from "@periodic-eval/store";
import { fakeModel, fakeTokenizer } from "@periodic-eval/testing";
import { expect, it } from "vitest";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";
import { vllm } from "../index.ts";
import { scriptedServer } from "./scripted-server.test-data.ts";

/** Measures a served model at the start and at two steps. The server replaces its model in between. */
async function measureServed(replacing: {
  readonly atStep?: number;
  /** The request for scores, counted within the measurement of step 1. */
  readonly atRequest?: number;
}) {
  const tokenizer = fakeTokenizer();
  let scored = -Infinity;
  const { url, models } = await scriptedServer({
    model: fakeModel({ tokenizer, weights: () => "first" }),
    fault: ({ path }) => {
      if (path === "/v1/completions" && ++scored === replacing.atRequest) replace();
      return null;
    },
  });
  const replace = () => models.set("base", fakeModel({ tokenizer, weights: () => "second" }));
  const model = await vllm({ urls: url, model: "base", tokenizer });
  const folder = temporaryFolder();
  const questions = join(folder, "questions.jsonl");
  const rows = ["1 + 1?", "2 + 2?", "3 + 3?"].map((question, at) =>
    JSON.stringify({
      question,
      choice_labels: ["A", "B"],
      choices: ["2", "4"],
      correct_answer: "AB"[at % 2],
    }),
  );
  await writeFile(questions, rows.join("\n"));
  const callback = new PeriodicCapabilityCallback({ questions, schedule: [atSteps([1, 2])] });
  const run = join(folder, "run");
  const session = { run, phase: "em", model, callbacks: [callback], maxSteps: 2, loggers: [] };
  await withSession({ ...session, budget: { overheadPercent: null } }, async ({ begin, stepEnd }) => {
    await begin();
    scored = 0;
    for (const step of [1, 2]) {
      if (step === replacing.atStep) replace();
      await stepEnd();
      scored = -Infinity;
    }
  });
  await model.dispose();
  return (await fileStore(run).list()).map(({ step, status, reason }) => [step, status, reason]);
}

const replaced = expect.stringMatching(/differ by up to [\d.]+ nats/) as string;

it("measures a served model that stays the same", async () => {
  expect(await measureServed({})).toEqual([
    [0, "complete", null],
    [1, "complete", null],
    [2, "complete", null],
  ]);
});

it("fails the measurement before which a server replaced its model", async () => {
  expect(await measureServed({ atStep: 2 })).toEqual([
    [0, "complete", null],
    [1, "complete", null],
    [2, "failed", replaced],
  ]);
});

it("fails the measurement within which a server replaces its model, and those after it", async () => {
  // The first request of a measurement is the probe at its start.
  expect(await measureServed({ atRequest: 2 })).toEqual([
    [0, "complete", null],
    [1, "failed", replaced],
    [2, "failed", replaced],
  ]);
});
