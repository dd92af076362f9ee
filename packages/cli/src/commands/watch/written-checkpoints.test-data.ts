import { mkdir, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import * as tf from "@tensorflow/tfjs-core";
import { loadCausalLM, withLora, type LiveWeight } from "@periodic-eval/models";
import { microWorld } from "../../demo/micro-world.ts";

/** Adds noise to weights, the same for the same seed. */
function disturb(weights: readonly LiveWeight[], seed: number, noise: number): void {
  for (const [at, { variable }] of weights.entries())
    tf.tidy(() =>
      variable.assign(
        tf.add(variable, tf.randomNormal(variable.shape, 0, noise, "float32", 1000 * seed + at)),
      ),
    );
}

export interface WrittenCheckpoint {
  readonly kind: "full" | "adapter";
  readonly step: number;
  readonly maxSteps: number;
  /** Standard deviation of what is added to each weight. Default 0.08. */
  readonly noise?: number;
}

/** Writes a checkpoint of the micro-world model as transformers does, with a loss for each step; replaces one of this step. */
export async function writeCheckpoint(
  folder: string,
  { kind, step, maxSteps, noise = 0.08 }: WrittenCheckpoint,
): Promise<string> {
  const path = join(folder, `checkpoint-${step}`);
  const draft = join(folder, `draft-${step}`);
  const base = await loadCausalLM(microWorld());
  const model = kind === "adapter" ? withLora(base, { rank: 4 }) : base;
  disturb(kind === "adapter" ? model.weights().slice(base.weights().length) : model.weights(), step, noise);
  await model.save(draft);
  if (model !== base) model.dispose();
  base.dispose();
  const log = Array.from({ length: step }, (_, i) => ({
    step: i + 1,
    epoch: (i + 1) / 10,
    loss: 3 - i / 10,
  }));
  await writeFile(
    join(draft, "trainer_state.json"),
    JSON.stringify({ max_steps: maxSteps, epoch: step / 10, log_history: log }),
  );
  await mkdir(folder, { recursive: true });
  await rename(draft, path);
  return path;
}

/** Returns the arguments of `watch` for checkpoints of the micro-world model. */
export const watchArgs = (
  checkpoints: string,
  { config, runDir }: { readonly config: string; readonly runDir: string },
  ...more: readonly string[]
): readonly string[] => [
  "watch",
  checkpoints,
  "--base",
  microWorld(),
  "--config",
  config,
  "--run-dir",
  runDir,
  ...more,
];
