import type { TokenBlock } from "./causal-lm.ts";

/** A last segment that is behind none. */
export const everySegment = 2 ** 31 - 1;

/** Of tokens that all that is read later comes behind. */
export const trunk = (tokens: number): Pick<TokenBlock, "segments" | "lastSegments"> => ({
  segments: new Int32Array(tokens),
  lastSegments: new Int32Array(tokens).fill(everySegment),
});

/** Sequences that go on from position `start`, a row each, padded on the right. */
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
