import * as tf from "@tensorflow/tfjs-core";
import { inMemory } from "@periodic-eval/tfjs";
import { expect, it, vi } from "vitest";
import { registerWasmKernels } from "../../../kernels/src/wasm/register.ts";
import { createCausalLM } from "../checkpoint/create-causal-lm.ts";
import { hasNative, nativeBackend } from "../testing/backends.test-data.ts";
import { meanLoss, twoRows } from "../testing/mean-loss.test-data.ts";
import { tinyConfig } from "../testing/tiny-config.test-data.ts";
import { charTokenizer } from "../tokenizer/char-tokenizer.ts";
import type * as Kernels from "./kernels.ts";
import { useBackend } from "./use-backend.ts";

// Stands in for an installation without @periodic-eval/kernels.
vi.mock("./kernels.ts", async (original) => {
  const kernels = await original<typeof Kernels>();
  const missing = () => Promise.reject(Object.assign(new Error("none"), { code: "ERR_MODULE_NOT_FOUND" }));
  return { ...kernels, findKernels: () => kernels.findKernels(missing) };
});

/** Returns the gradients of a training step and a completion. */
async function results() {
  const model = createCausalLM(tinyConfig, { seed: "a", initStd: 0.3 });
  const { ids, labels } = twoRows;
  const { value, grads } = tf.variableGrads(() => meanLoss(model, ids, labels), [...model.trainables()]);
  const tensors = [value, ...Object.values(grads)];
  const numbers = tensors.flatMap((tensor) => [...tensor.dataSync()]);
  tf.dispose(tensors);
  const tokenizer = charTokenizer([..."abcdefghijklmnopqrstuvwxyz"]);
  const request = { prompt: { text: "abc" }, sampling: { maxNewTokens: 8, temperature: 1, seed: "b" } };
  const call = { signal: new AbortController().signal };
  const [completion] = await inMemory(model, tokenizer).generate([request], call);
  model.dispose();
  return { numbers, completion: completion! };
}

it("trains and generates on wasm with the same bits as with the kernels", async () => {
  expect(await useBackend({ backend: "wasm" })).toMatchObject({ name: "wasm", kernels: false });
  expect(tf.getKernel("PeriodicEvalSmallProducts", "wasm")).toBeUndefined();
  const without = await results();
  registerWasmKernels(tf.backend());
  expect(tf.getKernel("PeriodicEvalSmallProducts", "wasm")).toBeDefined();
  expect(await results()).toEqual(without);
});

it.runIf(hasNative)("trains and generates on native TensorFlow without graphs", async () => {
  await useBackend({ backend: "wasm" });
  const expected = await results();
  expect(await useBackend({ backend: nativeBackend })).toMatchObject({ name: nativeBackend, kernels: false });
  const backend = tf.backend() as tf.KernelBackend & { loadSavedModelMetaGraph(): number };
  const load = vi.spyOn(backend, "loadSavedModelMetaGraph");
  const { numbers, completion } = await results();
  expect(load).not.toHaveBeenCalled();
  expect(completion.text).toBe(expected.completion.text);
  numbers.forEach((value, at) => expect(value).toBeCloseTo(expected.numbers[at]!, 5));
});
