import { declarePhases, fileStore } from "@periodic-eval/store";
import { exampleSnapshot } from "@periodic-eval/testing";
import { expect, it } from "vitest";
import { recordingTerminal } from "../terminal/recording-terminal.test-data.ts";
import { readLabelledRuns } from "./read-runs.ts";
import { reportRun } from "./report-run.ts";
import { writeRunOf } from "../../../dashboard/src/run/five-runs.test-data.ts";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";

it("explains a paired change that is not end minus start, in tables and JSON", async () => {
  const runDir = temporaryFolder();
  const store = fileStore(runDir);
  const { metrics } = exampleSnapshot();
  const of = (value: number) => ({ ...metrics["accuracy"]!, value });
  const paired = (delta: number) => ({
    phase: "em",
    step: 0,
    n_pairs: 24,
    delta,
    ci95: null,
    test: null,
    p_value: null,
    alpha: null,
    minimal_detectable_change: null,
    verdict: null,
    exploratory: true,
  });
  // `accuracy` is a rate over coherent answers, which differ between start and end; `whole` is a rate over all answers.
  const start = { accuracy: of(0), whole: of(0.1) };
  const end = { accuracy: of(0.966), whole: of(0.1 + 0.2) };
  await store.put(exampleSnapshot({ phase: "em", step: 0, metrics: start }), []);
  const compared = { baseline: { accuracy: paired(0.969), whole: paired(0.2) }, previous: null };
  await store.put(exampleSnapshot({ phase: "em", step: 100, metrics: end, paired: compared }), []);
  await store.close?.();

  const [tables, document] = [recordingTerminal(), recordingTerminal()];
  await reportRun(runDir, { json: false }, tables);
  expect(tables.outputs[0]).toMatch(/accuracy +0\.0 % +→ 96\.6 % +\+96\.9 points over 24 paired items /);
  expect(tables.outputs[0]).toMatch(/whole +10\.0 % +→ 30\.0 % +\+20\.0 points +– /);
  expect(tables.outputs[0]).toContain("Over paired items: ");
  expect(tables.outputs[0]).toMatch(
    /\n\ntraining undisturbed: not proven \(no guard observed the optimizer, the mode, the random numbers\)\n$/,
  );

  await reportRun(runDir, { json: true }, document);
  const [{ metrics: reported }] = JSON.parse(document.outputs[0]!).phases;
  expect(reported).toMatchObject([
    { metric: "accuracy", delta: 0.969, n_pairs: 24 },
    { metric: "whole", delta: 0.2, n_pairs: 24 },
  ]);
});

it("prints the condition that ended a phase, the last clean step and a second judge's agreement", async () => {
  const runDir = temporaryFolder();
  const store = fileStore(runDir);
  const judge = { name: "b", kappa: 0.5, kappa_ci95: [0.2, 0.7], same_decision: 0.8, graded_by_both: 20 };
  const second_judge = { ...judge, misaligned: 3 };
  for (const step of [0, 20])
    await store.put(Object.assign(exampleSnapshot({ phase: "em", step }), { second_judge }), []);
  const stop = {
    condition: "capability worse",
    reason: "r",
    id: "capability",
    measuredAt: 20,
    cleanStep: 0,
  };
  await store.recordClosing?.({
    phase: "em",
    step: 20,
    maxSteps: 100,
    finished: true,
    stop: { ...stop, step: 20 },
  });
  await store.close?.();
  const [tables, document] = [recordingTerminal(), recordingTerminal()];
  await reportRun(runDir, { json: false }, tables);
  expect(tables.outputs[0]).toContain(
    "stop_when ended em at step 20: capability worse. No condition was met up to step 0: a checkpoint",
  );
  expect(tables.outputs[0]).toContain(
    "Second judge b at step 20: κ 0.50 [0.20, 0.70]; the same decision for 80.0 %",
  );
  await reportRun(runDir, { json: true }, document);
  expect(JSON.parse(document.outputs[0]!).phases[0].stop).toEqual({
    condition: "capability worse",
    step: 20,
    reason: "r",
    id: "capability",
    measured_at: 20,
    clean_step: 0,
  });
});

it("prints no table, and a line for all steps at which a callback was skipped for one reason", async () => {
  const runDir = temporaryFolder();
  const store = fileStore(runDir);
  const outcome = { phase: "em", status: "skipped", metrics: {}, primary_metric: null } as const;
  for (const [step, reason] of [
    [0, "disabled"],
    [50, "disabled"],
    [60, "0.2 s are left (19 planned)"],
    [80, "0.1 s are left (18 planned)"],
    [100, "disabled"],
  ] as const)
    await store.put(exampleSnapshot({ ...outcome, step, reason }), []);
  await store.close?.();
  const tables = recordingTerminal();
  await reportRun(runDir, { json: false }, tables);
  expect(tables.outputs[0]).toMatch(/^\nem +100 steps, .+\n\ntraining undisturbed: .+\n$/);
  expect(tables.outputs.slice(1, 3)).toEqual([
    "em steps 0, 50, 100: capability skipped: disabled",
    "em steps 60, 80: capability skipped: 0.2 s are left (19 planned) (the numbers are those of step 60)",
  ]);
});

it("reports a failed end measurement in tables and JSON", async () => {
  const runDir = temporaryFolder();
  const store = fileStore(runDir);
  for (const step of [0, 80]) await store.put(exampleSnapshot({ phase: "em", step }), []);
  const end = { phase: "em", step: 100, status: "failed", reason: "out of memory" } as const;
  await store.put(exampleSnapshot({ ...end, metrics: {}, primary_metric: null }), []);
  await store.close?.();

  const [tables, document] = [recordingTerminal(), recordingTerminal()];
  await reportRun(runDir, { json: false }, tables);
  expect(tables.outputs[0]).toMatch(/capability: accuracy +50\.0 % +→ – \(failed\) +– /);
  expect(tables.outputs[0]).not.toContain("paired");
  expect(tables.outputs[1]).toBe("em step 100: capability failed: out of memory");

  await reportRun(runDir, { json: true }, document);
  expect(JSON.parse(document.outputs[0]!)).toMatchObject({
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
});

it("shows the source's rate also if it is 0 at both ends, and no verdict on leakage then", async () => {
  const runDir = temporaryFolder();
  await writeRunOf(runDir, "destroyed");
  const tables = recordingTerminal();
  await reportRun(runDir, { json: false }, tables);
  const rows = tables.outputs[0]!.split("\n").filter((line) => line.startsWith("leakage: "));
  expect(rows[0]).toMatch(/^leakage: source rate +0\.0 % .*→ 0\.0 % /);
  expect(rows[1]).toMatch(/^leakage: leakage rate .*cannot be judged/);
});

it("says first that a declared phase has not begun, as `compare` does", async () => {
  const runDir = temporaryFolder();
  const store = fileStore(runDir);
  for (const step of [0, 100]) await store.put(exampleSnapshot({ phase: "em", step }), []);
  await store.close?.();
  const [whole, cut, compared] = [recordingTerminal(), recordingTerminal(), recordingTerminal()];
  await reportRun(runDir, { json: false }, whole);
  expect(whole.outputs.join("\n")).not.toContain("No process");
  const unlock = await declarePhases(runDir, ["em", "second"]);
  await unlock();
  const sentence = "No process is writing this run. Its phase second has not begun.";
  await reportRun(runDir, { json: false }, cut);
  expect(cut.outputs[0]).toBe(sentence);
  await readLabelledRuns([runDir], compared);
  expect(compared.errors).toEqual([`${runDir}: ${sentence}`]);
});
