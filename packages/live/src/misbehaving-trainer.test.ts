import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { checkFault, faults, undisturbed } from "./misbehaving-trainer.test-data.ts";

beforeEach(() => void vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] }));
afterEach(() => void vi.useRealTimers());

it("survives a trainer that misbehaves at any message, in one way at each", async () => {
  const whole = await undisturbed();
  expect(whole).toHaveLength(3);
  for (const [at, [name, fault]] of Object.entries(faults).entries())
    expect(await checkFault(fault, 1 + (at % 3), whole), name).toBe(true);
});
