import { z } from "zod";
import type { TrainerCallback } from "../contracts/callback.ts";
import { parseOptions } from "../internal/parse-options.ts";
import { watchMetric, watchShape, type Best, type MetricWatch } from "./watch-metric.ts";

export type MarkBestOptions = MetricWatch;

const optionsSchema = z.strictObject(watchShape);

/**
 * Requests a checkpoint whenever a metric is better than in all earlier measurements. `best()` and the callback's state in
 * checkpoints say where that was.
 *
 * @throws PeriodicEvalError `config` for a wrong option.
 */
export function markBest(options: MarkBestOptions): TrainerCallback & { best(): Best | null } {
  parseOptions("markBest options", optionsSchema, options);
  const { id, metric } = options;
  return watchMetric(`best-${id}`, options, (context, { best, waited }) => {
    // The weights of step 0 are those that training started with.
    if (waited > 0 || best === null || best.savedAt === 0) return;
    if (best.savedAt > best.step)
      context.warn(
        `"${id}" of step ${best.step} was graded at step ${best.savedAt}: the checkpoint has the later weights`,
      );
    context.requestSave(`${metric} of "${id}" is best at step ${best.step}: ${best.value}`);
  });
}
