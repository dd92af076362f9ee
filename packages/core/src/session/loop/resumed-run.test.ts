import { beforeEach, describe, expect, it, vi } from "vitest";
import { PeriodicCallback } from "../../callback/periodic-callback.ts";
import { plainConsoleLogger } from "../../console/console-logger.ts";
import type {
  AnyEvaluation,
  PhaseBegin,
  PhaseEnd,
  SessionOptions,
  SessionState,
} from "@periodic-eval/contracts";
import { everyPercent } from "../../schedule/triggers.ts";
import { readRun } from "@periodic-eval/store";
import { fakeGuard, fakeModel, manualClock } from "@periodic-eval/testing";
import { toyEvaluation, toyTraining } from "../../../../testing/src/toy-training.test-data.ts";
import { openSession } from "./session.ts";
import { temporaryFolder } from "../../../../testing/src/temporary-folder.test-data.ts";

const stepSeconds = 4;
const measureSeconds = 3;

let run: string;
const lines: string[] = [];
beforeEach(async () => {
  run = temporaryFolder();
  lines.length = 0;
  vi.spyOn(console, "log").mockImplementation((text: string) => void lines.push(text));
  vi.spyOn(console, "warn").mockImplementation((text: string) => void lines.push(text));
});

interface Trained {
  readonly state: SessionState | null;
  readonly weights: number;
  readonly begins: readonly PhaseBegin[];
  readonly ends: readonly PhaseEnd[];
  readonly plans: readonly string[];
}

interface TrainOptions {
  readonly ends?: boolean;
  readonly saveAt?: number;
  readonly from?: Trained;
  readonly changes?: Partial<SessionOptions>;
}

/**
 * Trains a toy to `last`, with steps of 4 s and measurements of 3 s every 20 %. Saves a checkpoint after step `saveAt`.
 *
 * @param ends Whether training ends there; otherwise it is interrupted.
 */
async function train(
  last: number,
  { ends = false, saveAt = 0, from, changes = {} }: TrainOptions = {},
): Promise<Trained> {
  const clock = manualClock();
  const toy = toyTraining();
  const begins: PhaseBegin[] = [];
  const closed: PhaseEnd[] = [];
  const recorder = {
    name: "recorder",
    begin: (at: PhaseBegin) => void begins.push(at),
    end: (at: PhaseEnd) => void closed.push(at),
  };
  const evaluation = toyEvaluation({ onMeasure: () => clock.advance(measureSeconds) });
  const session = openSession(
    toy.options([new PeriodicCallback(evaluation, { schedule: [everyPercent(20)] })], {
      run,
      clock: clock.seconds,
      loggers: [toy.logger, recorder, plainConsoleLogger()],
      budget: { overheadPercent: 20 },
      ...(from?.state && { resume: from.state }),
      ...changes,
    }),
  );
  let state: SessionState | null = null;
  let weights = from?.state ? from.weights : 0;
  toy.weights = weights;
  await session.begin().catch(async (error: unknown) => {
    await session.close();
    throw error;
  });
  while (session.progress.step < last) {
    toy.step();
    clock.advance(stepSeconds);
    await session.stepEnd();
    if (session.progress.step !== saveAt) continue;
    state = await session.save();
    ({ weights } = toy);
  }
  if (ends) await session.end();
  await session.close();
  const plans = toy.events.flatMap((event) => (event.kind === "plan" ? [event.message] : []));
  return { state, weights, begins, ends: closed, plans };
}

const overheads = async () =>
  (await readRun(run)).phases[0]!.snapshots.map(({ timing }) => timing.overhead_percent);
const phase = async () => (await readRun(run)).phases[0]!;

describe("the overhead of an interrupted phase", () => {
  // Six measurements of 3 s in ten steps of 4 s.
  const whole = (100 * 6 * measureSeconds) / (10 * stepSeconds);

  it("counts the measurements that a run from step 1 adopts", async () => {
    await train(5);
    await train(10, { ends: true });
    expect((await overheads()).at(-1)).toBeCloseTo(whole);
    expect((await phase()).overheadPercent).toBeCloseTo(whole);
    expect((await phase()).evaluationSeconds).toBeCloseTo(6 * measureSeconds);
  });

  it("equals that of a whole run after a resumption", async () => {
    const first = await train(7, { saveAt: 5 });
    await train(10, { ends: true, from: first });
    expect((await overheads()).at(-1)).toBeCloseTo(whole);
  });

  it("counts the measurement at the end, which follows the last checkpoint, if the phase grows", async () => {
    const first = await train(10, { ends: true, saveAt: 10 });
    const saved = { ...first.state!, windowSeconds: 5 * measureSeconds };
    await train(20, { ends: true, from: { ...first, state: saved }, changes: { maxSteps: 20 } });
    // Measured at 0, 2, 4, 6, 8, 10, and of 20 steps at 12, 16 and 20.
    const { snapshots, overheadPercent } = await phase();
    expect(overheadPercent).toBeCloseTo((100 * snapshots.length * measureSeconds) / (20 * stepSeconds));
  });
});

