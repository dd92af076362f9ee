import { join } from "node:path";
import { weightName } from "@periodic-eval/core/tfjs";
import { loadCausalLM, useBackend } from "@periodic-eval/models";
import { describe, expect, it } from "vitest";
import {
  expectStored,
  hasReference,
  readReference,
  references,
  trainAsReference,
  type Reference,
  type ReferenceRun,
} from "../testing/reference-training.ts";

interface Summary {
  readonly shape: readonly number[];
  readonly sum: number;
  readonly l2: number;
  readonly first4: readonly number[];
}
interface Run extends ReferenceRun {
  readonly final_weights: Readonly<Record<string, Summary>>;
}
type Golden = Reference & Run & { readonly hf_trainer_groups: Run };

const file = "full_ft.json";
const present = hasReference(file);

/** Ten steps of torch.optim.AdamW (2.13.0, CPU, float32) on every weight of tiny-llama; see the fixtures' README. */
describe.skipIf(!present)("full fine-tuning equals PyTorch's (needs ../shared/fixtures/training)", () => {
  const cases = [
    ["wasm", "all"],
    ["wasm", "no-norms"],
    ["cpu", "all"],
  ] as const;
  it.each(cases)("on %s, decay %s: losses, norms and final weights", async (backend, decay) => {
    await useBackend({ backend });
    const golden = readReference<Golden>(file);
    const expected: Run = decay === "all" ? golden : golden.hf_trainer_groups;
    const model = await loadCausalLM(join(references, "tiny-llama"));
    const training = trainAsReference(model, golden, { decay });
    await training.follow(expected);
    for (const weight of model.weights()) {
      const { name } = weight;
      const { sum, l2, first4 } = expected.final_weights[name]!;
      const values = [...(await weight.read().data())];
      expect(Math.hypot(...values), name).toBeCloseTo(l2, 3);
      // A sum of 16,576 weights that may each be off by 1e-6.
      expect(Math.abs(values.reduce((total, value) => total + value, 0) - sum), name).toBeLessThan(0.02);
      expect(Math.abs(values[0]! - first4[0]!), name).toBeLessThan(1e-3);
    }
    if (decay === "all") {
      const trained = model.trainables().map((tensor) => ({ name: weightName(tensor), tensor }));
      await expectStored(trained, "full_ft_final.safetensors", 1e-3);
    }
    await training.expectLossAfter(expected);
    training.dispose();
    model.dispose();
  });
});
