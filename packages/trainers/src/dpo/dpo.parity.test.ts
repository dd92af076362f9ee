import { dirname, join } from "node:path";
import * as tf from "@tensorflow/tfjs-core";
import { weightName } from "@periodic-eval/tfjs";
import { loadCausalLM, useBackend, type CheckpointLM } from "@periodic-eval/models";
import { describe, expect, it } from "vitest";
import { expectClose } from "../../../testing/src/expect-close.test-data.ts";
import { companionOf, isPublished, publishedOnly } from "../../../testing/src/fixtures.test-data.ts";
import type { PreferencePair } from "../data/preference-rows.ts";
import { Learner } from "../loop/learner.ts";
import { isThere, nativeBackend } from "../../../models/src/testing/backends.test-data.ts";
import { expectStored, findReferences, readReference } from "../testing/reference-training.test-data.ts";
import { collatePairs, pairGradients, type DPOLossOptions } from "./pair-batch.ts";
import { parseDPOConfig } from "./dpo-config.ts";
import { referenceLogProbs } from "./reference.ts";

interface Golden {
  /** Folder beside the file. */
  readonly model: string;
  readonly beta: number;
  readonly hyper: { readonly lr: number; readonly weight_decay: number; readonly grad_clip: number };
  readonly pairs: readonly Readonly<Record<"prompt_ids" | "chosen_ids" | "rejected_ids", number[]>>[];
  readonly ref_chosen_logps: readonly number[];
  readonly ref_rejected_logps: readonly number[];
  readonly steps: readonly {
    readonly loss: number;
    readonly grad_norm: number;
    readonly rewards_chosen: number;
    readonly rewards_rejected: number;
    readonly margin: number;
    readonly accuracy: number;
    readonly chosen_logps: readonly number[];
    readonly rejected_logps: readonly number[];
  }[];
}

const backends = ["wasm", "cpu", nativeBackend];

/** Builds one batch of the file's pairs, and AdamW with its hyperparameters. */
async function training(model: CheckpointLM, golden: Golden, loss: Partial<DPOLossOptions> = {}) {
  const pairs = golden.pairs.map(({ prompt_ids: prompt, chosen_ids, rejected_ids }, i): PreferencePair => {
    const sequence = (completion: readonly number[]) => ({
      ids: Int32Array.from([...prompt, ...completion]),
      scored: Int32Array.from(completion.keys(), (at) => prompt.length + at),
    });
    const [chosen, rejected] = [sequence(chosen_ids), sequence(rejected_ids)];
    return { where: `pair ${i}`, chosen, rejected, reference: null, cutFrom: null, promptTail: 0 };
  });
  const baseline = await referenceLogProbs(model, pairs, { batchSize: pairs.length });
  const reference = Float32Array.from([
    ...baseline.map(({ chosen }) => chosen),
    ...baseline.map(({ rejected }) => rejected),
  ]);
  const { lr, weight_decay, grad_clip } = golden.hyper;
  const learner = new Learner({
    model,
    config: { ...parseDPOConfig(), weightDecay: weight_decay, decay: "all", maxGradNorm: grad_clip },
    phase: "train",
    runDir: undefined,
    warn: () => {},
  });
  const options = { beta: golden.beta, lossType: "sigmoid", labelSmoothing: 0, ...loss } as const;
  const work = {
    divisor: pairs.length,
    tokens: 0,
    where: [],
    gradients: () =>
      pairGradients(model, collatePairs(pairs, model), reference, { ...options, random: () => () => 0.5 }),
  };
  return {
    reference,
    work,
    step: () => learner.update(work, lr),
    dispose: () => learner.dispose(),
  };
}

const tolerance = { relative: 1e-4 };
/** For numbers that may be 0. */
const toleranceNearZero = { absolute: 5e-5, relative: 5e-5 };

const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;

const load = (file: string, { model }: Golden) => loadCausalLM(join(dirname(file), model));

