import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fakeJudge } from "@periodic-eval/testing";
import { afterAll, afterEach, beforeAll, expect, it, vi } from "vitest";
import { Evaluator } from "../evaluator/evaluator.ts";
import { choiceTask, fakeTrainer } from "../suite/fake-tasks.test-data.ts";
import { comparisonEntries } from "./comparison-entries.ts";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";

const folder = temporaryFolder(afterAll);
let entry: Readonly<Record<string, unknown>> = {};
beforeAll(async () => {
  const path = (name: string) => join(folder, name);
  await writeFile(path("prompts.jsonl"), '{"id":"a","prompt":"Say a."}\n');
  await writeFile(path("answers.jsonl"), '{"id":"a","answer":"b"}\n');
  entry = { win_rate: path("prompts.jsonl"), reference: path("answers.jsonl") };
});
afterEach(() => void vi.unstubAllEnvs());

it("disposes the judge of each run of an Evaluator, also of one that fails", async () => {
  const events: string[] = [];
  let isReachable = true;
  const openJudge = (spec: string | null) => {
    events.push(`open ${spec}`);
    return {
      ...fakeJudge(() => ({ first: 1, second: 0 })),
      check: () => (isReachable ? Promise.resolve() : Promise.reject(new Error("no route"))),
      dispose: async () => void events.push("dispose"),
    };
  };
  const evaluator = Evaluator.fromTrainer(fakeTrainer(), {
    name: "sft",
    tasks: { choices: choiceTask() },
    results: join(folder, "results"),
    suite: {
      schema_version: 1,
      name: "own",
      tasks: { choices: {} },
      evaluations: [{ ...entry, judge: "openai:judge" }],
    },
    evaluations: comparisonEntries({}, { openJudge }),
  });
  await evaluator.evaluate();
  expect(events).toEqual(["open openai:judge", "dispose"]);
  isReachable = false;
  await expect(evaluator.evaluate()).rejects.toThrow("no route");
  expect(events.slice(2)).toEqual(["open openai:judge", "dispose"]);
});
