import { fileStore, readRun } from "@periodic-eval/store";
import { expect, it } from "vitest";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";
import { curvesByCallback } from "../charts/metric-curves.ts";
import { writeSampleRun } from "./sample-run.test-data.ts";
import { sameWeightsNote } from "./callback-section.ts";

/** Returns the note on a run of two phases, the second of which starts with another value of `accuracy` than the first ends with. */
async function noteOf(
  weights: { readonly end: string | null; readonly start: string | null },
  accuracy = 0.87,
) {
  const runDir = temporaryFolder();
  await writeSampleRun(runDir, (snapshot) => {
    if (snapshot.phase === "em" && snapshot.pct === 0) {
      const metrics = {
        ...snapshot.metrics,
        accuracy: { ...snapshot.metrics["accuracy"]!, value: accuracy },
      };
      return { ...snapshot, metrics, weights: weights.start };
    }
    return {
      ...snapshot,
      weights: snapshot.pct === 100 ? weights.end : `${snapshot.phase} ${snapshot.step}`,
    };
  });
  await fileStore(runDir).close!();
  const run = await readRun(runDir);
  const primary = curvesByCallback(run).find(({ id }) => id === "capability")!.primary!;
  return sameWeightsNote(run, primary);
}

it("says that two values of the same weights differ by chance", async () => {
  expect(await noteOf({ end: "a", start: "a" })).toBe(
    "The weights are the same at both measurements between coupling and em. Their answers were sampled twice, so the values differ by chance.",
  );
});

it("returns null if the values are equal, or if the weights differ or are unknown", async () => {
  expect(await noteOf({ end: "a", start: "a" }, 0.9)).toBeNull();
  expect(await noteOf({ end: "a", start: "b" })).toBeNull();
  expect(await noteOf({ end: null, start: null })).toBeNull();
});
