import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { measure, type EvaluableModel, type PeriodicEvalError } from "@periodic-eval/core";
import { evaluationConformance, fakeModel } from "@periodic-eval/testing";
import { beforeAll, describe, expect, it } from "vitest";
import { mmluGroups } from "./datasets.ts";
import { folderWith, linesOf, smallRows, writeSmallRows } from "./small-rows.test-data.ts";
import { taskNamed, tasks } from "./registry.ts";
import type { TaskOptions } from "./task.ts";

let data: Readonly<Record<string, string>>;
beforeAll(async () => {
  const root = await mkdtemp(join(tmpdir(), "tasks-"));
  data = await writeSmallRows(root, Object.values(mmluGroups).flat());
  return () => rm(root, { recursive: true });
});

const folderName: Readonly<Record<string, string>> = {
  arc_challenge: "arc",
  arc_easy: "arc",
  truthfulqa_mc2: "truthfulqa",
};
const dataOf = (task: string) => data[folderName[task] ?? task.split("_")[0]!]!;
const opened = (task: string, options: Partial<TaskOptions> = {}) =>
  taskNamed(tasks, task, "task").open({ data: dataOf(task), ...options });
const measured = async (task: string, model: EvaluableModel, options: Partial<TaskOptions> = {}) =>
  measure(opened(task, options), model);

describe.each([
  "arc_challenge",
  "arc_easy",
  "hellaswag",
  "truthfulqa_mc2",
  "gsm8k",
  "mmlu",
  "mmlu_anatomy",
  "mmlu_other",
])("%s", (task) => {
  const few = { shots: 2, limit: task === "mmlu" ? 1 : 3 };
  const make = () => ({ evaluation: opened(task, few), model: fakeModel() });
  for (const check of evaluationConformance(make)) it(check.name, check.run);
});

