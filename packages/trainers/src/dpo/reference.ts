import * as z from "zod";
import { configError, errorMessage } from "@periodic-eval/contracts/options";
import { nextTurn } from "@periodic-eval/core/model";
import { createHasher } from "@periodic-eval/core/random";
import { writeFileAtomic, nodeFiles } from "@periodic-eval/store";
import { readFile } from "@periodic-eval/store/browser";
import { dirname } from "@periodic-eval/store/platform";
import { windowLength, type CausalLM } from "@periodic-eval/tfjs";
import { describeValue } from "../data/bad-row.ts";
import type { PreferencePair } from "../data/preference-rows.ts";
import type { OutlinedLM } from "../trainer/checks.ts";
import { collatePairs, pairLogProbs } from "./pair-batch.ts";

/**
 * The reference policy of DPO.
 *
 * - `"copy"`: the model at the start of the phase, adapter included, like a frozen copy. With a new adapter that is the model
 *   without it.
 * - `"base"`: the model without its adapter, even if the adapter was trained before.
 * - `"precomputed"`: `ref_chosen_logps` and `ref_rejected_logps` of each row, in nats, as TRL's `precompute_ref_log_probs`
 *   writes them. They belong to whole sequences: a pair that `onBadRow: "truncate"` would truncate is an error.
 * - another model with the same tokens.
 */
export type Reference = "copy" | "base" | "precomputed" | CausalLM;

/** @throws PeriodicEvalError `config` if `reference` is invalid or does not fit the model. */
export function checkReference(model: OutlinedLM, reference: unknown): void {
  const at = { where: "DPOTrainer options", path: ["reference"] };
  if (reference === "copy" || reference === "precomputed") return;
  if (reference === "base") {
    if (model.base !== undefined) return;
    throw configError({
      ...at,
      got: '"base" for a model without an adapter',
      expected: "a model with a base",
      fix: 'Use "copy".',
    });
  }
  if (typeof reference !== "object" || reference === null || !("logits" in reference))
    throw configError({
      ...at,
      got: describeValue(reference),
      expected: '"copy", "base", "precomputed", or a model',
      fix: 'Remove it to use "copy".',
    });
  const { vocabSize } = reference as CausalLM;
  if (vocabSize !== model.vocabSize)
    throw configError({
      ...at,
      got: `a model of ${vocabSize} tokens`,
      expected: `${model.vocabSize}, as in the trained model`,
      fix: "Use a model of the same family.",
    });
  const [context, needed] = [windowLength(reference as CausalLM), windowLength(model)];
  if (context < needed)
    throw configError({
      ...at,
      got: `a context of ${context} tokens`,
      expected: `${needed} or more`,
      fix: "Use a model with a longer context.",
    });
}

/** Log-probs of a pair's completions, in nats. */
export interface PairLogProbs {
  readonly chosen: number;
  readonly rejected: number;
}

export interface ReferenceOptions {
  /** Pairs per forward pass. */
  readonly batchSize: number;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Returns the reference's log-probs of every pair, in the pairs' order, without dropout. Called once, before the first step,
 * so that no step runs the reference and none of its weights is copied. The result depends only on the weights, the pairs and
 * the batch size: a resume gets the same bits.
 */
export async function referenceLogProbs(
  lm: CausalLM,
  pairs: readonly PreferencePair[],
  { batchSize, signal }: ReferenceOptions,
): Promise<readonly PairLogProbs[]> {
  const results: PairLogProbs[] = [];
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
      results[number] = { chosen: values[i]!, rejected: values[numbers.length + i]! };
    // Yields to the event loop, so that an abort gets through on synchronous backends.
    await nextTurn();
  }
  return results;
}

const fileSchema = z.object({
  schema_version: z.literal(1),
  /** Hash of everything that the log-probs depend on. */
  key: z.string(),
  /** Hash of the log-probs. */
  hash: z.string(),
  /** In nats, one per pair. */
  ref_chosen_logps: z.array(z.number()),
  ref_rejected_logps: z.array(z.number()),
});

/** Hashes all log-probs as float32, as steps use them: those of the chosen completions, then those of the rejected. */
export const hashOfLogProbs = (pairs: readonly PairLogProbs[]): string =>
  createHasher()
    .update(
      Float32Array.from([...pairs.map(({ chosen }) => chosen), ...pairs.map(({ rejected }) => rejected)]),
    )
    .digest();

export interface StoredReference {
  readonly pairs: readonly PairLogProbs[];
  /** Writes the file if it does not hold these log-probs. */
  keep(): Promise<void>;
}

/**
 * Returns the log-probs in the file if it holds them under the same key; otherwise computes them with `read`. A resumed run
 * thus need not run its reference again, and continues with the same bits on a machine whose backend rounds differently. A
 * damaged or changed file is ignored.
 */
export async function loadOrRead(
  path: string,
  key: string,
  read: () => Promise<readonly PairLogProbs[]>,
  warn: (where: string, message: string) => void,
): Promise<StoredReference> {
  const stored = await load(path, key);
  if (stored !== null) return { pairs: stored, keep: async () => {} };
  const pairs = await read();
  return { pairs, keep: () => write(path, key, pairs, warn) };
}

async function write(
  path: string,
  key: string,
  logProbs: readonly PairLogProbs[],
  warn: (where: string, message: string) => void,
): Promise<void> {
  const content: z.infer<typeof fileSchema> = {
    schema_version: 1,
    key,
    hash: hashOfLogProbs(logProbs),
    ref_chosen_logps: logProbs.map(({ chosen }) => chosen),
    ref_rejected_logps: logProbs.map(({ rejected }) => rejected),
  };
  try {
    await nodeFiles.makeFolder(dirname(path));
    await writeFileAtomic(path, `${JSON.stringify(content)}\n`);
  } catch (error) {
    warn(path, `a resume will run the reference again: ${errorMessage(error)}`);
  }
}

async function load(path: string, key: string): Promise<readonly PairLogProbs[] | null> {
  try {
    const stored = fileSchema.parse(JSON.parse(await readFile(path, "utf8")));
    const pairs = stored.ref_chosen_logps.map((chosen, i) => ({
      chosen,
      rejected: stored.ref_rejected_logps[i]!,
    }));
    return stored.key === key && stored.hash === hashOfLogProbs(pairs) ? pairs : null;
  } catch {
    return null;
  }
}
