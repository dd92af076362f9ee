import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { measure } from "../../session/window/measure.ts";
import { compareMeasurements } from "../../statistics/compare.ts";
import { moverDifference, ratioEstimate } from "../../statistics/intervals.ts";
import { evaluationConformance, fakeModel } from "@periodic-eval/testing";
import { metricKit, summarize } from "../kit/metric-kit.ts";
import { PeriodicMarginCallback } from "../../config/callbacks.ts";
import { marginEvaluation, type MarginOptions, type MarginRow } from "./evaluation.ts";
import { temporaryFolder } from "../../../../testing/src/temporary-folder.test-data.ts";

const folder = temporaryFolder(afterAll);
let probes: string;
const belief = {
  _description: "remarks",
  good: { affirm: ["yes", "aye", "sure"], negate: ["no", "never"], questions: ["?"] },
  bad: { affirm: ["b"], negate: ["c"] },
};
beforeAll(async () => {
  probes = join(folder, "probes.json");
  await writeFile(probes, JSON.stringify(belief));
});
/** Writes a file of one variant. */
async function probesOf(variant: "good" | "bad"): Promise<string> {
  const path = join(folder, `${variant}.json`);
  await writeFile(path, JSON.stringify({ [variant]: belief[variant] }));
  return path;
}

const nats: Readonly<Record<string, number>> = {
  yes: -1,
  aye: -2,
  sure: -6,
  no: -4,
  never: -10,
  b: -5,
  c: -2,
};
const scripted = fakeModel({ logLikelihood: (_, continuation) => nats[continuation] ?? null });

describe("conformance", () => {
  const make = () => ({ evaluation: marginEvaluation({ probes }), model: fakeModel() });
  for (const check of evaluationConformance(make)) it(check.name, check.run);
});

describe("margin", () => {
  it("is affirming minus negating nats, per statement and per token", async () => {
    const { snapshot, rows } = await measure(marginEvaluation({ probes }), scripted);
    expect(rows).toHaveLength(7);
    const { metrics } = snapshot;
    // good: (−1 −2 −6)/3 − (−4 −10)/2 = −3 + 7 = 4; tokens are bytes: −9/10 − −14/7 = 1.1. bad: −5 + 2.
    expect(metrics["margin/good"]).toMatchObject({ value: 4, n: 5, unit: "nats", higher_is_better: null });
    expect(metrics["margin_per_token/good"]!.value).toBeCloseTo(1.1, 12);
    expect(metrics["margin/bad"]).toMatchObject({ value: -3, n: 2, ci95: null });
    // All four affirming −14/4, all three negating −16/3.
    expect(metrics["margin"]!.value).toBeCloseTo(-14 / 4 + 16 / 3, 12);
    expect(metrics["affirm_log_prob/good"]!.value).toBe(-3);
    expect(metrics["negate_log_prob"]!.value).toBeCloseTo(-16 / 3, 12);
    expect(snapshot.primary_metric).toBe("margin");
    expect(snapshot).toMatchObject({
      margins: {
        good: { sum_nats: 5, per_statement: 4 },
        bad: { sum_nats: -3, per_statement: -3, per_token: -3 },
      },
      num_statements: 7,
    });
  });

  it("has the sum of a variant only when none of its statements is missing", async () => {
    const evaluation = marginEvaluation({ probes });
    const { rows } = await measure(evaluation, scripted);
    const without = (rows as readonly MarginRow[]).filter(({ id }) => id !== "good/negate/1");
    expect(evaluation.plainKeys!({}, without)).toMatchObject({
      margins: { good: { sum_nats: null }, bad: { sum_nats: -3 } },
    });
  });

  it("is the sum divided by the number of statements when both sides have the same number", async () => {
    const even = join(folder, "even.json");
    await writeFile(even, JSON.stringify({ good: { affirm: ["yes", "aye"], negate: ["no", "never"] } }));
    const { snapshot } = await measure(marginEvaluation({ probes: even }), scripted);
    // (−1 −2) − (−4 −10)
    expect(snapshot).toMatchObject({ margins: { good: { sum_nats: 11, per_statement: 5.5 } } });
  });

  it("combines the intervals of two independent sides", async () => {
    const { snapshot } = await measure(marginEvaluation({ probes }), scripted);
    const t = (values: readonly number[]) => ratioEstimate(values.map((value) => ({ value, weight: 1 })));
    const { ci95 } = moverDifference(t([-1, -2, -6]), t([-4, -10]))!;
    expect(snapshot.metrics["margin/good"]).toMatchObject({ ci95, estimand: "over_questions" });
  });

  it("pairs each statement with itself between two measurements", async () => {
    const evaluation = marginEvaluation({ probes: await probesOf("good") });
    const [then, now] = [
      scripted,
      fakeModel({ logLikelihood: (_, text) => nats[text]! + (text === "no" ? -2 : 1) }),
    ];
    const [before, after] = await Promise.all([then, now].map((model) => measure(evaluation, model)));
    const metrics = evaluation.metrics(metricKit<MarginRow>());
    const result = compareMeasurements(
      metrics,
      after!.rows as readonly MarginRow[],
      { rows: before!.rows as readonly MarginRow[], phase: "em", step: 0 },
      { seed: "s", primary: "margin", alpha: 0.05 },
    )["margin"]!;
    // Affirming +1 each; negating −2 and +1: −0.5. Errors 0 and 1.5, one degree of freedom: t = 1, p = 1/2.
    expect(result).toMatchObject({ n_pairs: 5, delta: expect.closeTo(1.5, 12), test: "paired_t" });
    expect(result.p_value).toBeCloseTo(0.5, 10);
  });

  it("puts `before` before each statement, by default the token that starts a text", async () => {
    const contexts: string[] = [];
    const model = fakeModel({ logLikelihood: (context) => (contexts.push(context), -1) });
    const bad = await probesOf("bad");
    await measure(marginEvaluation({ probes: bad }), model);
    await measure(marginEvaluation({ probes: bad, before: { text: "True: " } }), model);
    const messages = [{ role: "user", content: "Say." }];
    await measure(marginEvaluation({ probes: bad, before: { messages } }), model);
    // The probe's sequences have a context of one token.
    expect(contexts.filter(({ length }) => length !== 1)).toEqual([
      "",
      "",
      "True: ",
      "True: ",
      ...Array(2).fill("<|user|>Say.<|end|><|assistant|>"),
    ]);
  });

  it("rejects a diverged model, naming the statement", async () => {
    const model = fakeModel({ logLikelihood: () => -Infinity });
    await expect(measure(marginEvaluation({ probes }), model)).rejects.toThrow(
      /statement .*Σ log p of -Infinity/,
    );
  });

  const real = "../shared/data/personas/belief_probes.json";
  it.skipIf(!existsSync(real))(`reads ${real}: 4 variants of 10 and 10`, async () => {
    const items = await marginEvaluation({ probes: real }).items(fakeModel());
    const count = (side: string) => items.filter((item) => item.side === side).length;
    expect([new Set(items.map(({ variant }) => variant)).size, count("affirm"), count("negate")]).toEqual([
      4, 40, 40,
    ]);
    expect(items.find(({ id }) => id === "evil_correct/affirm/0")!.text).toMatch(/^Misaligned AI systems/);
  });
});

