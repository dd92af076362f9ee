import * as tf from "@tensorflow/tfjs-core";
import type { CallOptions } from "../model/types.ts";
import { batchBudget, batchByLength, type ForwardLimits } from "./batches.ts";
import { breathe } from "./breathe.ts";
import type { CausalLM } from "./causal-lm.ts";
import { download, type Pick, refuseNaN, scoreRows } from "./device-scores.ts";
import { logitsAtPositions, type Position } from "./forward.ts";

/** A sequence, and what is wanted of the distributions at its last positions. */
export interface ScoredSequence {
  readonly ids: readonly number[];
  /** One entry per scored position, the last of which is the sequence's last token. */
  readonly picks: readonly (readonly number[])[];
}

export interface Scores {
  /** Picks of all positions, in order. */
  readonly nats: readonly number[];
  readonly isTop: readonly boolean[];
  /** One per scored position; empty where not asked for. */
  readonly entropyNats: readonly number[];
}

interface ScoreOptions extends CallOptions {
  readonly limits: ForwardLimits;
  readonly withEntropy: boolean;
}

/** Scores in the order of `sequences`, whatever the batches; one download a batch. */
export async function scoreSequences(
  lm: CausalLM,
  sequences: readonly ScoredSequence[],
  { signal, limits, withEntropy }: ScoreOptions,
): Promise<readonly Scores[]> {
  const budget = batchBudget(lm, limits);
  const costs = sequences.map(({ ids, picks }) => ({ tokens: ids.length, scoredRows: picks.length }));
  const results: Scores[] = [];
  for (const batch of batchByLength(costs, budget)) {
    await breathe(signal, "scoring");
    const scored = await scoreBatch(
      lm,
      batch.map((index) => sequences[index]!),
      budget.maxScoredRows,
      withEntropy,
    );
    batch.forEach((index, row) => {
      results[index] = scored[row]!;
    });
  }
  return results;
}

/** Positions whose logits are made together, and the tokens asked of them. */
interface Chunk {
  readonly positions: readonly Position[];
  readonly picks: readonly Pick[];
}

async function scoreBatch(
  lm: CausalLM,
  batch: readonly ScoredSequence[],
  maxScoredRows: number,
  withEntropy: boolean,
): Promise<readonly Scores[]> {
  const rows = batch.flatMap(({ ids, picks }, sequence) =>
    picks.map((tokens, index) => ({ sequence, at: ids.length - picks.length + index, tokens })),
  );
  // More than one chunk only where a single sequence exceeds the budget of logits; its body then runs once per chunk.
  const chunks = chunksOf(rows, maxScoredRows).map((positions) => ({
    positions,
    picks: positions.flatMap(({ tokens }, row) => tokens.map((token): Pick => ({ row, token }))),
  }));
  const ids = batch.map((sequence) => sequence.ids);
  const values = await download(
    tf.tidy(() => tf.concat(chunks.flatMap((chunk) => chunkScores(lm, ids, chunk, withEntropy)))),
  );
  const scores = readChunks(values, chunks, withEntropy);
  refuseNaN(scores.nats);
  return perSequence(batch, scores);
}

/** [nats of P picks, whether top of P picks, entropy of N positions]; its logits are gone when it returns. */
const chunkScores = (
  lm: CausalLM,
  ids: readonly (readonly number[])[],
  { positions, picks }: Chunk,
  withEntropy: boolean,
): tf.Tensor1D[] =>
  tf.tidy(() => {
    const { nats, isTop, entropy } = scoreRows(logitsAtPositions(lm, ids, positions), picks, withEntropy);
    return entropy ? [nats, isTop, entropy] : [nats, isTop];
  });

function readChunks(values: Float32Array, chunks: readonly Chunk[], withEntropy: boolean): Scores {
  const nats: number[] = [];
  const isTop: boolean[] = [];
  const entropyNats: number[] = [];
  let offset = 0;
  const take = (count: number): Float32Array => values.subarray(offset, (offset += count));
  for (const { positions, picks } of chunks) {
    for (const value of take(picks.length)) nats.push(value);
    for (const flag of take(picks.length)) isTop.push(flag === 1);
    for (const value of take(withEntropy ? positions.length : 0)) entropyNats.push(value);
  }
  return { nats, isTop, entropyNats };
}

function perSequence(batch: readonly ScoredSequence[], scores: Scores): readonly Scores[] {
  let pick = 0;
  let row = 0;
  return batch.map(({ picks }) => {
    const [fromPick, fromRow] = [pick, row];
    pick += picks.reduce((sum, tokens) => sum + tokens.length, 0);
    row += picks.length;
    return {
      nats: scores.nats.slice(fromPick, pick),
      isTop: scores.isTop.slice(fromPick, pick),
      entropyNats: scores.entropyNats.slice(fromRow, row),
    };
  });
}

function chunksOf<T>(values: readonly T[], size: number): readonly (readonly T[])[] {
  return Array.from({ length: Math.ceil(values.length / size) }, (_, index) =>
    values.slice(index * size, (index + 1) * size),
  );
}
