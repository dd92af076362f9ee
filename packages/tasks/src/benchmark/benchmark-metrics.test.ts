import type { MetricValue } from "@periodic-eval/core";
import { metricKit, summarize } from "@periodic-eval/core/evaluations";
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { findFixtures, fixtures, reportMissing } from "../../../testing/src/fixtures.test-data.ts";
import { benchmarkMetrics, defineMetrics, findMetrics, type MetricRegistry } from "./benchmark-metrics.ts";
import type { BenchmarkRow } from "./benchmark-task.ts";

interface Given {
  readonly id: string;
  readonly rewards: readonly (number | null)[];
  readonly metadata?: BenchmarkRow["metadata"];
}

/** Builds a row with these rewards; a reward of 1 or more passes. */
const row = ({ id, rewards, metadata = {} }: Given): BenchmarkRow => ({
  id,
  prompt: [{ role: "user", content: id }],
  answer: null,
  verifier: { name: "exact_match", args: {} },
  metadata,
  completions: rewards.map(() => ({
    text: "",
    answer: "",
    ids: null,
    finish: "stop",
    inputTokens: null,
    outputTokens: null,
  })),
  rewards,
  passed: rewards.map((reward) => (reward === null ? null : reward >= 1)),
  verdicts: rewards.map((reward) => ({ status: reward === null ? "error" : "graded", raw: null })),
});

function valuesOf(
  names: readonly string[],
  rows: readonly BenchmarkRow[],
  {
    breakdownKeys = [],
    registry = benchmarkMetrics,
  }: { breakdownKeys?: readonly string[]; registry?: MetricRegistry } = {},
): Record<string, MetricValue> {
  const numSamples = rows[0]!.rewards.length;
  const named = findMetrics("metrics", names, registry);
  const kit = metricKit<BenchmarkRow>();
  return summarize(
    defineMetrics(
      { metrics: named, numSamples, temperature: numSamples > 1 ? 1 : 0, breakdownKeys: [...breakdownKeys] },
      kit,
    ),
    rows,
  );
}