describe("scores", () => {
  it("of ARC use the highest log-likelihood, and the highest per code point", async () => {
    // The answers are 1, 2, 3, 1. "two …" has the highest sum: 1 of 4 is correct.
    // Per code point, −6/5, −5/5 and −5.5/7 favour "three …": 1 of 4 is correct.
    const model = fakeModel({
      logLikelihood: (_, choice) => ({ one: -6, two: -5, three: -5.5 })[choice.split(" ")[1]!]!,
    });
    const { snapshot, rows } = await measured("arc_challenge", model);
    expect(snapshot.metrics["acc"]).toMatchObject({ value: 0.25, n: 4 });
    expect(snapshot.metrics["acc_norm"]).toMatchObject({ value: 0.25, n: 4 });
    expect(rows.find(({ id }) => id === "1")).toMatchObject({ gold: [1], correct: true, correctNorm: false });
  });

  it("of TruthfulQA are the share of probability on true answers", async () => {
    // e^-1 + e^-2 of e^-1 + e^-2 + e^-1.5 = 0.503215 of 0.726345: 0.692804; the same at −1001 and so on, where exp is 0.
    for (const shift of [0, -1000]) {
      const nats = (choice: string) => (/\d/.test(choice) ? -1 : choice.endsWith("not") ? -1.5 : -2) + shift;
      const model = fakeModel({ logLikelihood: (_, choice) => nats(choice) });
      const { snapshot } = await measured("truthfulqa_mc2", model);
      expect(snapshot.metrics["acc"]!.value).toBeCloseTo(0.692804, 6);
    }
  });

  it("of GSM8K compare the answers that two filters extract from the completion", async () => {
    // The four answers: correct for both filters, correct for the last number only, wrong, and without a number.
    const replies: Readonly<Record<string, string>> = {
      0: " So.\n#### 1",
      1: " It is 2.",
      2: " 7",
      3: " none",
    };
    const reply = (prompt: string) => replies[/(\d) and 1\?\nAnswer:$/.exec(prompt)![1]!]!;
    const { snapshot, rows } = await measured("gsm8k", fakeModel({ reply }), { shots: 2 });
    expect(snapshot.metrics["exact_match,strict-match"]).toMatchObject({ value: 0.25, n: 4 });
    expect(snapshot.metrics["exact_match,flexible-extract"]).toMatchObject({ value: 0.5, n: 4 });
    expect(snapshot.primary_metric).toBe("exact_match,strict-match");
    expect(rows.find(({ id }) => id === "3#0")).toMatchObject({
      score: {
        "strict-match": { answer: "[invalid]", correct: false },
        "flexible-extract": { answer: "[invalid]", correct: false },
      },
    });
  });

  it("of MMLU weight subjects by size, and include groups and subjects", async () => {
    // The model always prefers A. Each subject has four questions with the answers A to D; anatomy (stem) has only A, virology (other)
    // A and B. Of stem's 19 subjects, 19 of 73 (18 × 4 + 1) are correct; of all, 57 of 223 (55 × 4 + 1 + 2).
    const uneven = await writeSmallRows(await folderWith({}), Object.values(mmluGroups).flat());
    const csv = (rows: number) =>
      `question,choice0,choice1,choice2,choice3,answer\n${["q,a,b,c,d,0", "q,a,b,c,d,1"].slice(0, rows).join("\n")}\n`;
    await writeFile(`${uneven["mmlu"]}/test/anatomy_test.csv`, csv(1));
    await writeFile(`${uneven["mmlu"]}/test/virology_test.csv`, csv(2));
    const model = fakeModel({ logLikelihood: (_, choice) => (choice === " A" ? -1 : -2) });
    const { snapshot } = await measured("mmlu", model, { data: uneven["mmlu"]!, shots: 0 });
    expect(snapshot.metrics["acc"]).toMatchObject({ value: 57 / 223, n: 223 });
    expect(snapshot.metrics["acc/stem"]).toMatchObject({ value: 19 / 73, n: 73 });
    expect(snapshot.metrics["acc/anatomy"]).toMatchObject({ value: 1, n: 1 });
    expect(snapshot.metrics["acc/virology"]).toMatchObject({ value: 0.5, n: 2 });
    const groups = Object.keys(snapshot.metrics).filter((name) => name.startsWith("acc/"));
    expect(groups).toHaveLength(57 + 4);
    expect(Object.keys(snapshot.metrics).filter((name) => name.includes("/"))).toEqual(groups);
    const stem = await measured("mmlu_stem", model, { data: uneven["mmlu"]!, shots: 0 });
    expect(stem.snapshot.metrics["acc"]).toMatchObject({ value: 19 / 73, n: 73 });
    expect(stem.snapshot.metrics["acc/stem"]).toBeUndefined();
  });
});

