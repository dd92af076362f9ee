import * as tf from "@tensorflow/tfjs-core";
import { engineMemory, memoryErrorOf } from "@periodic-eval/core/tfjs";
import { beforeAll, expect, it } from "vitest";
import { useBackend } from "./use-backend.ts";
import { checkAllocations, noteFailure } from "./wasm-memory.ts";

beforeAll(async () => void (await useBackend({ backend: "wasm" })));

function thrownBy(run: () => unknown): unknown {
  try {
    run();
  } catch (error) {
    return error;
  }
  return null;
}

it("throws a typed error for a tensor that the heap cannot hold, and goes on working", () => {
  const before = tf.memory().numTensors;
  // 65,536 × 16,400 × 4 bytes are 5 MB more than the address space of wasm.
  const error = thrownBy(() => tf.tidy(() => tf.matMul(tf.ones([65_536, 1]), tf.ones([1, 16_400]))));
  expect(error).toMatchObject({ code: "ENGINE_OUT_OF_MEMORY" });
  expect(memoryErrorOf(error, "a test")).toMatchObject({ code: "memory", where: "a test", cause: error });
  expect(tf.memory().numTensors).toBe(before);
  const small = tf.tidy(() => tf.matMul(tf.ones([2, 3]), tf.ones([3, 2])).dataSync());
  expect([...small]).toEqual([3, 3, 3, 3]);
});

it("leaves no listener that throws uncaught errors again, which would hide the line that threw", () => {
  const sources = (["uncaughtException", "unhandledRejection"] as const).flatMap((event) =>
    (process as NodeJS.EventEmitter).listeners(event).map(String),
  );
  expect(sources.filter((source) => source.includes("throw "))).toEqual([]);
});

it("reports the size of the heap and its limit", () => {
  const { wasm } = tf.backend() as unknown as { readonly wasm: { readonly HEAPU8: Uint8Array } };
  const memory = { backend: "wasm", usedBytes: wasm.HEAPU8.length, limitBytes: 2 ** 32 - 2 ** 16 };
  expect(engineMemory()).toEqual(memory);
});

it("throws once, at the next allocation, when a kernel only prints that it has no memory", () => {
  const wasm = { _malloc: (bytes: number) => bytes, _free: () => {} };
  checkAllocations(wasm);
  const line = "XNN status for xnn_create_fully_connected_nc_f32 is not successful. Got status 6. Use -c dbg";
  expect(noteFailure(line.replace("6.", "2."))).toBe(false);
  expect(wasm._malloc(8)).toBe(8);
  expect(noteFailure(line)).toBe(true);
  expect(thrownBy(() => wasm._malloc(8))).toMatchObject({ code: "ENGINE_OUT_OF_MEMORY" });
  expect(wasm._malloc(8)).toBe(8);
});
