import * as z from "zod";

export const measurementWarningSchema = z.object({
  kind: z
    .string()
    .regex(/^[a-z][a-z_]*$/)
    .describe(
      "What was observed: `incoherent`, `empty`, `repeated`, `ungraded`, `truncated`, `undecided`, `source_lost`, `source_without_trait`, `cut_prompts`, `judge_anchors`, `constant_answer`, `repeated_questions`, `disabled` and others.",
    ),
  metrics: z
    .array(z.string())
    .nullable()
    .describe("The metrics that it concerns, with their groups; null for all."),
  count: z.int().nonnegative().nullable().describe("Rows or items that it concerns; null if it counts none."),
  total: z.int().nonnegative().nullable().describe("Rows or items that were looked at; null if none were."),
  void: z
    .boolean()
    .describe(
      "True: these metrics cannot be judged and have no verdict. False: a warning beside the verdict.",
    ),
  message: z.string().describe("One sentence with the share and the consequence."),
});

/** A reason to read metrics with care, or not to judge them. */
export type MeasurementWarning = z.infer<typeof measurementWarningSchema>;
