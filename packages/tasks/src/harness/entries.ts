import type { Metric, Row } from "@periodic-eval/core";
import { entryName } from "./metric-key.ts";

/** A line of lm-evaluation-harness' results: a task, or a group of its documents. */
export interface Entry {
  /** `mmlu`, `mmlu_stem`. */
  readonly name: string;
  /** The group's name in metrics; null for the task. */
  readonly group: string | null;
  readonly rows: readonly Row[];
  /** The rows in no entry below: lm-evaluation-harness would make them a task. */
  readonly own: readonly Row[];
  /** Names of the entries directly below. */
  readonly children: readonly string[];
}

interface Group {
  readonly name: string;
  readonly rows: Set<Row>;
}

/**
 * Arranges a task and the groups of its metrics as a tree. A group is below the smallest group with all of its rows; of two groups
 * with the same rows, the later one is below. The task comes first, and each group after its parent.
 */
export function entriesOf(
  task: string,
  metrics: Readonly<Record<string, Metric<Row>>>,
  rows: readonly Row[],
): readonly Entry[] {
  const groups = groupsIn(metrics, rows);
  const above = new Map(groups.map((group) => [group, parentOf(group, groups)]));
  const below = (parent: Group | null) => groups.filter((group) => above.get(group) === parent);
  const entries = (parent: Group | null): readonly Entry[] => {
    const [all, lower] = [parent === null ? rows : [...parent.rows], below(parent)];
    const children = lower.map(({ name }) => entryName(task, name));
    const own = all.filter((row) => !lower.some((group) => group.rows.has(row)));
    const group = parent?.name ?? null;
    return [{ name: entryName(task, group), group, rows: all, own, children }, ...lower.flatMap(entries)];
  };
  return entries(null);
}

function groupsIn(metrics: Readonly<Record<string, Metric<Row>>>, rows: readonly Row[]): readonly Group[] {
  const groups = new Map<string, Set<Row>>();
  for (const { options } of Object.values(metrics)) {
    for (const row of rows) {
      const of = options.by?.(row) ?? [];
      for (const name of typeof of === "string" ? [of] : of) {
        const members = groups.get(name) ?? new Set<Row>();
        groups.set(name, members.add(row));
      }
    }
  }
  return [...groups].map(([name, members]) => ({ name, rows: members }));
}

function parentOf(group: Group, groups: readonly Group[]): Group | null {
  const at = groups.indexOf(group);
  const holders = groups.filter((other, place) => {
    const isLarger = other.rows.size > group.rows.size;
    const isSame = other.rows.size === group.rows.size && place < at;
    return (isLarger || isSame) && [...group.rows].every((row) => other.rows.has(row));
  });
  // Of parents with equal size, the last is the lowest.
  return holders.reduce<Group | null>(
    (least, other) => (least === null || other.rows.size <= least.rows.size ? other : least),
    null,
  );
}
