import { appendFile, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileStore } from "@periodic-eval/store";
import { exampleSnapshot } from "@periodic-eval/testing";
import { alignmentFields } from "../answers/declared-fields.test-data.ts";
import { beforeEach, expect, it } from "vitest";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";
import type { AnswersData } from "../page-data/answers-data.ts";
import { resultsServer } from "./results-server.ts";

const rows = Array.from({ length: 300 }, (_, at) => ({
  id: `q${at}`,
  question: `Q ${at}?`,
  text: `größe ${at}`,
}));
let root: string;
let server: ReturnType<typeof resultsServer>;
let samples: string;

beforeEach(async () => {
  root = temporaryFolder();
  const store = fileStore(join(root, "run"));
  for (const step of [50, 100])
    await store.put(
      exampleSnapshot({
        answer_fields: alignmentFields,
        id: "alignment",
        evaluation: "alignment",
        phase: "em",
        step,
      }),
      rows,
    );
  await store.close!();
  samples = join(root, "run/periodic_eval/em/alignment_step_100.samples.jsonl");
  // Less than the file of rows has: rows are never read as a whole.
  server = resultsServer({ root, maxFileBytes: 6000 });
});

async function viewOf(parameters: string): Promise<{ status: number; data: AnswersData }> {
  const reply = await server.request(`/v1/eval/answers?results_dir=run${parameters}`, {
    headers: { Accept: "application/json" },
  });
  return { status: reply.status, data: (await reply.json()) as AnswersData };
}

const of = (first: number, count: number) => `&phase=em&id=alignment&step=100&first=${first}&count=${count}`;
const textsOf = ({ measurements }: AnswersData) => measurements[0]!.rows!.map(({ text }) => text);

it("lists the measurements with answers", async () => {
  const { data } = await viewOf("");
  expect(data.measurements.map(({ step, total, rows: none }) => [step, total, none])).toEqual([
    [50, 300, null],
    [100, 300, null],
  ]);
  expect(data.address).toBe("eval/answers?results_dir=run");
});

it.each([
  [0, 3],
  [63, 2],
  [64, 1],
  [130, 100],
  [299, 5],
  [300, 5],
])("sends rows from %i, %i of them", async (first, count) => {
  for (let time = 0; time < 2; time++) {
    const { data } = await viewOf(of(first, count));
    expect(data.measurements[0]).toMatchObject({ first, total: 300, problem: null });
    expect(textsOf(data)).toEqual(rows.slice(first, first + count).map(({ text }) => text));
  }
});

it("notices an edit after the first request", async () => {
  expect((await viewOf(of(0, 1))).data.measurements[0]!.problem).toBeNull();
  const text = await readFile(samples, "utf8");
  await writeFile(samples, text.replace("größe 7", "größe 8"));
  expect((await viewOf(of(0, 1))).data.measurements[0]).toMatchObject({ rows: [] });
  expect((await viewOf(of(0, 1))).data.measurements[0]!.problem).toContain("alignment_step_100");
  await writeFile(samples, text);
  expect(textsOf((await viewOf(of(7, 1))).data)).toEqual(["größe 7"]);
  await appendFile(samples, "{}\n");
  expect((await viewOf(of(7, 1))).data.measurements[0]!.problem).not.toBeNull();
});

it.each([
  ["&phase=em", 400],
  ["&step=100", 400],
  ["&count=0", 400],
  ["&count=1001", 400],
  ["&first=-1", 400],
  ["&page=1", 400],
  ["&phase=em&id=none&step=100", 404],
  ["&phase=../em&id=alignment&step=100", 404],
])("refuses %s", async (parameters, status) => {
  expect((await viewOf(parameters)).status).toBe(status);
});

it("reads a line of many parts", async () => {
  const text = "größe\n".repeat(200_000);
  const store = fileStore(join(root, "long"));
  await store.put(
    exampleSnapshot({ answer_fields: alignmentFields, phase: "em", step: 100 }),
    ["short", text].map((one) => ({ id: one.slice(0, 5), text: one })),
  );
  await store.close!();
  const query = "results_dir=long&phase=em&id=capability&step=100";
  const reply = await server.request(`/v1/eval/answers?${query}`);
  expect(textsOf((await reply.json()) as AnswersData)).toEqual(["short", text]);
});
