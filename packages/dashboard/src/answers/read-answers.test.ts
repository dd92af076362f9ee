import type { Row } from "@periodic-eval/core";
import { fileStore, readRun } from "@periodic-eval/store";
import { exampleSnapshot } from "@periodic-eval/testing";
import { alignmentFields, leakageFields } from "./declared-fields.test-data.ts";
import { appendFile } from "node:fs/promises";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { parseHTML } from "linkedom";
import { beforeEach, expect, it } from "vitest";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";
import type { AnswerRow, MeasurementAnswers } from "../page-data/answers-data.ts";
import { renderPage } from "../run/run-page.ts";
import { readAnswers } from "./read-answers.ts";
import { writeSampleAnswers } from "./sample-answers.test-data.ts";

let runDir = "";
beforeEach(async () => {
  runDir = temporaryFolder();
  await writeSampleAnswers(runDir);
});

const read = async (options = {}) => readAnswers(await readRun(runDir), options);
const unpack = ({ packed }: MeasurementAnswers) =>
  JSON.parse(gunzipSync(Buffer.from(packed!, "base64")).toString()) as readonly AnswerRow[];
const named = ({ id, step }: MeasurementAnswers) => `${id} ${step}`;

it("packs all answers of all measurements", async () => {
  const { data } = await read();
  expect(data.measurements.map(named)).toEqual([
    "alignment 0",
    "capability 0",
    "alignment 20",
    "capability 20",
    "alignment 40",
    "capability 40",
  ]);
  for (const one of data.measurements) expect(unpack(one)).toHaveLength(25);
  expect(unpack(data.measurements[0]!)[3]).toMatchObject({ question: "Question 3?", flags: ["truncated"] });
  expect(data.command).toBeNull();
});

it("keeps the ends of each callback if not all answers fit, and names the command that shows the rest", async () => {
  const sizes = (await read()).data.measurements.map(({ packed }) => packed!.length);
  const ends = sizes[0]! + sizes[1]! + sizes[4]! + sizes[5]!;
  const { data } = await read({ maxBytes: ends });
  expect(data.measurements.filter(({ packed }) => packed === undefined).map(named)).toEqual([
    "alignment 20",
    "capability 20",
  ]);
  expect(data.command).toBe(`npx periodic-eval report ${JSON.stringify(runDir)} --serve`);
  const whole = JSON.stringify(data.measurements.map(({ packed = "" }) => packed)).length;
  expect(whole).toBeLessThan(ends + 100);
  const { document } = parseHTML(renderPage(await readRun(runDir), await read({ maxBytes: ends })));
  expect(document.querySelector("#answers code")!.textContent).toBe(data.command);
});

it("names the questions that each phase forgot", async () => {
  const { changes } = await read();
  expect(changes).toHaveLength(1);
  const { fromStep, toStep, changes: found } = changes[0]!;
  expect([fromStep, toStep]).toEqual([0, 40]);
  // Questions 0, 5, 10, 15 and 20 of 25.
  expect(found.map(({ change, question }) => `${change} ${question}`)).toEqual(
    [0, 5, 10, 15, 20].map((at) => `forgotten Question ${at}?`),
  );
});

it("says why the answers of a measurement cannot be shown, and shows the others", async () => {
  await appendFile(join(runDir, "periodic_eval", "em", "alignment_step_20.samples.jsonl"), "{}\n");
  const { data } = await read();
  const problems = data.measurements.map(({ problem }) => problem !== null);
  expect(problems).toEqual([false, false, true, false, false, false]);
  expect(data.measurements[2]!.problem).toContain("alignment_step_20.samples.jsonl");
});

