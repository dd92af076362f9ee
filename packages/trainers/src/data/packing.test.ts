import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { packRows } from "./packing.ts";

/** Returns a row of `length` tokens, all but the first scored; its tokens identify it. */
const row = (length: number, i: number) => ({
  where: String(i),
  ids: new Int32Array(length).fill(i),
  scored: Int32Array.from({ length: length - 1 }, (_, at) => at + 1),
  cutFrom: null,
  form: null,
});
const pack = (lengths: readonly number[], maxLength: number) => packRows(lengths.map(row), maxLength);

describe("packRows", () => {
  it("packs the example of TRL's documentation as TRL does", () => {
    // pack_dataset([[1, 2, 3, 4, 5], [6, 7], [8, 9, 10], [11]], seq_length=4, strategy="bfd"), the first row cut to 4.
    const packs = pack([4, 2, 3, 1], 4);
    expect(packs.map(({ where }) => where)).toEqual([["0"], ["2", "3"], ["1"]]);
    expect(packs[1]).toMatchObject({
      ids: Int32Array.of(2, 2, 2, 3),
      // All tokens but the first of each document.
      scored: Int32Array.of(1, 2),
      starts: [0, 3],
    });
  });

  it("fills the smallest sufficient space, and the older of two equal ones", () => {
    // 7 leaves 3 and 6 leaves 4: 3 goes to 7. Then two spaces of 4: the older first.
    expect(pack([7, 6, 3], 10).map(({ where }) => where)).toEqual([["0", "2"], ["1"]]);
    expect(pack([6, 6, 4, 4], 10).map(({ where }) => where)).toEqual([
      ["0", "2"],
      ["1", "3"],
    ]);
  });

  it("contains every complete row once, within the length, and no two packs that would fit into one", () => {
    const lengths = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 120 });
    fc.assert(
      fc.property(lengths, fc.integer({ min: 40, max: 70 }), (lengths, maxLength) => {
        const packs = pack(lengths, maxLength);
        const all = packs.flatMap(({ where }) => where.map(Number));
        expect(all.toSorted((a, b) => a - b)).toEqual(Array.from(lengths.keys()));
        for (const { ids, where, starts, scored } of packs) {
          expect(ids.length).toBeLessThanOrEqual(maxLength);
          const expected = where.flatMap((i) => Array<number>(lengths[Number(i)]!).fill(Number(i)));
          expect([...ids]).toEqual(expected);
          expect(starts).toEqual([...expected.keys()].filter((at) => expected[at] !== expected[at - 1]));
          expect([...scored]).toEqual([...expected.keys()].filter((at) => !starts.includes(at)));
        }
        const sizes = packs.map(({ ids }) => ids.length).toSorted((a, b) => a - b);
        if (sizes.length > 1) expect(sizes[0]! + sizes[1]!).toBeGreaterThan(maxLength);
        expect(pack(lengths, maxLength)).toEqual(packs);
      }),
    );
  });

  it("equals a search of all packs for the smallest sufficient space", () => {
    const lengths = fc.array(fc.integer({ min: 1, max: 24 }), { maxLength: 300 });
    fc.assert(
      fc.property(lengths, fc.integer({ min: 24, max: 50 }), (lengths, maxLength) => {
        const decreasing = [...lengths.entries()].sort(([, one], [, other]) => other - one);
        const packs: { readonly rows: string[]; room: number; since: number }[] = [];
        for (const [since, [i, length]] of decreasing.entries()) {
          const fitting = packs.filter(({ room }) => room >= length);
          fitting.sort((one, other) => one.room - other.room || one.since - other.since);
          const tightest = fitting[0] ?? { rows: [], room: maxLength, since };
          if (fitting.length === 0) packs.push(tightest);
          tightest.rows.push(String(i));
          tightest.room -= length;
          tightest.since = since;
        }
        expect(pack(lengths, maxLength).map(({ where }) => where)).toEqual(packs.map(({ rows }) => rows));
      }),
    );
  });
});
