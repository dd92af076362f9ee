import { expect, it, onTestFinished, vi } from "vitest";
import { PeriodicCallback } from "../../callback/periodic-callback.ts";
import { atStart, atSteps } from "../../schedule/triggers.ts";
import { gate, toyEvaluation, toyTraining } from "../../../../testing/src/toy-training.test-data.ts";
import { openSession, withSession } from "./session.ts";
import type { Logger, Session, SessionState } from "@periodic-eval/contracts";

it("passes loggers the place where a phase begins or resumes, and the steps of the run", async () => {
  const toy = toyTraining();
  const logged: unknown[] = [];
  const logger: Logger = {
    name: "l",
    begin: ({ phase, step, runStep, resumed }) => void logged.push(["begin", phase, step, runStep, resumed]),
    train: ({ loss }, { phase, step, runStep }) => void logged.push([loss, phase, step, runStep]),
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
  expect(logged).toEqual([
    ["begin", "em", 0, 10, false],
    [1, "em", 1, 11],
    [2, "em", 2, 12],
    [3, "em", 3, 13],
    // The logs of step 3 belong to the interrupted training.
    ["begin", "em", 2, 12, true],
    [3, "em", 3, 13],
  ]);
});

it("gives loggers the snapshots that a killed process recorded but did not log, and those graded afterwards", async () => {
  const toy = toyTraining();
  const [early, late] = [gate(), gate()];
  const graded = (id: string, onGrade: () => Promise<void>) =>
    new PeriodicCallback(toyEvaluation({ graded: true, onGrade }), {
      id,
      schedule: [atStart(), atSteps([3])],
      atEnd: false,
    });
  const callbacks = () => [graded("early", () => early.passed), graded("late", () => late.passed)];
  const logged: string[] = [];
  const describeSnapshot = ({ id, step, status }: { id: string; step: number; status: string }) =>
    `${id} ${step} ${status}`;
  const logger: Logger = {
    name: "l",
    begin: ({ standing }) => void logged.push("begin", ...standing.map(describeSnapshot)),
    snapshot: (snapshot) => void logged.push(describeSnapshot(snapshot)),
  };
  const killed = openSession(toy.options(callbacks(), { loggers: [logger] }));
  await killed.begin();
  for (let step = 0; step < 2; step++) {
    toy.step();
    await killed.stepEnd();
  }
  const resume = await killed.save();
  const { weights } = toy;
  toy.step();
  await killed.stepEnd();
  early.open();
  // It is in the store, and the process dies before the next step ends. Snapshots beyond the checkpoint do not stand.
  const statuses = async () => (await toy.store.list()).map(describeSnapshot);
  while ((await statuses()).join().match(/early \d complete/g)?.length !== 2)
    await new Promise((resolve) => setImmediate(resolve));
  expect(logged).toEqual(["begin", "early 0 grading", "late 0 grading", "early 3 grading", "late 3 grading"]);

  logged.length = 0;
  const again = toyTraining(toy.store);
  again.weights = weights;
  await withSession(again.options(callbacks(), { loggers: [logger], resume }), async (session) => {
    late.open();
    again.step();
    await session.stepEnd();
  });
  expect(logged.slice(0, 2)).toEqual(["begin", "early 0 complete"]);
  expect(
    logged
      .slice(2)
      .filter((line) => !line.includes("grading"))
      .toSorted(),
  ).toEqual(["early 3 complete", "late 0 complete", "late 3 complete"]);
});

it("continues if a logger's event is an async function that throws, and warns once", async () => {
  const warnings: string[] = [];
  const hearing: Logger = {
    name: "hearing",
    event: (event) => void (event.kind === "warning" && warnings.push(`${event.where}: ${event.message}`)),
  };
  const failing: Logger = {
    name: "failing",
    // JavaScript users write async methods, whose promises nothing awaits.
    event: () => Promise.reject(new Error("no disk")) as unknown as undefined,
  };
  const toy = toyTraining();
  const graded = new PeriodicCallback(toyEvaluation(), { id: "a", schedule: [atSteps([1, 2])] });
  const steps = await withSession(toy.options([graded], { loggers: [failing, hearing] }), async (session) => {
    for (let step = 0; step < 3; step += 1) {
      toy.step();
      await session.stepEnd();
    }
    // An unhandled rejection is reported at a turn of the event loop and would fail this file.
    await new Promise((resolve) => setImmediate(resolve));
    return session.progress.step;
  });
  expect(steps).toBe(3);
  expect(warnings).toEqual(['logger "failing": event threw (reported once): no disk']);
});

it("stops calling a logger that does not answer, in every session, and waits for its close at most its patience", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const logged: string[] = [];
  const warnings: string[] = [];
  const never = new Promise<void>(() => undefined);
  const hanging: Logger = {
    name: "hanging",
    train: (_metrics, { step }) => (logged.push(`train ${step}`), never),
    event: ({ kind }) => void logged.push(kind),
    close: () => (logged.push("close"), never),
  };
  const hasty: Logger = { ...hanging, name: "hasty", patienceSeconds: 5, event: () => undefined };
  const hearing: Logger = {
    name: "hearing",
    event: (event) => void (event.kind === "warning" && warnings.push(`${event.where}: ${event.message}`)),
    train: async (_metrics, { step }) => void logged.push(`train of other ${step}`),
  };
  const run = async () => {
    const toy = toyTraining();
    let steps = 0;
    let isOver = false;
    const options = toy.options([], { loggers: [hanging, hasty, hearing] });
    const training = withSession(options, async (session) => {
      for (; steps < 3; steps += 1) {
        toy.step();
        await session.stepEnd({ metrics: { loss: 1 } });
      }
    }).finally(() => (isOver = true));
    let waited = 0;
    for (; !isOver && waited < 1000; waited += 1) await vi.advanceTimersByTimeAsync(1000);
    await training;
    return waited;
  };
  // 60 and 5 seconds for the first step, the same for closing, and one turn of this loop for the end.
  expect(Math.abs((await run()) - 130)).toBeLessThan(4);
  const once = [
    "train 1",
    "train 1",
    "train of other 1",
    "train of other 2",
    "train of other 3",
    "close",
    "close",
  ];
  expect(logged).toEqual(once);
  expect(warnings).toEqual([
    'logger "hanging": train did not answer within 60 s: it is not called again except to close, and training continues',
    'logger "hasty": train did not answer within 5 s: it is not called again except to close, and training continues',
    'logger "hanging": close did not answer within 60 s: it may lack its last records, and training continues',
    'logger "hasty": close did not answer within 5 s: it may lack its last records, and training continues',
  ]);
  logged.length = 0;
  await run();
  expect(logged).toEqual(once.slice(2));
});
