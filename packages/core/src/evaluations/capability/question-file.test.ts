import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { parquetWriteBuffer } from "hyparquet-writer";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import {
  arcParquet,
  hasRealArc,
  realArcRows,
  smallArcRows,
} from "../../../../data/src/rows/arc-parquet.test-data.ts";
import {
  datasetCommit,
  hostDataset,
  startHub,
  type HubServer,
} from "../../../../data/src/hub/hub-server.test-data.ts";
import { fakeModel } from "@periodic-eval/testing";
import type { PeriodicEvalError } from "@periodic-eval/contracts";
import { capabilityEvaluation } from "./evaluation.ts";
import { readQuestions } from "@periodic-eval/data";
import { temporaryFolder } from "../../../../testing/src/temporary-folder.test-data.ts";

let hub: HubServer;
let folder = "";
beforeEach(async () => {
  hub = await startHub();
  folder = temporaryFolder();
  vi.stubEnv("HF_ENDPOINT", hub.url);
  vi.stubEnv("HF_HUB_CACHE", join(folder, "cache"));
  for (const name of ["HF_TOKEN", "HF_HUB_OFFLINE"]) vi.stubEnv(name, "");
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await hub.close();
});

const file = async (name: string, content: string | Uint8Array) => {
  const path = join(folder, name);
  await writeFile(path, content);
  return path;
};
const lines = (rows: readonly object[]) => rows.map((row) => JSON.stringify(row)).join("\n");
const read = async (source: string) => (await readQuestions(source, "x.questions")).questions;
const host = (bytes: Uint8Array) =>
  hostDataset(hub, "allenai/ai2_arc", { "ARC-Challenge/test/0000.parquet": bytes });

describe("ARC's own rows", () => {
  it("are read from JSON Lines, Parquet and the hub, with the dataset's ids", async () => {
    host(arcParquet(smallArcRows));
    const questions = await read(await file("arc.jsonl", lines(smallArcRows)));
    expect(questions[1]).toEqual({
      id: "LEAP_8",
      question: "Which is cold?",
      labels: ["1", "2", "3"],
      choices: ["ice", "fire", "tea"],
      gold: "1",
    });
    expect(await read(await file("arc.parquet", arcParquet(smallArcRows)))).toEqual(questions);
    expect(await read("hf:allenai/ai2_arc")).toEqual(questions);
  });

  it.skipIf(!hasRealArc)("hold all questions of the real test split (needs ../shared/data)", async () => {
    const rows = realArcRows();
    host(arcParquet(rows));
    const questions = await read("hf:allenai/ai2_arc/ARC-Challenge/test");
    expect(questions.map(({ id }) => id)).toEqual(rows.map(({ id }) => id));
    const ours = await read("../shared/data/arc_challenge/test.jsonl");
    const withoutId = (question: (typeof ours)[number]) => ({ ...question, id: null });
    expect(questions.map(withoutId)).toEqual(ours.map(withoutId));
  });

  it.each<[row: object, got: string, fix?: RegExp]>([
    [{ ...smallArcRows[0], choices: { text: ["a", "b"] } }, "no choices.label (keys: text)"],
    [
      { ...smallArcRows[0], choices: { text: ["a"], label: ["A"] } },
      'choices.label = ["A"]',
      /^Correct "choices.label"/,
    ],
    [{ ...smallArcRows[0], choices: ["a", "b"] }, 'choices = ["a","b"]'],
    [{ ...smallArcRows[0], answerKey: "C" }, 'answerKey = "C"'],
    [{ ...smallArcRows[0], answerKey: null }, "answerKey = null"],
    [
      { ...smallArcRows[0], choices: { text: ["a", "b"], label: ["A", "B", "C"] } },
      "3 choices.label and 2 choices",
    ],
  ])("are rejected with their line: %j", async (row, got, fix = /./) => {
    const path = await file("wrong.jsonl", lines([smallArcRows[1]!, row]));
    const failed = read(path);
    await expect(failed).rejects.toMatchObject({
      code: "data",
      where: `${path}:2`,
      got,
      fix: expect.stringMatching(fix),
    });
  });
});

describe("capability without `questions`", () => {
  it("asks hf:allenai/ai2_arc, and records its commit", async () => {
    host(arcParquet(smallArcRows));
    const evaluation = capabilityEvaluation();
    const items = (await evaluation.items(fakeModel())) as readonly { readonly id: string }[];
    expect(items.map(({ id }) => id).sort()).toEqual(["LEAP_8", "Mercury_7"]);
    expect(evaluation.provenance!()).toMatchObject({
      hub: "allenai/ai2_arc",
      config: "ARC-Challenge",
      split: "test",
      commit: datasetCommit,
      file_questions: 2,
    });
  });

  it("rejects a dataset with another schema, with the place of the row", async () => {
    const columnData = [{ name: "prompt", data: ["a", "b"], type: "STRING" as const }];
    host(new Uint8Array(parquetWriteBuffer({ columnData })));
    const failed = capabilityEvaluation().items(fakeModel());
    await expect(failed).rejects.toMatchObject({
      code: "data",
      where: "hf:allenai/ai2_arc/ARC-Challenge/test/0000.parquet row 0",
      got: "no question (keys: prompt)",
      fix: expect.stringContaining('choices.text, choices.label, "answerKey"'),
    });
  });

  it("rejects rows with one id, with both places", async () => {
    host(arcParquet([smallArcRows[0]!, smallArcRows[0]!]));
    const place = "hf:allenai/ai2_arc/ARC-Challenge/test/0000.parquet row";
    await expect(read("hf:allenai/ai2_arc")).rejects.toMatchObject({
      where: `${place} 1`,
      got: `the id "Mercury_7", which ${place} 0 already has`,
    });
  });

  it("names the option and both remedies when HF_HUB_OFFLINE is set", async () => {
    vi.stubEnv("HF_HUB_OFFLINE", "1");
    const error = await Promise.resolve(capabilityEvaluation().items(fakeModel())).then(
      () => null,
      (thrown: unknown) => thrown as PeriodicEvalError,
    );
    expect(error).toMatchObject({ code: "data", where: "the default questions" });
    for (const remedy of [
      "a file in `questions`",
      "npx periodic-eval data get arc_challenge",
      "unset HF_HUB_OFFLINE",
    ])
      expect(error!.fix).toContain(remedy);
    expect(hub.requests).toEqual([]);
  });
});

it("draws few-shot examples from a dataset", async () => {
  host(arcParquet(smallArcRows));
  const questions = await file("own.jsonl", lines([{ ...smallArcRows[0]!, id: "own" }]));
  const shots = { shots: 1, pool: "hf:allenai/ai2_arc", poolSeed: 1 };
  const evaluation = capabilityEvaluation({ questions, method: "cloze", shots });
  expect(await evaluation.items(fakeModel())).toHaveLength(1);
});
