import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Tokenizer, TrainerCallback } from "@periodic-eval/core";
import type { TrainableLM } from "@periodic-eval/tfjs";
import { openSafetensors } from "@periodic-eval/safetensors";
import { expect } from "vitest";
import { expectClose } from "../../../testing/src/expect-close.test-data.ts";
import { findFixtures, isPublished, reportMissing } from "../../../testing/src/fixtures.test-data.ts";
import { readTensors } from "../checkpoint/saved-tensors.ts";
import type { PromptCompletionTextRow } from "../data/forms.ts";
import type { SFTConfig } from "../sft/sft-config.ts";
import { SFTTrainer } from "../sft/sft-trainer.ts";
import { checkpointFolder } from "./checkpoint-files.test-data.ts";
import { recording, temporaryFolder, ungoverned } from "./tiny-run.test-data.ts";

/**
 * Finds the JSON files of trainings by PyTorch, `dpo.json` or `dpo_2.json`; see the README of the fixtures. Registers a
 * skipped test if there are none.
 */
export function findReferences(kind: "full_ft" | "lora" | "dpo"): readonly string[] {
  const files = findFixtures(new RegExp(`^training[^/]*/${kind}[^/]*\\.json$`));
  if (files.length === 0) reportMissing(`training*/${kind}*.json`);
  return files;
}

export interface ReferenceRun {
  readonly losses: readonly number[];
  readonly grad_norms: readonly number[];
  readonly loss_after: number;
}

/** A training on the same batch in every step. */
export interface Reference extends ReferenceRun {
  /** Folder beside the file. */
  readonly model: string;
  readonly hyper: {
    readonly lr: number;
    readonly betas: [number, number];
    readonly eps: number;
    readonly weight_decay: number;
    readonly grad_clip: number;
  };
  readonly input_ids: readonly (readonly number[])[];
  readonly labels: readonly (readonly number[])[];
}

export const readReference = <T>(file: string): T => JSON.parse(readFileSync(file, "utf8")) as T;

/** A tensor in the backend's layout. */
export interface HeldTensor {
  readonly name: string;
  readonly tensor: { data(): Promise<ArrayLike<number>> };
}

/**
 * Expects each tensor to equal the file's tensor of the same name within `tolerance`, entry by entry. Linear maps are
 * [out, in] in the file and [in, out] here.
 */
export async function expectStored(
  tensors: readonly HeldTensor[],
  file: string,
  tolerance: number,
): Promise<void> {
  const stored = await openSafetensors(file);
  try {
    expect(tensors.map(({ name }) => name).sort()).toEqual([...stored.tensors.keys()].sort());
    for (const { name, tensor } of tensors) {
      const golden = await stored.read(name);
      const [rows, columns = 1] = stored.tensors.get(name)!.shape as [number, number?];
      const values = await tensor.data();
      const isTransposed = name.includes("_proj") || name.includes("lm_head");
      let furthest = 0;
      for (let row = 0; row < rows; row += 1) {
        for (let column = 0; column < columns; column += 1) {
          const ours = values[isTransposed ? column * rows + row : row * columns + column]!;
          furthest = Math.max(furthest, Math.abs(ours - Number(golden[row * columns + column])));
        }
      }
      expect(furthest, name).toBeLessThan(tolerance);
    }
  } finally {
    await stored.close();
  }
}

/** Encodes one token per character: the ids of a reference become the text of a row. */
const characters = (vocabSize: number): Tokenizer => ({
  fingerprint: "one token a character",
  vocabSize,
  stopIds: [],
  encode: (text) => Array.from(text, (character) => character.codePointAt(0)!),
  decode: (ids) => String.fromCodePoint(...ids),
  render() {
    throw new Error("references hold no chats");
  },
});

/** The tokens before the first scored one are the prompt. */
function rowsOf({ input_ids, labels }: Reference, { decode }: Tokenizer): PromptCompletionTextRow[] {
  return input_ids.map((ids, i) => {
    const start = labels[i]!.findIndex((label) => label !== -100);
    expect(labels[i]!.slice(start)).toEqual(ids.slice(start));
    return {
      prompt: decode(ids.slice(0, start)),
      completion: decode(ids.slice(start)),
    };
  });
}

const tolerance = { relative: 1e-4 };

export interface ReferenceTraining {
  /** Gradients of the mean loss by weight, before clipping, in the first step. */
  readonly firstGradients: readonly HeldTensor[];
  /** Takes one more step, whose loss is the loss after the run. */
  expectLossAfter(run: ReferenceRun): Promise<void>;
}

/**
 * Repeats the reference's training with `SFTTrainer`, and expects each step's loss and norm to equal the run's within a
 * relative 1e-4.
 */
export async function trainAsReference(
  model: TrainableLM,
  reference: Reference,
  run: ReferenceRun,
  { decay = "all", callbacks = [] }: { decay?: SFTConfig["decay"]; callbacks?: readonly TrainerCallback[] },
): Promise<ReferenceTraining> {
  const { hyper, input_ids } = reference;
  const tokenizer = characters(model.vocabSize);
  const runDir = await temporaryFolder();
  const config: Partial<SFTConfig> = {
    batchSize: input_ids.length,
    maxLength: input_ids[0]!.length,
    onBadRow: "error",
    learningRate: hyper.lr,
    schedule: "constant",
    adamBetas: hyper.betas,
    adamEpsilon: hyper.eps,
    weightDecay: hyper.weight_decay,
    decay,
    maxGradNorm: hyper.grad_clip,
    keepCheckpoints: 99,
  };
  const train = async (maxSteps: number) => {
    const logger = recording();
    const given = { model, tokenizer, runDir, session: ungoverned, callbacks };
    const trainer = new SFTTrainer({
      ...given,
      dataset: rowsOf(reference, tokenizer),
      loggers: [logger],
      config: { ...config, maxSteps },
    });
    await trainer.train();
    return logger.metrics;
  };
  const { losses, grad_norms } = run;
  if (isPublished) expect(losses).toHaveLength(10);
  // Ends after step 1 for the checkpoint that holds the first gradients; writing one at every step would take longer.
  const steps = [...(await train(1)), ...(await train(losses.length))];
  expect(steps).toHaveLength(losses.length);
  for (const [index, expected] of losses.entries()) {
    const { loss, grad_norm } = steps[index]!;
    expectClose(loss!, expected, tolerance, `loss of step ${index + 1}`);
    expectClose(grad_norm!, grad_norms[index]!, tolerance, `norm of step ${index + 1}`);
  }
  return {
    firstGradients: await firstGradients(runDir, hyper, steps[0]!["grad_norm"]!),
    async expectLossAfter({ loss_after }) {
      const [{ loss } = {}] = await train(losses.length + 1);
      expectClose(loss!, loss_after, tolerance, "loss after the run");
    },
  };
}

/** After one step, AdamW's first mean is (1 − β₁) times the clipped gradient, which the checkpoint stores exactly. */
async function firstGradients(
  runDir: string,
  { betas: [beta1], grad_clip }: Reference["hyper"],
  norm: number,
): Promise<readonly HeldTensor[]> {
  const slots = await readTensors(join(checkpointFolder(runDir, 1), "optimizer.safetensors"));
  const scale = (1 - beta1) * Math.min(1, grad_clip / (norm + 1e-6));
  return [...slots].flatMap(([slot, { values }]) => {
    const [, name] = /^(.*)\.exp_avg$/.exec(slot) ?? [];
    return name === undefined
      ? []
      : [{ name, tensor: { data: async () => values.map((value) => value / scale) } }];
  });
}
