import { expect, it } from "vitest";
import { drive, wait, type Flow } from "./maybe-async.ts";

function* sum(values: readonly (number | Promise<number>)[], log: string[] = []): Flow<number> {
  let total = 0;
  try {
    for (const value of values) total += yield* wait(value);
    return total;
  } finally {
    log.push("left");
  }
}

it("runs a flow without promises synchronously", () => {
  expect(drive(sum([1, 2, 3]))).toBe(6);
});

it("resumes a flow after a promise", async () => {
  const result = drive(sum([1, Promise.resolve(2), 3, Promise.resolve(4)]));
  expect(result).toBeInstanceOf(Promise);
  expect(await result).toBe(10);
});

it("throws a rejection inside the flow, whose finally runs once", async () => {
  const log: string[] = [];
  await expect(drive(sum([1, Promise.reject(new Error("no"))], log))).rejects.toThrow("no");
  expect(log).toEqual(["left"]);
});

it("lets a flow catch a rejection", async () => {
  function* flow(): Flow<string> {
    try {
      yield* wait(Promise.reject(new Error("no")));
      return "not caught";
    } catch {
      return `caught ${yield* wait(Promise.resolve("and continued"))}`;
    }
  }
  expect(await drive(flow())).toBe("caught and continued");
});

it("throws if the flow throws synchronously, and rejects if it throws after a wait", async () => {
  function* flow(first: number | Promise<number>): Flow<number> {
    yield* wait(first);
    throw new Error("own");
  }
  expect(() => drive(flow(1))).toThrow("own");
  await expect(drive(flow(Promise.resolve(1)))).rejects.toThrow("own");
});
