import type { BatchCost } from "./batches.ts";
import { firstScored, type ScoredSequence } from "./scored-sequence.ts";

/** A run of tokens that sequences have alike, behind what more of them have alike. */
export interface Branch {
  /** Indices of the sequences that go through it. */
  readonly members: readonly number[];
  /** Positions of its tokens: from `from` up to `to`. */
  readonly from: number;
  readonly to: number;
  /** What its members go on with, where they part. */
  readonly branches: readonly Branch[];
}

/** How sequences go on from position `from`, up to which they are alike; those that end there are in none. */
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

/** Tokens of these branches, and how many of them are scored for one of their members. */
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

/** How many tokens two sequences begin with alike, at most `atMost`. */
export function sharedLength(a: readonly number[], b: readonly number[], atMost: number): number {
  const most = Math.min(a.length, b.length, atMost);
  for (let at = 0; at < most; at++) if (a[at] !== b[at]) return at;
  return most;
}
