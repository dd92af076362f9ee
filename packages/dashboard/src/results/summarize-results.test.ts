import { newcombePaired, shareEstimate } from "@periodic-eval/core/statistics";
import { describe, expect, it } from "vitest";
import type { ResultsRun } from "./paired-change.ts";
import { sampleResults } from "./sample-results.test-data.ts";
import { summarizeResults } from "./summarize-results.ts";

const [base, sft, dpo] = [0, 1, 2];
const summary = summarizeResults(sampleResults);
const taskOf = (name: string, of = summary) => of.tasks.find((task) => task.name === name)!;

describe("tasks", () => {
  it("keep the order of the file, with their metrics, groups and settings", () => {
    expect(summary.tasks.map(({ name }) => name)).toEqual(["mmlu", "gsm8k", "wiki"]);
    const mmlu = taskOf("mmlu");
    expect(mmlu.metrics.map(({ key }) => key)).toEqual(["mmlu/acc,none"]);
    expect(mmlu.groups.map(({ group }) => group)).toEqual(["anatomy", "virology"]);
    expect(mmlu.settings).toEqual({ shots: 5, limit: 1000 });
    const [strict, flexible, ...more] = taskOf("gsm8k").metrics;
    expect([strict!.metric, strict!.filter, flexible!.filter, more]).toEqual([
      "exact_match",
      "strict-match",
      "flexible-extract",
      [],
    ]);
  });

  it("sort runs by the primary metric in its direction, unknown values last", () => {
    expect(taskOf("mmlu").order).toEqual([sft, base, dpo]);
    // The lowest perplexity is the best; dpo has none.
    expect(taskOf("wiki").order).toEqual([sft, base, dpo]);
    expect(taskOf("wiki").metrics[0]!.measured[dpo]).toMatchObject({ value: null, change: null });
  });

  it("include every entry of a file without a suite", () => {
    const foreign = sampleResults.map((run) => ({ ...run, suite: null }));
    const { tasks } = summarizeResults(foreign);
    expect(tasks.map(({ name }) => name)).toEqual(["mmlu", "mmlu_anatomy", "mmlu_virology", "gsm8k", "wiki"]);
    expect(tasks.every(({ groups, settings }) => groups.length === 0 && settings === null)).toBe(true);
  });
});

describe("changes of runs with samples", () => {
  type Part = readonly [number, number];
  const key = "mmlu/acc,none";
  const partsOf = (values: readonly (number | Part)[]) =>
    new Map(values.map((one, at) => [`d${at}`, typeof one === "number" ? ([one, 1] as const) : one]));
  const changeOf = (
    now: readonly (number | Part)[],
    then: readonly (number | Part)[],
    runs = sampleResults,
  ) => {
    const samples = [then, now].map((values) => new Map([[key, partsOf(values)]]));
    return taskOf("mmlu", summarizeResults(runs, 0, samples)).metrics[0]!.measured[1]!.change!;
  };
  const [ones, zeros] = [Array.from({ length: 10 }, () => 1), Array.from({ length: 10 }, () => 0)];
  const right = (count: number) => [...ones.slice(0, count), ...zeros.slice(count)];

  it("use McNemar's test and Newcombe's interval over pairs of answers", () => {
    // Six more correct answers and no fewer: p = 2 · 2^−6 = 0.031. Five more: 2 · 2^−5 = 0.063.
    const six = changeOf(right(10), right(4));
    expect(six).toEqual({ ...newcombePaired([4, 6, 0, 0]), verdict: "better", pairs: 10 });
    expect(six.delta).toBeCloseTo(0.6, 12);
    expect(changeOf(right(9), right(4))).toMatchObject({ verdict: "no evidence", pairs: 10 });
    const down = sampleResults.map((run) => ({ ...run, higher_is_better: { [key]: false } }));
    expect(changeOf(right(10), right(4), down).verdict).toBe("worse");
  });

  it("use a t interval over documents for values other than 0 and 1", () => {
    // Differences 1, 2, 3: mean 2, standard error 1/√3, t(0.975, 2) = 4.302653.
    const change = changeOf([2, 4, 6], [1, 2, 3]);
    expect(change).toMatchObject({ pairs: 3, verdict: "no evidence" });
    expect(change.delta).toBeCloseTo(2, 12);
    expect(change.ci95![0]).toBeCloseTo(2 - 4.302653 / Math.sqrt(3), 5);
    // Ratios: (1 + 3) / (2 + 4) against (1 + 1) / (2 + 4).
    expect(
      changeOf(
        [
          [1, 2],
          [3, 4],
        ],
        [
          [1, 2],
          [1, 4],
        ],
      ).delta,
    ).toBeCloseTo(1 / 3, 12);
  });

  it("treat runs with different documents as independent samples", () => {
    const plain = taskOf("mmlu", summarizeResults(sampleResults)).metrics[0]!.measured[1]!.change;
    expect(plain!.pairs).toBeNull();
    expect(changeOf(right(4), ones.slice(1))).toEqual(plain);
  });
});

