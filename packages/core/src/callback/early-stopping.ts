import { z } from "zod";
import type { TrainerCallback } from "../contracts/callback.ts";
import { parseOptions } from "../internal/parse-options.ts";
import { watchMetric, watchShape, type MetricWatch } from "./watch-metric.ts";

export interface EarlyStoppingOptions extends MetricWatch {
  /** Training ends after this many consecutive measurements without a better value; 1 or more. */
  readonly patience: number;
}

const optionsSchema = z.strictObject({
  ...watchShape,
  patience: z
    .int("a positive integer")
    .positive("a positive integer")
    .meta({ fix: "Count the measurements to wait." }),
} satisfies Record<keyof EarlyStoppingOptions, z.ZodType>);

/**
 * Ends training when a metric stops improving. Measurements without a value (skipped, failed, not graded yet) are ignored;
 * partial ones count.
 *
 * @throws PeriodicEvalError `config` for a wrong option.
 */
export function earlyStopping(options: EarlyStoppingOptions): TrainerCallback {
  parseOptions("earlyStopping options", optionsSchema, options);
  const { id, metric, patience } = options;
  return watchMetric(`early-stopping-${id}`, options, (context, { best, waited }) => {
    if (waited < patience) return;
    context.requestStop(
      `${metric} of "${id}" was best at step ${best!.step} (${best!.value}), and not better in ${waited} measurements since`,
    );
  });
}
