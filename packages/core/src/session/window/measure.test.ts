import { expect, it } from "vitest";
import { PeriodicCallback } from "../../callback/periodic-callback.ts";
import type { AnyEvaluation, Row } from "@periodic-eval/contracts";
import { atSteps } from "../../schedule/triggers.ts";
import { fakeGuard } from "@periodic-eval/testing";
import { parseSnapshot } from "@periodic-eval/store";
import { toyEvaluation, toyTraining } from "../../../../testing/src/toy-training.test-data.ts";
import { yieldToEvents } from "../../model/event-loop.ts";
import { measure } from "./measure.ts";
import { withSession } from "../loop/session.ts";

it("measures once without a session", async () => {
  const { model } = toyTraining();
  const { snapshot, rows } = await measure(toyEvaluation({ name: "my toy!" }), model);
  expect(rows.length).toBe(8);
  expect(snapshot).toMatchObject({
    evaluation: "my toy!",
    id: "my-toy-",
    phase: "measure",
    step: 0,
    status: "complete",
  });
  expect(snapshot.metrics["hit_rate"]!.n).toBe(8);
  expect(parseSnapshot(snapshot)).toEqual(snapshot);
});

it("names inMemory for a model that cannot be measured as it is, also in a session", async () => {
  const lm = { vocabSize: 3, forward: () => null } as never;
  const message = "Pass inMemory(model, tokenizer) of @periodic-eval/tfjs instead of the model.";
  await expect(measure(toyEvaluation(), lm)).rejects.toThrow(message);
  await expect(measure(toyEvaluation(), "model" as never)).rejects.toThrow(
    'got "model", expected a model to measure',
  );
  const callbacks = [new PeriodicCallback(toyEvaluation(), { schedule: [atSteps([1])] })];
  const options = { ...toyTraining().options(callbacks, { maxSteps: 1, phase: "em" }), model: lm };
  await expect(withSession(options, () => Promise.resolve())).rejects.toThrow(message);
});

it("measures the first items with a limit, and records them in provenance", async () => {
  const { model } = toyTraining();
  const reported: [number, number][] = [];
  const options = { limit: 3, progress: (done: number, total: number) => void reported.push([done, total]) };
  const { snapshot, rows } = await measure(toyEvaluation(), model, options);
  expect(rows.map(({ id }) => id)).toEqual(["q0", "q1", "q2"]);
  expect(snapshot.provenance.items).toBe(3);
  expect(snapshot.status).toBe("complete");
  expect(reported).toEqual([
    [0, 3],
    [3, 3],
  ]);
});

