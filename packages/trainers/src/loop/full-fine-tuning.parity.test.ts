import { testedBackends } from "../../../models/src/testing/backends.test-data.ts";
import { needsPython, python, pythonHas } from "../../../models/src/testing/python.test-data.ts";
import { execFileSync } from "node:child_process";
import { dirname, join, resolve } from "node:path";
import { weightName } from "@periodic-eval/tfjs";
import { loadCausalLM, useBackend, type CheckpointLM } from "@periodic-eval/models";
import { describe, expect, it } from "vitest";
import { companionOf } from "../../../testing/src/fixtures.test-data.ts";
import {
  expectStored,
  findReferences,
  readReference,
  trainAsReference,
  type HeldTensor,
  type Reference,
  type ReferenceRun,
} from "../testing/reference-training.test-data.ts";
import { temporaryFolder } from "../testing/tiny-run.test-data.ts";

interface Summary {
  readonly shape: readonly [number, number?];
  readonly sum: number;
  readonly l2: number;
  readonly first4: readonly number[];
}
interface Run extends ReferenceRun {
  readonly final_weights: Readonly<Record<string, Summary>>;
}
type Golden = Reference & Run & { readonly hf_trainer_groups: Run };

const backends = testedBackends;
const load = (file: string, { model }: Golden) => loadCausalLM(join(dirname(file), model));
const gradientsOf = (file: string) => companionOf(file, /^full_ft.*grads_step0.*\.safetensors$/);
const finalOf = (file: string) => companionOf(file, /^full_ft.*final.*\.safetensors$/);
const trainedOf = (model: CheckpointLM): HeldTensor[] =>
  model.trainables().map((tensor) => ({ name: weightName(tensor), tensor }));
const isNorm = (name: string) => name.includes("norm");

/** Ten steps of torch.optim.AdamW (2.13.0, CPU, float32) on every weight of a tiny Llama; see the fixtures' README. */
describe.each(findReferences("full_ft"))("full fine-tuning with SFTTrainer (%s)", (file) => {
  describe.each(backends)("on %s", (backend) => {
    it("equals PyTorch in losses, norms, first gradients and final weights", async () => {
      await useBackend({ backend });
      const golden = readReference<Golden>(file);
      const model = await load(file, golden);
      const training = await trainAsReference(model, golden, golden, { decay: "all" });
      await expectStored(training.firstGradients, gradientsOf(file), 1e-4);
      await expectStored(trainedOf(model), finalOf(file), golden.hyper.lr);
      await training.expectLossAfter(golden);
      model.dispose();
    });

    it("equals PyTorch when norms do not decay", async () => {
      await useBackend({ backend });
      const golden = readReference<Golden>(file);
      const run = golden.hf_trainer_groups;
      const model = await load(file, golden);
      const training = await trainAsReference(model, golden, run, { decay: "no-norms" });
      // Decay acts from the first update on, but not on its gradients.
      await expectStored(training.firstGradients, gradientsOf(file), 1e-4);
      const trained = trainedOf(model);
      expect(trained.map(({ name }) => name).sort()).toEqual(Object.keys(run.final_weights).sort());
      for (const { name, tensor } of trained) {
        const { shape, sum, l2, first4 } = run.final_weights[name]!;
        const values = Array.from(await tensor.data());
        const [rows, columns = 1] = shape;
        expect(values, name).toHaveLength(rows * columns);
        const isTransposed = name.includes("_proj") || name.includes("lm_head");
        for (const [at, expected] of first4.entries())
          expect(Math.abs(values[isTransposed ? at * rows : at]! - expected), name).toBeLessThan(
            within(name, golden),
          );
        // Rounding errors of either sign accumulate like their root mean square.
        const rounding = within(name, golden) * Math.sqrt(values.length);
        expect(Math.abs(values.reduce((all, value) => all + value, 0) - sum), name).toBeLessThan(rounding);
        expect(Math.abs(Math.hypot(...values) - l2), name).toBeLessThan(rounding);
      }
      await training.expectLossAfter(run);
      model.dispose();
    });
  });

  it.runIf(pythonHas("safetensors", "torch", "transformers"))(
    `equals PyTorch in every final weight when norms do not decay (${needsPython("transformers")})`,
    async () => {
      const out = join(await temporaryFolder(), "final.safetensors");
      const golden = readReference<Golden>(file);
      const paths = { model: resolve(dirname(file), golden.model), reference: resolve(file), out };
      execFileSync(python, [join(import.meta.dirname, "../testing/no-norms-reference.test-data.py")], {
        input: JSON.stringify(paths),
        stdio: "pipe",
      });
      for (const backend of backends.filter((name) => name !== "cpu")) {
        await useBackend({ backend });
        const model = await load(file, golden);
        await trainAsReference(model, golden, golden.hf_trainer_groups, { decay: "no-norms" });
        await expectStored(trainedOf(model), out, golden.hyper.lr);
        model.dispose();
      }
    },
  );

  it("distinguishes the two kinds of decay by more than the tolerance of a norm", () => {
    const golden = readReference<Golden>(file);
    const { final_weights: all, hf_trainer_groups: groups } = golden;
    for (const name of Object.keys(all).filter(isNorm))
      for (const [at, value] of all[name]!.first4.entries())
        expect(groups.final_weights[name]!.first4[at]! - value, name).toBeGreaterThan(
          3 * within(name, golden),
        );
  });
});

/**
 * The tolerance of a weight is one step, because rounding decides the sign of a gradient near 0 and Adam turns it into a
 * whole step. The tolerance of a norm, which is about 1, is a fifth of the effect of decay: 2e-5 after ten steps of 1e-3 with
 * a decay of 0.01.
 */
const within = (name: string, { hyper, losses }: Golden): number =>
  isNorm(name) ? (hyper.lr * hyper.weight_decay * losses.length) / 5 : hyper.lr;
