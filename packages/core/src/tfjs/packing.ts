import { branchesOf, sharedLength, sizeOf, type Branch } from "./branches.ts";
import type { BatchCost } from "./batches.ts";
import { firstScored, type ScoredSequence } from "./scored-sequence.ts";

/** Sequences that begin alike, read as one row: what they share once, then how they part. */
export interface Pack extends BatchCost {
  /** What all of them begin with, without the call's prefix. */
  readonly trunk: Branch;
}

export interface Packing {
  /** Tokens that all sequences of the call begin with, to be read once; 0 where that saves nothing. */
  readonly prefix: number;
  readonly packs: readonly Pack[];
}

/**
 * Puts neighbours that begin alike into one row, where that saves a quarter of what the newcomer would cost and the row
 * keeps within `maxTokens`. A question's choices come one after the other, so nothing is sought further away; what all
 * sequences share is no reason to put them into one row, because it is read once for all.
 */
export function packByPrefix(sequences: readonly ScoredSequence[], maxTokens: number): Packing {
  const common = sequences.reduce(
    (length, sequence) =>
      sharedLength(sequences[0]!.ids, sequence.ids, Math.min(length, firstScored(sequence))),
    Infinity,
  );
  const groups = groupNeighbours(sequences, common, maxTokens);
  // Where one row holds all, it holds what they share as well.
  const prefix = groups.length > 1 && common >= shortestPrefix ? common : 0;
  return { prefix, packs: groups.map((group) => packOf(sequences, group, prefix)) };
}

/** A shorter one costs more in being read apart than it saves. */
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
      // What the trunk loses by this member, every branch gains.
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
