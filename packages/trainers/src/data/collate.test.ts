import { expect, it } from "vitest";
import { collate } from "./collate.ts";

const row = (ids: number[], scored: number[]) => ({
  where: "row",
  ids: Int32Array.from(ids),
  scored: Int32Array.from(scored),
});

it("feeds all but the last token of the longest row, and predicts each scored token from the position before", () => {
  const batch = collate([row([5, 6, 7, 8], [2, 3]), row([9, 4], [1])]);
  // T = 3. Row 0: position 1 predicts 7, 2 predicts 8. Row 1 starts at 3: position 3 predicts 4.
  expect(batch.shape).toEqual([2, 3]);
  expect([...batch.ids]).toEqual([5, 6, 7, 9, 4, 0]);
  expect([...batch.rows]).toEqual([1, 2, 3]);
  expect([...batch.targets]).toEqual([7, 8, 4]);
  expect(batch.tokens).toBe(5);
});

it("pads to the length that a fixed graph takes", () => {
  const batch = collate([row([5, 6, 7], [1, 2])], 6);
  expect(batch.shape).toEqual([1, 6]);
  expect([...batch.ids]).toEqual([5, 6, 7, 0, 0, 0]);
  expect([...batch.rows]).toEqual([0, 1]);
});
