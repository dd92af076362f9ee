import * as z from "zod";
import type { AnyEvaluation, EvaluableModel } from "@periodic-eval/contracts";
import { configError, isRecord, parseOptions, positiveInteger } from "@periodic-eval/contracts/options";

export interface KLOptions {
  /** The evaluation whose prompts are used. It must define `prompts`. */
  readonly of: AnyEvaluation;
  /**
   * The distribution to compare with. Default `"base"`: the same model without its adapter. Or any model with the same
   * vocabulary, such as an earlier checkpoint; the caller disposes it.
   */
  readonly against?: "base" | EvaluableModel;
  /** Uses the prompts of the first `limit` items only. Default: all. */
  readonly limit?: number;
}

const evaluationFix = "Add `prompts: (model, items) => […]` to the evaluation, one prompt per item.";

export const klShape = {
  of: z.custom<AnyEvaluation>(isRecord, "an evaluation with `prompts`").meta({ fix: evaluationFix }),
  against: z
    .custom<"base" | EvaluableModel>(
      (value) => value === "base" || (isRecord(value) && isRecord(value["identity"])),
      '"base" or a model',
    )
    .optional(),
  limit: positiveInteger.meta({ fix: "Remove `limit` to use all prompts." }).optional(),
} satisfies Record<keyof KLOptions, z.ZodType>;

export function checkKLOptions(options: KLOptions): void {
  const where = "klEvaluation options";
  parseOptions(where, z.strictObject(klShape), options);
  if (options.of.prompts !== undefined) return;
  throw configError({
    where,
    path: ["of"],
    got: `the evaluation "${options.of.name}", which has no \`prompts\``,
    expected: "an evaluation with `prompts`",
    fix: evaluationFix,
  });
}
