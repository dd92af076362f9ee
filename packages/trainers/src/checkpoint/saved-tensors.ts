import * as tf from "@tensorflow/tfjs-core";
import { join } from "@periodic-eval/store/platform";
import { PeriodicEvalError } from "@periodic-eval/core";
import { weightName, type NamedWeight, type TrainableLM } from "@periodic-eval/tfjs";
import { openSafetensors, writeSafetensors } from "@periodic-eval/safetensors";
import type { Optimizer } from "../optimizer/optimizer.ts";

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
    const found = new Map<string, StoredTensor>();
    for (const { name, shape } of file.tensors.values()) {
      const values = await file.read(name);
      found.set(name, {
        shape,
        values: values instanceof Float32Array ? values : Float32Array.from(values as ArrayLike<number>),
      });
    }
    return found;
  } finally {
    await file.close();
  }
}
