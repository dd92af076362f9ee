import { expect, it } from "vitest";
import { toyTraining } from "../testing/toy-training.ts";
import { withSession } from "./session.ts";
import type { Logger, Session, SessionState } from "./types.ts";

it("tells loggers where a phase begins or goes on, and the steps of the run", async () => {
  const toy = toyTraining();
  const told: unknown[] = [];
  const logger: Logger = {
    name: "l",
    begin: ({ phase, step, runStep, resumed }) => void told.push(["begin", phase, step, runStep, resumed]),
    train: ({ loss }, { phase, step, runStep }) => void told.push([loss, phase, step, runStep]),
  };
  const options = { loggers: [logger], phase: "em", runStepOffset: 10 };
  let saved: SessionState | undefined;
  const stepsTo = (last: number) => async (session: Session) => {
    await session.begin();
    for (let { step } = session.progress; step < last; step += 1) {
      toy.step();
      await session.stepEnd({ metrics: { loss: step + 1 } });
      if (step + 1 === 2) saved = await session.save();
    }
  };
  await withSession(toy.options([], options), stepsTo(3));
  await withSession(toy.options([], { ...options, resume: saved! }), stepsTo(3));
  expect(told).toEqual([
    ["begin", "em", 0, 10, false],
    [1, "em", 1, 11],
    [2, "em", 2, 12],
    [3, "em", 3, 13],
    // What was logged of step 3 is of a training that was cut off.
    ["begin", "em", 2, 12, true],
    [3, "em", 3, 13],
  ]);
});
