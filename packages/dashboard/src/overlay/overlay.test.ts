import { join } from "node:path";
import type { MeasurementWarning } from "@periodic-eval/core";
import { fileStore, readRun } from "@periodic-eval/store";
import { exampleSnapshot } from "@periodic-eval/testing";
import { beforeAll, afterAll, expect, it } from "vitest";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";
import { drawnPage } from "../client/drawn-page.test-data.ts";
import type { RunData } from "../page-data/run-data.ts";
import { resultsServer } from "../server/results-server.ts";
import { summarizeOverlay } from "./summarize-overlay.ts";

const root = temporaryFolder(afterAll);
const values = { a: [0.5, 0.4], "b,c": [0.7, 0.2], "d%2C<b>": [0.6, 0.3] };
const names = Object.keys(values);

beforeAll(async () => {
  for (const [name, [start, end]] of Object.entries(values)) {
    const store = fileStore(join(root, name));
    for (const [step, value] of [
      [0, start!],
      [100, end!],
    ] as const) {
      const snapshot = exampleSnapshot({ phase: "em", step, run_step: step });
      const { [snapshot.primary_metric!]: metric, ...others } = snapshot.metrics;
      const metrics = { ...others, [snapshot.primary_metric!]: { ...metric!, value, ci95: null } };
      const provenance = { ...snapshot.provenance, seed: name };
      await store.put({ ...snapshot, metrics, provenance }, []);
    }
    await store.close!();
  }
});

it("has the mean over runs with its t interval at each step", async () => {
  const runs = await Promise.all(names.map(async (name) => ({ name, run: await readRun(join(root, name)) })));
  const [metric] = summarizeOverlay(runs);
  expect(metric!.curves.map(({ name }) => name)).toEqual(names);
  expect(metric!.means.map(({ runStep, runs: count }) => [runStep, count])).toEqual([
    [0, 3],
    [100, 3],
  ]);
  // 0.5, 0.7, 0.6: mean 0.6, standard deviation 0.1; t(0.975, 2) = 4.3027, so ± 4.3027 × 0.1 / √3 = 0.2484.
  const { value, ci95 } = metric!.means[0]!.mean;
  expect(value).toBeCloseTo(0.6, 12);
  expect(ci95![0]).toBeCloseTo(0.6 - 0.2484, 4);
  expect(ci95![1]).toBeCloseTo(0.6 + 0.2484, 4);
});

it("draws a mean and an interval that only one step has as a dot and a bar with caps", async () => {
  const folder = temporaryFolder();
  for (const [name, steps] of [
    ["long", [0, 100]],
    ["late", [100]],
  ] as const) {
    const store = fileStore(join(folder, name));
    for (const step of steps) {
      const metrics = exampleSnapshot().metrics;
      const primary = exampleSnapshot().primary_metric!;
      const value = name === "long" ? 0.5 : 0.7;
      const snapshot = exampleSnapshot({ phase: "em", step, run_step: step });
      await store.put(
        {
          ...snapshot,
          metrics: { ...metrics, [primary]: { ...metrics[primary]!, value } },
          provenance: { ...snapshot.provenance, seed: name },
        },
        [],
      );
    }
    await store.close!();
  }
  const reply = await resultsServer({ root: folder }).request("/v1/eval?runs=long,late");
  const chart = drawnPage(await reply.text()).querySelector("figure .wide svg")!;
  const ofMean = (marks: string) => chart.querySelectorAll(marks).length;
  expect(ofMean('g[stroke="var(--ink)"] line')).toBe(3);
  expect(ofMean('g[fill="var(--ink)"] circle')).toBe(1);
  // The run with one step has a dot.
  expect(chart.querySelectorAll('circle[r="3"]').length).toBe(1);
});

