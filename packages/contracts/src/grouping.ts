import type { Metric, Row } from "./evaluation.ts";

/** Groups entries by a key. Groups and their members keep the order of appearance. */
export function grouped<T>(entries: readonly T[], by: (entry: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const entry of entries) {
    const key = by(entry);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [entry]);
    else group.push(entry);
  }
  return groups;
}

/** Returns the rows of each group of a metric (its option `by`), without rows that are in no group. */
export function groupsOf<R extends Row>(
  { options: { by } }: Metric<R>,
  rows: readonly R[],
): Map<string, R[]> {
  if (by === undefined) return new Map();
  const named = rows.flatMap((row) => {
    const groups = by(row);
    return groups === null ? [] : [...new Set([groups].flat())].map((group) => ({ row, group }));
  });
  const groups = grouped(named, ({ group }) => group);
  return new Map([...groups].map(([group, members]) => [group, members.map(({ row }) => row)]));
}
