import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileStore } from "@periodic-eval/core/snapshots";
import { exampleSnapshot } from "@periodic-eval/core/testing";
import { expect, it } from "vitest";
import { keptTerminal } from "./kept-terminal.test-data.ts";
import { reportRun } from "./run-report.ts";

it("says that the end was not measured, in the tables and in the document", async () => {
  const runDir = await mkdtemp(join(tmpdir(), "report-"));
  const store = fileStore(runDir);
  for (const step of [0, 80]) await store.put(exampleSnapshot({ phase: "em", step }), []);
  const end = { phase: "em", step: 100, status: "failed", reason: "out of memory" } as const;
  await store.put(exampleSnapshot({ ...end, metrics: {}, primary_metric: null }), []);
  await store.close?.();

  const [tables, document] = [keptTerminal(), keptTerminal()];
  await reportRun(runDir, { json: false }, tables);
  expect(tables.said[0]).toMatch(/capability: accuracy +50\.0 % +→ – \(failed\) +– /);
  expect(tables.said[1]).toBe("em step 100: capability failed: out of memory");

  await reportRun(runDir, { json: true }, document);
  expect(JSON.parse(document.said[0]!)).toMatchObject({
    phases: [
      {
        metrics: [
          {
            start: 0.5,
            start_step: 0,
            start_status: "complete",
            end: null,
            end_step: 100,
            end_status: "failed",
          },
        ],
      },
    ],
    incomplete: [{ ...end, id: "capability" }],
  });
  await rm(runDir, { recursive: true });
});
