import type { BatchCost } from "../batching/batches.ts";
import { firstScored, type ScoredSequence } from "./scored-sequence.ts";

/** Consecutive tokens that several sequences share, after a beginning that they also share. */
export interface Branch {
  /** Indices of the sequences that contain it. */
  readonly members: readonly number[];
  /** Positions of its tokens: `from` ≤ position < `to`. */
  readonly from: number;
  readonly to: number;
  /** The continuations of its members, where they differ. */
  readonly branches: readonly Branch[];
}

/** Returns the branches of sequences that are equal before position `from`. Sequences that end there are in no branch. */
export function branchesOf(
  sequences: readonly ScoredSequence[],
  members: readonly number[],
  from: number,
): readonly Branch[] {
  const byToken = new Map<number, number[]>();
  for (const index of members) {
    const token = sequences[index]!.ids[from];
    if (token === undefined) continue;
    const alike = byToken.get(token) ?? [];
    byToken.set(token, alike);
    alike.push(index);
  }
  return [...byToken.values()].map((alike) => {
    const [first] = alike as [number];
    const to = alike.reduce(
      (length, index) => sharedLength(sequences[first]!.ids, sequences[index]!.ids, length),
      Infinity,
    );
    return { members: alike, from, to, branches: branchesOf(sequences, alike, to) };
  });
}

/** Returns the number of tokens of branches, and how many of them are scored for at least one member. */
export function sizeOf(sequences: readonly ScoredSequence[], branches: readonly Branch[]): BatchCost {
  let [tokens, scoredRows] = [0, 0];
  for (const { members, from, to, branches: further } of branches) {
    const first = Math.min(...members.map((index) => firstScored(sequences[index]!)));
    const behind = sizeOf(sequences, further);
    tokens += to - from + behind.tokens;
    scoredRows += Math.max(0, to - Math.max(from, first)) + behind.scoredRows;
  }
  return { tokens, scoredRows };
}

/** Returns the length of the common beginning of two sequences, at most `atMost`. */
export function sharedLength(a: readonly number[], b: readonly number[], atMost: number): number {
  const most = Math.min(a.length, b.length, atMost);
  for (let at = 0; at < most; at++) if (a[at] !== b[at]) return at;
  return most;
}
