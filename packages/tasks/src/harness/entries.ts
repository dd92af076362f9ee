import type { Metric, Row } from "@periodic-eval/core";

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
  const holders = groups.filter((other, index) => {
    const isLarger = other.rows.size > group.rows.size;
    const isSame = other.rows.size === group.rows.size && index < at;
    return (isLarger || isSame) && [...group.rows].every((row) => other.rows.has(row));
  });
  // Of parents with equal size, the last is the lowest.
  return holders.reduce<Group | null>(
    (least, other) => (least === null || other.rows.size <= least.rows.size ? other : least),
    null,
  );
}

/** The name of a metric in lm-evaluation-harness' results. */
interface MetricPlace {
  /** `acc`. */
  readonly metric: string;
  /** The part after the comma, such as `strict-match`; `none` without one. */
  readonly filter: string;
  /** The part after the slash, such as `stem`; null for all rows. */
  readonly group: string | null;
}

/**
 * Parses `exact_match,strict-match/stem`.
 *
 * @param names The metrics' names without groups; groups may contain slashes.
 */
export function placeOf(key: string, names: readonly string[]): MetricPlace {
  const name = names.includes(key) ? key : (names.find((known) => key.startsWith(`${known}/`)) ?? key);
  const comma = name.indexOf(",");
  return {
    metric: comma === -1 ? name : name.slice(0, comma),
    filter: comma === -1 ? "none" : name.slice(comma + 1),
    group: key === name ? null : key.slice(name.length + 1),
  };
}

/** Returns the name of a task's group in lm-evaluation-harness: `mmlu_stem`. */
export const entryName = (task: string, group: string | null): string =>
  group === null ? task : `${task}_${group.replaceAll(/[^\w.-]+/g, "_")}`;

/** Returns a key of `metrics.json`: `mmlu_stem/acc,none`. */
export const metricKey = (task: string, { metric, filter, group }: MetricPlace): string =>
  `${entryName(task, group)}/${metric},${filter}`;
