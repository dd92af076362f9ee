import * as tf from "@tensorflow/tfjs-core";
import { atSteps, defineEvaluation, PeriodicCallback, withSession } from "@periodic-eval/core";
import { fakeTokenizer, memoryStore } from "@periodic-eval/testing";
import { engineMemory, inMemory, memoryErrorOf } from "@periodic-eval/tfjs";
import { beforeAll, describe, expect, it, vi } from "vitest";
import { createCausalLM } from "../checkpoint/create-causal-lm.ts";
import { tinyConfig } from "../testing/tiny-config.test-data.ts";
import { useBackend } from "./use-backend.ts";
import { checkAllocations, checkedKernel, noteFailure, startChecked } from "./wasm-memory.ts";

const line = "XNN status for xnn_create_fully_connected_nc_f32 is not successful. Got status 6. Use -c dbg";
const full = { code: "ENGINE_OUT_OF_MEMORY" };

/** The name of a kernel that fails as XNNPACK does: it prints a line and leaves its result unset. */
const failing = "FailingProduct";

beforeAll(async () => {
  await useBackend({ backend: "wasm" });
  tf.registerKernel(
    checkedKernel({
      kernelName: failing,
      backendName: "wasm",
      kernelFunc({ backend }) {
        noteFailure(line);
        return (backend as { makeOutput(shape: number[], dtype: "float32"): tf.TensorInfo }).makeOutput(
          [2],
          "float32",
        );
      },
    }),
  );
  return () => tf.unregisterKernel(failing, "wasm");
});

const fail = () => tf.engine().runKernel(failing, {}) as tf.Tensor;
const product = () => [...tf.tidy(() => tf.matMul(tf.ones([2, 3]), tf.ones([3, 2])).dataSync())];

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

it("keeps a listener that the application adds while the module starts, and removes the module's", async () => {
  const report = () => undefined;
  const before = process.listeners("uncaughtException");
  const rejections = process.listeners("unhandledRejection");
  const factory = tf.findBackendFactory("wasm");
  // A module that is disposed removes the listeners of the test runner, too.
  tf.removeBackend("wasm");
  for (const listener of before) process.off("uncaughtException", listener).on("uncaughtException", listener);
  for (const listener of rejections)
    process.off("unhandledRejection", listener).on("unhandledRejection", listener);
  tf.registerBackend("wasm", factory, 2);
  const on = vi.spyOn(process, "on");
  const starting = startChecked();
  process.on("uncaughtException", report);
  await starting;
  expect(on.mock.calls.filter(([event]) => event === "uncaughtException")).toHaveLength(2);
  expect(process.listeners("uncaughtException")).toEqual([...before, report]);
  expect(process.listeners("unhandledRejection")).toEqual(rejections);
  on.mockRestore();
  process.off("uncaughtException", report);
});

it("reports the size of the heap and its limit", () => {
  const { wasm } = tf.backend() as unknown as { readonly wasm: { readonly HEAPU8: Uint8Array } };
  const memory = { backend: "wasm", usedBytes: wasm.HEAPU8.length, limitBytes: 2 ** 32 - 2 ** 16 };
  expect(engineMemory()).toEqual(memory);
});

it("throws once, at the next allocation, when a kernel only prints that it has no memory", () => {
  const wasm = { _malloc: (bytes: number) => bytes, _free: () => {} };
  checkAllocations(wasm);
  expect(noteFailure(line.replace("6.", "2."))).toBe(false);
  expect(wasm._malloc(8)).toBe(8);
  expect(noteFailure(line)).toBe(true);
  expect(thrownBy(() => wasm._malloc(8))).toMatchObject({ code: "ENGINE_OUT_OF_MEMORY" });
  expect(wasm._malloc(8)).toBe(8);
});

describe("a kernel that only prints that it has no memory", () => {
  it("throws itself, frees its result, and leaves the next operation clean", () => {
    const before = tf.memory().numTensors;
    const data = tf.engine().backend.numDataIds();
    expect(thrownBy(fail)).toMatchObject(full);
    expect([tf.memory().numTensors, tf.engine().backend.numDataIds()]).toEqual([before, data]);
    expect(product()).toEqual([3, 3, 3, 3]);
  });

  it("is reported once by a kernel of the backend that allocates nothing, and by a read", async () => {
    const x = tf.ones([2]);
    noteFailure(line);
    expect(thrownBy(() => tf.reshape(x, [1, 2]))).toMatchObject(full);
    noteFailure(line);
    expect(thrownBy(() => x.dataSync())).toMatchObject(full);
    noteFailure(line);
    await expect(x.data()).rejects.toMatchObject(full);
    expect([...x.dataSync()]).toEqual([1, 1]);
    x.dispose();
  });

  /** Trains three steps with a measurement after each, and returns what went wrong, in order. */
  async function problemsOf(failsIn: (step: number, work: "step" | "measurement") => boolean) {
    const tokenizer = fakeTokenizer();
    const lm = createCausalLM({ ...tinyConfig, vocab_size: tokenizer.vocabSize }, { seed: "memory" });
    let step = 0;
    const logitsAt: typeof lm.logitsAt = (...given) => {
      if (failsIn(step, "measurement")) fail();
      return lm.logitsAt(...given);
    };
    const model = inMemory({ ...lm, incremental: undefined as never, logitsAt }, tokenizer);
    const evaluation = defineEvaluation({
      name: "next",
      version: "1",
      needs: ["nextToken"],
      items: () => [{ id: "a" }],
      async measure(measured, items, { signal }) {
        await measured.nextToken([{ prompt: { text: "a" }, candidates: [98] }], { signal });
        return items;
      },
      metrics: ({ rate }) => ({ all: rate(() => true) }),
    });
    const schedule = [atSteps([1, 2, 3])];
    const callbacks = [new PeriodicCallback(evaluation, { schedule, atStart: false, atEnd: false })];
    const problems: string[] = [];
    const onSnapshot = ({ status, reason }: { status: string; reason: string | null }) =>
      void (status !== "complete" && problems.push(`measurement ${step}: ${reason}`));
    const logger = { name: "problems", snapshot: onSnapshot };
    const options = { run: memoryStore(), maxSteps: 3, model, callbacks, loggers: [logger] };
    await withSession({ ...options, budget: { overheadPercent: null } }, async (session) => {
      await session.begin();
      while (step < 3) {
        step += 1;
        const error = thrownBy(() => {
          if (failsIn(step, "step")) fail();
          product();
        });
        if (error !== null) problems.push(`step ${step}: ${(error as Error).message}`);
        await session.stepEnd();
      }
    });
    lm.dispose();
    return problems;
  }

  it("blames the measurement in which it ran, and not the training step that follows", async () => {
    const problems = await problemsOf((step, work) => step === 2 && work === "measurement");
    expect(problems).toEqual([expect.stringMatching(/^measurement 2: .*a measurement that scores next/)]);
  });

  it("blames the training step in which it ran, and not the measurement that follows", async () => {
    const problems = await problemsOf((step, work) => step === 2 && work === "step");
    expect(problems).toEqual([expect.stringMatching(/^step 2: the WebAssembly heap is full: XNN status/)]);
  });
});
