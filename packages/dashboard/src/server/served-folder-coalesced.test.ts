import { setTimeout as delay } from "node:timers/promises";
import { expect, it } from "vitest";
import { coalesced } from "./served-folder.ts";

it("runs once for all callers that wait, and again for those that come while it runs", async () => {
  const begun: string[] = [];
  const work = coalesced(async (key) => {
    begun.push(key);
    const run = begun.length;
    await delay(20);
    return run;
  });
  const first = [work("a"), work("a"), work("b")];
  await delay(5);
  const second = [work("a"), work("a"), work("a")];
  expect(await Promise.all(first)).toEqual([1, 1, 2]);
  expect(await Promise.all(second)).toEqual([3, 3, 3]);
  expect(await work("a")).toBe(4);
  expect(begun).toEqual(["a", "b", "a", "a"]);
});

it("gives an error to the callers of its run, and works again", async () => {
  let runs = 0;
  const work = coalesced(async () => {
    await delay(5);
    if (++runs === 1) throw new Error("gone");
    return runs;
  });
  const first = [work("a"), work("a")];
  await delay(1);
  const second = work("a");
  expect((await Promise.allSettled(first)).map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  expect(await second).toBe(2);
});