describe("closed forms", () => {
  it("gives the mean with the standard error s/√n, and a pass rate with Wilson's interval, for one completion per task", () => {
    const rows = [1, 0, 0.5, 1].map((reward, at) => row({ id: String(at), rewards: [reward] }));
    const { mean_reward, pass_rate, ...others } = valuesOf([], rows);
    expect(others).toEqual({});
    // Mean 2.5/4; s² = (0.375² + 0.625² + 0.125² + 0.375²)/3 = 0.6875/3.
    expect(mean_reward).toMatchObject({
      value: 0.625,
      n: 4,
      estimand: "over_questions",
      higher_is_better: true,
    });
    expect(mean_reward!.stderr).toBeCloseTo(Math.sqrt(0.6875 / 3 / 4), 12);
    // t(0.975, 3) = 3.182446305284263
    expect(mean_reward!.ci95![1] - 0.625).toBeCloseTo(3.182446305284263 * mean_reward!.stderr!, 9);
    // √(0.5 · 0.5 / 4); Wilson of 2 in 4: (0.5 + z²/8 ± z √(1/16 + z²/64)) / (1 + z²/4), z = 1.959963984540054
    expect(pass_rate).toMatchObject({
      value: 0.5,
      n: 4,
      stderr: 0.25,
      unit: "share",
      estimand: "given_questions",
    });
    expect(pass_rate!.ci95![0]).toBeCloseTo(0.150039, 6);
    expect(pass_rate!.ci95![1]).toBeCloseTo(0.849961, 6);
  });

  it("weights all tasks equally if each has several completions", () => {
    const rows = [
      row({ id: "a", rewards: [1, 1, 1, 1] }),
      row({ id: "b", rewards: [1, 0, 0, 0] }),
      row({ id: "c", rewards: [0, 0, 0.5, 0.5] }),
    ];
    const values = valuesOf(["mean_reward", "pass_rate", "pass@1", "pass@2", "pass^2", "pass@4"], rows);
    // Task means 1, 1/4, 1/4: mean 1/2, s² = (1/4 + 1/16 + 1/16)/2 = 3/16, SE √(3/16/3) = 1/4.
    expect(values["mean_reward"]).toMatchObject({ value: 0.5, n: 3 });
    expect(values["mean_reward"]!.stderr).toBeCloseTo(0.25, 12);
    // Shares 1, 1/4, 0: mean 5/12, deviations 7/12, −2/12, −5/12: s² = 78/144/2, SE √(78/288/3) = √(13/144).
    expect(values["pass_rate"]!.value).toBeCloseTo(5 / 12, 12);
    expect(values["pass_rate"]!.stderr).toBeCloseTo(Math.sqrt(13 / 144), 12);
    expect(values["pass_rate"]).toMatchObject({ n: 3, estimand: "over_questions" });
    expect(values["pass@1"]).toEqual(values["pass_rate"]);
    // 1 − C(3,2)/C(4,2) = 1/2 of b: (1 + 1/2 + 0)/3; pass^2: (1 + 0 + 0)/3; pass@4: (1 + 1 + 0)/3.
    expect(values["pass@2"]!.value).toBeCloseTo(0.5, 12);
    expect(values["pass^2"]!.value).toBeCloseTo(1 / 3, 12);
    expect(values["pass@4"]!.value).toBeCloseTo(2 / 3, 12);
    for (const { ci95 } of Object.values(values).slice(1)) {
      expect(ci95![0]).toBeGreaterThanOrEqual(0);
      expect(ci95![1]).toBeLessThanOrEqual(1);
    }
  });

  it("gives the exact interval over tasks, not an interval of length 0, if every completion passes", () => {
    const rows = ["a", "b", "c"].map((id) => row({ id, rewards: [1, 1] }));
    const values = valuesOf(["pass_rate", "pass^2"], rows);
    // Clopper and Pearson of 3 in 3: 0.025^(1/3)
    expect(values["pass_rate"]!.ci95![0]).toBeCloseTo(0.025 ** (1 / 3), 12);
    expect(values["pass^2"]).toEqual(values["pass_rate"]);
  });

  it("leaves out completions without a grade, and tasks with too few graded completions", () => {
    const rows = [
      row({ id: "a", rewards: [1, null, 0] }),
      row({ id: "b", rewards: [null, null, 1] }),
      row({ id: "c", rewards: [null, null, null] }),
    ];
    const values = valuesOf(["mean_reward", "pass_rate", "pass@2"], rows);
    expect(values["mean_reward"]).toMatchObject({ value: 0.75, n: 2 });
    expect(values["pass_rate"]).toMatchObject({ value: 0.75, n: 2 });
    expect(values["pass@2"]).toMatchObject({ value: 1, n: 1 });
  });
});

it("computes pass@3, pass^3 and avg, as the names say", () => {
  const rows = [
    row({ id: "a", rewards: [1, 1, 1, 0] }),
    row({ id: "b", rewards: [1, 0, 0, 0.5] }),
    row({ id: "c", rewards: [0, 0, 0, 0] }),
  ];
  const values = valuesOf(["pass@3", "pass^3", "avg"], rows);
  // pass@3 = 1 − C(n−c, 3)/C(4, 3): 1, 1 − 1/4, 0; pass^3 = C(c, 3)/4: 1/4, 0, 0; avg: means 3/4, 3/8, 0.
  expect(values["pass@3"]!.value).toBeCloseTo((1 + 3 / 4) / 3, 12);
  expect(values["pass^3"]!.value).toBeCloseTo(1 / 4 / 3, 12);
  expect(values["avg"]).toMatchObject({ value: (3 / 4 + 3 / 8) / 3, n: 3, higher_is_better: true });
  const { mean_reward, avg } = valuesOf(["mean_reward", "avg"], rows);
  expect(avg).toEqual(mean_reward);
});

describe("breakdowns", () => {
  it("compute each metric over the tasks with a value, with its n and interval", () => {
    const rows = [
      row({ id: "a", rewards: [1], metadata: { topic: "sums", level: 1 } }),
      row({ id: "b", rewards: [0], metadata: { topic: "sums", level: 2 } }),
      row({ id: "c", rewards: [1], metadata: { topic: ["sums", "words"], timed: true } }),
      row({ id: "d", rewards: [1], metadata: { topic: null, timed: { not: "a value" } } }),
    ];
    const values = valuesOf(["pass_rate"], rows, { breakdownKeys: ["topic", "level", "timed"] });
    expect(
      Object.fromEntries(Object.entries(values).map(([name, { value, n }]) => [name, [value, n]])),
    ).toEqual({
      pass_rate: [0.75, 4],
      "pass_rate/topic/sums": [2 / 3, 3],
      "pass_rate/topic/words": [1, 1],
      "pass_rate/level/1": [1, 1],
      "pass_rate/level/2": [0, 1],
      "pass_rate/timed/true": [1, 1],
    });
    // Wilson of 2 in 3.
    expect(values["pass_rate/topic/sums"]!.ci95![0]).toBeCloseTo(0.20766, 5);
  });
});

