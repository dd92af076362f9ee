import { expect, it } from "vitest";
import { PeriodicCallback } from "../../callback/periodic-callback.ts";
import type { TrainerCallback } from "@periodic-eval/contracts";
import { everySteps } from "../../schedule/triggers.ts";
import { gate, toyEvaluation, toyTraining } from "../../../../testing/src/toy-training.test-data.ts";
import { openSession, withSession } from "./session.ts";

/** Runs everything that needs no input or output. */
const turn = () => new Promise((resolve) => setImmediate(resolve));

it.each(["onStepEnd", "onSnapshot", "state", "onError", "close"] as const)(
  "throws if close is called in %s, where it would wait for itself",
  async (hook) => {
    const toy = toyTraining();
    let refused: unknown = null;
    const ask = async () => {
      refused ??= await session.close().catch((error: unknown) => error);
    };
    const closing: TrainerCallback = {
      id: "closing",
      ...(hook === "onError" && {
        onStepEnd() {
          throw new Error("broken");
        },
      }),
      [hook]: hook === "state" ? () => (void ask(), null) : ask,
    };
    const measuring = new PeriodicCallback(toyEvaluation(), { schedule: [] });
    const session = openSession(toy.options([measuring, closing]));
    await session.begin();
    await session.stepEnd();
    await session.save();
    await session.end();
    await session.close();
    expect(refused).toMatchObject({ code: "config" });
    expect(String(refused)).toContain(`session.close: got a call inside ${hook}`);
    expect((await toy.store.list()).map(({ step }) => step)).toEqual([0, 1]);
  },
);

it("throws if close is called in onSnapshot while the session closes", async () => {
  const toy = toyTraining();
  const errors: unknown[] = [];
  const closing: TrainerCallback = {
    id: "closing",
    async onSnapshot(_, { status }) {
      if (status === "complete") errors.push(await session.close().catch((error: unknown) => error));
    },
  };
  const graded = new PeriodicCallback(toyEvaluation({ graded: true }), { schedule: [] });
  const session = openSession(toy.options([graded, closing]));
  await session.begin();
  await session.close();
  expect(errors.map(String).join()).toContain("got a call inside onSnapshot");
});

it("waits in close for another call that has just begun, and writes nothing afterwards", async () => {
  const toy = toyTraining();
  const log: string[] = [];
  const store = {
    ...toy.store,
    put: async (...given: Parameters<typeof toy.store.put>) => {
      await toy.store.put(...given);
      log.push(`put ${given[0].step}`);
    },
    close: async () => void log.push("closed"),
  };
  const closing: Promise<void>[] = [];
  const logging = gate();
  const logger = {
    name: "closing",
    train() {
      closing.push(session.close());
    },
  };
  const late: TrainerCallback = {
    id: "late",
    async onLog() {
      await logging.passed;
      log.push("onLog");
    },
  };
  const session = openSession(toy.options([late], { run: store, loggers: [logger] }));
  await session.begin();
  const stepping = session.stepEnd({ metrics: { loss: 1 } });
  await turn();
  logging.open();
  await stepping;
  await Promise.all(closing);
  expect(log).toEqual(["onLog", "closed"]);
});

it("warns if the store does not record the end of the phase", async () => {
  const toy = toyTraining();
  const run = { ...toy.store, recordClosing: () => Promise.reject(new Error("no space left")) };
  await withSession(toy.options([], { run }), async () => undefined);
  expect(toy.warnings()).toEqual(["close: the end of the phase is not recorded: no space left"]);
});

it("closes the store if training throws while a hook is still running", async () => {
  const toy = toyTraining();
  const running = gate();
  let isClosed = false;
  const store = { ...toy.store, close: async () => void (isClosed = true) };
  const slow: TrainerCallback = { id: "slow", onStepEnd: () => running.passed };
  const training = withSession(toy.options([slow], { run: store }), async (session) => {
    void session.stepEnd();
    throw new Error("training broke");
  });
  await turn();
  running.open();
  await expect(training).rejects.toThrow("training broke");
  expect(isClosed).toBe(true);
});

it("interrupts the running measurement in close, and writes nothing afterwards", async () => {
  const toy = toyTraining();
  const measuring = gate();
  const entered = gate();
  const log: string[] = [];
  const run = {
    ...toy.store,
    put: async (...given: Parameters<typeof toy.store.put>) => {
      log.push(`put ${given[0].step}`);
      await toy.store.put(...given);
    },
    close: async () => void log.push("closed"),
  };
  const evaluation = toyEvaluation({
    onMeasure() {
      if (toy.weights === 0) return;
      entered.open();
      return measuring.passed;
    },
  });
  const callback = new PeriodicCallback(evaluation, { schedule: [everySteps(2)] });
  const session = openSession(toy.options([callback], { run }));
  await session.begin();
  await session.stepEnd();
  toy.step();
  const stepping = session.stepEnd();
  await entered.passed;
  const closing = session.close();
  await expect(session.save()).rejects.toThrow();
  measuring.open();
  expect((await stepping).stop).toBe("aborted: the session was closed");
  await closing;
  await session.close();
  expect(log).toEqual(["put 0", "closed"]);
});
