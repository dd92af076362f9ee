import * as tf from "@tensorflow/tfjs-core";
import { blockOf } from "@periodic-eval/tfjs";
import { beforeAll, expect, it, vi } from "vitest";
import { useBackend } from "../backend/use-backend.ts";
import { createCausalLM } from "../checkpoint/create-causal-lm.ts";
import { registerNativeKernels } from "../../../kernels/src/native/native-kernels.ts";
import { meanLoss, twoRows } from "../testing/mean-loss.test-data.ts";
import { unusualFamilies } from "../testing/tiny-config.test-data.ts";

/** Stands in for a graph of native TensorFlow, which other machines cannot run: it is built, but does not compute. */
vi.mock("../../../kernels/src/graph/graph-function.ts", () => ({
  graphBackend: () => ({}),
  GraphFunction: class {
    run(): never {
      throw new Error("built");
    }
    dispose(): void {}
  },
}));

beforeAll(async () => {
  await useBackend({ backend: "cpu" });
  registerNativeKernels(16);
});

it.each(unusualFamilies)("records the operations of $family in graphs, with native kernels", ({ config }) => {
  // A failed build would be a process warning, and the operations would run without a graph.
  const warning = vi.spyOn(process, "emitWarning");
  const model = createCausalLM(config, { seed: "a", initStd: 0.3, dropout: 0.4 });
  const { ids, labels } = twoRows;
  const training = () => tf.variableGrads(() => meanLoss(model, ids, labels), [...model.trainables()]);
  expect(training).toThrow("built");
  const reading = (length: number) => () =>
    model.incremental.extend(blockOf([ids[0]!.slice(0, length)], 0), { rows: [0], keep: true });
  for (const length of [1, 3]) expect(reading(length)).toThrow("built");
  expect(warning).not.toHaveBeenCalled();
  model.dispose();
});
