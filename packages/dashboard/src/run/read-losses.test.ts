import { readRun } from "@periodic-eval/core/snapshots";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { temporaryFolder } from "../../../core/src/testing/temporary-folder.test-data.ts";
import { withLosses } from "./read-losses.ts";
import { writeSampleRun } from "./sample-run.test-data.ts";

it("adds the losses that another trainer logged to phases without training curves", async () => {
  const runDir = temporaryFolder();
  await writeSampleRun(runDir);
  await mkdir(join(runDir, "losses"));
  await writeFile(join(runDir, "losses", "coupling.json"), "{ damaged");
  const losses = [{ step: 5, metrics: { loss: 2.5 } }, { step: 6 }];
  await writeFile(join(runDir, "losses", "em.json"), JSON.stringify({ losses }));
  const run = await readRun(runDir);
  const [coupling, em] = (await withLosses(run)).phases;
  expect(coupling).not.toHaveProperty("training");
  // The phase before em has 60 steps.
  expect(em!.training).toEqual([{ step: 5, runStep: 65, metrics: { loss: 2.5 } }]);
  const own = [{ step: 1, runStep: 1, metrics: { loss: 1 } }];
  const trained = { ...run, phases: run.phases.map((phase) => ({ ...phase, training: own })) };
  expect((await withLosses(trained)).phases.map(({ training }) => training)).toEqual([own, own]);
});
