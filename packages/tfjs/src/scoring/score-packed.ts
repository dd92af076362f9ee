import * as tf from "@tensorflow/tfjs-core";
import { batchBudget, inBatches } from "../batching/batches.ts";
import type { CausalLM } from "../causal-lm/causal-lm.ts";
import { checkIds, type ScoredSequence } from "@periodic-eval/tokenizers";
import { inEvaluation } from "../causal-lm/forward.ts";
import {
  blockOf,
  everySegment,
  type Incremental,
  type KeyValues,
  type TokenBlock,
} from "../causal-lm/incremental.ts";
import { scorePicks, type Pick, type Scores } from "./device-scores.ts";
import { packByPrefix, type Branch, type Pack, type Packing } from "./packing.ts";
import { firstScored, type AllScores, type ScoreOptions, scoresOf } from "./score-plain.ts";

/**
 * Numbers in one matrix of logits: 16 MB. Larger matrices are allocated for each call, which is slow: on tfjs-node the head of
 * SmolLM2 reaches 98 GFLOP/s with 64 rows and 35–41 with 245.
 */
const headLogits = 2 ** 22;

/**
 * Scores sequences with common beginnings: the prefix of all sequences is read once per call, the question once for its choices,
 * and each choice attends to its own question only. The scores equal those of sequences read one by one, up to rounding.
 */
export async function scorePacked(
  lm: CausalLM,
  incremental: Incremental,
  sequences: readonly ScoredSequence[],
  { signal, limits, withEntropy, withGreedyIds = false }: ScoreOptions,
  { prefix, packs }: Packing = packByPrefix(sequences, limits.maxBatchTokens),
): Promise<AllScores> {
  for (const { ids } of sequences) checkIds(ids, lm.vocabSize);
  // The head runs separately and in chunks, so its rows do not limit the batch. Packs may exceed `reach`, sequences do not.
  const budget = { ...batchBudget(lm, limits), maxScoredRows: Infinity, reach: Infinity };
  const maxRows = Math.max(1, Math.floor(Math.min(limits.maxLogits, headLogits) / lm.vocabSize));
  const past = prefix > 0 ? [readPrefix(lm, incremental, sequences[0]!.ids.slice(0, prefix))] : [];
  const scores: Scores[] = [];
  try {
    await inBatches(lm, packs, budget, { signal, where: "scoring" }, async (batch) => {
      const layout = layOut(
        batch.map((index) => packs[index]!),
        sequences,
      );
      const states = inEvaluation(
        lm,
        () => incremental.extend(layout.block, { past, rows: layout.rows }).states,
      );
      try {
        const scored = await scorePicks(
          (from, to) =>
            inEvaluation(lm, () => incremental.logitsOf(tf.slice(states, [from, 0], [to - from, -1]))),
          { rows: layout.rows.length, picks: layout.picks, withEntropy, withGreedyIds, maxRows },
        );
        for (const { sequence, firstPick, lastPick, rows } of layout.places)
          scores[sequence] = scoresOf(scored, firstPick, lastPick, rows);
      } finally {
        states.dispose();
      }
    });
  } finally {
    for (const piece of past) piece.dispose();
  }
  return { scores, tokens: packs.reduce((sum, { tokens }) => sum + tokens, prefix) };
}

function readPrefix(lm: CausalLM, { extend }: Incremental, ids: readonly number[]): KeyValues {
  const { states, keyValues } = inEvaluation(lm, () => extend(blockOf([ids], 0), { rows: [], keep: true }));
  states.dispose();
  return keyValues!;
}

/** Packs as rows of one block, and the places of each sequence's scores. */
interface Layout {
  readonly block: TokenBlock;
  /** Indices into the flattened block. */
  readonly rows: readonly number[];
  /** The picks of one sequence are contiguous. */
  readonly picks: readonly Pick[];
  readonly places: readonly Place[];
}

interface Place {
  readonly sequence: number;
  readonly firstPick: number;
  readonly lastPick: number;
  /** Indices into the layout's rows, one per scored position. */
  readonly rows: readonly number[];
}

function layOut(packs: readonly Pack[], sequences: readonly ScoredSequence[]): Layout {
  const [batch, length] = [packs.length, Math.max(...packs.map(({ tokens }) => tokens))];
  const block = {
    batch,
    length,
    ids: new Int32Array(batch * length),
    positions: new Int32Array(batch * length),
    segments: new Int32Array(batch * length).fill(-1),
    lastSegments: new Int32Array(batch * length).fill(-1),
  };
  const rows: number[] = [];
  const rowOf = new Map<number, number>();
  const picks: Pick[] = [];
  const places: Place[] = [];
  packs.forEach(({ trunk }, pack) => {
    /** Index into the flattened block, by sequence and position. */
    const cells = new Map(trunk.members.map((sequence) => [sequence, new Map<number, number>()]));
    let next = pack * length;
    let segment = 0;
    const put = (branch: Branch): void => {
      const [first, branchSegment] = [next, segment];
      const { ids } = sequences[branch.members[0]!]!;
      for (let at = branch.from; at < branch.to; at++) {
        block.ids[next] = ids[at]!;
        block.positions[next] = at;
        block.segments[next] = branchSegment;
        for (const sequence of branch.members) cells.get(sequence)!.set(at, next);
        next += 1;
      }
      const end = next;
      for (const further of branch.branches) {
        segment += 1;
        put(further);
      }
      block.lastSegments.fill(branchSegment === 0 ? everySegment : segment, first, end);
    };
    put(trunk);
    for (const sequence of trunk.members) {
      const scored = sequences[sequence]!;
      const firstPick = picks.length;
      const ownRows = scored.picks.map((tokens, index) => {
        const cell = cells.get(sequence)!.get(firstScored(scored) + index)!;
        // A position that several sequences share is scored once.
        const row = rowOf.get(cell) ?? rows.push(cell) - 1;
        rowOf.set(cell, row);
        for (const token of tokens) picks.push({ row, token });
        return row;
      });
      places.push({ sequence, firstPick, lastPick: picks.length, rows: ownRows });
    }
  });
  return { block, rows, picks, places };
}