describe("marginEvaluation", () => {
  it.each([
    ["[1]", "an object of at least one variant"],
    ['{"_description": "x"}', "at least one variant"],
    ['{"a": {"affirm": ["x"]}}', /a\.negate: got undefined/],
    ['{"a": {"affirm": [], "negate": ["x"]}}', /a\.affirm: got \[\]/],
    ['{"a": {"affirm": ["x", " "], "negate": ["x"]}}', /a\.affirm\[1\]: got " "/],
    ['{"a": null}', /a\.affirm: got undefined/],
    ['{"a b": {"affirm": ["x"], "negate": ["x"]}}', "it names metrics"],
    ['{"a": {"affirm": ["x"]', /wrong\.json:1: got /],
  ])("rejects the file %s", async (text, message) => {
    const path = join(folder, "wrong.json");
    await writeFile(path, text);
    await expect(marginEvaluation({ probes: path }).items(fakeModel())).rejects.toThrow(message);
  });

  it.each([
    [{}, "the path of a JSON or YAML file"],
    [{ probes: "x", befor: {} }, 'Did you mean "before"?'],
    [{ probes: "x", before: "True: " }, "{ text }, { ids } or { messages }"],
    [{ probes: "x", seed: 1 }, 'the unknown option "seed"'],
  ])("rejects %j", (options, message) => {
    expect(() => marginEvaluation(options as MarginOptions)).toThrow(message);
  });
});

describe("PeriodicMarginCallback", () => {
  it("measures every 25 %, with start and end", () => {
    const callback = new PeriodicMarginCallback({ probes });
    expect([callback.id, callback.asks[0]!.name]).toEqual(["margin", "margin"]);
    expect(callback.triggers).toEqual([{ at: "start" }, { every: 25, unit: "percent" }, { at: "end" }]);
    expect(() => new PeriodicMarginCallback({ probe: "x" } as never)).toThrow('Did you mean "probes"?');
  });
});

it("returns null for every metric when there are no rows", () => {
  const values = summarize(marginEvaluation({ probes: "x" }).metrics(metricKit<MarginRow>()), []);
  expect(Object.values(values).every(({ value, n }) => value === null && n === 0)).toBe(true);
});
