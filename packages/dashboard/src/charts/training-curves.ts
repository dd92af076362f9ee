import type { RunRecord } from "@periodic-eval/contracts";
import { capitalized, humanizeName } from "../html/format.ts";

/** One metric that the trainer logged, over the whole run. */
export interface TrainingCurve {
  readonly metric: string;
  readonly name: string;
  readonly unit: string;
  /** In run order, without missing and infinite values. */
  readonly points: readonly TrainingValue[];
}

interface TrainingValue {
  readonly phase: number;
  readonly step: number;
  readonly runStep: number;
  readonly value: number;
}

/** Names and units of the usual metrics, in the order of their charts. */
const known: Readonly<Record<string, readonly [name: string, unit: string]>> = {
  loss: ["training loss", "nats"],
  eval_loss: ["validation loss", "nats"],
  val_loss: ["validation loss", ""],
  learning_rate: ["learning rate", ""],
  tokens_per_second: ["tokens per second", ""],
};

/** Returns the curves that a run's trainer logged: the usual metrics first, then the others by name. */
export function trainingCurves(run: RunRecord): readonly TrainingCurve[] {
  const values = run.phases.flatMap(({ training = [] }, phase) =>
    training.flatMap(({ step, runStep, metrics }) =>
      Object.entries(metrics).flatMap(([metric, value]) =>
        value !== null && Number.isFinite(value) ? [{ metric, point: { phase, step, runStep, value } }] : [],
      ),
    ),
  );
  const metrics = [...new Set(values.map(({ metric }) => metric))];
  const order = Object.keys(known);
  const rank = (metric: string) => (order.includes(metric) ? order.indexOf(metric) : order.length);
  return metrics
    .sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1))
    .map((metric) => {
      const [name, unit] = Object.hasOwn(known, metric) ? known[metric]! : [humanizeName(metric), ""];
      return {
        metric,
        name: capitalized(name),
        unit,
        points: values.filter((value) => value.metric === metric).map(({ point }) => point),
      };
    });
}
