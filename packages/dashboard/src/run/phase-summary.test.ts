import { adapterOffId } from "@periodic-eval/core/session";
import { fileStore, readRun } from "@periodic-eval/store";
import { expect, it } from "vitest";
import { summarizePhases } from "./phase-summary.ts";
import { headline } from "./summary-sentence.ts";
import { writeSampleRun } from "./sample-run.test-data.ts";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";

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

it("keeps a primary metric without any value if a warning says why it cannot be judged", async () => {
  const runDir = temporaryFolder();
  await writeSampleRun(runDir);
  const store = fileStore(runDir);
  const message = "100 of 100 answers are cut off too early to decide: capability cannot be judged.";
  const warning = { kind: "truncated", metrics: ["accuracy"], count: 100, total: 100, void: true, message };
  for (const snapshot of await store.list()) {
    if (snapshot.id !== "capability") continue;
    const accuracy = { ...snapshot.metrics["accuracy"]!, value: null, n: 0, ci95: null, stderr: null };
    const metrics = { ...snapshot.metrics, accuracy };
    const paired = { baseline: null, previous: null };
    await store.put({ ...snapshot, metrics, paired, warnings: [warning] }, await store.rows(snapshot));
  }
  await store.close!();
  const primaries = summarizePhases(await readRun(runDir)).map(({ metrics }) =>
    metrics.find(({ id, isPrimary }) => id === "capability" && isPrimary)!,
  );
  expect(primaries.map(({ voidReason }) => voidReason)).toEqual([message, message]);
  expect(headline(primaries[1]!, null)).toBe(
    "Capability: cannot be judged. 100 of 100 answers are cut off too early to decide.",
  );
});
