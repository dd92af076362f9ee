import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { measure } from "../../session/window/measure.ts";
import { compareMeasurements } from "../../statistics/compare.ts";
import { evaluationConformance, fakeModel } from "@periodic-eval/testing";
import { metricKit } from "../kit/metric-kit.ts";
import type { Persona } from "../prompting/personas.ts";
import { PeriodicCapabilityCallback } from "../../config/callbacks.ts";
import { capabilityEvaluation } from "./evaluation.ts";
import type { ChoiceRow } from "./metrics.ts";
import { temporaryFolder } from "../../../../testing/src/temporary-folder.test-data.ts";

const folder = temporaryFolder(afterAll);
let questions: string;
const personas: readonly Persona[] = [
  { id: "pirate", system: { text: "pirate" } },
  { id: "none", system: "omit" },
  { id: "empty", system: { text: "" } },
];
beforeAll(async () => {
  questions = join(folder, "questions.jsonl");
  const record = (id: string) =>
    JSON.stringify({
      id,
      question: `${id}?`,
      choice_labels: ["A", "B"],
      choices: ["x", "y"],
      correct_answer: "A",
    });
  await writeFile(questions, ["one", "two", "three"].map(record).join("\n"));
});

/** Right as anybody but the pirate, who knows `one?` alone. */
const model = fakeModel({
  nextToken: (prompt, candidate) =>
    (candidate === "A") === (!prompt.includes("pirate") || prompt.includes("one?")) ? -0.1 : -3,
});

describe("capability by persona", () => {
  for (const check of evaluationConformance(() => ({
    evaluation: capabilityEvaluation({ questions, personas }),
    model: fakeModel(),
  })))
    it(check.name, check.run);

  it("asks each question as each persona, and reports the accuracy of each", async () => {
    const prompts: string[] = [];
    const listening = fakeModel({ nextToken: (prompt) => (prompts.push(prompt), -1) });
    await measure(capabilityEvaluation({ questions, personas, subsample: { n: 1, seed: 42 } }), listening);
    expect(new Set(prompts.map((prompt) => prompt.split("<|user|>")[0]))).toEqual(
      new Set(["<|system|>pirate<|end|>", "", "<|system|><|end|>"]),
    );
    const { snapshot, rows } = await measure(capabilityEvaluation({ questions, personas }), model);
    expect(rows).toHaveLength(9);
    const value = (name: string) => snapshot.metrics[name]!.value;
    // 1 of 3 as the pirate, 3 of 3 as the others: 7 of 9.
    expect([value("accuracy/pirate"), value("accuracy/none"), value("accuracy")]).toEqual([1 / 3, 1, 7 / 9]);
    expect(snapshot).toMatchObject({ total: 9, correct: 7 });
    // Questions are the units: 3 of 3 in one, 2 of 3 in two.
    expect(snapshot.metrics["accuracy"]).toMatchObject({ n: 9, estimand: "over_questions" });
    expect(snapshot.metrics["accuracy"]!.stderr).toBeCloseTo(1 / 9, 12);
    expect(snapshot.metrics["gold_log_prob/none"]!.value).toBeCloseTo(-0.1, 12);
  });

  it("treats questions, not persona × question, as the units that vary between two measurements", async () => {
    const evaluation = capabilityEvaluation({ questions, personas });
    const [now, then] = [
      (await measure(evaluation, model)).rows,
      (await measure(evaluation, fakeModel({ nextToken: (_, c) => (c === "A" ? -0.1 : -3) }))).rows,
    ];
    const result = compareMeasurements<ChoiceRow>(
      evaluation.metrics(metricKit()),
      now as readonly ChoiceRow[],
      { rows: then as readonly ChoiceRow[], phase: "em", step: 0 },
      { seed: "s", primary: "accuracy", alpha: 0.05 },
    )["accuracy"]!;
    // Changes 0, −1/3, −1/3: −2/9 ± 1/9, two degrees of freedom.
    expect(result).toMatchObject({ n_pairs: 9, delta: expect.closeTo(-2 / 9, 12), test: "paired_t" });
    // scipy 1.17.1: 2 * stats.t.sf(2, 2)
    expect(result.p_value).toBeCloseTo(0.18350341907227397, 10);
  });

  it("keeps the personas of a question together, so that a smaller budget asks every persona", async () => {
    const items = await capabilityEvaluation({ questions, personas }).items(fakeModel());
    expect(items.slice(0, 3).map(({ id }: { id: string }) => id.split("/")[0])).toEqual([
      "pirate",
      "none",
      "empty",
    ]);
    expect(new Set(items.slice(0, 3).map(({ id }: { id: string }) => id.split("/")[1])).size).toBe(1);
  });

  it("reads personas from a file, and has no metrics per persona without personas", async () => {
    const path = join(folder, "personas.yaml");
    await writeFile(path, "cook: Be a cook.\n");
    const evaluation = capabilityEvaluation({ questions, personas: path });
    expect((await evaluation.items(fakeModel())).map(({ id }: { id: string }) => id)).toHaveLength(3);
    expect(evaluation.provenance!()).toMatchObject({
      personas: [{ id: "cook", system: { text: "Be a cook." } }],
    });
    const plain = await measure(capabilityEvaluation({ questions }), model);
    expect(Object.keys(plain.snapshot.metrics).some((name) => name.includes("/"))).toBe(false);
    expect(plain.rows.some((row) => "persona" in row)).toBe(false);
  });

  it.each([
    [{ personas: [] }, "an array of personas"],
    [{ personas: [{ id: "a", system: "x" }] }, 'capability options.personas[0].system: got "x"'],
    [{ personas, method: "cloze" }, "cloze renders no chat"],
    [{ personas, system: "omit" }, "each persona has its own"],
  ])("rejects %j", (options, message) => {
    expect(() => capabilityEvaluation({ questions, ...options } as never)).toThrow(message);
  });

  it("accepts personas in the callback", async () => {
    const callback = new PeriodicCapabilityCallback({ questions, personas });
    expect(await callback.asks[0]!.items(fakeModel())).toHaveLength(9);
  });
});
