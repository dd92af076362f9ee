import { expect, it } from "vitest";
import { inSlices } from "./in-slices.ts";

it("works on a long body in parts, and lets other work run in between", async () => {
  const seen: (number | string)[] = [];
  const items = Array.from({ length: 600 }, (_, at) => at);
  const results = await inSlices(items, async (slice) => {
    seen.push(slice.length);
    setImmediate(() => seen.push("other work"));
    return slice.map((item) => 2 * item);
  });
  expect(results).toEqual(items.map((item) => 2 * item));
  expect(seen.slice(0, 5)).toEqual([256, "other work", 256, "other work", 88]);
});

it("works on long texts in parts of fewer", async () => {
  const sizes: number[] = [];
  await inSlices(["a".repeat(200_000), "b", "c".repeat(40_000), "d".repeat(40_000)], async (slice) => {
    sizes.push(slice.length);
    return slice;
  });
  expect(sizes).toEqual([1, 2, 1]);
});
