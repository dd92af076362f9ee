import { expect, it, vi } from "vitest";
import { mapInTurns } from "./event-loop.ts";

const turnsOf = async (millisecondsPerItem: number, signal = new AbortController().signal) => {
  let clock = 0;
  vi.spyOn(performance, "now").mockImplementation(() => clock);
  const seen: (number | string)[] = [];
  const results = await mapInTurns([1, 2, 3, 4], { signal, where: "scoring" }, (item) => {
    clock += millisecondsPerItem;
    seen.push(item);
    setImmediate(() => seen.push("other work"));
    return 2 * item;
  });
  return { results, seen };
};

it("maps items in order, and lets other work run after each 50 ms", async () => {
  expect(await turnsOf(25)).toEqual({
    results: [2, 4, 6, 8],
    seen: [1, 2, "other work", "other work", 3, 4, "other work", "other work"],
  });
  expect((await turnsOf(1)).seen).toEqual([1, 2, 3, 4]);
});

it("ends at an abort", async () => {
  await expect(turnsOf(50, AbortSignal.abort())).rejects.toMatchObject({ code: "aborted", where: "scoring" });
});
