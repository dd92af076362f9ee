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
 * it leaves the least space, with ties to the space that arose first.
 *
 * @param rows Rows of 1 to `maxLength` tokens.
 */
export function packRows(rows: readonly TrainingRow[], maxLength: number): PackedRow[] {
  const packs: TrainingRow[][] = [];
  /** Packs by the tokens that still fit into them, those with this space for longest first. */
  const bySpace = Array.from({ length: maxLength }, (): TrainingRow[][] => []);
  for (const row of rows.toSorted((a, b) => b.ids.length - a.ids.length)) {
    let space = row.ids.length;
    while (space < maxLength && bySpace[space]!.length === 0) space += 1;
    const pack = bySpace[space]?.shift() ?? [];
    if (pack.length === 0) packs.push(pack);
    pack.push(row);
    bySpace[space - row.ids.length]!.push(pack);
  }
  return packs.map(joined);
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
      row.scored.map((position) => position + start),
      done,
    );
    start += row.ids.length;
    done += row.scored.length;
  }
  return { where: rows.map(({ where }) => where), ids, scored, starts };
}