describe("documents", () => {
  const idsOf = async (task: string, options: Partial<TaskOptions>) =>
    ((await opened(task, options).items(fakeModel() as never)) as { id: string }[]).map(({ id }) => id);

  it("are limited to the first ones of each subject, then subsampled", async () => {
    expect((await idsOf("arc_easy", { limit: 2 })).toSorted()).toEqual(["0", "1"]);
    const ids = await idsOf("mmlu_other", { limit: 2, shots: 0 });
    expect(ids).toHaveLength(26);
    expect(ids.filter((id) => id.startsWith("virology/")).toSorted()).toEqual(["virology/0", "virology/1"]);
    const few = await idsOf("mmlu_other", { limit: 2, shots: 0, subsample: { n: 5, seed: 1 } });
    expect(few).toHaveLength(5);
    expect(ids).toEqual(expect.arrayContaining(few));
    expect(await idsOf("mmlu_other", { limit: 2, shots: 0, subsample: { n: 3, seed: 1 } })).toEqual(
      few.slice(0, 3),
    );
  });

  it("give the same prompts in the layouts of ../shared/data and of the hub", async () => {
    const itemsOf = (folder: string) => opened("arc_challenge", { data: folder }).items(fakeModel() as never);
    const requestsOf = async (folder: string) =>
      ((await itemsOf(folder)) as { prompt: unknown; choices: unknown; gold: unknown }[]).map(
        ({ prompt, choices, gold }) => ({ prompt, choices, gold }),
      );
    const hub = await folderWith({ "test.jsonl": linesOf(smallRows.arcOfHub) });
    expect(await requestsOf(hub)).toEqual(await requestsOf(data["arc"]!));
  });

  it("are not their own few-shot examples if the pool is their file", async () => {
    const file = `${data["arc"]}/test.jsonl`;
    const items = (await opened("arc_easy", { data: file, fewshotPool: file, shots: 3 }).items(
      fakeModel() as never,
    )) as { id: string; prompt: { text: string } }[];
    for (const { id, prompt } of items) expect(prompt.text.split(`Which is ${id}?`)).toHaveLength(2);
  });

  it("of TruthfulQA.csv list the correct answers before the incorrect ones", async () => {
    const text = 'Question,Correct Answers,Incorrect Answers\nWhy?,"Yes; It is so;  ",No ;Never\n';
    const folder = await folderWith({ "TruthfulQA.csv": text });
    const [item] = (await opened("truthfulqa_mc2", { data: folder }).items(fakeModel() as never)) as object[];
    expect(item).toMatchObject({ choices: ["Yes", "It is so", "No", "Never"], gold: [0, 1] });
  });
});

