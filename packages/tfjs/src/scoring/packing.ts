import type { BatchCost } from "../batching/batches.ts";
import { sharedLength, type ScoredSequence } from "@periodic-eval/tokenizers";
import { firstScored } from "./score-plain.ts";

/** Sequences with a common beginning, read as one row: the beginning once, then their branches. */
export interface Pack extends BatchCost {
  /** Their common beginning, without the prefix of the call. */
  readonly trunk: Branch;
}

export interface Packing {
  /** Length of the common prefix of all sequences of the call, which is read once; 0 if that saves nothing. */
  readonly prefix: number;
  readonly packs: readonly Pack[];
}

/**
 * Packs neighbouring sequences with a common beginning into one row, if that saves at least a quarter of the added sequence's
 * tokens and the row has at most `maxTokens`. The choices of a question are neighbours, so only neighbours are compared. The
 * prefix that all sequences of the call share does not count as a saving, because it is read once anyway.
 */
export function packByPrefix(sequences: readonly ScoredSequence[], maxTokens: number): Packing {
  const common = sequences.reduce(
    (length, sequence) =>
      sharedLength(sequences[0]!.ids, sequence.ids, Math.min(length, firstScored(sequence))),
    Infinity,
  );
  const groups = groupNeighbours(sequences, common, maxTokens);
  // A single row already contains the common prefix.
  const prefix = groups.length > 1 && common >= shortestPrefix ? common : 0;
  return { prefix, packs: groups.map((group) => packOf(sequences, group, prefix)) };
}

/** Shortest common prefix, in tokens, that is read separately. A shorter one costs more than it saves. */
export const shortestPrefix = 8;

interface Group {
  readonly members: number[];
  shared: number;
  tokens: number;
}

function groupNeighbours(
  sequences: readonly ScoredSequence[],
  common: number,
  maxTokens: number,
): readonly Group[] {
  const groups: Group[] = [];
  sequences.forEach(({ ids }, index) => {
    const group = groups.at(-1);
    if (group !== undefined) {
      const shared = sharedLength(sequences[group.members[0]!]!.ids, ids, group.shared);
      // Tokens that this member removes from the trunk are added to every branch.
      const tokens =
        group.tokens + (group.shared - shared) * (group.members.length - 1) + ids.length - shared;
      const saved = group.tokens + ids.length - tokens - common;
      if (saved * 4 >= ids.length - common && tokens <= maxTokens) {
        group.members.push(index);
        Object.assign(group, { shared, tokens });
        return;
      }
    }
    groups.push({ members: [index], shared: ids.length, tokens: ids.length });
  });
  return groups;
}

function packOf(sequences: readonly ScoredSequence[], { members, shared }: Group, prefix: number): Pack {
  const trunk = { members, from: prefix, to: shared, branches: branchesOf(sequences, members, shared) };
  return { trunk, ...sizeOf(sequences, [trunk]) };
}

/** Consecutive tokens that several sequences share, after a beginning that they also share. */
export interface Branch {
  readonly members: readonly number[];
  /** Positions of its tokens: `from` ≤ position < `to`. */
  readonly from: number;
  readonly to: number;
  /** The continuations of its members, where they differ. */
  readonly branches: readonly Branch[];
}

/** Returns the branches of sequences that are equal before position `from`. Sequences that end there are in no branch. */
function branchesOf(
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
function sizeOf(sequences: readonly ScoredSequence[], branches: readonly Branch[]): BatchCost {
  let [tokens, scoredRows] = [0, 0];
  for (const { members, from, to, branches: further } of branches) {
    const first = Math.min(...members.map((index) => firstScored(sequences[index]!)));
    const behind = sizeOf(sequences, further);
    tokens += to - from + behind.tokens;
    scoredRows += Math.max(0, to - Math.max(from, first)) + behind.scoredRows;
  }
  return { tokens, scoredRows };
}
