import type { MetricValue } from "@periodic-eval/core";
import { fileStore, readRun } from "@periodic-eval/store";
import { exampleSnapshot } from "@periodic-eval/testing";
import { expect, it } from "vitest";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";
import { drawnPage } from "../client/drawn-page.test-data.ts";
import { renderPage } from "./run-page.ts";

it("folds the metrics that never change, and writes units at the axes", async () => {
  const folder = temporaryFolder();
  const store = fileStore(folder);
  for (const step of [0, 50, 100]) {
    const snapshot = exampleSnapshot({ phase: "em", step, run_step: step });
    const share = snapshot.metrics["accuracy"]!;
    const points = (value: number): MetricValue => ({
      value,
      n: 4,
      stderr: null,
      ci95: null,
      estimand: "given_questions",
      unit: "points",
      higher_is_better: true,
    });
    const metrics = {
      score: points(step),
      refusal: { ...share, value: 0 },
      accuracy: { ...share, value: step / 200 },
    };
    await store.put({ ...snapshot, metrics, primary_metric: "score" }, []);
  }
  await store.close!();
  const document = drawnPage(renderPage(await readRun(folder)));
  const names = (rows: Iterable<Element>) => [...rows].map((row) => row.querySelector("th")!.textContent);
  const folded = document.querySelector("#phases details")!;
  expect(folded.querySelector("summary")!.textContent).toMatch(
    /^The same in every measurement of em +1 metric$/,
  );
  expect(names(folded.querySelectorAll("tbody tr"))).toEqual(["capability: refusal"]);
  expect(names(document.querySelectorAll("#phases > .scroll tbody tr"))).toEqual([
    "capability: score",
    "capability: accuracy",
  ]);
  expect(document.querySelector("figure .wide svg")!.textContent).toContain("↑ points");
  expect(document.querySelector(".multiples svg")!.textContent).toMatch(/\d %.*run step →/s);
});
