import { EventEmitter } from "node:events";
import { realpathSync } from "node:fs";
import { join } from "node:path";
import { fileStore, readRun } from "@periodic-eval/store";
import { exampleSnapshot } from "@periodic-eval/testing";
import { alignmentFields } from "../answers/declared-fields.test-data.ts";
import type { Context } from "hono";
import { parseHTML } from "linkedom";
import { afterAll, beforeAll, expect, it } from "vitest";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";
import { containedFiles } from "./contained-files.ts";
import { sent } from "./replies.ts";
import { resultsServer } from "./results-server.ts";
import { rowReader } from "./row-index.ts";
import { readStoredAnswers } from "./stored-answers.ts";

const root = temporaryFolder(afterAll);
beforeAll(async () => {
  const store = fileStore(join(root, "run"));
  // 300 answers of 2,000 characters are more than one part of the file.
  const rows = Array.from({ length: 600 }, (_, at) => ({
    id: `r${at}`,
    text: at % 2 === 0 ? `answer ${at / 2}, größe ${"x".repeat(2000)}` : null,
  }));
  await store.put(exampleSnapshot({ answer_fields: alignmentFields, phase: "em", step: 100 }), rows);
  await store.close?.();
});

const server = resultsServer({ root, maxFileBytes: 100_000 });

it.each([
  [1, "50 of 300", "answer 0,", ["later answers →"]],
  [4, "151 to 200 of 300", "answer 150,", ["← earlier answers", "later answers →"]],
  [6, "251 to 300 of 300", "answer 250,", ["← earlier answers"]],
])(
  "shows page %i of a run's answers, from a file larger than the limit of whole files",
  async (number, counts, first, links) => {
    const reply = await server.request(`/v1/eval?results_dir=run&page=${number}`);
    const page = parseHTML(await reply.text()).document;
    const texts = [...page.querySelectorAll(".answer pre")].map((one) => one.textContent);
    expect(texts).toHaveLength(50);
    expect(texts[0]!.slice(0, first.length)).toBe(first);
    expect([...page.querySelectorAll("summary span")].map((one) => one.textContent)).toContain(
      `step 100 · ${counts}`,
    );
    expect([...page.querySelectorAll(".pagination a")].map((one) => one.textContent)).toEqual(links);
  },
);

it.each([
  ["", 0, 300],
  ["&page=2&per_page=7", 7, 7],
  ["&page=43&per_page=7", 294, 6],
])("returns the answers of a run as JSON (%s)", async (query, from, count) => {
  const headers = { Accept: "application/json" };
  const reply = await server.request(`/v1/eval?results_dir=run${query}`, { headers });
  const { answers } = (await reply.json()) as {
    readonly answers: readonly {
      readonly count: number;
      readonly rows: readonly { readonly text: string }[];
    }[];
  };
  expect(answers.map((one) => [one.count, one.rows.length])).toEqual([[300, count]]);
  expect(answers[0]!.rows[0]!.text).toContain(`answer ${from}, größe`);
});

it.each([
  ["text/html", "&page=7", "page: got 7, expected at most 6."],
  ["text/html", "&page=7&steps=all", "page: got 7, expected at most 6."],
  ["application/json", "&page=44&per_page=7", "page: got 44, expected at most 43."],
])("replies 400 in %s to a page after the last one (%s)", async (accept, query, message) => {
  const reply = await server.request(`/v1/eval?results_dir=run${query}`, { headers: { Accept: accept } });
  expect(reply.status).toBe(400);
  expect(await reply.text()).toContain(message);
});

it("does not read more answers than a reply may have, and says how to request them", async () => {
  const files = containedFiles(realpathSync(root));
  const run = await readRun("run", files, { rows: false });
  const read = (count: number) =>
    readStoredAnswers(run, { files, rows: rowReader() }, { first: 0, count }, 100_000);
  const [refused] = await read(Infinity);
  expect(refused).toMatchObject({ rows: [], problem: { kind: "unavailable" } });
  expect(refused!.problem!.message).toContain("Request them in parts, with page and per_page.");
  expect((await read(40)).map(({ rows, count }) => [rows.length, count])).toEqual([[40, 300]]);
});

it("leaves the judge's anchors out of the answers and their number", async () => {
  const folder = temporaryFolder();
  const store = fileStore(join(folder, "run"));
  const rows = ["anchor", "completion", "anchor", "completion"].map((kind, at) => ({
    id: `r${at}`,
    text: `text ${at}`,
    kind,
  }));
  await store.put(
    exampleSnapshot({
      answer_fields: alignmentFields,
      id: "alignment",
      evaluation: "alignment",
      phase: "em",
      step: 100,
    }),
    rows,
  );
  await store.close?.();
  const reply = await resultsServer({ root: folder }).request("/v1/eval?results_dir=run");
  const { document } = parseHTML(await reply.text());
  const texts = [...document.querySelectorAll(".answer pre")].map((one) => one.textContent);
  expect(texts).toEqual(["text 1", "text 3"]);
  expect(document.querySelector("#answers summary span")!.textContent).toBe("step 100 · 2");
});

it("reads a line of many parts", async () => {
  const folder = temporaryFolder();
  const store = fileStore(join(folder, "run"));
  const text = "größe\n".repeat(200_000);
  const rows = ["short", text].map((one) => ({ id: one.slice(0, 5), text: one }));
  await store.put(exampleSnapshot({ answer_fields: alignmentFields, phase: "em", step: 100 }), rows);
  await store.close?.();
  const headers = { Accept: "application/json" };
  const reply = await resultsServer({ root: folder }).request("/v1/eval?results_dir=run", { headers });
  expect(await reply.json()).toMatchObject({ answers: [{ rows: [{ text: "short" }, { text }] }] });
});

it("waits until a client has read its reply", async () => {
  const outgoing = Object.assign(new EventEmitter(), { writableFinished: false });
  const context = { env: { outgoing }, req: { raw: { signal: new AbortController().signal } } };
  let isSent = false;
  const waiting = sent(context as unknown as Context).then(() => (isSent = true));
  await new Promise(setImmediate);
  expect(isSent).toBe(false);
  outgoing.emit("close");
  expect(await waiting).toBe(true);
});
