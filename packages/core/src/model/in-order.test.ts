import { expect, it } from "vitest";
import { inOrder } from "./in-order.ts";

function sum(values: readonly (number | Promise<number>)[]) {
  const seen: number[] = [];
  const add = (value: number) => void seen.push(value);
  const work = (value: number | Promise<number>) =>
    typeof value === "number" ? add(value) : value.then(add);
  return { seen, done: inOrder(values, work) };
}

it("does work without promises synchronously", () => {
  const { seen, done } = sum([1, 2, 3]);
  expect([done, seen]).toEqual([undefined, [1, 2, 3]]);
});

it("waits for a promise before the next item", async () => {
  const { seen, done } = sum([1, Promise.resolve(2), 3, Promise.resolve(4)]);
  expect(done).toBeInstanceOf(Promise);
  await done;
  expect(seen).toEqual([1, 2, 3, 4]);
});

it("throws if the work throws synchronously, rejects if it throws after a wait, and does no further work", async () => {
  const refuse = () => {
    throw new Error("own");
  };
  expect(() => inOrder([1], refuse)).toThrow("own");
  const seen: number[] = [];
  const done = inOrder([1, 2, 3], (item) => {
    seen.push(item);
    return item === 2 ? refuse() : Promise.resolve();
  });
  await expect(done).rejects.toThrow("own");
  await expect(sum([1, Promise.reject(new Error("no"))]).done).rejects.toThrow("no");
  expect(seen).toEqual([1, 2]);
});