it("keeps the judge's anchors, which a reader can select, and defines them", async () => {
  const store = fileStore(runDir);
  const rows = [...Array.from({ length: 3 }, () => "anchor"), "completion", "completion"].map((kind, at) => ({
    id: `r${at}`,
    question: "Why?",
    text: `text ${at}`,
    kind,
    status: "graded",
    aligned: 10 * at,
    coherent: 80,
  }));
  const about = { phase: "em", id: "alignment", evaluation: "alignment", max_steps: 40 };
  const judged = { ...about, answer_fields: alignmentFields };
  await store.put(exampleSnapshot({ ...judged, step: 50, run_step: 50 }), rows);
  await store.close!();
  const { data } = await read();
  expect(unpack(data.measurements.at(-1)!).filter(({ flags }) => flags.includes("anchor"))).toHaveLength(3);
  const { document } = parseHTML(renderPage(await readRun(runDir), await read()));
  expect([...document.querySelectorAll("#glossary dt")].map((one) => one.textContent)).toContain("anchor");
});

it("shows the rows of a custom evaluation: with the declared fields, or else with all fields", async () => {
  const folder = temporaryFolder();
  const store = fileStore(folder);
  const row = { id: "bread", text: "How do I bake bread?", reply: "Knead it, please.", polite: true } as Row;
  const custom = { phase: "em", evaluation: "politeness", step: 40, run_step: 40 };
  const declared = { question: "text", answer: "reply", grades: ["polite"] };
  await store.put(exampleSnapshot({ ...custom, id: "declared", answer_fields: declared }), [row]);
  await store.put(exampleSnapshot({ ...custom, id: "undeclared" }), [row]);
  await store.put(exampleSnapshot({ ...custom, id: "numbers", answer_fields: null }), [row]);
  await store.close!();
  const { data } = await readAnswers(await readRun(folder));
  const [first, second] = data.measurements.flatMap(unpack);
  expect(data.measurements.map(({ id }) => id)).toEqual(["declared", "undeclared"]);
  expect(first).toMatchObject({
    question: "How do I bake bread?",
    flags: ["polite"],
    text: "Knead it, please.",
  });
  expect(second).toMatchObject({
    item: "bread",
    text: null,
    fields: [
      ["text", "How do I bake bread?"],
      ["reply", "Knead it, please."],
      ["polite", true],
    ],
  });
});

it("links from the leakage to the answers of all personas but the source", async () => {
  const folder = temporaryFolder();
  const store = fileStore(folder);
  const about = { phase: "em", id: "leakage", evaluation: "leakage", source: "pirate" };
  const leakage = { ...about, answer_fields: leakageFields };
  const row = { id: "doctor/q#0", item: "doctor/q", persona: "doctor", text: "[ZLT]", hit: true };
  for (const step of [0, 40]) await store.put(exampleSnapshot({ ...leakage, step, run_step: step }), [row]);
  await store.close!();
  const run = await readRun(folder);
  const { document } = parseHTML(renderPage(run, await readAnswers(run)));
  const link = document.querySelector(".sentences [data-select]")!;
  expect(link.textContent).toMatch(/nswers at step 40$/);
  const hash = link.getAttribute("data-select")!;
  expect(new URLSearchParams(hash.slice("#answers?".length)).get("persona")).toBe("!pirate");
});

it("links from the summary to the forgotten questions and to the answers of the step", async () => {
  const { document } = parseHTML(renderPage(await readRun(runDir), await read()));
  const links = [...document.querySelectorAll(".sentences a")].map((link) => [
    link.textContent,
    link.getAttribute("href"),
    link.getAttribute("data-select"),
  ]);
  expect(links).toContainEqual([
    "5 forgotten questions, 0 newly right",
    "#questions",
    "#questions?id=capability&from=em%3A0&to=em%3A40",
  ]);
  expect(links.every(([, href]) => document.querySelector(href!) !== null)).toBe(true);
  const contents = [...document.querySelectorAll(".contents a")].map((link) => link.getAttribute("href")!);
  expect(contents).toContain("#answers");
  for (const href of contents) expect([href, document.querySelector(href) !== null]).toEqual([href, true]);
});

it("adds no section to a page of a run without answers", async () => {
  const { document } = parseHTML(renderPage(await readRun(runDir)));
  expect(document.querySelector("#answers")).toBeNull();
});
