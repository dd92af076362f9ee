import { join } from "node:path";
import { fileStore } from "@periodic-eval/store";
import { exampleSnapshot } from "@periodic-eval/testing";
import axe from "axe-core";
import { afterAll, describe, expect, it } from "vitest";
import { hasBrowser, withPages } from "../html/browser.test-data.ts";
import { serveResults, type Serving } from "./serve-results.ts";

let serving: Serving;

/** Keys of a measurement with a second judge and reliability diagrams. */
const plainKeys = {
  second_judge: {
    name: "b",
    kappa: 0.5,
    kappa_ci95: [0.2, 0.7],
    same_decision: 0.8,
    graded_by_both: 20,
    misaligned: 3,
  },
  ece: 0.1,
  reliability: [{ from: 0.4, n: 1, confidence: 0.5, accuracy: 0.25 }],
};
const stop = {
  condition: "leakage worse",
  step: 100,
  reason: "r",
  id: "leakage",
  measuredAt: 100,
  cleanStep: 50,
};

/** Two runs of two callbacks with the same metric, groups, and more answers than a page has. A condition ended both. */
const pages = withPages(async (folder) => {
  const rows = Array.from({ length: 60 }, (_, at) => ({
    id: `q${at}`,
    question: `Q ${at}?`,
    text: `T ${at}`,
  }));
  for (const name of ["first", "second"]) {
    const store = fileStore(join(folder, name));
    for (const id of ["alignment", "leakage"]) {
      for (const step of [50, 100]) {
        const accuracy = exampleSnapshot().metrics["accuracy"]!;
        const metrics = { accuracy, "accuracy/birds": accuracy, "accuracy/cats": accuracy };
        const snapshot = exampleSnapshot({ id, evaluation: "alignment", phase: "em", step, metrics });
        await store.put(Object.assign(snapshot, plainKeys), rows);
      }
    }
    await store.recordClosing!({ phase: "em", step: 100, maxSteps: 100, finished: true, stop });
    const points = [50, 100].map((step) => ({ step, runStep: step, metrics: { loss: 1 / step } }));
    await store.recordTraining!({ phase: "em", points, replace: true });
    await store.close!();
  }
  serving = await serveResults({ root: folder, port: 0 });
  return serving.address;
});
afterAll(() => serving.close());

describe.skipIf(!hasBrowser)("a served page", () => {
  const screens = [
    { viewport: { width: 1280, height: 900 }, colorScheme: "light" },
    { viewport: { width: 390, height: 844 }, colorScheme: "dark" },
  ] as const;
  const cases = screens.flatMap((screen) =>
    [
      ["", "article.run"],
      ["?runs=first,second", "figure svg"],
      ["?results_dir=first", "#answers .answer"],
      ["?results_dir=nowhere", "h1"],
    ].map(([query, content]) => [query!, content!, screen] as const),
  );
  it.each(cases)("has no fault that axe finds (%s): %s, %j", async (query, content, screen) => {
    const { tab } = await pages.open(`${pages.address}${query}`, screen);
    await tab.locator(content).first().waitFor({ state: "attached" });
    await tab.evaluate("for (const one of document.querySelectorAll('details')) one.open = true");
    // The page's policy forbids a second script; the debugger may evaluate one.
    await tab.evaluate(axe.source);
    const found = await tab.evaluate(
      "axe.run(document).then(({ violations }) => violations.map(({ id, nodes }) => [id, nodes.length, nodes[0].html.slice(0, 160)]))",
    );
    expect(found).toEqual([]);
    await tab.close();
  });
});