describe("a phase that is run again", () => {
  it("says once from which step it resumed", async () => {
    const first = await train(7, { saveAt: 5 });
    expect(first.begins).toMatchObject([{ resumed: false }]);
    expect(first.begins[0]).not.toHaveProperty("startsAgainAfter");
    expect(first.ends).toMatchObject([{ phase: "train", step: 7, maxSteps: 10, finished: false }]);
    expect(lines.at(-1)).toContain("train interrupted at step 7 of 10, 4 measurements");
    expect(await phase()).toMatchObject({ state: "interrupted", closedAt: 7 });
    lines.length = 0;
    const second = await train(10, { ends: true, from: first });
    expect(second.begins).toMatchObject([{ resumed: true, step: 5 }]);
    expect(second.ends).toMatchObject([{ step: 10, finished: true }]);
    expect(lines.filter((line) => line.includes("resumed from"))).toEqual([
      "train  resumed from step 5 of 10",
    ]);
    expect(await phase()).toMatchObject({ state: "finished", closedAt: 10 });
  });

  it("says that it starts again without a checkpoint, and names how to save one", async () => {
    await train(7);
    lines.length = 0;
    const { begins } = await train(10, { ends: true });
    expect(begins).toMatchObject([{ resumed: false, startsAgainAfter: 7 }]);
    expect(lines[0]).toMatch(
      /^train {2}starts again from step 1: .* step 7, and this one does not resume .* replace the earlier ones .*config\.saveSteps\.$/,
    );
    // The plan follows the adopted start, not the last measurement.
    expect(lines.findIndex((line) => line.startsWith("plan: "))).toBeLessThan(
      lines.findIndex((line) => line.includes("step 2 ")),
    );
    const elsewhere = { guards: [{ ...fakeGuard(), isElsewhere: true }] };
    lines.length = 0;
    await train(10, { changes: elsewhere });
    expect(lines[0]).toMatch(/: resume_from_checkpoint=True with save_steps\.$/);
  });

  it("says only that it is finished if nothing is left, without a plan", async () => {
    const first = await train(10, { ends: true, saveAt: 10 });
    lines.length = 0;
    const { begins, plans } = await train(10, { ends: true, from: first });
    expect(begins).toMatchObject([{ resumed: true, alreadyFinished: true }]);
    expect(plans).toEqual([]);
    expect(lines).toEqual([
      "train  already finished at step 10 of 10; nothing to do",
      expect.stringContaining("6 measurements"),
    ]);
  });

  it("is refused with other questions or callbacks if it is finished, which would not be measured", async () => {
    const first = await train(10, { ends: true, saveAt: 10 });
    const asked = (evaluation: AnyEvaluation, id = "toy") => ({
      callbacks: [new PeriodicCallback(evaluation, { id, schedule: [everyPercent(20)] })],
    });
    const again = (changes: Partial<SessionOptions>) => train(10, { ends: true, from: first, changes });
    const plain = toyEvaluation();
    const rekeyed = {
      ...plain,
      items: async (model: never) => (await plain.items(model)).map((item) => ({ ...item, key: "b" })),
    };
    const subset = { ...toyEvaluation({ items: 5 }), provenance: () => ({ items: 8 }) };
    for (const [changes, words] of [
      [asked(rekeyed as AnyEvaluation), "other items (their content or answer keys)"],
      [asked(subset), "other items (8, here 5)"],
      [asked(toyEvaluation({ version: "2" })), "the version 1 (here 2)"],
      [asked(toyEvaluation({ name: "new" }), "new"), "no measurement of this callback"],
    ] as const)
      await expect(again(changes)).rejects.toThrow(words);
    expect(await phase()).toMatchObject({ state: "finished", closedAt: 10 });
    const { engine } = fakeModel().identity;
    const elsewhere = fakeModel();
    const model = { ...elsewhere, identity: { ...elsewhere.identity, engine: `other ${engine}` } };
    expect((await again({ model })).begins).toMatchObject([{ alreadyFinished: true }]);
  });

  it("is not finished if its end was not measured, or if it has grown", async () => {
    const first = await train(10, { saveAt: 10 });
    expect((await train(10, { from: first })).begins[0]).not.toHaveProperty("alreadyFinished");
    const grown = await train(10, { ends: true, from: first, changes: { maxSteps: 20 } });
    expect(grown.begins[0]).not.toHaveProperty("alreadyFinished");
  });
});

it("counts only what comes between start and end in the plan of a phase whose costs are known", async () => {
  await train(10, { ends: true, changes: { phase: "first" } });
  const { plans } = await train(10, { ends: true, changes: { phase: "second" } });
  // At 2, 4, 6 and 8 of 10 steps.
  expect(plans[0]).toMatch(/^between start and end 4 measurements "toy" of 8 of 8 items; 18 s of measuring/);
});