describe("the registry", () => {
  it("accepts custom metrics, also with k", () => {
    const registry: MetricRegistry = {
      ...benchmarkMetrics,
      "best@k": ({ kit, k }) =>
        kit.mean((one) => Math.max(...one.rewards.slice(0, k!).map(Number)), { unit: "points" }),
      calls: ({ kit }) => kit.mean((one) => one.completions.length, { higherIsBetter: false }),
    };
    const rows = [row({ id: "a", rewards: [0, 0.2, 0.9] }), row({ id: "b", rewards: [0.5, 0.1, 0] })];
    const values = valuesOf(["calls", "best@2", "pass@3"], rows, { registry });
    expect(values["calls"]).toMatchObject({ value: 3, higher_is_better: false });
    expect(values["best@2"]).toMatchObject({ value: 0.35, unit: "points" });
    expect(values["pass@3"]!.value).toBe(0);
    expect(Object.keys(benchmarkMetrics)).toEqual(["mean_reward", "avg", "pass_rate", "pass@k", "pass^k"]);
  });

  it.each<readonly [names: readonly string[], message: string]>([
    [["pass@0"], 'got "pass@0", expected a positive integer in place of k. Write "pass@1".'],
    [["pass@01"], 'got "pass@01", expected some of'],
    [["pass@k"], 'got "pass@k", expected a positive integer in place of k. Write "pass@1".'],
    [
      ["pas_rate"],
      'got "pas_rate", expected some of mean_reward, avg, pass_rate, pass@k, pass^k. Did you mean "pass_rate"?',
    ],
    [["best@2"], 'got "best@2", expected some of'],
    [
      ["pas@3"],
      'got "pas@3", expected some of mean_reward, avg, pass_rate, pass@k, pass^k. Did you mean "pass@3"?',
    ],
    [
      ["avg@3"],
      'got "avg@3", expected some of mean_reward, avg, pass_rate, pass@k, pass^k. Did you mean "avg"?',
    ],
    [
      ["average_of_all"],
      'got "average_of_all", expected some of mean_reward, avg, pass_rate, pass@k, pass^k. Name one of them, or add it to the registry.',
    ],
    [["pass@2", "pass@2"], 'got "pass@2" twice'],
    [["constructor"], 'got "constructor"'],
  ])("refuses %j", (names, message) => {
    expect(() => findMetrics("benchmark options", names, benchmarkMetrics)).toThrow(
      `benchmark options.metrics[${names.length - 1}]: ${message}`,
    );
  });
});

interface Golden {
  readonly n: number;
  readonly c: number;
  readonly k: number;
  readonly pass_at_k: number;
  readonly pass_hat_k: number;
}
const goldens = findFixtures(/^statistics\/[^/]*\.json$/).flatMap(
  (file) => (JSON.parse(readFileSync(file, "utf8")) as { readonly pass_k?: readonly Golden[] }).pass_k ?? [],
);

describe(`pass@k and pass^k of ${fixtures}`, () => {
  if (goldens.length === 0) reportMissing("statistics/*.json with pass_k");
  it.each(goldens)(
    "computes pass@$k and pass^$k for $c passes in $n completions",
    ({ n, c, k, pass_at_k, pass_hat_k }) => {
      const one = row({ id: "a", rewards: Array.from({ length: n }, (_, at) => (at < c ? 1 : 0)) });
      const values = valuesOf([`pass@${k}`, `pass^${k}`], [one]);
      expect(values[`pass@${k}`]!.value).toBeCloseTo(pass_at_k, 12);
      expect(values[`pass^${k}`]!.value).toBeCloseTo(pass_hat_k, 12);
    },
  );
});
