import * as tf from "@tensorflow/tfjs-core";
import { PeriodicEvalError } from "@periodic-eval/core";
import { quoteValue } from "@periodic-eval/core/internal";
import { windowLength, type CausalLM } from "@periodic-eval/core/tfjs";
import type { PreferencePair } from "../data/render-preference.ts";
import type { OutlinedLM } from "../trainer/outlined-lm.ts";
import { collatePairs, pairLogProbs } from "./gradients.ts";

/**
 * What preferences are learned against.
 *
 * - `"copy"`: the model as it stands where the phase begins, its adapter included, as of a frozen copy. Of a new adapter
 *   that is the model without it.
 * - `"base"`: the model without its adapter, whatever the adapter has learned before.
 * - `"precomputed"`: the numbers `ref_chosen_logps` and `ref_rejected_logps` of each row, in nats, as TRL's
 *   `precompute_ref_log_probs` writes them. They are of whole sequences: a pair that
 *   `onBadRow: "truncate"` would have to cut is an error.
 * - another model with the same tokens.
 */
export type Reference = "copy" | "base" | "precomputed" | CausalLM;

/** Throws a `config` error for what is no reference of this model. */
export function checkReference(model: OutlinedLM, reference: unknown): void {
  const isModel = typeof reference === "object" && reference !== null && "logits" in reference;
  const isKnown = reference === "copy" || reference === "precomputed" || reference === "base" || isModel;
  const wrong = (got: string, expected: string, fix: string) => {
    throw new PeriodicEvalError({ code: "config", where: "DPOTrainer reference", got, expected, fix });
  };
  if (!isKnown)
    wrong(quoteValue(reference), '"copy", "base", "precomputed", or a model', 'Leave it out for "copy".');
  if (reference === "base" && model.base === undefined)
    wrong('"base" for a model without an adapter', "a model with a base", 'Use "copy".');
  if (!isModel) return;
  const { vocabSize } = reference as CausalLM;
  if (vocabSize !== model.vocabSize)
    wrong(`a model of ${vocabSize} tokens`, `${model.vocabSize}, as the model has`, "Use one of its family.");
  const [context, needed] = [windowLength(reference as CausalLM), windowLength(model)];
  if (context < needed) wrong(`a context of ${context} tokens`, `${needed} or more`, "Use a longer one.");
}

/** Log-probs of a pair's completions, in nats. */
export interface PairLogProbs {
  readonly chosen: number;
  readonly rejected: number;
}

export interface ReferenceOptions {
  /** Pairs of a forward pass. */
  readonly batchSize: number;
  readonly signal?: AbortSignal | undefined;
}

/**
 * The reference's log-probs of every pair, in the pairs' order, without dropout: read once, before the first step, so that no
 * step reads the reference and none of its weights is kept. Depends on nothing but the weights, the pairs and the batch
 * size: a resume reads the same bits.
 */
export async function referenceLogProbs(
  lm: CausalLM,
  pairs: readonly PreferencePair[],
  { batchSize, signal }: ReferenceOptions,
): Promise<readonly PairLogProbs[]> {
  const found: PairLogProbs[] = [];
  const length = ({ chosen, rejected }: PreferencePair) => Math.max(chosen.ids.length, rejected.ids.length);
  const order = [...pairs.keys()].sort((a, b) => length(pairs[b]!) - length(pairs[a]!));
  for (let from = 0; from < order.length; from += batchSize) {
    signal?.throwIfAborted();
    const numbers = order.slice(from, from + batchSize);
    const batch = collatePairs(
      numbers.map((number) => pairs[number]!),
      lm,
    );
    const logProbs = pairLogProbs(lm, batch);
    const values = await logProbs.data<"float32">();
    logProbs.dispose();
    for (const [i, number] of numbers.entries())
      found[number] = { chosen: values[i]!, rejected: values[numbers.length + i]! };
    // A turn of the event loop: synchronous backends would not let an abort be heard.
    await tf.nextFrame();
  }
  return found;
}
