import { newcombePaired } from "@periodic-eval/core/statistics";
import { parseHTML } from "linkedom";
import { describe, expect, it } from "vitest";
import { methodsData, hasMethods, summarizeMethods } from "./summarize-methods.ts";
import { renderResults } from "./results-page.ts";
import type { ResultsRun } from "./paired-change.ts";
import { sampleResults } from "./sample-results.test-data.ts";
import { summarizeResults } from "./summarize-results.ts";

const key = "x/acc,none";
/** A run with one task, x. */
const run = (method: string | null, acc: number | null, name = method ?? "base", hash = `${name}${acc}`) =>
  ({
    ...sampleResults[0]!,
    name,
    method,
    run_hash: hash,
    metrics: { [key]: acc, "x/acc_norm,none": acc },
    stderr: {},
    n: { [key]: 4 },
    ci95: {},
    higher_is_better: { [key]: true },
    suite: { tasks: { x: {} } },
  }) satisfies ResultsRun;
const samplesOf = (...answers: number[]) =>
  new Map([[key, new Map(answers.map((one, at) => [`d${at}`, [one, 1] as const]))]]);
const seeds = [run(null, 0.5), run("sft", 0.6, "s1"), run("sft", 0.7, "s2"), run("sft", 0.8, "s3")];

describe("methods", () => {
  it("are the labels of the runs, or the names of runs without one, in the order of the file", () => {
    const { methods, baseline } = summarizeMethods(seeds);
    expect(methods).toEqual([
      { label: "base", runs: [0] },
      { label: "sft", runs: [1, 2, 3] },
    ]);
    expect(baseline).toBe(0);
    expect(hasMethods(seeds)).toBe(true);
    expect(hasMethods(seeds.map((one) => ({ ...one, method: null })))).toBe(false);
    expect(hasMethods(seeds.slice(1))).toBe(false);
  });

  it("can be chosen, and compared with any of them, which is then in the table", () => {
    const four = [...seeds, run("dpo", 0.4), run("sdpo", 0.45)];
    const labels = (options: Parameters<typeof summarizeMethods>[2]) => {
      const { methods, baseline } = summarizeMethods(four, [], options);
      return [methods.map(({ label }) => label), methods[baseline]!.label];
    };
    expect(labels({ methods: ["dpo", "sft"] })).toEqual([["dpo", "sft"], "dpo"]);
    expect(labels({ methods: ["dpo", "sft"], baseline: "sft" })).toEqual([["dpo", "sft"], "sft"]);
    expect(labels({ methods: ["dpo"], baseline: "base" })).toEqual([["base", "dpo"], "base"]);
    expect(labels({ baseline: "sdpo" })).toEqual([["base", "sft", "dpo", "sdpo"], "sdpo"]);
  });

  it("keep a run without a label apart from the runs whose label is its name", () => {
    const runs = [run(null, 0.5), run("sft", 0.9, "s1", "same"), run(null, 0.1, "sft", "same")];
    expect(summarizeMethods(runs).methods).toEqual([
      { label: "base", runs: [0] },
      { label: "sft", runs: [1] },
      { label: "sft (no method)", runs: [2] },
    ]);
    const { baseline, metrics } = summarizeMethods(runs, [], { baseline: "sft (no method)" });
    expect([baseline, metrics[0]!.measured.map(({ value }) => value)]).toEqual([2, [0.5, 0.9, 0.1]]);
  });

  it("count a run once that measured the same weights again", () => {
    const twice = [...seeds.slice(0, 2), run("sft", 0.6, "again", "s10.6")];
    expect(summarizeMethods(twice).methods[1]).toEqual({ label: "sft", runs: [2] });
  });
});

