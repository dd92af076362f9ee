import { expect, it } from "vitest";
import { PeriodicEvalError } from "@periodic-eval/contracts";
import { measureInBatches } from "./measure-in-batches.ts";

const items = Array.from({ length: 10 }, (_, at) => at);
const context = (concurrentCalls: number, progress: (done: number) => void = () => undefined) => ({
  seed: "0",
  signal: new AbortController().signal,
  progress,
  concurrentCalls,
});

/** Batches whose answers the test gives. */
function heldBatches() {
  const open = new Map<number, { answer(): void; fail(error: unknown): void }>();
  const measure = (batch: readonly number[]) =>
    new Promise<readonly number[]>((resolve, reject) => {
      open.set(batch[0]!, { answer: () => resolve(batch), fail: reject });
    });
  const settle = () => new Promise((resolve) => setImmediate(resolve));
  return { open, measure, settle };
}

it("measures one batch after the other by default", async () => {
  let inFlight = 0;
  const { concurrentCalls: _, ...plain } = context(1);
  const measure = async (batch: readonly number[]) => {
    inFlight += 1;
    expect(inFlight).toBe(1);
    await new Promise((resolve) => setImmediate(resolve));
    inFlight -= 1;
    return batch;
  };
  expect(await measureInBatches(items, plain, measure, 3)).toEqual(items);
});

it("keeps as many batches in flight as the model takes, and returns their rows in order", async () => {
  const { open, measure, settle } = heldBatches();
  const reported: number[] = [];
  const measured = measureInBatches(
    items,
    context(2, (done) => reported.push(done)),
    measure,
    3,
  );
  expect([...open.keys()]).toEqual([0, 3]);
  // The second batch is first: the third starts, and its rows wait for those of the first.
  open.get(3)!.answer();
  await settle();
  expect([[...open.keys()], reported]).toEqual([[0, 3, 6], []]);
  open.get(0)!.answer();
  await settle();
  expect([[...open.keys()], reported]).toEqual([
    [0, 3, 6, 9],
    [3, 6],
  ]);
  open.get(9)!.answer();
  open.get(6)!.answer();
  expect(await measured).toEqual(items);
  expect(reported).toEqual([3, 6, 9, 10]);
});

it("starts no batch after one that failed, and throws when those in flight have ended", async () => {
  const { open, measure, settle } = heldBatches();
  const error = new Error("refused");
  let thrown: unknown = null;
  const measured = measureInBatches(items, context(2), measure, 3).catch(
    (cause: unknown) => (thrown = cause),
  );
  open.get(3)!.fail(error);
  await settle();
  expect([[...open.keys()], thrown]).toEqual([[0, 3], null]);
  open.get(0)!.answer();
  expect(await measured).toBe(error);
});

it("returns the rows before the first unfinished batch at a deadline", async () => {
  const { open, measure, settle } = heldBatches();
  const controller = new AbortController();
  const measured = measureInBatches(items, { ...context(3), signal: controller.signal }, measure, 3);
  open.get(0)!.answer();
  open.get(6)!.answer();
  await settle();
  const deadline = new PeriodicEvalError({ code: "deadline", where: "", got: "", expected: "", fix: "" });
  controller.abort(deadline);
  open.get(3)!.fail(deadline);
  open.get(9)!.fail(deadline);
  expect(await measured).toEqual([0, 1, 2]);
});

it("throws the reason of another abort", async () => {
  const controller = new AbortController();
  const reason = new Error("stopped");
  controller.abort(reason);
  const measured = measureInBatches(
    items,
    { ...context(2), signal: controller.signal },
    async (some) => some,
  );
  await expect(measured).rejects.toBe(reason);
});