describe("invalid data and options", () => {
  const thrownBy = async (run: () => unknown) => {
    try {
      await run();
    } catch (error) {
      return error as PeriodicEvalError;
    }
    throw new Error("not so: nothing was thrown");
  };
  const itemsOf = (task: string, options: Partial<TaskOptions>) =>
    opened(task, options).items(fakeModel() as never) as Promise<unknown>;

  it.each([
    [
      "arc_easy",
      "test.jsonl",
      smallRows.arc,
      { correct_answer: "4" },
      /test\.jsonl:2: got correct_answer = "4", expected one of the labels "1", "2", "3"/,
    ],
    [
      "arc_easy",
      "test.jsonl",
      smallRows.arc,
      { choice_labels: ["1", "2"] },
      /test\.jsonl:2: got 2 choice_labels and 3 choices/,
    ],
    [
      "arc_easy",
      "test.jsonl",
      smallRows.arc,
      { question: 7 },
      /test\.jsonl:2: got question = 7, expected question: a non-empty string/,
    ],
    [
      "arc_easy",
      "test.jsonl",
      smallRows.arcOfHub,
      { choices: ["a"] },
      /test\.jsonl:2: got choices = \["a"\], expected choices: an object/,
    ],
    [
      "hellaswag",
      "validation.jsonl",
      smallRows.hellaswag,
      { label: "" },
      /validation\.jsonl:2: got label = "", expected label: 0 to 3/,
    ],
    [
      "hellaswag",
      "validation.jsonl",
      smallRows.hellaswag,
      { label: 4 },
      /validation\.jsonl:2: got label = 4/,
    ],
    [
      "truthfulqa_mc2",
      "validation.jsonl",
      smallRows.truthfulqa,
      { mc2_targets: { choices: ["a"], labels: [] } },
      /validation\.jsonl:2: got mc2_targets\.labels = \[\], expected mc2_targets\.labels: 0 or 1/,
    ],
    [
      "truthfulqa_mc2",
      "validation.jsonl",
      smallRows.truthfulqa,
      { mc2_targets: { choices: ["a"], labels: [0] } },
      /validation\.jsonl:2: got 0 right answers of 1/,
    ],
    [
      "gsm8k",
      "test.jsonl",
      smallRows.gsm8k,
      { answer: undefined },
      /test\.jsonl:2: got no answer \(keys: question\)/,
    ],
    [
      "mmlu_anatomy",
      "anatomy.jsonl",
      smallRows.mmlu,
      { answer: 4 },
      /anatomy\.jsonl:2: got answer = 4, expected answer: 0 to 3/,
    ],
    [
      "mmlu_anatomy",
      "anatomy.jsonl",
      smallRows.mmlu,
      { choices: ["a"] },
      /anatomy\.jsonl:2: got choices = \["a"\], expected choices: four strings/,
    ],
  ] as const)(
    "%s: reports an invalid row with file and line (%#)",
    async (task, file, rows, wrong, message) => {
      const folder = await folderWith({ [file]: linesOf([rows[0]!, { ...rows[1]!, ...wrong }]) });
      const error = await thrownBy(() => itemsOf(task, { data: `${folder}/${file}`, shots: 0 }));
      expect(error.code).toBe("data");
      expect(error.message).toMatch(message);
    },
  );

  it.each([
    [{ data: "" }, /arc_easy options\.data: got ""/],
    [{ shots: -1 }, /arc_easy options\.shots: got -1/],
    [{ limit: 0 }, /arc_easy options\.limit: got 0/],
    [{ fewshotSeed: 0.5 }, /arc_easy options\.fewshotSeed: got 0\.5/],
    [{ chat: { system: 1 } }, /arc_easy options\.chat\.system: got 1/],
    [{ chat: { fewshotAsMultiTurn: true } }, /Did you mean "fewshotAsMultiturn"/],
    [{ shot: 1 }, /Did you mean "shots"/],
  ] as const)("rejects an invalid option (%#)", async (options, message) => {
    const error = await thrownBy(() => opened("arc_easy", options as never));
    expect(error.code).toBe("config");
    expect(error.message).toMatch(message);
  });

  it("reports missing data and examples", async () => {
    const folder = await folderWith({ "test.csv": "a\n" });
    const found = async (task: string, options: Partial<TaskOptions>) =>
      (await thrownBy(() => itemsOf(task, options))).message;
    expect(await found("gsm8k", { data: `${folder}/none` })).toMatch(
      /gsm8k options\.data: got "[^"]+none", which does not exist/,
    );
    expect(await found("mmlu_virology", { data: folder })).toMatch(/expected test\/virology_test\.csv, or/);
    expect(await found("gsm8k", { data: `${data["gsm8k"]}/test.jsonl` })).toMatch(
      /gsm8k options\.shots: got 5 without a pool/,
    );
    const file = `${data["mmlu"]}/test/virology_test.csv`;
    expect(await found("mmlu_other", { data: file })).toMatch(
      /got the single source .*, expected a folder, .* with 13/,
    );
    expect(await found("mmlu", { fewshotPool: file })).toMatch(
      /mmlu options\.fewshotPool: got the single source/,
    );
    expect(await found("gsm8k", { shots: 5 })).toMatch(/gsm8k options\.shots: got 5 with a pool of 4/);
  });

  it("suggests the nearest name for an unknown task", async () => {
    const message = async (name: string) => (await thrownBy(() => taskNamed(tasks, name, "task"))).message;
    expect(await message("arc_chalenge")).toMatch(/Did you mean "arc_challenge"/);
    expect(await message("mmlu_anatomi")).toMatch(/Did you mean "mmlu_anatomy"/);
    expect(await message("toString")).toMatch(/got "toString"/);
  });
});

it("registers lm-evaluation-harness' names and versions", () => {
  expect(Object.keys(tasks)).toHaveLength(6 + 1 + 4 + 57);
  const versions = Object.fromEntries(Object.values(tasks).map(({ name, version }) => [name, version]));
  expect(versions).toMatchObject({
    arc_challenge: "1.0",
    hellaswag: "1.0",
    mmlu: "2",
    mmlu_social_sciences: "2",
    mmlu_us_foreign_policy: "1.0",
    truthfulqa_mc2: "3.0",
    gsm8k: "3.0",
    ifeval: "4.0",
  });
});