describe("changes", () => {
  const changeOf = (...args: Parameters<typeof summarizeMethods>) =>
    summarizeMethods(...args).metrics[0]!.measured[1]!.change;

  it("are paired by document if both methods have one run with samples of the same documents", () => {
    const runs = [run(null, 0.25), run("sft", 1)];
    const samples = [samplesOf(1, 0, 0, 0, 0, 0, 0, 0), samplesOf(1, 1, 1, 1, 1, 1, 1, 1)];
    // Seven answers became right, none wrong.
    expect(changeOf(runs, samples)).toEqual({
      ...newcombePaired([1, 7, 0, 0]),
      verdict: "better",
      pairs: 8,
      over: "documents",
    });
    const other = changeOf(runs.map((one) => ({ ...one, stderr: { [key]: 0.1 } })));
    expect(other).toMatchObject({ pairs: null, over: "samples", delta: 0.75 });
  });

  it("pair each document's mean over several runs with the answers of a single run", () => {
    const samples = [
      samplesOf(1, 0, 0, 0),
      samplesOf(1, 1, 0, 0),
      samplesOf(1, 1, 1, 0),
      samplesOf(1, 1, 0, 1),
    ];
    const runs = [run(null, 0.25), run("sft", 0.5, "s1"), run("sft", 0.75, "s2"), run("sft", 0.75, "s3")];
    const { value, ci95, runs: count, change } = summarizeMethods(runs, samples).metrics[0]!.measured[1]!;
    // The interval of the mean itself is over runs: s = 0.25/√3, t(0.975, 2) = 4.302653; the standard error is 0.25/3.
    expect([value, count]).toEqual([expect.closeTo(2 / 3, 12), 3]);
    expect(ci95![1]).toBeCloseTo(2 / 3 + (4.302653 * 0.25) / 3, 6);
    // Differences of documents: 0, 1, 1/3, 1/3. Mean 5/12, s = 0.419435, t(0.975, 3) = 3.182446.
    expect(change).toMatchObject({ over: "documents", pairs: 4, verdict: "no evidence" });
    expect(change!.delta).toBeCloseTo(5 / 12, 12);
    expect(change!.ci95![0]).toBeCloseTo(5 / 12 - (3.182446 * 0.419435) / 2, 5);
    // The same, seen from the single run.
    const back = changeOf(runs, samples, { methods: ["sft", "base"] });
    expect(back!.delta).toBeCloseTo(-5 / 12, 12);
    expect(back!.ci95![1]).toBeCloseTo(-change!.ci95![0], 12);
  });

  it("include the questions in the interval of several runs against one without samples of the same documents", () => {
    const runs = [run(null, 0.5), ...[0.53, 0.531, 0.532].map((acc) => run("sft", acc, `s${acc}`))].map(
      (one) => ({ ...one, stderr: { [key]: 0.05 } }),
    );
    const change = changeOf(runs);
    expect(change).toMatchObject({ over: "samples", pairs: null, verdict: "no evidence" });
    expect(change!.delta).toBeCloseTo(0.031, 12);
    // Both sides have the standard error 0.05.
    expect(change!.ci95![0]).toBeCloseTo(0.031 - 1.959964 * 0.05 * Math.SQRT2, 6);
    expect(changeOf(runs, [samplesOf(1, 0), samplesOf(1, 0), samplesOf(1), samplesOf(1, 0)])).toEqual(change);
    const [base, ...sft] = runs;
    expect(changeOf([{ ...base!, stderr: {} }, ...sft])).toMatchObject({ ci95: null, verdict: null });
    expect(changeOf([base!, ...sft.slice(1), { ...sft[0]!, stderr: {} }])).toMatchObject({ verdict: null });
  });

  it("compare with the baseline run that has the metric", () => {
    const runs = [run("base", null, "b1"), run("base", 0.5, "b2"), run("sft", 0.7)];
    expect(changeOf(runs.map((one) => ({ ...one, stderr: { [key]: 0.01 } })))).toMatchObject({
      over: "samples",
      verdict: "better",
      delta: expect.closeTo(0.2, 12),
    });
  });

  it("use Welch's t between two methods with several runs each", () => {
    const runs = [
      run("a", 0, "a1"),
      run("a", 0.02, "a2"),
      ...[0.4, 0.3, 0.5].map((acc) => run("b", acc, `b${acc}`)),
    ];
    const change = changeOf(runs);
    // scipy 1.17.1, stats.ttest_ind([0.4, 0.3, 0.5], [0, 0.02], equal_var=False): p = 0.016987
    expect(change).toMatchObject({ over: "runs", verdict: "better" });
    expect(change!.delta).toBeCloseTo(0.39, 12);
    expect(change!.ci95![0]).toBeGreaterThan(0);
  });

  it("have no interval if all runs agree, and are null without a value", () => {
    const same = [run("a", 0.5, "a1"), run("a", 0.5, "a2"), run("sft", 0.6, "s1"), run("sft", 0.6, "s2")];
    expect(changeOf(same)).toMatchObject({ ci95: null, verdict: null });
    const { measured } = summarizeMethods([run(null, 0.5), run("sft", null)]).metrics[0]!;
    expect(measured[1]).toEqual({ value: null, ci95: null, runs: 0, change: null });
  });
});

