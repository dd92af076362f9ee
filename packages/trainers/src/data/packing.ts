import type { TrainingRow } from "./render-row.ts";

/** A row of several documents that do not see each other. */
export interface PackedRow extends Pick<TrainingRow, "ids" | "scored"> {
  /** Places of its documents. */
  readonly where: readonly string[];
  /** Positions at which its documents begin, ascending from 0. */
  readonly starts: readonly number[];
}

/**
 * Packs every row once into rows of at most `maxLength` tokens: best-fit decreasing, TRL 1.x's default (`bfd`; Ding et al.
 * 2024, arXiv:2404.10830). Places rows in order of decreasing length, rows of equal length in their order; each goes where
 * it leaves the least space, with ties to the space that arose first. Takes O(n·log(maxLength)).
 *
 * @param rows Rows of 1 to `maxLength` tokens.
 */
export function packRows(rows: readonly TrainingRow[], maxLength: number): PackedRow[] {
  const decreasing = rows.toSorted((a, b) => b.ids.length - a.ids.length);
  const packs: TrainingRow[][] = [];
  const bySpace = spaces(maxLength);
  for (const row of decreasing) {
    const space = bySpace.least(row.ids.length);
    let pack: number;
    if (space === null) {
      pack = packs.length;
      packs.push([row]);
    } else {
      pack = bySpace.take(space);
      packs[pack]!.push(row);
    }
    bySpace.put((space ?? maxLength) - row.ids.length, pack);
  }
  return packs.map(joined);
}

/** Indexes packs by the tokens that still fit into them. */
function spaces(most: number) {
  // A tree of maxima: leaf s is s if some pack has s tokens of space. The search for the least sufficient space starts at the root.
  const leaves = 2 ** Math.ceil(Math.log2(most + 1));
  const largest = new Int32Array(2 * leaves);
  const queues = new Map<number, { readonly packs: number[]; head: number }>();
  const mark = (space: number, value: number) => {
    let node = leaves + space;
    largest[node] = value;
    for (node >>= 1; node > 0; node >>= 1) {
      largest[node] = Math.max(largest[2 * node]!, largest[2 * node + 1]!);
    }
  };
  return {
    /** Returns the least space that holds `tokens`; null if there is none. */
    least(tokens: number): number | null {
      if (largest[1]! < tokens) return null;
      let node = 1;
      while (node < leaves) node = largest[2 * node]! >= tokens ? 2 * node : 2 * node + 1;
      return largest[node]!;
    },
    put(space: number, pack: number): void {
      if (space === 0) return;
      const queue = queues.get(space);
      if (queue !== undefined) return void queue.packs.push(pack);
      queues.set(space, { packs: [pack], head: 0 });
      mark(space, space);
    },
    /** Removes and returns the pack that has had this space for longest. */
    take(space: number): number {
      const queue = queues.get(space)!;
      const pack = queue.packs[queue.head]!;
      queue.head += 1;
      if (queue.head === queue.packs.length) {
        queues.delete(space);
        mark(space, 0);
      }
      return pack;
    },
  };
}

function joined(rows: readonly TrainingRow[]): PackedRow {
  const ids = new Int32Array(rows.reduce((sum, row) => sum + row.ids.length, 0));
  const scored = new Int32Array(rows.reduce((sum, row) => sum + row.scored.length, 0));
  const starts: number[] = [];
  let [start, done] = [0, 0];
  for (const row of rows) {
    starts.push(start);
    ids.set(row.ids, start);
    scored.set(
      row.scored.map((place) => place + start),
      done,
    );
    start += row.ids.length;
    done += row.scored.length;
  }
  return { where: rows.map(({ where }) => where), ids, scored, starts };
}
