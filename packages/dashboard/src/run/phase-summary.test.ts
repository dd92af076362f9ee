import { adapterOffId } from "@periodic-eval/core/session";
import { fileStore, readRun } from "@periodic-eval/core/snapshots";
import { expect, it } from "vitest";
import { summarizePhases } from "./phase-summary.ts";
import { writeSampleRun } from "./sample-run.test-data.ts";
import { temporaryFolder } from "../../../core/src/testing/temporary-folder.test-data.ts";

it("names the baseline of the end if it is not the start", async () => {
  const runDir = temporaryFolder();
  await writeSampleRun(runDir);
  const summary = async () => {
    const em = summarizePhases(await readRun(runDir)).find(({ phase }) => phase.name === "em")!;
    return em.metrics.find(({ id, isPrimary }) => id === "capability" && isPrimary)!;
  };
  const { end, metric, change } = await summary();
  expect(change).not.toBeNull();
  expect((await summary()).against).toBeNull();
  const store = fileStore(runDir);
  const key = { phase: "em", id: "capability", step: end.step };
  const [snapshot, rows] = [(await store.get(key))!, await store.rows(key)];
  const other = { ...snapshot.paired.baseline![metric]!, id: adapterOffId("capability") };
  await store.put({ ...snapshot, paired: { ...snapshot.paired, baseline: { [metric]: other } } }, rows);
  await store.close!();
  expect(await summary()).toMatchObject({
    change: { delta: change!.delta, verdict: change!.verdict },
    against: "em step 0 of capability.adapter_off",
  });
});

it("omits baseline measurements, which have no end", async () => {
  const runDir = temporaryFolder();
  await writeSampleRun(runDir);
  const idsOf = async () => [
    ...new Set(summarizePhases(await readRun(runDir)).flatMap(({ metrics }) => metrics.map(({ id }) => id))),
  ];
  const before = await idsOf();
  expect(before).toContain("capability");
  const store = fileStore(runDir);
  const start = (await store.get({ phase: "em", id: "capability", step: 0 }))!;
  await store.put({ ...start, id: adapterOffId("capability"), on: "base", crossed: [] }, []);
  await store.close!();
  expect(await idsOf()).toEqual(before);
  const { series } = (await readRun(runDir)).phases.find(({ name }) => name === "em")!;
  expect(series.map(({ id }) => id)).toContain("capability.adapter_off");
});
