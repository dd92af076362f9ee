/** The name of a metric in lm-evaluation-harness' results. */
export interface MetricPlace {
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
  const name = names.includes(key) ? key : (names.find((one) => key.startsWith(`${one}/`)) ?? key);
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
