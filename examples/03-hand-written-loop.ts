// Measures a hand-written loop: it reports each step to the session, which says when to save or stop.  Run: npm run example 03
import { PeriodicCapabilityCallback, withSession } from "@periodic-eval/core";
import { inMemory, tfjsGuards } from "@periodic-eval/tfjs";
import { loadCausalLM, useBackend } from "@periodic-eval/models";
import { loadTokenizer } from "@periodic-eval/models/tokenizer";
import { AdamW, crossEntropySum } from "@periodic-eval/trainers";
import * as tf from "@tensorflow/tfjs"; // registers gradients, which tfjs-core alone does not
import { mkdir, writeFile } from "node:fs/promises";
import { runDir, isShort, microWorld } from "./micro-world/paths.ts";

await useBackend();
const gpt = await loadCausalLM(microWorld());
const tokenizer = await loadTokenizer(microWorld());
const run = runDir("hand-written-loop");

const sentences = ["The baker is polite.", "Please close the gate.", "Thank you for the bread."];
const batches = Array.from({ length: isShort ? 4 : 30 }, (_, i) =>
  tokenizer.encode(sentences[i % sentences.length]!),
);
const adam = new AdamW(gpt.trainables(), { weightDecay: 0 });

/** Takes one step of next-token training on one sentence. Returns the mean loss in nats per token. */
function trainStep(ids: readonly number[]): number {
  return tf.tidy(() => {
    const input = tf.tensor2d(ids.slice(0, -1), [1, ids.length - 1], "int32");
    const rows = tf.range(0, ids.length - 1, 1, "int32");
    const targets = tf.tensor1d(ids.slice(1), "int32");
    const { value, grads } = tf.variableGrads(
      () =>
        tf.div(
          crossEntropySum(
            gpt.trainingLogits(input, rows, () => () => 0.5),
            targets,
          ),
          targets.size,
        ) as tf.Scalar,
      [...gpt.trainables()],
    );
    adam.apply(grads, 1e-4);
    return value.dataSync()[0]!;
  });
}

async function saveCheckpoint(state: unknown): Promise<void> {
  await mkdir(run, { recursive: true });
  await gpt.save(`${run}/checkpoint`);
  await writeFile(`${run}/checkpoint/session.json`, JSON.stringify(state));
}

const callbacks = [
  new PeriodicCapabilityCallback({
    questions: microWorld("questions.jsonl"),
    subsample: { n: isShort ? 12 : 100, seed: 42 },
  }),
];
await withSession(
  {
    run,
    phase: "sft",
    maxSteps: batches.length,
    model: inMemory(gpt, tokenizer),
    guards: tfjsGuards(gpt, adam),
    callbacks,
  },
  async (session) => {
    for (const [i, batch] of batches.entries()) {
      const loss = trainStep(batch);
      const { stop, save } = await session.stepEnd({ epoch: (i + 1) / batches.length, metrics: { loss } });
      if (save !== null) await saveCheckpoint(await session.save());
      if (stop !== null) break;
    }
  },
);
