import { expect, it } from "vitest";
import { PeriodicCallback } from "../../callback/periodic-callback.ts";
import type { Trigger, Session } from "@periodic-eval/contracts";
import { everyPercent, everySeconds } from "../../schedule/triggers.ts";
import { manualClock, type ManualClock } from "@periodic-eval/testing";
import {
  toyEvaluation,
  toyTraining,
  type ToyTraining,
} from "../../../../testing/src/toy-training.test-data.ts";
import { openSession, withSession } from "./session.ts";

/** Takes the given seconds to measure. */
const measuring = (clock: ManualClock, seconds: number, schedule: readonly Trigger[]) =>
  new PeriodicCallback(toyEvaluation({ onMeasure: () => clock.advance(seconds) }), { schedule });

async function trainTo(toy: ToyTraining, clock: ManualClock, session: Session, last: number): Promise<void> {
  while (session.progress.step < last) {
    toy.step();
    clock.advance(2);
    await session.stepEnd();
  }
}

it("does not count windows as training seconds: a long window does not cross the next threshold", async () => {
  const toy = toyTraining();
  const clock = manualClock();
  const callback = measuring(clock, 100, [everySeconds(10)]);
  await withSession(toy.options([callback], { clock: clock.seconds, maxSteps: 12 }), async (session) => {
    await trainTo(toy, clock, session, 12);
    expect(session.progress.elapsedSeconds).toBe(24);
  });
  // 12 steps of 2 s: steps 5 and 10 reach the thresholds at 10 s and 20 s.
  expect((await toy.store.list()).map(({ step, crossed }) => [step, crossed])).toEqual([
    [0, ["start"]],
    [5, ["every 10 seconds: 10"]],
    [10, ["every 10 seconds: 20"]],
    [12, ["end"]],
  ]);
});

it("continues overhead and seconds after a resume at a measured step, however long the pause", async () => {
  const toy = toyTraining();
  const schedule = [everyPercent(50)];
  const clock = manualClock();
  const first = openSession(toy.options([measuring(clock, 3, schedule)], { clock: clock.seconds }));
  await first.begin();
  await trainTo(toy, clock, first, 5);
  const resume = await first.save();
  expect(resume).toMatchObject({ progress: { step: 5, elapsedSeconds: 10 }, windowSeconds: 6 });
  const later = manualClock();
  later.advance(1000);
  const options = toy.options([measuring(later, 3, schedule)], { clock: later.seconds, resume });
  await withSession(options, async (session) => {
    await trainTo(toy, later, session, 10);
    expect(session.progress.elapsedSeconds).toBe(20);
  });
  // Three windows of 3 s to ten steps of 2 s, as without the interruption: 9 / 20.
  expect((await toy.store.list()).at(-1)).toMatchObject({ step: 10, timing: { overhead_percent: 45 } });
});
