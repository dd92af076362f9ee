/** What a metric of an evaluation is called in lm-evaluation-harness' results. */
export interface MetricPlace {
  /** `acc`. */
  readonly metric: string;
  /** `none`, or what follows the comma: `strict-match`. */
  readonly filter: string;
  /** What follows the slash: `stem`; null for all rows. */
  readonly group: string | null;
}

/**
 * The parts of `exact_match,strict-match/stem`.
 *
 * @param names the metrics without groups; groups may have a slash of their own.
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

/** What lm-evaluation-harness calls a group of a task: `mmlu_stem`. */
export const entryName = (task: string, group: string | null): string =>
  group === null ? task : `${task}_${group.replaceAll(/[^\w.-]+/g, "_")}`;

/** A key of `metrics.json`: `mmlu_stem/acc,none`. */
export const metricKey = (task: string, { metric, filter, group }: MetricPlace): string =>
  `${entryName(task, group)}/${metric},${filter}`;