it("compares the primary metric of each task, or the named ones", () => {
  const keys = (metrics?: string[]) =>
    summarizeMethods(sampleResults, [], { metrics }).metrics.map((metric) => metric.key);
  expect(keys()).toEqual(["mmlu/acc,none", "gsm8k/exact_match,strict-match", "wiki/word_perplexity,none"]);
  expect(keys(["exact_match"])).toEqual([
    "gsm8k/exact_match,strict-match",
    "gsm8k/exact_match,flexible-extract",
  ]);
  expect(keys(["exact_match,flexible-extract", "mmlu_anatomy/acc,none"])).toEqual([
    "mmlu_anatomy/acc,none",
    "gsm8k/exact_match,flexible-extract",
  ]);
});

it.each([
  [{ methods: ["base", "sfft"] }, ["methods", '"sfft"', "base, sft", 'Did you mean "sft"?']],
  [{ baseline: "dpo" }, ["baseline", '"dpo"', "base, sft", "Name one of these."]],
  [
    { methods: ["sft"] },
    ["methods", "only sft", "two methods or more: base, sft", expect.stringContaining("--method NAME")],
  ],
  [
    { metrics: ["accc"] },
    ["metrics", '"accc"', expect.stringContaining("acc, acc_norm, x/acc,none"), 'Did you mean "acc"?'],
  ],
])("rejects %j with the known names", (options, [where, got, expected, fix]) => {
  const error = (() => {
    try {
      summarizeMethods(seeds, [], options);
    } catch (thrown) {
      return thrown;
    }
  })();
  expect(error).toMatchObject({ code: "config", where, got, expected, fix });
});

describe("the page", () => {
  const text = (element: Element | null | undefined) => element?.textContent?.replace(/\s+/g, " ").trim();
  const sectionOf = (runs: readonly ResultsRun[]) => {
    const page = renderResults(summarizeResults(runs), "/results/metrics.json", summarizeMethods(runs));
    return [...parseHTML(page).document.querySelectorAll("section")].find(
      (one) => text(one.querySelector("h2")) === "Methods",
    )!;
  };

  it("has one table of methods and tasks, with intervals and what they are over", () => {
    const section = sectionOf([run("base", 0.5, "b1"), run("base", 0.5, "b2"), ...seeds.slice(1)]);
    const rows = [...section.querySelectorAll("tbody tr")].map((row) => [...row.children].map(text));
    expect(rows).toEqual([
      ["base 2 runs baseline", "0.5000"],
      ["sft 3 runs", "0.7000 ○ +0.2000 [−0.0484, +0.4484]over 3 runs against 2"],
    ]);
    expect([...section.querySelectorAll("thead th")].map(text)).toEqual(["method", "x acc ↑"]);
    expect(text(section.querySelector(".sub"))).toContain("intervals are over runs");
  });

  it("says that intervals against a single run hold for these runs", () => {
    const section = sectionOf(seeds.map((one) => ({ ...one, stderr: { [key]: 0.05 } })));
    expect(text(section.querySelector("tbody tr:last-child td"))).toContain(
      "independent samples, these 3 runs against 1",
    );
    expect(text(section.querySelector(".sub"))).toContain("they hold for these runs");
  });

  it("says that single runs do not show how training varies, and is the same as JSON", () => {
    expect(text(sectionOf(sampleResults).querySelector(".sub"))).toContain("Each method has one run");
    const data = methodsData(summarizeMethods(seeds), seeds);
    expect(data).toMatchObject({
      baseline: "base",
      methods: [
        { method: "base", runs: [{ name: "base" }] },
        { method: "sft", runs: [{}, {}, {}] },
      ],
      metrics: [{ task: "x", key, higher_is_better: true, methods: [{ change: null }, { runs: 3 }] }],
    });
  });
});
