/** x [outer, rows, columns, inner] → [outer, columns, rows, inner]. */
export interface Swap {
  readonly outer: number;
  readonly rows: number;
  readonly columns: number;
  readonly inner: number;
}

/** Returns the order of axes of a transposition as a swap of two neighbouring groups of axes; null if it is none. */
export function swapOf(shape: readonly number[], order: readonly number[]): Swap | null {
  const axes = order.filter((axis) => shape[axis] !== 1);
  const sorted = axes.toSorted((a, b) => a - b);
  const isMoved = (axis: number, i: number) => axis !== sorted[i];
  const start = axes.findIndex(isMoved);
  if (start === -1) return null;
  const end = axes.findLastIndex(isMoved) + 1;
  const middle = end - (axes.indexOf(sorted[start]!) - start);
  const swapped = [...sorted.slice(middle, end), ...sorted.slice(start, middle)];
  if (swapped.some((axis, i) => axis !== axes[start + i])) return null;
  const sizeOf = (from: number, to?: number) =>
    sorted.slice(from, to).reduce((size, axis) => size * shape[axis]!, 1);
  return {
    outer: sizeOf(0, start),
    rows: sizeOf(start, middle),
    columns: sizeOf(middle, end),
    inner: sizeOf(end),
  };
}