it("reports tokens and seconds each second while a call writes, before its first row", async () => {
  const writing: AnyEvaluation = {
    ...toyEvaluation(),
    async measure(_model, items: readonly Row[], { signal, progress }) {
      for (let turn = 0; turn < 24; turn++) {
        await yieldToEvents(signal, "generate", 10);
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
      progress(items.length);
      return items.map(({ id }) => ({ id, hit: true }));
    },
  };
  const toy = toyTraining();
  const callback = new PeriodicCallback(writing, { schedule: [atSteps([1])], atStart: false, atEnd: false });
  await withSession(toy.options([callback], { maxSteps: 1, phase: "em" }), async ({ stepEnd }) => {
    await stepEnd();
  });
  const events = toy.events.filter((event) => event.kind === "measuring");
  expect(events.map(({ done }) => done)).toEqual([0, 0, 8]);
  const [first, second, last] = events;
  expect(first).toMatchObject({ tokens: null });
  // After a second of at least 50 ms a turn.
  expect(second!.tokens).toBeGreaterThanOrEqual(10);
  expect(second!.tokens).toBeLessThanOrEqual(210);
  expect(last).toMatchObject({ tokens: 240 });
});

it("draws the same random numbers as a session at the measurement that it repeats", async () => {
  const drawn: string[] = [];
  const drawing: AnyEvaluation = {
    ...toyEvaluation(),
    async measure(_model, items: readonly Row[], { seed }) {
      drawn.push(`${seed} ${Math.random()}`);
      return items.map(({ id }) => ({ id, hit: true }));
    },
  };
  const toy = toyTraining();
  const callback = new PeriodicCallback(drawing, {
    id: "toy",
    schedule: [atSteps([1])],
    atStart: false,
    atEnd: false,
  });
  await withSession(toy.options([callback], { maxSteps: 1, phase: "em", seed: "7" }), async ({ stepEnd }) => {
    await stepEnd();
  });
  const as = { phase: "em", id: "toy", step: 1 };
  const { snapshot } = await measure(drawing, toy.model, { as, seed: "7" });
  expect(snapshot).toMatchObject({ ...as, status: "complete" });
  await measure(drawing, toy.model, { as: { ...as, step: 2 }, seed: "7" });
  expect(drawn[1]).toBe(drawn[0]);
  expect(drawn[2]).not.toBe(drawn[0]);
  const outside = { phase: "em", id: "../toy", step: 1 };
  await expect(measure(drawing, toy.model, { as: outside })).rejects.toThrow(
    'measure options.as.id: got "../toy"',
  );
});

it("throws for an invalid value of an option", async () => {
  const { model } = toyTraining();
  await expect(measure(toyEvaluation(), model, { on: "bse" as never })).rejects.toThrow(
    'measure options.on: got "bse"',
  );
  await expect(measure(toyEvaluation(), model, { seed: 42 as never })).rejects.toThrow(
    "measure options.seed: got 42",
  );
});

it("returns a partial measurement if samples of items are missing", async () => {
  const rows = Array.from({ length: 20 }, (_, i) => ({ id: `q${i % 5}/${i}`, hit: true }));
  const evaluation = { ...toyEvaluation({ items: 10 }), samplesPerItem: 4, measure: async () => rows };
  const { snapshot } = await measure(evaluation, toyTraining().model);
  expect(snapshot).toMatchObject({ status: "partial", reason: "20 of 40 rows" });
});

it("grades before it returns", async () => {
  const { snapshot, rows } = await measure(toyEvaluation({ graded: true }), toyTraining().model);
  expect(snapshot.status).toBe("complete");
  expect(rows.every((row) => typeof (row as { hit?: unknown }).hit === "boolean")).toBe(true);
  expect(typeof snapshot.timing.grade_seconds).toBe("number");
});

it("enters and leaves guards, and records their fingerprint", async () => {
  const log: string[] = [];
  const guards = [fakeGuard({ name: "weights", observe: () => "w1", log: (line) => void log.push(line) })];
  const { snapshot } = await measure(toyEvaluation(), toyTraining().model, { guards });
  expect(log).toEqual(["enter weights", "leave weights"]);
  expect(snapshot.weights).toBe("w1");
  expect(snapshot.receipt.map(({ part }) => part)).toEqual(["math-random", "weights"]);
});

it("throws the errors of evaluations, aborts and invalid options", async () => {
  const { model } = toyTraining();
  const failing = toyEvaluation({
    onMeasure() {
      throw new Error("no memory");
    },
  });
  await expect(measure(failing, model)).rejects.toThrow("no memory");
  await expect(measure(toyEvaluation(), model, { limit: 0 })).rejects.toThrow("measure options.limit: got 0");
  await expect(measure(toyEvaluation(), model, { signal: AbortSignal.abort() })).rejects.toThrow();
  await expect(measure(toyEvaluation(), model, { sed: "1" } as never)).rejects.toThrow(
    'Did you mean "seed"?',
  );
  const twice = { ...toyEvaluation(), measure: async () => [{ id: "a" }, { id: "a" }] };
  await expect(measure(twice, model)).rejects.toThrow('the id "a" twice');
});

it("depends only on the seed", async () => {
  const { model } = toyTraining();
  const once = async (seed: string) =>
    (await measure(toyEvaluation(), model, { seed })).snapshot.provenance.hash;
  expect(await once("1")).toBe(await once("1"));
  expect(await once("1")).not.toBe(await once("2"));
});

it("refuses a promise of metrics, which nothing awaits", async () => {
  const { model } = toyTraining();
  const evaluation = { ...toyEvaluation({ graded: true }), metrics: async () => ({}) };
  await expect(measure(evaluation as never, model)).rejects.toMatchObject({
    where: 'evaluation "toy" metrics',
    got: "a promise",
  });
});

it.each([
  [1, 0],
  [2, 1],
])(
  "fails if a server has replaced its model by check %i, at the start or the end",
  async (bad, generated) => {
    const { model } = toyTraining();
    let checks = 0;
    const served = {
      ...model,
      isServed: true,
      // The first check is before the measurement.
      check: async () => {
        if (++checks === bad + 1) throw new Error("log-probabilities that differ by up to 2.1 nats");
      },
    };
    const evaluation = toyEvaluation();
    const callback = new PeriodicCallback(evaluation, { schedule: [atSteps([1])], atEnd: false });
    const toy = toyTraining();
    await withSession(toy.options([callback], { maxSteps: 1, model: served }), (session) => session.begin());
    expect(await toy.store.list()).toMatchObject([
      { status: "failed", reason: expect.stringContaining("differ by up to 2.1 nats"), metrics: {} },
    ]);
    expect(model.calls.generate).toBe(generated);
  },
);