it("averages a repeated training once and no run with other options or without a judgeable end, and says why", async () => {
  const folder = temporaryFolder();
  const runOf = async (
    name: string,
    changes: {
      seed?: string;
      value?: number;
      samples?: number;
      items?: number;
      steps?: number;
      warnings?: MeasurementWarning[];
    },
  ) => {
    const { seed = "1", value = 0.5, samples = 2, items = 100, steps = 100, warnings = [] } = changes;
    const store = fileStore(join(folder, name));
    const snapshot = exampleSnapshot({ phase: "em", step: 100, run_step: 100, max_steps: steps });
    const accuracy = { ...snapshot.metrics["accuracy"]!, value };
    const evaluation = { sampling: { n: samples }, subsample: { n: items, seed: 42 } };
    const provenance = { ...snapshot.provenance, seed, items, items_hash: `${items} items`, evaluation };
    await store.put({ ...snapshot, warnings, metrics: { accuracy }, provenance }, []);
    await store.close!();
    return { name, run: await readRun(join(folder, name)) };
  };
  const message = "4 of 4 answers are incoherent: capability cannot be judged.";
  const salad = { kind: "incoherent", metrics: null, count: 4, total: 4, void: true, message };
  const runs = await Promise.all([
    runOf("first", {}),
    runOf("same seed", { value: 0.6 }),
    runOf("same bits", { seed: "2" }),
    runOf("other option", { seed: "3", value: 0.7, samples: 5 }),
    runOf("fewer questions", { seed: "7", value: 0.7, items: 10 }),
    runOf("longer", { seed: "4", value: 0.7, steps: 200 }),
    runOf("destroyed", { seed: "6", value: 0, warnings: [salad] }),
    runOf("second", { seed: "5", value: 0.9 }),
  ]);
  const [metric] = summarizeOverlay(runs);
  expect(metric!.means.map(({ runs: count, mean }) => [count, mean.value])).toEqual([[2, 0.7]]);
  expect(metric!.leftOut).toEqual([
    { name: "same seed", reason: "it repeats first, with equal seed 1: both count once" },
    { name: "same bits", reason: "it repeats first, with equal weights: both count once" },
    { name: "other option", reason: "first has the option sampling.n 2 (here 5)" },
    { name: "fewer questions", reason: "first has other items (100, here 10)" },
    { name: "longer", reason: "its number of steps is 200, but 100 in first" },
    { name: "destroyed", reason: `its measurement at the end cannot be judged: ${salad.message}` },
  ]);
});

it("has no mean of one run", async () => {
  const [metric] = summarizeOverlay([{ name: "a", run: await readRun(join(root, "a")) }]);
  expect(metric!.means).toEqual([]);
});

const pageOf = async (address: string) => {
  const reply = await resultsServer({ root }).request(`/v1/eval${address}`);
  return { status: reply.status, page: drawnPage(await reply.text()) };
};

it("holds the selection in links that work without a script, whatever the names", async () => {
  let address = "?";
  for (const name of names) {
    const { page } = await pageOf(address === "?" ? "?runs=a" : address);
    if (name === "a") {
      address = "?runs=a";
      continue;
    }
    const link = [...page.querySelectorAll(".selection a")].find(
      (one) => one.getAttribute("aria-label") === `Add ${name}`,
    );
    address = link!.getAttribute("href")!;
  }
  const { status, page } = await pageOf(address);
  expect(status).toBe(200);
  const labels = [...page.querySelectorAll(".selection a")].map((one) => one.getAttribute("aria-label"));
  expect(new Set(labels)).toEqual(new Set(names.map((name) => `Remove ${name}`)));
  expect(page.querySelectorAll("main script, b").length).toBe(0);
  // One chart, drawn for wide and for narrow screens.
  expect(page.querySelectorAll("figure .wide svg").length).toBe(1);
  expect(page.querySelectorAll("figure svg").length).toBe(2);
});

it("has the values of every run and of the mean for the script, and the phase that all runs share", async () => {
  const { page } = await pageOf("?runs=a,b%252Cc");
  const data: RunData = JSON.parse(page.getElementById("run-data")!.textContent);
  expect([data.parts, data.partsAre]).toEqual([["a", "b,c", "mean"], "run"]);
  const [curve] = data.curves;
  expect(page.querySelector("figure")!.getAttribute("data-curve")).toBe(curve!.key);
  const atEnd = curve!.points.filter(({ runStep }) => runStep === 100);
  expect(atEnd.map(({ part, value }) => [part, value])).toEqual([
    [0, 0.4],
    [1, 0.2],
    [2, expect.closeTo(0.3)],
  ]);
  expect(page.querySelector("figure svg")!.textContent).toContain("em");
});

it("offers each measured run of a list for comparison", async () => {
  const { page } = await pageOf("");
  const links = [...page.querySelectorAll(".run .kind a")].map((one) => one.getAttribute("href"));
  expect(links.filter((href) => href!.includes("runs="))).toHaveLength(3);
});

it.each([
  ["?runs=a,a", 400],
  ["?runs=a,../a", 404],
  ["?runs=none", 404],
  [`?runs=${Array.from({ length: 11 }, (_, at) => at).join(",")}`, 400],
])("refuses %s", async (address, status) => {
  expect((await pageOf(address)).status).toBe(status);
});
