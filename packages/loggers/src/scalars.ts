import type { Snapshot } from "@periodic-eval/core";

/** A number with the name under which TensorBoard, W&B and MLflow show it. */
export type Scalars = Readonly<Record<string, number>>;

/** Prefixes that existing dashboards know; another evaluation's is `periodic_` and its name. */
const prefixes: Readonly<Record<string, string>> = {
  capability: "periodic_eval",
  alignment: "periodic_align",
  leakage: "periodic_leak",
};

/**
 * What a snapshot says, as scalars: every metric that has a value, and `…/train_pct`, the percent of its phase. Those of a
 * callback that was given an id of its own stand under it (`periodic_eval/cloze/arc_c_accuracy`), so that two callbacks
 * do not share a curve. A snapshot that is still graded, was skipped or failed has none, and unknown values are left out:
 * neither is ever 0.
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
    // A persona may be called `rate`.
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

/** Which plain keys are scalars too, and what a metric is called; null where a plain key holds it already. */
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

/** Metrics of training as the field names them: `train/loss`, and `eval/loss` for what was called `eval_loss`. */
export function trainScalars(metrics: Scalars): Scalars {
  return Object.fromEntries(
    Object.entries(metrics).map(([name, value]) => [
      name.startsWith("eval_") ? `eval/${name.slice("eval_".length)}` : `train/${name}`,
      value,
    ]),
  );
}
