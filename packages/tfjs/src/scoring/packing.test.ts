import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { packByPrefix } from "./packing.ts";
import type { ScoredSequence } from "@periodic-eval/tokenizers";

/** Returns a sequence whose last `scored` positions are scored. */
const sequence = (ids: readonly number[], scored = 1): ScoredSequence => ({
  ids,
  picks: Array.from({ length: scored }, () => [0]),
});
const question = (start: number, tokens: number) => Array.from({ length: tokens }, (_, i) => start + i);

describe("packByPrefix", () => {
  it("packs the choices of a question into one row, and reads the prefix of all questions once", () => {
    const shots = question(1000, 20);
    const [first, second] = [question(100, 12), question(200, 12)];
    // Scored are the last token of a question, for all its choices, and two tokens of each choice.
    const sequences = [first, second].flatMap((context) =>
      [7, 8, 9].map((choice) => sequence([...shots, ...context, choice, choice + 10], 3)),
    );
    expect(packByPrefix(sequences, 100)).toMatchObject({
      prefix: 20,
      packs: [
        { trunk: { members: [0, 1, 2], from: 20, to: 32 }, tokens: 12 + 3 * 2, scoredRows: 1 + 3 * 2 },
        { trunk: { members: [3, 4, 5], from: 20, to: 32 }, tokens: 12 + 3 * 2, scoredRows: 1 + 3 * 2 },
      ],
    });
  });

  it("does not pack sequences with little in common", () => {
    const sequences = [
      [1, 2, 3, 4, 5, 6, 7, 8],
      [1, 20, 30, 40, 50, 60, 70, 80],
    ].map((ids) => sequence(ids));
    expect(packByPrefix(sequences, 100).packs.map(({ trunk }) => trunk.members)).toEqual([[0], [1]]);
  });

  it("reads a prefix that some of the choices share once", () => {
    const context = question(100, 12);
    const sequences = [[1, 2, 3], [1, 2, 4, 5], [1, 6], [7]].map((choice) =>
      sequence([...context, ...choice], choice.length + 1),
    );
    const another = sequence(question(200, 12));
    const [pack] = packByPrefix([...sequences, another], 100).packs;
    const end = { branches: [] };
    // 1 (2 (3 | 4 5) | 6) | 7, all of them scored, and the last token of the context.
    expect(pack).toEqual({
      tokens: 12 + 7,
      scoredRows: 1 + 7,
      trunk: {
        members: [0, 1, 2, 3],
        from: 0,
        to: 12,
        branches: [
          {
            members: [0, 1, 2],
            from: 12,
            to: 13,
            branches: [
              {
                members: [0, 1],
                from: 13,
                to: 14,
                branches: [
                  { members: [0], from: 14, to: 15, ...end },
                  { members: [1], from: 14, to: 16, ...end },
                ],
              },
              { members: [2], from: 13, to: 14, ...end },
            ],
          },
          { members: [3], from: 12, to: 13, ...end },
        ],
      },
    });
  });

  it("packs sequences that are prefixes of one another into one row", () => {
    const sequences = [question(0, 4), question(0, 6), question(0, 6)].map((ids) => sequence(ids));
    expect(packByPrefix(sequences, 100)).toMatchObject({
      prefix: 0,
      packs: [{ trunk: { members: [0, 1, 2], from: 0, to: 4 }, tokens: 4 + 2, scoredRows: 1 + 1 }],
    });
  });

  it("begins a new row at maxTokens, and excludes scored positions from the prefix", () => {
    const ids = question(0, 20);
    const { prefix, packs } = packByPrefix(
      [0, 1, 2, 3].map((choice) => sequence([...ids, 50 + choice, 60 + choice], 12)),
      25,
    );
    expect(packs.map(({ trunk }) => trunk.members)).toEqual([
      [0, 1],
      [2, 3],
    ]);
    // The last 12 of 22 tokens are scored.
    expect(prefix).toBe(10);
  });

  it("keeps every sequence, needs at most as many tokens as separate rows, and shares only equal tokens", () => {
    const tokens = fc.array(fc.integer({ min: 0, max: 2 }), { minLength: 1, maxLength: 14 });
    const scored = fc.record({ ids: tokens, scored: fc.integer({ min: 1, max: 14 }) });
    fc.assert(
      fc.property(fc.array(scored, { minLength: 1 }), fc.integer({ min: 1, max: 40 }), (drawn, maxTokens) => {
        const sequences = drawn.map(({ ids, scored: count }) => sequence(ids, Math.min(count, ids.length)));
        const { prefix, packs } = packByPrefix(sequences, maxTokens);
        expect(packs.flatMap(({ trunk }) => trunk.members)).toEqual(sequences.map((_, index) => index));
        const read = packs.reduce((sum, { tokens: own }) => sum + own, prefix);
        expect(read).toBeLessThanOrEqual(sequences.reduce((sum, { ids }) => sum + ids.length, 0));
        for (const { trunk, tokens: own, scoredRows } of packs) {
          const { members, to: shared } = trunk;
          expect(trunk.from).toBe(prefix);
          const first = sequences[members[0]!]!.ids;
          for (const index of members) {
            const { ids, picks } = sequences[index]!;
            expect(ids.slice(0, shared)).toEqual(first.slice(0, shared));
            expect(ids.length - picks.length).toBeGreaterThanOrEqual(prefix);
          }
          const beginnings = members.flatMap((index) => {
            const { ids } = sequences[index]!;
            return ids.slice(prefix).map((_, at) => ids.slice(0, prefix + at + 1).join());
          });
          expect(own).toBe(new Set(beginnings).size);
          expect(scoredRows).toBeLessThanOrEqual(own);
          expect(shared).toBeGreaterThanOrEqual(prefix);
        }
      }),
    );
  });
});
