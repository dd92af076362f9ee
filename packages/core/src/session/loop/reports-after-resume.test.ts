import { expect, it } from "vitest";
import { PeriodicCallback } from "../../callback/periodic-callback.ts";
import { earlyStopping } from "../../callback/reactions.ts";
import type { TrainerCallback, Logger, SessionState, AnyEvaluation } from "@periodic-eval/contracts";
import {
  gate,
  toyEvaluation,
  toyTraining,
  type ToyTraining,
} from "../../../../testing/src/toy-training.test-data.ts";
import { openSession } from "./session.ts";
import { half, train } from "./toy-run.test-data.ts";

/** Returns a callback and a logger that record the snapshots that they receive. */
function hearing() {
  const [heard, logged]: [string[], string[]] = [[], []];
  const text = ({ step, status }: { readonly step: number; readonly status: string }) => `${step} ${status}`;
  const callback: TrainerCallback = {
    id: "hearing",
    onSnapshot: (_, snapshot) => void heard.push(text(snapshot)),
  };
  const logger: Logger = { name: "hearing", snapshot: (snapshot) => void logged.push(text(snapshot)) };
  return { heard, logged, callback, logger };
}

/** Trains to step 5, saves, and trains one more step, in which the measurements of step 0 and 5 are graded. Then the process dies. */
async function killedAfterGrading(toy: ToyTraining): Promise<SessionState> {
  const grading = gate();
  const evaluation = toyEvaluation({ graded: true, onGrade: () => grading.passed });
  const session = openSession(toy.options([half(evaluation), stopping()]));
  await train(toy, 5)(session);
  const state = await session.save();
  grading.open();
  await train(toy, 1)(session);
  await expect
    .poll(async () => (await toy.store.list()).map(({ status }) => status))
    .toEqual(["complete", "complete"]);
  return state;
}

const stopping = () => earlyStopping({ id: "toy", metric: "hit_rate", mode: "min", patience: 1 });
const graded = (): AnyEvaluation => toyEvaluation({ graded: true });

it("reports to onSnapshot after a resume what was graded between the checkpoint and a kill, once", async () => {
  const toy = toyTraining();
  const resume = await killedAfterGrading(toy);
  const { heard, logged, callback, logger } = hearing();
  const session = openSession(toy.options([half(graded()), callback], { resume, loggers: [logger] }));
  await train(toy, 4)(session);
  await session.close();
  expect(heard).toEqual(["0 complete", "5 complete"]);
  // Loggers have received them as standing snapshots.
  expect(logged).toEqual([]);
});

it("reports to onSnapshot once what is graded while a session resumes", async () => {
  const toy = toyTraining();
  const never = gate();
  const killed = openSession(
    toy.options([half(toyEvaluation({ graded: true, onGrade: () => never.passed }))]),
  );
  await train(toy, 5)(killed);
  const resume = await killed.save();
  const { heard, callback } = hearing();
  const statuses = async () => (await toy.store.list()).map(({ status }) => status);
  const slow: Logger = {
    name: "slow",
    begin: async () => expect.poll(statuses).toEqual(["complete", "complete"]),
  };
  const session = openSession(toy.options([half(graded()), callback], { resume, loggers: [slow] }));
  await train(toy, 1)(session);
  await session.close();
  expect(heard).toEqual(["0 complete", "5 complete"]);
});

it("stops early after a resume by a measurement that was graded between the checkpoint and a kill", async () => {
  const toy = toyTraining();
  const resume = await killedAfterGrading(toy);
  const session = openSession(toy.options([half(graded()), stopping()], { resume }));
  expect(await train(toy, 4)(session)).toMatch(/^hit_rate of "toy" was best at step 0/);
  await session.close();
});

it.each([
  ["", true],
  [" that knew no snapshot", false],
])(
  "reports to onSnapshot the end that followed the last checkpoint%s if the phase grows, and not if it is over",
  async (_, atStart) => {
    const toy = toyTraining();
    const atEnds = () => new PeriodicCallback(toyEvaluation(), { schedule: [], atStart });
    const first = openSession(toy.options([atEnds()], { maxSteps: 3 }));
    await train(toy, 3)(first);
    const resume = await first.save();
    await first.end();
    await first.close();
    for (const [maxSteps, expected] of [
      [3, []],
      [4, ["3 complete", "4 complete"]],
    ] as const) {
      const { heard, callback } = hearing();
      const session = openSession(toy.options([atEnds(), callback], { maxSteps, resume }));
      await train(toy, maxSteps - 3)(session);
      await session.end();
      await session.close();
      expect(heard).toEqual(expected);
    }
  },
);