describe("changes", () => {
  it("compare with the first run or the given one, with limits from both intervals", () => {
    const { change } = taskOf("mmlu").metrics[0]!.measured[dpo]!;
    // Newcombe's limits for 340 of 1,000 minus 400 of 1,000: Wilson's are l1, u1 and l2, u2.
    const [[l1, u1], [l2, u2]] = [shareEstimate(340, 1000).ci95!, shareEstimate(400, 1000).ci95!];
    expect(change!.delta).toBeCloseTo(-0.06, 12);
    expect(change!.ci95![0]).toBeCloseTo(-0.06 - Math.sqrt((0.34 - l1) ** 2 + (u2 - 0.4) ** 2), 12);
    expect(change!.ci95![1]).toBeCloseTo(-0.06 + Math.sqrt((u1 - 0.34) ** 2 + (0.4 - l2) ** 2), 12);
    expect(taskOf("mmlu").metrics[0]!.measured[base]!.change).toBeNull();
    const others = taskOf("mmlu", summarizeResults(sampleResults, dpo)).metrics[0]!.measured;
    expect(others[dpo]!.change).toBeNull();
    expect(others[base]!.change!.delta).toBeCloseTo(0.06, 12);
  });

  it("are better or worse, in the metric's direction, if the interval excludes 0", () => {
    const verdicts = (task: string) =>
      taskOf(task).metrics[0]!.measured.map(({ change }) => change?.verdict ?? null);
    expect(verdicts("mmlu")).toEqual([null, "better", "worse"]);
    // 20 against 18 of 200.
    expect(verdicts("gsm8k")).toEqual([null, "better", "no evidence"]);
    expect(verdicts("wiki")).toEqual([null, "better", null]);
    const undirected = sampleResults.map((run) => ({ ...run, higher_is_better: {} }));
    expect(
      taskOf("mmlu", summarizeResults(undirected)).metrics[0]!.measured.map(({ change }) => change?.verdict),
    ).toEqual([undefined, "changed", "changed"]);
  });

  it("derive missing intervals from the standard errors, and have no interval without them", () => {
    const withStderr = (stderr: number | null) =>
      sampleResults
        .slice(0, 2)
        .map((run): ResultsRun => ({ ...run, ci95: {}, stderr: { "mmlu/acc,none": stderr! } }));
    const { change } = taskOf("mmlu", summarizeResults(withStderr(0.02))).metrics[0]!.measured[sft]!;
    // 0.1 ± 1.96 · √(2 · 0.02²)
    expect(change!.ci95![0]).toBeCloseTo(0.1 - 1.959963984540054 * Math.SQRT2 * 0.02, 10);
    expect(change!.verdict).toBe("better");
    const none = taskOf("mmlu", summarizeResults(withStderr(null))).metrics[0]!.measured[sft]!;
    expect(none.change).toMatchObject({ ci95: null, verdict: null });
  });

  it("are null for a single run", () => {
    const one = summarizeResults(sampleResults.slice(0, 1));
    expect(one.reference).toBeNull();
    expect(taskOf("mmlu", one).metrics[0]!.measured[0]!.change).toBeNull();
    expect(summarizeResults([])).toEqual({ runs: [], reference: null, tasks: [], order: [] });
  });
});

it("sorts runs by their mean rank over the tasks that they ran, with equal ranks for ties", () => {
  // mmlu: sft 1, base 2, dpo 3; gsm8k the same; wiki: sft 1, base 2.
  expect(summary.order).toEqual([sft, base, dpo]);
  const tied = ["a", "b", "c"].map((name, at): ResultsRun => ({
    ...sampleResults[0]!,
    name,
    metrics: { "x/acc,none": [0.5, 0.5, 0.7][at]!, "y/acc,none": [0.2, 0.9, 0.1][at]! },
    higher_is_better: { "x/acc,none": true, "y/acc,none": true },
  }));
  // x: c 1, a and b 2.5; y: b 1, a 2, c 3. Means: a 2.25, b 1.75, c 2.
  expect(summarizeResults(tied).order).toEqual([1, 2, 0]);
});

it("treats keys such as `constructor` as missing", () => {
  const odd = {
    ...sampleResults[0]!,
    metrics: { "constructor/toString,none": 1 },
    stderr: {},
    n: {},
    ci95: {},
    higher_is_better: {},
  };
  const [task] = summarizeResults([odd, sampleResults[1]!]).tasks;
  expect(task).toMatchObject({ name: "constructor", settings: null });
  expect(task!.metrics[0]!.measured[1]).toEqual({
    value: null,
    stderr: null,
    n: null,
    ci95: null,
    change: null,
  });
});