/** Five steps of torch.optim.AdamW (2.13.0, CPU, float32) on a tiny Llama, as in TRL 1.16.0; see the fixtures' README. */
describe.each(findReferences("dpo"))("DPO (%s)", (file) => {
  describe.each(backends)("on %s", (backend) => {
    it.runIf(isThere(backend))(
      "equals PyTorch and TRL in losses, norms, rewards, margins and log-probs of each step",
      async () => {
        await useBackend({ backend });
        const golden = readReference<Golden>(file);
        const model = await load(file, golden);
        const { reference, step, dispose } = await training(model, golden);
        for (const [i, expected] of [...golden.ref_chosen_logps, ...golden.ref_rejected_logps].entries())
          expectClose(reference[i]!, expected, tolerance, `reference of sequence ${i}`);
        for (const [i, expected] of golden.steps.entries()) {
          const { loss, gradNorm, means } = await step();
          expectClose(loss, expected.loss, tolerance, `loss of step ${i}`);
          expectClose(gradNorm, expected.grad_norm, tolerance, `norm of step ${i}`);
          expectClose(
            means["rewards/chosen"]!,
            expected.rewards_chosen,
            toleranceNearZero,
            `reward of step ${i}`,
          );
          expectClose(
            means["rewards/rejected"]!,
            expected.rewards_rejected,
            toleranceNearZero,
            `reward of step ${i}`,
          );
          expectClose(means["rewards/margins"]!, expected.margin, toleranceNearZero, `margin of step ${i}`);
          expectClose(
            means["logps/chosen"]!,
            mean(expected.chosen_logps),
            tolerance,
            `log-probs of step ${i}`,
          );
          expectClose(
            means["logps/rejected"]!,
            mean(expected.rejected_logps),
            tolerance,
            `log-probs of step ${i}`,
          );
          // Rewards of the first step are 0 except for rounding, which decides which is greater.
          if (i > 0) expect(means["rewards/accuracies"]).toBe(expected.accuracy);
        }
        dispose();
        model.dispose();
      },
    );

    it.runIf(isThere(backend))(
      "equals PyTorch in the first gradients within 1e-4, and leaves no tensor",
      async () => {
        await useBackend({ backend });
        const golden = readReference<Golden>(file);
        const model = await load(file, golden);
        const { work, dispose } = await training(model, golden);
        const before = tf.memory().numTensors;
        const { loss, gradients, sums } = work.gradients();
        const variables = model.trainables();
        const mean = variables.map((variable) => ({
          name: weightName(variable),
          tensor: tf.div(gradients[variable.name]!, work.divisor),
        }));
        await expectStored(mean, companionOf(file, /^dpo.*grads_step0.*\.safetensors$/), 1e-4);
        tf.dispose([loss, gradients, sums ?? {}, mean.map(({ tensor }) => tensor)]);
        expect(tf.memory().numTensors).toBe(before);
        dispose();
        model.dispose();
      },
    );
  });

  /**
   * Three steps on the same pairs with TRL 1.16.0's trainer:
   * `DPOConfig(loss_type=[…], beta=0.1, max_grad_norm=1, lr_scheduler_type="constant", max_length=None, bf16=False,
   * use_cpu=True, gradient_checkpointing=False, num_train_epochs=3, per_device_train_batch_size=4)`, the optimizer
   * `torch.optim.AdamW(lr=1e-3, weight_decay=0.01)`, the dataset's columns `prompt_ids, chosen_ids, rejected_ids` from
   * the file. Label smoothing: `loss_type=["aot"], label_smoothing=0.2`, with one pair per batch and accumulation of 4:
   * sorting a single pair changes nothing, so that the loss is cDPO.
   */
  const trained: Readonly<
    Record<string, readonly [DPOLossOptions["lossType"], smoothing: number, steps: readonly number[][]]>
  > = {
    hinge: [
      "hinge",
      0,
      [
        [1.0, 6.642841815948486, 0.0, -54.04489517211914],
        [0.09820784628391266, 2.0928428173065186, 1.147133469581604, -48.80833435058594],
        [0.0, 0.0, 1.74976646900177, -46.53752136230469],
      ],
    ],
    ipo: [
      "ipo",
      0,
      [
        [25.0, 105.60041809082031, 0.0, -54.04489517211914],
        [13.834641456604004, 51.261539459228516, 0.928895115852356, -49.442955017089844],
        [7.866543769836426, 31.44772720336914, 1.7911202907562256, -45.346038818359375],
      ],
    ],
    "label smoothing": [
      "sigmoid",
      0.2,
      [
        [0.6931471824645996, 1.9928524494171143, 0.0, -54.044896721839905],
        [0.5187870264053345, 0.3908412754535675, 1.1471335738897324, -48.808332085609436],
        [0.520732581615448, 0.42463088035583496, 1.785972535610199, -46.30829179286957],
      ],
    ],
  };

  const title = `equals TRL with %s in loss, norm, margin and log-probs of three steps (${publishedOnly})`;
  it.skipIf(!isPublished).each(Object.keys(trained))(title, async (name) => {
    await useBackend({ backend: "wasm" });
    const [lossType, labelSmoothing, steps] = trained[name]!;
    const golden = readReference<Golden>(file);
    const model = await load(file, golden);
    const { step, dispose } = await training(model, golden, { lossType, labelSmoothing });
    for (const [i, [loss, norm, margin, chosen]] of steps.entries()) {
      const { means, ...found } = await step();
      expectClose(found.loss, loss!, toleranceNearZero, `loss of step ${i}`);
      expectClose(found.gradNorm, norm!, toleranceNearZero, `norm of step ${i}`);
      expectClose(means["rewards/margins"]!, margin!, toleranceNearZero, `margin of step ${i}`);
      expectClose(means["logps/chosen"]!, chosen!, tolerance, `log-probs of step ${i}`);
    }
    dispose();
    model.dispose();
  });
});
