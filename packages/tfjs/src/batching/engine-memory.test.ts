import * as tf from "@tensorflow/tfjs";
import { beforeAll, describe, expect, it } from "vitest";
import type { PeriodicEvalError } from "@periodic-eval/core";
import { fakeTokenizer } from "@periodic-eval/testing";
import { describeBytes } from "@periodic-eval/contracts/options";
import { engineMemory, isOutOfMemory, memoryErrorOf } from "./engine-memory.ts";
import { inMemory, type InMemoryModel } from "../in-memory.ts";

beforeAll(async () => {
  await tf.setBackend("cpu");
});

/** Returns what V8 throws for an allocation that no machine can serve. */
function thrownBy(run: () => unknown): unknown {
  try {
    run();
  } catch (error) {
    return error;
  }
  throw new Error("nothing was thrown");
}

describe("isOutOfMemory", () => {
  it.each([
    "OOM when allocating tensor with shape[65536,65536] and type float on /device:CPU:0 by allocator cpu",
    "ResourceExhausted: failed to allocate memory",
    "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 4294967296 bytes",
    "XNN status for xnn_create_fully_connected_nc_f32 is not successful. Got status 6. Use -c dbg to see XNN logs.",
    "WebAssembly.Memory.grow(): Maximum memory size exceeded",
    "Array buffer allocation failed",
    "Invalid typed array length: 17179869184",
    "std::bad_alloc",
    "A valid external Instance reference no longer exists: Device was lost",
    "Out of memory: cannot allocate a buffer of 4294967296 bytes",
  ])("recognizes %s", (message) => {
    expect(isOutOfMemory(new Error(message))).toBe(true);
  });

  it("recognizes what V8 throws for an array that is too large", () => {
    expect(isOutOfMemory(thrownBy(() => new ArrayBuffer(2 ** 52)))).toBe(true);
    expect(isOutOfMemory(thrownBy(() => new Float32Array(2 ** 52)))).toBe(true);
  });

  it.each([
    "memory access out of bounds",
    "Aborted(). Build with -sASSERTIONS for more info.",
    "unreachable",
  ])("does not take the trap %s for missing memory while the heap is small", (message) => {
    expect(isOutOfMemory(new WebAssembly.RuntimeError(message))).toBe(false);
  });

  it.each(["a shape mismatch", "Invalid typed array length: -1", "the room is full"])(
    "ignores %s",
    (message) => {
      expect(isOutOfMemory(new Error(message))).toBe(false);
    },
  );
});

it("translates an engine's error with what was done, the estimate and the remedies, and keeps the cause", () => {
  const cause = new Error("OOM when allocating tensor\nwith details");
  const advise = () => ({
    estimate: "an estimated 9.00 GiB",
    remedies: ["set batchSize: 1", "use an adapter"],
  });
  const error = memoryErrorOf(cause, "step 3", advise) as PeriodicEvalError;
  expect(error).toMatchObject({
    code: "memory",
    where: "step 3",
    expected: "an estimated 9.00 GiB",
    fix: "Set batchSize: 1; or use an adapter.",
    cause,
  });
  expect(error.got).toContain("OOM when allocating tensor)");
  expect(memoryErrorOf(error, "another place")).toBe(error);
  const other = new Error("another fault");
  expect(memoryErrorOf(other, "step 3")).toBe(other);
});

it("reports a limit of at least the memory in use", () => {
  const { backend, usedBytes, limitBytes } = engineMemory();
  expect(backend).toBe("cpu");
  expect(limitBytes).toBeGreaterThanOrEqual(usedBytes);
});

describe("an error of a measurement", () => {
  const lm = {
    vocabSize: fakeTokenizer().vocabSize,
    contextLength: 64,
    logits(): tf.Tensor3D {
      throw new Error("OOM when allocating tensor");
    },
  };
  const call = { signal: new AbortController().signal };
  const score = (model: InMemoryModel) =>
    model.logLikelihoods([{ context: { text: "abc" }, continuation: "def" }], call);

  it("says what was done, and names the remedies", async () => {
    const model = inMemory(lm, fakeTokenizer());
    const sampling = { maxNewTokens: 4, temperature: 0, topP: 1, seed: "1" };
    await expect(model.generate([{ prompt: { text: "abc" }, sampling }], call)).rejects.toMatchObject({
      where: expect.stringContaining("a measurement that generates"),
    });
    await expect(score(model)).rejects.toMatchObject({
      code: "memory",
      where: expect.stringMatching(
        /^a measurement that scores continuations \(scoring, one row of \d+ tokens\)$/,
      ),
      expected: "enough memory",
      fix:
        "Ask shorter questions, with fewer few-shot examples; or generate fewer tokens (sampling.maxNewTokens of the callback); " +
        'or use native TensorFlow, useBackend({ backend: "tfjs-node" }) (in YAML backend: tfjs-node).',
    });
  });
});

it.each([
  [2 ** 30, "1.00 GiB"],
  [5 * 2 ** 20, "5.0 MiB"],
])("describes %i bytes as %s", (bytes, text) => {
  expect(describeBytes(bytes)).toBe(text);
});
