import { execFileSync } from "node:child_process";
import { join, resolve } from "node:path";
import { weightName } from "@periodic-eval/core/tfjs";
import { loadCausalLM, useBackend, type CheckpointLM } from "@periodic-eval/models";
import { describe, expect, it } from "vitest";
import {
  expectStored,
  hasNative,
  hasReference,
  readReference,
  references,
  trainAsReference,
  type HeldTensor,
  type Reference,
  type ReferenceRun,
} from "../testing/reference-training.ts";
import { temporaryFolder } from "../testing/tiny-run.ts";

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

const file = "full_ft.json";
const present = hasReference(file);
const python = process.env["PERIODIC_EVAL_PEERS_PYTHON"] ?? "python3";

function hasTorch(): boolean {
  try {
    execFileSync(python, ["-c", "import safetensors, torch, transformers"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

const engines = ["wasm", "cpu", ...(hasNative ? ["tfjs-node"] : [])];
const load = () => loadCausalLM(join(references, "tiny-llama"));
const trainedOf = (model: CheckpointLM): HeldTensor[] =>
  model.trainables().map((tensor) => ({ name: weightName(tensor), tensor }));
const isNorm = (name: string) => name.includes("norm");

/** Ten steps of torch.optim.AdamW (2.13.0, CPU, float32) on every weight of tiny-llama; see the fixtures' README. */
describe.skipIf(!present)("SFTTrainer equals PyTorch's (needs ../shared/fixtures/training)", () => {
  describe.each(engines)("on %s", (backend) => {
    it("losses, norms, first gradients and final weights", async () => {
      await useBackend({ backend });
      const golden = readReference<Golden>(file);
      const model = await load();
      const training = await trainAsReference(model, golden, golden, { decay: "all" });
      await expectStored(training.firstGradients, "full_ft_grads_step0.safetensors", 1e-4);
      await expectStored(trainedOf(model), "full_ft_final.safetensors", 1e-3);
      await training.expectLossAfter(golden);
      model.dispose();
    });

    it("the same with norms that do not decay", async () => {
      await useBackend({ backend });
      const golden = readReference<Golden>(file);
      const run = golden.hf_trainer_groups;
      const model = await load();
      const training = await trainAsReference(model, golden, run, { decay: "no-norms" });
      // Decay acts from the first update on, not on its gradients.
      await expectStored(training.firstGradients, "full_ft_grads_step0.safetensors", 1e-4);
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
            within(name),
          );
        // Errors of rounding, of either sign, add up as their root mean square does.
        const rounding = within(name) * Math.sqrt(values.length);
        expect(Math.abs(values.reduce((all, value) => all + value, 0) - sum), name).toBeLessThan(rounding);
        expect(Math.abs(Math.hypot(...values) - l2), name).toBeLessThan(rounding);
      }
      await training.expectLossAfter(run);
      model.dispose();
    });
  });

  it.runIf(hasTorch())(
    "every final weight with norms that do not decay (needs, in PERIODIC_EVAL_PEERS_PYTHON, a Python with transformers)",
    async () => {
      const out = join(await temporaryFolder(), "final.safetensors");
      const paths = { model: resolve(references, "tiny-llama"), reference: resolve(references, file), out };
      execFileSync(python, [join(import.meta.dirname, "../testing/no-norms-reference.py")], {
        input: JSON.stringify(paths),
        stdio: "pipe",
      });
      for (const backend of engines.filter((name) => name !== "cpu")) {
        await useBackend({ backend });
        const golden = readReference<Golden>(file);
        const model = await load();
        await trainAsReference(model, golden, golden.hf_trainer_groups, { decay: "no-norms" });
        await expectStored(trainedOf(model), out, 1e-3);
        model.dispose();
      }
    },
  );

  it("tells the two ways of decay apart: ten steps of it take a ten-thousandth off a norm", () => {
    const { final_weights: all, hf_trainer_groups: groups } = readReference<Golden>(file);
    for (const name of Object.keys(all).filter(isNorm))
      for (const [at, value] of all[name]!.first4.entries())
        expect(groups.final_weights[name]!.first4[at]! - value, name).toBeGreaterThan(3 * within(name));
  });
});

/** Of a weight; of norms less, or decay would be within it: Adam turns a gradient near 0 into a whole step elsewhere. */
const within = (name: string): number => (isNorm(name) ? 2e-5 : 1e-3);
