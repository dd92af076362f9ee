import { PeriodicCallback } from "../../callback/periodic-callback.ts";
import type { AnyEvaluation, Session } from "@periodic-eval/contracts";
import { everyPercent } from "../../schedule/triggers.ts";
import type { ToyTraining } from "../../../../testing/src/toy-training.test-data.ts";

/** Trains until a callback asks to stop. Returns why, or null. */
export const train =
  (toy: ToyTraining, steps = 10) =>
  async (session: Session) => {
    await session.begin();
    for (let step = 0; step < steps; step++) {
      toy.step();
      const { stop } = await session.stepEnd({ metrics: { loss: step } });
      if (stop !== null) return stop;
    }
    return null;
  };

export const statuses = async (toy: ToyTraining) =>
  (await toy.store.list()).map(({ id, step, status }) => `${id} ${step} ${status}`);

/** Measures at every half of the training. */
export const half = (evaluation: AnyEvaluation, id = evaluation.name) =>
  new PeriodicCallback(evaluation, { id, schedule: [everyPercent(50)] });
