import { expect, it } from "vitest";
import { PeriodicCallback } from "../../callback/periodic-callback.ts";
import { toyEvaluation, toyTraining } from "../../testing/toy-training.ts";
import { withSession } from "../loop/session.ts";

it("warns once of a grader that seeds Math.random while training continues, which is ignored", async () => {
  const toy = toyTraining();
  const native = Math.random;
  const seeding = async () => {
    // The window in which it starts has closed by then.
    await new Promise((resolve) => setTimeout(resolve, 5));
    const saved = Math.random;
    Math.random = () => 0.5;
    Math.random = saved;
  };
  const graded = toyEvaluation({ graded: true, onGrade: seeding });
  const callback = new PeriodicCallback(graded, { schedule: [], id: "seeding" });
  try {
    await withSession(toy.options([callback]), async (session) => {
      for (let step = 1; step <= 3; step++) {
        toy.step();
        await session.stepEnd();
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
      await session.end();
    });
  } finally {
    Math.random = native;
  }
  expect(toy.warnings()).toEqual([
    'callback "seeding": tried to replace Math.random while training uses it, which is ignored. Use a separate random generator to get the same numbers each time.',
  ]);
});
