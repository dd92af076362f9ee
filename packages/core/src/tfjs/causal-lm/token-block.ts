import type { TokenBlock } from "./incremental.ts";

/** The last segment of tokens from which all later blocks continue. */
export const everySegment = 2 ** 31 - 1;

/** Returns the segments of tokens from which all later blocks continue. */
export const trunk = (tokens: number): Pick<TokenBlock, "segments" | "lastSegments"> => ({
  segments: new Int32Array(tokens),
  lastSegments: new Int32Array(tokens).fill(everySegment),
});

/** Returns a block with one sequence per row, padded on the right. The sequences continue from position `start`. */
export function blockOf(rows: readonly (readonly number[])[], start: number): TokenBlock {
  const [batch, length] = [rows.length, Math.max(...rows.map((ids) => ids.length))];
  const cells = batch * length;
  const block = {
    batch,
    length,
    ids: new Int32Array(cells),
    positions: Int32Array.from({ length: cells }, (_, cell) => start + (cell % length)),
    segments: new Int32Array(cells).fill(-1),
    lastSegments: new Int32Array(cells).fill(-1),
  };
  rows.forEach((ids, row) => {
    block.ids.set(ids, row * length);
    block.segments.fill(0, row * length, row * length + ids.length);
    block.lastSegments.fill(everySegment, row * length, row * length + ids.length);
  });
  return block;
}
