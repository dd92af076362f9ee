import { join } from "node:path";
import type { Row } from "@periodic-eval/core";
import { fileStore, readRun } from "@periodic-eval/store";
import { parseHTML } from "linkedom";
import { afterAll, expect, it } from "vitest";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";
import type { RunData } from "../page-data/run-data.ts";
import { readAnswerScores } from "../run/answer-scores.ts";
import { sampleSnapshots } from "../run/sample-run.test-data.ts";
import { resultsServer } from "./results-server.ts";

const root = temporaryFolder(afterAll);

it("shows the same scatter plots on a served page as on a page in a file, of at most 60 measurements", async () => {
  const store = fileStore(join(root, "run"));
  for (const snapshot of sampleSnapshots()) {
    const accuracy = snapshot.metrics["accuracy"]!;
    const metrics = { ...snapshot.metrics, aligned: accuracy, coherent: accuracy };
    const row = { id: "a", kind: "completion", text: "x", aligned: 90, coherent: 80 } as Row;
    await store.put({ ...snapshot, metrics }, [row]);
  }
  await store.close?.();
  const reply = await resultsServer({ root }).request("/v1/eval?results_dir=run");
  const page = parseHTML(await reply.text()).document;
  expect(page.querySelectorAll("figure[data-scatter]")).toHaveLength(2);
  const data: RunData = JSON.parse(page.getElementById("run-data")!.textContent);
  const run = await readRun(join(root, "run"));
  expect(data.scatters).toEqual(await readAnswerScores(run));
  const [few] = await readAnswerScores(run, { maxMeasurements: 5 });
  expect(few!.measurements.map(({ runStep }) => runStep)).toEqual([0, 36, 60, 84, 120]);
  expect(await readAnswerScores(run, { maxRows: 0 })).toEqual([]);
});
