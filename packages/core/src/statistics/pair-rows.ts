import { type Metric, type Observation, type Row, grouped } from "@periodic-eval/contracts";

/** The observation of one row, with what it is paired and clustered by. */
export interface Observed extends Observation {
  readonly item: string;
  readonly cluster: string;
  /** The side of a contrast; null for other metrics. */
  readonly first: boolean | null;
}

/** Returns the observation of each row, without rows that the metric leaves out. */
export function observeRows<R extends Row>(
  { options: { item, cluster, sampled }, observe, isFirst }: Metric<R>,
  rows: readonly R[],
): ReadonlyMap<R, Observed> {
  const seen = new Map<R, Observed>();
  for (const row of rows) {
    const observation = observe(row);
    if (observation === null) continue;
    const itemId = sampled === true && item !== undefined ? item(row) : row.id;
    const { value, weight } = observation;
    // Spreading the observation would take longer than everything else here.
    seen.set(row, {
      value,
      weight,
      item: itemId,
      cluster: cluster?.(row) ?? itemId,
      first: isFirst?.(row) ?? null,
    });
  }
  return seen;
}

export function observationsOf<R>(rows: readonly R[], seen: ReadonlyMap<R, Observed>): readonly Observed[] {
  const found: Observed[] = [];
  for (const row of rows) {
    const one = seen.get(row);
    if (one !== undefined) found.push(one);
  }
  return found;
}

/** The observations of one item, or of all items of one cluster, at two measurements. Neither list is empty. */
export interface Pair {
  readonly now: readonly Observed[];
  readonly before: readonly Observed[];
}

/** Returns one pair per item that both measurements observed. */
export function pairByItem(now: readonly Observed[], then: readonly Observed[]): readonly Pair[] {
  const before = grouped(then, ({ item }) => item);
  return [...grouped(now, ({ item }) => item)].flatMap(([item, ofNow]) => {
    const ofThen = before.get(item);
    return ofThen === undefined ? [] : [{ now: ofNow, before: ofThen }];
  });
}

/** Merges the pairs of each cluster: clusters are the independent units. Without clusters each item is its own. */
export const pairByCluster = (items: readonly Pair[]): readonly Pair[] =>
  [...grouped(items, ({ now }) => now[0]!.cluster).values()].map((members) =>
    members.length === 1
      ? members[0]!
      : {
          now: members.flatMap((pair) => pair.now),
          before: members.flatMap((pair) => pair.before),
        },
  );
