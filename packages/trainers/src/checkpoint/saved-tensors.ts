import * as tf from "@tensorflow/tfjs-core";
import { configError } from "@periodic-eval/contracts/options";
import { PeriodicEvalError } from "@periodic-eval/core";
import { canonicalJson, hashJson } from "@periodic-eval/core/random";
import { openSafetensors, writeSafetensors } from "@periodic-eval/safetensors";
import { join } from "@periodic-eval/store/platform";
import { weightName, type NamedWeight, type TrainableLM, fingerprintWeights } from "@periodic-eval/tfjs";
import type { Optimizer } from "../optimizer/adamw.ts";
import { hashesIn, readState, type PhaseStart } from "./trainer-state.ts";

const trainablesFile = "trainables.safetensors";
const optimizerFile = "optimizer.safetensors";

/**
 * Writes the model in Hugging Face's format, for other programs, and two files for a resume: the trainable variables in the
 * layout of the backend, which may differ from Hugging Face's, and the optimizer's slots. Both hold float32.
 */
export async function saveTensors(folder: string, model: TrainableLM, optimizer: Optimizer): Promise<void> {
  await model.save(folder);
  await writeTensors(join(folder, trainablesFile), namedTrainables(model));
  await writeTensors(join(folder, optimizerFile), optimizer.slots());
}

/**
 * Restores the trainable variables and the optimizer bit for bit.
 *
 * @throws PeriodicEvalError `model` if a variable or slot is missing or has another shape; nothing is changed then.
 */
export async function restoreTensors(
  folder: string,
  model: TrainableLM,
  optimizer: Optimizer,
  optimizerSteps: number,
): Promise<void> {
  const weights = await readTensors(join(folder, trainablesFile));
  const slots = await readTensors(join(folder, optimizerFile));
  const trainables = model.trainables();
  const values = trainables.map((variable) => {
    const name = weightName(variable);
    const stored = weights.get(name);
    if (stored !== undefined && String(stored.shape) === String(variable.shape)) return stored.values;
    throw new PeriodicEvalError({
      code: "model",
      where: `${join(folder, trainablesFile)}, ${name}`,
      got: stored === undefined ? "no such weight" : `[${stored.shape.join(", ")}]`,
      expected: `[${variable.shape.join(", ")}]`,
      fix: 'Resume with the model that the run started with, or start over with resume: "never".',
    });
  });
  optimizer.restore(optimizerSteps, new Map([...slots].map(([name, slot]) => [name, slot.values])));
  tf.tidy(() => {
    for (const [i, variable] of trainables.entries())
      variable.assign(tf.tensor(values[i]!, variable.shape, "float32"));
  });
}

/** Whether a folder has the files that `saveTensors` wrote for other programs into a checkpoint, byte for byte. */
export async function holdsModelOf(folder: string, checkpoint: string): Promise<boolean> {
  const state = await readState(checkpoint);
  const hashes = await hashesIn(folder).catch(() => null);
  if (typeof state === "string" || hashes === null) return false;
  const { [trainablesFile]: _trainables, [optimizerFile]: _optimizer, ...files } = state.files;
  return canonicalJson(hashes) === canonicalJson(files);
}

/** Returns the trainable variables under the names that checkpoints use. */
export const namedTrainables = (model: TrainableLM): NamedWeight[] =>
  model.trainables().map((variable) => ({ name: weightName(variable), read: () => variable }));

/** Writes live tensors as float32 without conversion, so that `readTensors` returns the same bits. */
async function writeTensors(path: string, weights: readonly NamedWeight[]): Promise<void> {
  await writeSafetensors(
    path,
    weights.map(({ name, read }) => ({
      name,
      shape: read().shape,
      values: async () => read().data<"float32">(),
    })),
    { dtype: "F32" },
  );
}

interface StoredTensor {
  readonly shape: readonly number[];
  readonly values: Float32Array;
}

/** Reads every tensor of a safetensors file as float32, by name. */
export async function readTensors(path: string): Promise<ReadonlyMap<string, StoredTensor>> {
  const file = await openSafetensors(path);
  try {
    const tensors = new Map<string, StoredTensor>();
    for (const { name, shape } of file.tensors.values()) {
      const values = await file.read(name);
      tensors.set(name, {
        shape,
        values: values instanceof Float32Array ? values : Float32Array.from(values as ArrayLike<number>),
      });
    }
    return tensors;
  } finally {
    await file.close();
  }
}

/**
 * Describes the state in which a phase starts: the earlier phases, and a hash of the trainable weights as they left them.
 * The hash is null for a first phase: no checkpoint of the run holds its initial weights, and a resume restores its own.
 */
export async function phaseStartOf(model: TrainableLM, after: readonly string[]): Promise<PhaseStart> {
  if (after.length === 0) return { after: [], weights: null };
  const trained = namedTrainables(model).sort((a, b) => (a.name < b.name ? -1 : 1));
  return { after: [...after], weights: await fingerprintWeights(trained, { method: "exact" }) };
}

/**
 * Throws if a checkpoint belongs to a phase that started after other phases: loading it would undo what the phases before it
 * trained this time. An undefined side is unknown and matches everything.
 *
 * @param where The checkpoint, or the folder of the phase's checkpoints.
 * @throws PeriodicEvalError `config`.
 */
export function checkEarlierPhases(
  where: string,
  phase: string,
  written: PhaseStart | undefined,
  after: readonly string[] | undefined,
): void {
  if (written === undefined || after === undefined || hashJson(written.after) === hashJson([...after]))
    return;
  throw startMismatch(where, {
    got: `phase "${phase}" ${describeOrder(after)}`,
    expected: `${describeOrder(written.after)}, as in its checkpoint`,
  });
}

/**
 * Like `checkEarlierPhases`, and also throws if the same phases left other weights, for example because one of them was
 * trained further or repeated.
 */
export function checkStart(
  where: string,
  phase: string,
  written: PhaseStart | undefined,
  start: PhaseStart | undefined,
): void {
  checkEarlierPhases(where, phase, written, start?.after);
  if (written === undefined || start === undefined || written.weights === start.weights) return;
  throw startMismatch(where, {
    got: `phase "${phase}" starting from other weights than "${start.after.at(-1)}" left when the checkpoint was written`,
    expected: "the weights that the checkpoint's phase started from",
  });
}

const describeOrder = (after: readonly string[]): string =>
  after.length === 0 ? "as the first phase" : `after ${after.map((name) => `"${name}"`).join(", ")}`;

const startMismatch = (where: string, { got, expected }: { got: string; expected: string }) =>
  configError({
    where,
    got,
    expected,
    fix: 'Restore the order of the phases, rename the phase to train it again, choose another runDir, or start over with resume: "never".',
  });
