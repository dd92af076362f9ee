import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { checkFault, faults, undisturbed } from "./misbehaving-trainer.test-data.ts";

beforeEach(() => void vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] }));
afterEach(() => void vi.useRealTimers());

describe("a host whose trainer, at any message,", () => {
  it.each(Object.entries(faults))("%s: says it, and the next run is whole", async (_, fault) => {
    const whole = await undisturbed();
    let k = 1;
    while (await checkFault(fault, k, whole)) k += 1;
    expect(k).toBeGreaterThan(3);
  });
});
