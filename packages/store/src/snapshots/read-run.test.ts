import { mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Ajv2020 } from "ajv/dist/2020.js";
import { beforeEach, describe, expect, it } from "vitest";
import type { Snapshot } from "@periodic-eval/contracts";
import { lockText } from "../../../testing/src/lock-file.test-data.ts";
import { exampleSnapshot } from "@periodic-eval/testing";
import { parseSnapshot, snapshotJsonSchema } from "./snapshot-file.ts";
import { fileStore } from "./file-store.ts";
import { readRun, summarizeReceipt } from "./read-run.ts";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";

let runDir: string;
beforeEach(() => void (runDir = temporaryFolder()));

const timing = (changes: Partial<Snapshot["timing"]>) => ({ ...exampleSnapshot().timing, ...changes });

async function twoPhases() {
  const store = fileStore(runDir);
  await store.put(exampleSnapshot({ phase: "em", step: 0, run_step: 40, max_steps: 80 }), [{ id: "q" }]);
  await store.put(
    exampleSnapshot({
      phase: "coupling",
      step: 0,
      max_steps: 40,
      timing: timing({ overhead_percent: null }),
    }),
    [],
  );
  await store.put(
    exampleSnapshot({ phase: "coupling", step: 40, max_steps: 40, timing: timing({ overhead_percent: 7 }) }),
    [],
  );
  await store.put(
    exampleSnapshot({
      phase: "coupling",
      step: 40,
      max_steps: 40,
      id: "leakage",
      metrics: {},
      primary_metric: null,
      status: "failed",
      reason: "it threw",
    }),
    [],
  );
  return store;
}

describe("readRun", () => {
  it.each(["a missing folder", "an empty folder"])(
    "returns a record without phases for %s",
    async (which) => {
      const missing = join(runDir, "run");
      if (which === "an empty folder") await mkdir(join(missing, "periodic_eval"), { recursive: true });
      expect(await readRun(missing)).toEqual({
        runDir: missing,
        phases: [],
        superseded: [],
        problems: [],
        writer: null,
        closings: [],
      });
    },
  );

  it("returns phases in order, a series per callback, overhead and seconds", async () => {
    await (
      await twoPhases()
    ).close!();
    const { phases } = await readRun(runDir);
    expect(
      phases.map(({ name, maxSteps, runStepOffset, overheadPercent, evaluationSeconds }) => [
        name,
        maxSteps,
        runStepOffset,
        overheadPercent,
        evaluationSeconds,
      ]),
    ).toEqual([
      ["coupling", 40, 0, 5, 3], // three snapshots of 1 s each; the last one by step and id has 5 %
      ["em", 80, 40, 5, 1],
    ]);
    const [capability, leakage] = phases[0]!.series;
    expect(capability).toMatchObject({
      id: "capability",
      evaluation: "capability",
      on: "model",
      primaryMetric: "accuracy",
    });
    expect(
      capability!.points.map(({ step, pct, runStep, status, receipt, file }) => [
        step,
        pct,
        runStep,
        status,
        receipt.intact,
        file,
      ]),
    ).toEqual([
      [0, 0, 0, "complete", true, "coupling/capability_step_0.json"],
      [40, 100, 40, "complete", true, "coupling/capability_step_40.json"],
    ]);
    expect(leakage!.points).toMatchObject([{ status: "failed", reason: "it threw", metrics: {} }]);
    expect(leakage!.primaryMetric).toBeNull();
  });

  it("returns the same record without the index, and reports whether a session is open", async () => {
    const store = await twoPhases();
    const running = await readRun(runDir);
    expect(running.writer).toMatchObject({ pid: process.pid, isAlive: true });
    await store.close!();
    const finished = await readRun(runDir);
    await rm(join(runDir, "periodic_eval/index.jsonl"));
    expect(await readRun(runDir)).toEqual(finished);
    expect(running.phases.map(({ state }) => state)).toEqual(["finished", "running"]);
    const phases = running.phases.map((phase) =>
      phase.state === "running" ? { ...phase, state: "interrupted" } : phase,
    );
    expect(finished).toEqual({ ...running, phases, writer: null });
  });

  it("reports a dead writer and unusable files of an interrupted run, and changes nothing", async () => {
    await (
      await twoPhases()
    ).close!();
    const root = join(runDir, "periodic_eval");
    await writeFile(join(root, ".lock"), lockText());
    await writeFile(join(root, "em", "capability_step_20.json"), '{"schema_version": 1, "st');
    await writeFile(join(root, "em", ".capability_step_20.json.77.1.tmp"), "{");
    await writeFile(
      join(root, "em", "alignment_step_0.json"),
      JSON.stringify({ ...exampleSnapshot(), status: "done" }),
    );
    await writeFile(join(root, "index.jsonl"), '{"file":"em/cap');
    await writeFile(join(root, "notes.json"), "not ours");
    const before = await readdir(root, { recursive: true });
    const { phases, problems, writer } = await readRun(runDir);
    expect(await readdir(root, { recursive: true })).toEqual(before);
    expect(phases.map(({ name }) => name)).toEqual(["coupling", "em"]);
    expect(writer).toMatchObject({ isAlive: false });
    expect(problems.map(({ file }) => file)).toEqual([
      "em/alignment_step_0.json",
      "em/capability_step_20.json",
    ]);
    expect(problems[0]!.message).toContain('alignment_step_0.json: status: got "done"');
    expect(problems[1]!.message).toContain("text that is not JSON");
  });

  it("reads a series that begins with a skipped measurement and ends with a failed one", async () => {
    const store = fileStore(runDir);
    await store.put(
      exampleSnapshot({ status: "skipped", primary_metric: null, metrics: {}, reason: "no file" }),
      [],
    );
    await store.put(exampleSnapshot({ step: 50 }), []);
    await store.put(exampleSnapshot({ step: 100, status: "failed", primary_metric: null, metrics: {} }), []);
    await store.close!();
    expect((await readRun(runDir)).phases[0]!.series).toMatchObject([
      { primaryMetric: "accuracy", points: [{}, {}, {}] },
    ]);
  });
});

