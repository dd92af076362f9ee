import * as tf from "@tensorflow/tfjs-core";
import { join } from "node:path";
import { PeriodicEvalError } from "@periodic-eval/core";
import { weightName, type TrainableLM } from "@periodic-eval/core/tfjs";
import type { Optimizer } from "../optimizer/types.ts";
import { readTensors, writeTensors } from "./variables.ts";

const trainablesFile = "trainables.safetensors";
const optimizerFile = "optimizer.safetensors";

/**
 * Writes the model in Hugging Face's form, for everyone else; and beside it what a resume needs: the trainables as the
 * engine holds them (its layout may differ) and the optimizer's slots, all in float32.
 */
export async function writeTraining(folder: string, model: TrainableLM, optimizer: Optimizer): Promise<void> {
  await model.save(folder);
  const trainables = model
    .trainables()
    .map((variable) => ({ name: weightName(variable), read: () => variable }));
  await writeTensors(join(folder, trainablesFile), trainables);
  await writeTensors(join(folder, optimizerFile), optimizer.slots());
}

/** Puts trainables and optimizer back, bit for bit. Throws a `model` error where they are another model's, nothing then being changed. */
export async function readTraining(
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
      fix: 'Resume with the model that the run was started with, or start anew with resume: "never".',
    });
  });
  optimizer.restore(optimizerSteps, new Map([...slots].map(([name, slot]) => [name, slot.values])));
  tf.tidy(() => {
    for (const [i, variable] of trainables.entries())
      variable.assign(tf.tensor(values[i]!, variable.shape, "float32"));
  });
}
