import { branchesOf, sharedLength, sizeOf, type Branch } from "./branches.ts";
import type { BatchCost } from "../batching/batches.ts";
import { firstScored, type ScoredSequence } from "./scored-sequence.ts";

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
