import * as z from "zod";
import type { TrainerCallback, AnyEvaluation, Snapshot } from "@periodic-eval/contracts";
import {
  configError,
  errorMessage,
  checkName,
  parseOptions,
  functionSchema,
  nameSchema,
} from "@periodic-eval/contracts/options";
import { isMeasured } from "./watch-metric.ts";

export interface EscalateOptions {
  /** Whether a snapshot requires further measurements: `worse("capability")`. */
  readonly when: (snapshot: Snapshot) => boolean;
  /** The evaluations to run then. Their snapshots are named `<id of the callback>-<name of the evaluation>`. */
  readonly run: readonly AnyEvaluation[];
  /** Default `escalate`. */
  readonly id?: string;
}

const optionsSchema = z.strictObject({
  when: functionSchema("a function of a snapshot").meta({ fix: 'Write `worse("capability")`.' }),
  run: z
    .custom((value) => Array.isArray(value) && value.length > 0, "a non-empty array of evaluations")
    .meta({ fix: "List the evaluations to run." }),
  id: nameSchema.optional(),
} satisfies Record<keyof EscalateOptions, z.ZodType>);

/** Returns a test for snapshots of this id that are worse than their baseline, by the verdict of `metric` (default: the primary). */
export function worse(id: string, metric?: string): (snapshot: Snapshot) => boolean {
  checkName("worse id", id);
  return (snapshot) => {
    const name = metric ?? snapshot.primary_metric;
    return snapshot.id === id && name !== null && snapshot.paired.baseline?.[name]?.verdict === "worse";
  };
}

/**
 * Runs further evaluations when a snapshot requires them: in the same window, or at the step where its grading ends. They stay
 * within the budget that is left.
 *
 * @throws PeriodicEvalError `config` for a wrong option.
 */
export function escalate(options: EscalateOptions): TrainerCallback {
  const where = "escalate options";
  parseOptions(where, optionsSchema, options);
  const { when, run, id = "escalate" } = options;
  const names = run.map(({ name }) => `${id}-${name}`);
  for (const [at, name] of names.entries()) {
    checkName(`${where}.run[${at}]`, name);
    if (names.indexOf(name) !== at)
      throw configError({
        where,
        path: ["run", at],
        value: run[at]!.name,
        expected: "evaluations with unique names",
        fix: "Remove the repetition.",
      });
  }
  return {
    id,
    asks: run,
    onSnapshot(context, snapshot) {
      if (names.includes(snapshot.id) || !isMeasured(snapshot)) return;
      if (!when(snapshot)) return;
      try {
        for (const [at, evaluation] of run.entries())
          context.measure({ id: names[at]!, evaluation, crossed: [] });
      } catch (error) {
        // After training there are no weights to measure: the snapshot was graded too late.
        context.warn(
          `no further measurements for "${snapshot.id}" of step ${snapshot.step}: ${errorMessage(error)}`,
        );
      }
    },
  };
}
