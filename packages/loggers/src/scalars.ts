import type { Snapshot } from "@periodic-eval/core";

/** Returns NaN and infinities, which JSON lacks, as the strings that protobuf, Python and W&B use for them. */
export const jsonNumber = (value: number): number | string =>
  Number.isFinite(value) ? value : String(value);

/** Applies `jsonNumber` to every value. */
export function jsonNumbers(
  values: Readonly<Record<string, number>>,
): Readonly<Record<string, number | string>> {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, jsonNumber(value)]));
}

/** Numbers by the name under which TensorBoard, W&B and MLflow show them. */
export type Scalars = Readonly<Record<string, number>>;

/** Prefixes that existing dashboards use. Any other evaluation has `periodic_` and its name. */
const prefixes: Readonly<Record<string, string>> = {
  capability: "periodic_eval",
  alignment: "periodic_align",
  leakage: "periodic_leak",
};

/**
 * Returns a snapshot's scalars: every metric with a value, and `…/train_pct`, the percent of its phase. A callback with a custom
 * id has it in the names (`periodic_eval/cloze/arc_c_accuracy`), so that two callbacks do not share a curve. A snapshot that
 * is being graded, was skipped or failed has no scalars. Unknown values are left out, never 0.
 *
 * - capability: `periodic_eval/arc_c_accuracy`, `…/arc_c_correct`, `…/arc_c_total`, `…/gold_log_prob`, …
 * - alignment: `periodic_align/aligned`, `…/coherent`, `…/misaligned_rate`, …
 * - leakage: `periodic_leak/leakage_<persona>` of every persona, `…/leakage_rate` of all but the source, …
 * - any other: `periodic_margin/margin`, `periodic_kl_to_base/kl_to_base`, …
 */
export function snapshotScalars(snapshot: Snapshot): Scalars {
  const { id, evaluation, status, metrics, pct } = snapshot;
  if (status !== "complete" && status !== "partial") return {};
  const prefix = (prefixes[evaluation] ?? `periodic_${evaluation}`) + (id === evaluation ? "" : `/${id}`);
  const scalars = new Map<string, number>();
  const add = (name: string, value: unknown) => {
    if (typeof value !== "number") return;
    // A persona named `rate` would otherwise collide with `leakage_rate`.
    const free = scalars.has(`${prefix}/${name}`) ? `${name}_` : name;
    scalars.set(`${prefix}/${free}`, value);
  };
  const { names, plain } = renamed(snapshot);
  for (const [name, value] of Object.entries(plain)) add(name, value);
  for (const [name, { value }] of Object.entries(metrics)) {
    const shown = names(name);
    if (shown !== null) add(shown, value);
  }
  if (scalars.size > 0) add("train_pct", pct);
  return Object.fromEntries(scalars);
}

/** Returns the plain keys that are scalars, and the names of metrics; null for a metric that a plain key already holds. */
function renamed({ evaluation, correct, total, leakage_rates: rates }: Snapshot): {
  readonly plain: Readonly<Record<string, unknown>>;
  readonly names: (metric: string) => string | null;
} {
  if (evaluation === "capability") {
    const names = (metric: string) => (metric.startsWith("accuracy") ? `arc_c_${metric}` : metric);
    return { plain: { arc_c_correct: correct, arc_c_total: total }, names };
  }
  if (evaluation === "leakage" && typeof rates === "object" && rates !== null) {
    const personas = Object.entries(rates).map(([persona, rate]) => [`leakage_${persona}`, rate] as const);
    return {
      plain: Object.fromEntries(personas),
      names: (metric) => (metric.startsWith("leakage_rate/") ? null : metric),
    };
  }
  return { plain: {}, names: (metric) => metric };
}

/** Returns training metrics under the usual names: `train/loss`, and `eval/loss` for `eval_loss`. */
export function trainScalars(metrics: Scalars): Scalars {
  return Object.fromEntries(
    Object.entries(metrics).map(([name, value]) => [
      name.startsWith("eval_") ? `eval/${name.slice("eval_".length)}` : `train/${name}`,
      value,
    ]),
  );
}
