import * as tf from "@tensorflow/tfjs-core";
import type { BulkTokenizer, CallOptions, HiddenStatesRequest } from "@periodic-eval/core";
import { renderPrompts } from "@periodic-eval/core/model";
import { dataError } from "@periodic-eval/contracts/options";
import { batchBudget, inBatches, type ForwardLimits } from "../batching/batches.ts";
import type { CausalLM } from "../causal-lm/causal-lm.ts";
import { inEvaluation, windowLength } from "../causal-lm/forward.ts";

/**
 * Returns the vectors of chosen layers, averaged over a prompt's tokens from `from` to the last one. Only these means are downloaded.
 *
 * @throws PeriodicEvalError `data` for a prompt longer than the context length, a layer that the model does not have, and a `from`
 *   outside of the prompt; `aborted`.
 */
export async function hiddenStates(
  lm: CausalLM,
  tokenizer: BulkTokenizer,
  requests: readonly HiddenStatesRequest[],
  { signal, countTokens }: CallOptions,
  limits: ForwardLimits,
): Promise<readonly (readonly Float32Array[])[]> {
  const prompts = await renderPrompts(
    tokenizer,
    requests.map(({ prompt }) => prompt),
    { signal },
  );
  const rows = requests.map(({ layers, from }, at) => {
    const { ids } = prompts[at]!;
    const start = from ?? ids.length - 1;
    if (ids.length > windowLength(lm))
      throw dataError(
        "hiddenStates",
        `a prompt of ${ids.length} tokens`,
        `at most ${windowLength(lm)}, the model's context length`,
        "Shorten the prompt.",
      );
    if (!(Number.isInteger(start) && start >= 0 && start < ids.length))
      throw dataError(
        "hiddenStates",
        `from ${start}`,
        `a token of the prompt, 0 to ${ids.length - 1}`,
        "Leave from out for the last token.",
      );
    return { ids, layers, start };
  });
  const answers: Float32Array[][] = [];
  const costs = rows.map(({ ids }) => ({ tokens: ids.length, scoredRows: 1 }));
  await inBatches(lm, costs, batchBudget(lm, limits), { signal, where: "hidden states" }, async (batch) => {
    for (const index of batch) answers[index] = await vectorsOf(lm, rows[index]!);
  });
  countTokens?.(rows.reduce((sum, { ids }) => sum + ids.length, 0));
  return answers;
}

interface Row {
  readonly ids: readonly number[];
  readonly layers: readonly number[] | undefined;
  readonly start: number;
}

async function vectorsOf(lm: CausalLM, { ids, layers, start }: Row): Promise<Float32Array[]> {
  const means = inEvaluation(lm, () =>
    tf.tidy(() => {
      const states = lm.hiddenStates!(tf.tensor2d([...ids], [1, ids.length], "int32"));
      return (layers ?? [...states.keys()]).map((layer) => {
        const state = states[layer];
        if (state === undefined)
          throw dataError(
            "hiddenStates",
            `layer ${layer}`,
            `0 to ${states.length - 1}`,
            "Choose a layer that the model has.",
          );
        return tf.mean(tf.slice(state, [start, 0], [ids.length - start, -1]), 0);
      });
    }),
  );
  try {
    return await Promise.all(means.map(async (mean) => (await mean.data()) as Float32Array));
  } finally {
    tf.dispose(means);
  }
}
