import "@tensorflow/tfjs";
import { expect, it } from "vitest";
import { tinySFT } from "../sft/tiny-sft.test-data.ts";
import { busyConfig } from "../testing/tiny-run.ts";

it("keeps its configuration when a hook writes to it, and leaves the given one writable", async () => {
  const { sft, model } = await tinySFT();
  expect(() => ((sft.config as { learningRate: number }).learningRate = 1)).toThrow("Cannot assign");
  for (const value of Object.values(sft.config))
    if (Array.isArray(value)) expect(Object.isFrozen(value)).toBe(true);
  expect(Object.isFrozen(busyConfig)).toBe(false);
  model.dispose();
});
