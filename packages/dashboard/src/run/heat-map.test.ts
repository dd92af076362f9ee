import type { MetricValue } from "@periodic-eval/core";
import { readRun } from "@periodic-eval/store";
import { parseHTML } from "linkedom";
import { expect, it } from "vitest";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";
import { curvesByCallback } from "../charts/metric-curves.ts";
import { heatMap } from "./callback-section.ts";
import { writeSampleRun } from "./sample-run.test-data.ts";

/** Renders the heat map of a sample run whose metrics are replaced; null if there is none. */
async function heatMapOf(metrics: (accuracy: MetricValue) => Readonly<Record<string, MetricValue>>) {
  const runDir = temporaryFolder();
  await writeSampleRun(runDir, (snapshot) => ({
    ...snapshot,
    metrics: { ...snapshot.metrics, ...metrics(snapshot.metrics["accuracy"]!) },
  }));
  const map = heatMap(curvesByCallback(await readRun(runDir))[0]!);
  return map === false ? null : parseHTML(map.markup).document;
}

it("colours each group by its value, with the value as text", async () => {
  const document = await heatMapOf((accuracy) => ({
    "accuracy/birds": { ...accuracy, value: 0.42 },
    // Coupling scores more than 90 % except at its end, em never.
    "accuracy/<b>": { ...accuracy, value: accuracy.value! > 0.9 ? null : 0 },
  }));
  const rows = [...document!.querySelectorAll("tbody tr")];
  expect(rows.map((row) => row.querySelector("th")!.textContent)).toEqual(["birds", "<b>"]);
  expect(rows[0]!.querySelectorAll("td.better-4")).toHaveLength(12);
  expect(rows[0]!.querySelector("td")!.textContent).toBe("42.0 %");
  const cells = [...rows[1]!.querySelectorAll("td")].map((cell) => cell.textContent);
  expect(cells).toEqual([...Array<string>(5).fill("–"), ...Array<string>(7).fill("0.0 %")]);
});

it("names the curves of its rows, for their download", async () => {
  const document = await heatMapOf((accuracy) => ({
    source_rate: accuracy,
    "accuracy/birds": accuracy,
    'accuracy/"<b>': accuracy,
  }));
  const map = document!.querySelector("[data-heat]")!;
  expect(map.getAttribute("data-heat")).toBe("Accuracy by group and step");
  expect(JSON.parse(map.getAttribute("data-curves")!)).toEqual([
    "capability/source_rate",
    "capability/accuracy/birds",
    'capability/accuracy/"<b>',
  ]);
});

it("is absent with fewer than two groups", async () => {
  expect(await heatMapOf((accuracy) => ({ "accuracy/birds": accuracy }))).toBeNull();
});