describe("receipts", () => {
  const evidence = (part: string, intact: boolean | null, advisory = false) => ({
    part,
    before: "a",
    after: "b",
    intact,
    advisory,
  });
  it("summarizes evidence; without evidence intact is null", () => {
    expect(summarizeReceipt([]).intact).toBeNull();
    expect(summarizeReceipt([evidence("weights", true), evidence("tensors", false, true)])).toEqual({
      intact: true,
      broken: [],
      notObserved: [],
      advisories: ["tensors"],
    });
    expect(summarizeReceipt([evidence("weights", true), evidence("modes", null)])).toMatchObject({
      intact: null,
      notObserved: ["modes"],
    });
    expect(summarizeReceipt([evidence("modes", null), evidence("random", false)])).toMatchObject({
      intact: false,
      broken: ["random"],
    });
  });
});

describe("the published JSON Schema", () => {
  const validate = new Ajv2020({ strict: false }).compile(snapshotJsonSchema());

  it("accepts the snapshots that the store accepts, with plain keys", () => {
    expect(validate(exampleSnapshot({ accuracy: 0.5, leakage_rates: { pirate: 0.25 } }))).toBe(true);
    expect(parseSnapshot(exampleSnapshot({ accuracy: 0.5 }))["accuracy"]).toBe(0.5);
  });

  it.each([
    ["a missing field", { step: undefined }],
    ["a wrong status", { status: "done" }],
    ["a name with a slash", { phase: "a/b" }],
    ["a fractional step", { step: 1.5 }],
    ["another schema version", { schema_version: 2 }],
    [
      "an interval of one number",
      { metrics: { accuracy: { ...exampleSnapshot().metrics["accuracy"], ci95: [0.1] } } },
    ],
  ])("rejects %s, as the store does", (_, changes) => {
    const value = JSON.parse(JSON.stringify({ ...exampleSnapshot(), ...changes }));
    expect(validate(value)).toBe(false);
    expect(() => parseSnapshot(value, "file.json")).toThrow("[periodic-eval] file.json: ");
  });
});
