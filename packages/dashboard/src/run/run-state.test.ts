import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { declarePhases, fileStore, readRun } from "@periodic-eval/store";
import type { PhaseClosing } from "@periodic-eval/contracts";
import type { Snapshot } from "@periodic-eval/core";
import { parseHTML } from "linkedom";
import { beforeEach, describe, expect, it } from "vitest";
import { phaseText } from "../charts/metric-curves.ts";
import { phaseData, edgeHeadings, summarizePhases } from "./phase-summary.ts";
import { renderPage } from "./run-page.ts";
import { notFinished, runState } from "./run-state.ts";
import { sampleSnapshots } from "./sample-run.test-data.ts";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";

let runDir: string;
beforeEach(() => void (runDir = temporaryFolder()));

const em = sampleSnapshots().filter(({ phase }) => phase === "em");

async function write(
  snapshots: readonly Snapshot[],
  closing?: Pick<PhaseClosing, "step" | "finished" | "stop">,
) {
  const store = fileStore(runDir);
  for (const snapshot of snapshots) await store.put(snapshot, []);
  if (closing !== undefined) await store.recordClosing!({ phase: "em", maxSteps: 60, ...closing });
  await store.close!();
  return readRun(runDir);
}

const pageOf = async () => parseHTML(renderPage(await readRun(runDir))).document;
const text = (node: Element | null | undefined) => node?.textContent?.replaceAll(/\s+/g, " ").trim();

describe("the state of a run", () => {
  it.each([
    ["at its end", em, undefined, "finished", null, "60 steps"],
    ["in its middle", em.slice(0, 3), undefined, "interrupted", null, "interrupted after step 24 of 60"],
    [
      "closed later",
      em.slice(0, 1),
      { step: 7, finished: false },
      "interrupted",
      7,
      "interrupted at step 7 of 60",
    ],
    [
      "stopped early",
      em.slice(0, 3),
      { step: 30, finished: true },
      "finished",
      30,
      "finished at step 30 of 60",
    ],
    // Interrupted at step 7, resumed, killed after the measurement at step 24.
    [
      "killed later",
      em.slice(0, 3),
      { step: 7, finished: false },
      "interrupted",
      null,
      "interrupted after step 24 of 60",
    ],
    [
      "of 0 steps",
      [{ ...em[0]!, max_steps: 0 }],
      { step: 0, maxSteps: 0, finished: true },
      "finished",
      0,
      "0 steps",
    ],
    // The end of one callback of two was measured.
    [
      "cut off at its end",
      em,
      { step: 60, finished: false },
      "interrupted",
      60,
      "interrupted at step 60 of 60",
    ],
  ] as const)("of a phase %s", async (_, snapshots, closing, state, closedAt, words) => {
    const run = await write(snapshots, closing);
    expect(run.phases).toMatchObject([{ state, closedAt }]);
    expect(phaseText(run.phases[0]!)).toBe(words);
    expect(runState(run).state).toBe(state);
    expect(phaseData(run)).toMatchObject([{ state, closed_at_step: closedAt }]);
  });

  it.each([
    [true, "finished"],
    [false, "interrupted"],
  ])("of a run without measurements (finished: %s)", async (finished, state) => {
    expect(runState(await write([], { step: 60, finished })).state).toBe(state);
  });

  it("is interrupted while a declared phase has not begun, and running between phases", async () => {
    const unlock = await declarePhases(runDir, ["em", "second"]);
    const between = await write(em, { step: 60, finished: true });
    expect(runState(between).state).toBe("running");
    await unlock();
    expect(runState(await readRun(runDir))).toEqual({
      state: "interrupted",
      explanation: "No process is writing this run. Its phase second has not begun.",
    });
    // The pipeline without the second phase is whole.
    await (
      await declarePhases(runDir, ["em"])
    )();
    expect(runState(await readRun(runDir)).state).toBe("finished");
  });

  it("is finished, and names the phases that were not trained, if stop_when ended the phase before them", async () => {
    const unlock = await declarePhases(runDir, ["em", "second", "third"]);
    const stop = { condition: "x worse", step: 24, reason: "", id: "x", measuredAt: 24, cleanStep: 0 };
    await write(em.slice(0, 3), { step: 24, finished: false, stop });
    await unlock();
    expect(runState(await readRun(runDir)).state).toBe("interrupted");
    const run = await write([], { step: 24, finished: true, stop });
    const explanation = "No process is writing this run. stop_when ended em; second, third were not trained.";
    expect(runState(run)).toEqual({ state: "finished", explanation });
    expect(notFinished(run)).toBe(explanation);
    expect(text((await pageOf()).querySelector(".notice"))).toBe(explanation);
  });

  it("is unknown for a run without measurements that never closed, and ignores a damaged file", async () => {
    await write([], { step: 60, finished: true });
    await writeFile(join(runDir, "periodic_eval", ".phases"), '[{"phase": 1}]');
    const run = await readRun(runDir);
    expect(run.closings).toEqual([]);
    expect(runState(run).state).toBe("unknown");
  });
});

it("shows one value and no change if an interrupted phase has one measurement", async () => {
  const run = await write(em.slice(0, 1), { step: 23, finished: false });
  const { metrics } = summarizePhases(run)[0]!;
  expect(metrics.every(({ isSingle, change }) => isSingle && change === null)).toBe(true);
  const page = await pageOf();
  expect(text(page.querySelector(".notice"))).toContain("em: interrupted at step 23 of 60");
  expect(text(page.querySelector("caption"))).toMatch(/^em interrupted at step 23 of 60, /);
  expect(text(page.querySelector(".card .figure"))).toBe("90.0 %");
  const cells = [...page.querySelectorAll("tr.primary td")].map(text);
  expect(cells.slice(0, 3)).toEqual(["90.0 %", "–", "–"]);
  expect(page.body.textContent).not.toContain("→ 90.0 %");
});

it("heads the columns of a phase without a start by their steps, and mentions no baseline if it has none", async () => {
  const paired = { baseline: null, previous: null };
  const run = await write(em.slice(1, 3).map((snapshot) => ({ ...snapshot, paired })));
  expect(edgeHeadings(summarizePhases(run)[0]!.metrics)).toEqual(["step 12", "step 24"]);
  expect((await pageOf()).body.textContent).not.toContain("Dotted line");
  const whole = await write(em);
  expect(edgeHeadings(summarizePhases(whole)[0]!.metrics)).toEqual(["start", "end"]);
  expect((await pageOf()).body.textContent).toContain("Dotted line: baseline.");
});

it("shows a measurement at the end only in the column of the end, with its cost", async () => {
  const paired = { baseline: null, previous: null };
  const end = em.at(-1)!;
  const timing = { ...end.timing, governor: "whole, 100 items: the end is never reduced" };
  await write([{ ...end, paired, timing }]);
  const table = (await pageOf()).querySelector("#phases table")!;
  expect(text(table.querySelector("caption"))).toMatch(/measuring took [\d.]+ s at the end$/);
  expect([...table.querySelectorAll("thead th")].map(text).slice(0, 3)).toEqual(["metric", "start", "end"]);
  expect([...table.querySelectorAll("tr.primary td")].map(text).slice(0, 2)).toEqual(["–", "63.0 %"]);
});
