import * as tf from "@tensorflow/tfjs-core";
import { afterEach, expect, it, vi } from "vitest";
import { fakeTokenizer } from "@periodic-eval/testing";
import type { CausalLM } from "./causal-lm/causal-lm.ts";
import { inMemory, requireBackend } from "./in-memory.ts";

afterEach(() => void vi.restoreAllMocks());

it("names useBackend if TensorFlow.js has no backend", async () => {
  const names = vi.spyOn(tf.engine(), "backendNames").mockReturnValue(["cpu"]);
  expect(() => requireBackend("loadCausalLM")).not.toThrow();
  names.mockReturnValue([]);
  const error = { code: "config", fix: expect.stringContaining("await useBackend()") };
  expect(() => requireBackend("loadCausalLM")).toThrow(
    expect.objectContaining({ ...error, where: "loadCausalLM" }),
  );
  const model = inMemory({ vocabSize: 2 } as unknown as CausalLM, fakeTokenizer());
  await expect(model.nextToken([], {} as never)).rejects.toMatchObject({ ...error, where: "inMemory" });
});
