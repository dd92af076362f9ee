import { FusedCall } from "@periodic-eval/tfjs";
import * as tf from "@tensorflow/tfjs-core";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { useBackend } from "../../../models/src/backend/use-backend.ts";
import { nativeBackend, testedBackends } from "../../../models/src/testing/backends.test-data.ts";
import { graphBackend } from "./graph-function.ts";
import { registerFusedCalls } from "./graph-set.ts";

const make = () =>
  new FusedCall("Adding", ([a, b]) => [tf.add(tf.mul(a!, 2), b!), tf.sqrt(tf.sum(tf.stack([a!, a!])))]);

/** Computes 2a + 1 and the root of 2·Σa for a = [1, 2, 3, …], b = 1. */
function numbers(call: FusedCall, size: number): number[] {
  return tf.tidy(() => {
    const results = call.call([tf.range(1, size + 1), tf.scalar(1)]);
    return results.flatMap((tensor) => [...tensor.dataSync()]);
  });
}

describe.each(testedBackends)("FusedCall on %s", (backend) => {
  beforeEach(async () => {
    await useBackend({ backend });
    registerFusedCalls();
  });
  afterEach(() => void vi.restoreAllMocks());

  it("equals the separate operations for any shapes, and leaves no tensors", () => {
    const before = tf.memory().numTensors;
    const call = make();
    expect(numbers(call, 2)).toEqual([3, 5, expect.closeTo(Math.sqrt(6), 5)]);
    expect(numbers(call, 3)).toEqual([3, 5, 7, expect.closeTo(Math.sqrt(12), 5)]);
    call.dispose();
    expect(tf.memory().numTensors).toBe(before);
  });

  it.skipIf(backend !== nativeBackend)(
    "builds one graph for each combination of shapes, until it is disposed",
    () => {
      const [load, run, remove] = (
        ["loadSavedModelMetaGraph", "runSavedModel", "deleteSavedModel"] as const
      ).map((method) => vi.spyOn(graphBackend()!, method));
      const call = make();
      for (const size of [2, 3, 2]) numbers(call, size);
      expect([load!.mock.calls.length, run!.mock.calls.length]).toEqual([2, 3]);
      call.dispose();
      expect(remove).toHaveBeenCalledTimes(2);
    },
  );

  it.skipIf(backend !== nativeBackend)("runs without a graph if none can be built, and warns once", () => {
    vi.spyOn(graphBackend()!, "loadSavedModelMetaGraph").mockImplementation(() => {
      throw new Error("the disk is full");
    });
    const warnings = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
    const call = make();
    for (const size of [2, 3]) expect(numbers(call, size)[0]).toBe(3);
    expect(warnings.mock.calls).toEqual([
      [expect.stringContaining("Adding runs without a TensorFlow graph"), { code: "PERIODIC_EVAL_GRAPH" }],
    ]);
  });
});
