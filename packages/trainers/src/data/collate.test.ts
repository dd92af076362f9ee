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

it("pads to a fixed length", () => {
  const batch = collate([row([5, 6, 7], [1, 2])], 6);
  expect(batch.shape).toEqual([1, 6]);
  expect([...batch.ids]).toEqual([5, 6, 7, 0, 0, 0]);
  expect([...batch.rows]).toEqual([0, 1]);
});

it("returns where documents begin, with padding in the last document; null if every row is one document", () => {
  const packed = { ...row([5, 6, 7, 8, 9], [1, 3]), starts: [0, 2, 4] };
  const batch = collate([packed, { ...row([4, 3, 2], [1, 2]), starts: [0] }]);
  // T = 4: the last document of the first row is one token, which predicts nothing.
  expect(batch.shape).toEqual([2, 4]);
  expect([...batch.ids]).toEqual([5, 6, 7, 8, 4, 3, 2, 0]);
  expect([...batch.documentStarts!]).toEqual([0, 0, 2, 2, 0, 0, 0, 0]);
  expect([...batch.rows]).toEqual([0, 2, 4, 5]);
  expect([...batch.targets]).toEqual([6, 8, 3, 2]);
  expect(collate([row([5, 6], [1])]).documentStarts).toBeNull();
  expect(collate([{ ...row([5, 6], [1]), starts: [0] }]).documentStarts).toBeNull();
  // The padding of the fixed length belongs to the last document.
  expect([...collate([packed], 7).documentStarts!]).toEqual([0, 0, 2, 2, 4, 4, 4]);
});
