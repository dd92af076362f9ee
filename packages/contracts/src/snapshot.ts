import * as z from "zod";
import { evidenceSchema } from "./guard.ts";
import type { Json } from "./json.ts";

const json: z.ZodType<Json> = z.json();

/** The pattern of phase names and callback ids, which become file names. */
export const namePattern = /^[A-Za-z0-9][\w.-]*$/;

export const nameSchema = z.string().regex(namePattern);

const metricValueSchema = z.object({
  value: z.number().nullable().describe("Null if nothing could be observed; 0 is always a measured 0."),
  n: z.int().nonnegative().describe("Number of observed rows."),
  stderr: z.number().nullable().describe("Standard error of the value; null if unknown."),
  ci95: z
    .tuple([z.number(), z.number()])
    .nullable()
    .describe("Lower and upper bound of the 95 % confidence interval; null if unknown."),
  estimand: z
    .enum(["given_questions", "over_questions"])
    .describe(
      "The questions that the interval is about. `given_questions`: these questions, with the noise of answering them. `over_questions`: the population of questions that these are drawn from.",
    ),
  unit: z.string().describe("Unit of the value, such as share or nats."),
  higher_is_better: z.boolean().nullable().describe("Whether a higher value is better; null if neither is."),
  range: z
    .tuple([z.number().nullable(), z.number().nullable()])
    .optional()
    .describe(
      "The smallest and the largest possible value, null where there is no bound; absent if neither is known.",
    ),
});

const pairedSchema = z.object({
  phase: z.string().describe("Phase of the other snapshot."),
  step: z.int().nonnegative().describe("Step of the other snapshot."),
  id: nameSchema
    .optional()
    .describe("Its id, if it differs from this snapshot's (the measurement without the adapter)."),
  run: z
    .string()
    .optional()
    .describe("Its run, if it is another run: the path given as session option `baseline`."),
  n_pairs: z.int().nonnegative().describe("Items that both measurements observed."),
  delta: z.number().nullable().describe("This measurement minus the other one."),
  ci95: z
    .tuple([z.number(), z.number()])
    .nullable()
    .describe("Lower and upper bound of the 95 % confidence interval of the difference; null if unknown."),
  test: z
    .enum(["mcnemar_exact", "permutation", "paired_t"])
    .nullable()
    .describe("Test of the difference; null if there is none."),
  p_value: z.number().nullable().describe("P-value of the test; null if there is none."),
  alpha: z
    .number()
    .nullable()
    .describe("Significance level that this comparison may spend; null for exploratory comparisons."),
  minimal_detectable_change: z
    .number()
    .nullable()
    .describe(
      "Smallest change that such a comparison detects with power 0.8; null if it detects no possible change that often.",
    ),
  verdict: z
    .enum(["better", "worse", "changed", "no evidence"])
    .nullable()
    .describe("Conclusion at the level alpha; null for exploratory comparisons."),
  exploratory: z
    .boolean()
    .describe("Whether the comparison is outside of the planned ones, whose error rate is 5 %."),
});

const path = z.string().min(1);

const conditionSchema = z.strictObject({
  is: z.array(json).optional().describe("The values that it may have; null for a missing one."),
  below: z.number().optional().describe("It is a number below this one."),
  at_most: z.number().optional().describe("It is a number of at most this one."),
  above: z.number().optional().describe("It is a number above this one."),
  at_least: z.number().optional().describe("It is a number of at least this one."),
});

const answerFlagSchema = z.strictObject({
  name: z
    .string()
    .min(1)
    .describe("The word for such an answer. `anchor` is a fixed text, which is not an answer of the model."),
  any: z
    .array(z.record(path, conditionSchema))
    .describe("Conditions by field. All conditions of one of the objects hold."),
});

const answerFieldsSchema = z.strictObject({
  question: path
    .optional()
    .describe("What was asked: a string, or a chat, of which the last message counts."),
  answer: path.optional().describe("The text that the model wrote."),
  prompt: path.optional().describe("The whole prompt, with the system prompt and the chat template."),
  persona: path.optional().describe("The persona that answered."),
  reply: path.optional().describe("The grader’s reply, or why it failed."),
  grades: z
    .array(path)
    .optional()
    .describe(
      "The grades. Answers are sorted by the first, the lowest first; a boolean one is also a filter.",
    ),
  flags: z
    .array(answerFlagSchema)
    .optional()
    .describe("Words for answers that readers look for. Answers with the first come first."),
  tokens: z.record(z.string(), path).optional().describe("Numbers of tokens, by what they are."),
  choices: z
    .strictObject({
      labels: path.optional().describe("One label per choice; without it, letters name the choices."),
      texts: path.optional().describe("One string per choice."),
      nats: path.describe("log p of each choice."),
      gold: path.describe("The right label, or a list of the right indices."),
      predicted: path.describe("The model’s label or index."),
    })
    .optional()
    .describe("The choices of a multiple-choice question."),
});

/**
 * Names the fields of graded rows that readers show. A path such as `verdict.raw` leads into objects, and over the elements of a list: if
 * `answer` leads to a list, each element is an answer, and each other field that leads to as many elements has one per answer.
 */
export type AnswerFields = z.infer<typeof answerFieldsSchema>;
/** A condition on one field of a row. */
export type AnswerCondition = z.infer<typeof conditionSchema>;

const measurementWarningSchema = z.object({
  kind: z
    .string()
    .regex(/^[a-z][a-z_]*$/)
    .describe(
      "What was observed: `incoherent`, `empty`, `repeated`, `ungraded`, `truncated`, `undecided`, `source_lost`, `source_without_trait`, `cut_prompts`, `judge_anchors`, `constant_answer`, `at_chance`, `repeated_questions`, `disabled` and others.",
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

/** Options of the session's budget that can decide the size of a measurement, as snapshots and YAML spell them. */
const budgetLimitSchema = z.enum([
  "grace_seconds",
  "overhead_percent",
  "seconds_per_window",
  "min_free_bytes",
]);

const statusSchema = z.enum(["grading", "complete", "partial", "skipped", "failed"]);

const sha256Schema = z.string().regex(/^[0-9a-f]{64}$/);

/** A snapshot file. Evaluations add plain keys at the top level (`accuracy`, `correct`, …); unknown keys are kept. */
export const snapshotSchema = z
  .object({
    schema_version: z.literal(1).describe("Version of this format."),
    evaluation: z.string().describe("Name of the evaluation."),
    evaluation_version: z
      .string()
      .describe("Version of the evaluation. Values of other versions are not compared."),
    id: nameSchema.describe("Name of the callback, unique in the phase."),
    phase: nameSchema.describe("Name of the training phase."),
    step: z.int().nonnegative().describe("Completed optimizer steps of the phase."),
    run_step: z.int().nonnegative().describe("`step` plus the steps of the run's earlier phases."),
    max_steps: z
      .int()
      .nonnegative()
      .nullable()
      .describe("Planned optimizer steps of the phase; null if unknown."),
    pct: z.number().nullable().describe("100 × step / max_steps; null if max_steps is unknown."),
    epoch: z.number().describe("Passes over the training data, with fractions."),
    crossed: z
      .array(z.string())
      .describe(
        "Descriptions of the thresholds that this measurement crossed: `every 20 percent: 40`, `start`, `end`.",
      ),
    status: statusSchema.describe(
      "Whether the measurement is complete; `grading` until all answers are graded.",
    ),
    reason: z.string().nullable().describe("Why the measurement is partial, skipped or failed; else null."),
    created_at: z.string().describe("ISO 8601 time."),
    on: z
      .enum(["model", "base"])
      .describe("Whether the model or its base (without the adapter) was measured."),
    served: z
      .boolean()
      .optional()
      .describe("True if a server ran the model, whose training guards cannot observe; absent otherwise."),
    metrics: z.record(z.string(), metricValueSchema).describe("Metrics by name."),
    primary_metric: z
      .string()
      .nullable()
      .describe("Name of the metric that carries the verdict; null if there is none."),
    paired: z
      .object({
        baseline: z
          .record(z.string(), pairedSchema)
          .nullable()
          .describe("Comparisons with the baseline; null if there is none."),
        previous: z
          .record(z.string(), pairedSchema)
          .nullable()
          .describe("Comparisons with the previous measurement; null if there is none."),
      })
      .describe("Comparisons with other snapshots, by metric."),
    warnings: z
      .array(measurementWarningSchema)
      .default([])
      .describe("Reasons to read the metrics with care, or not to judge them; empty if there are none."),
    timing: z
      .object({
        total_seconds: z
          .number()
          .describe(
            "Seconds that training was paused for this measurement, including guards and excluding grading; 0 if nothing was measured. The time to write the snapshot counts in the next measurement's `overhead_percent`.",
          ),
        guards_seconds: z
          .number()
          .describe("Seconds of the guards, which prove that training was not disturbed."),
        measure_seconds: z.number().describe("Seconds in which the model answered."),
        grade_seconds: z
          .number()
          .nullable()
          .describe("Seconds of grading, beside training; null if nothing was graded."),
        items: z.int().nonnegative().describe("Number of measured items."),
        tokens: z
          .int()
          .nonnegative()
          .nullable()
          .describe(
            "Tokens that the model read and generated, without padding; null if its engine reports none or nothing was measured.",
          ),
        overhead_percent: z
          .number()
          .nullable()
          .describe(
            "Overhead of the phase so far: Σ window seconds / (wall seconds − Σ window seconds), in percent.",
          ),
        governor: z
          .string()
          .describe(
            "The items measured, and why the overhead governor did not allow more or did not limit them; `off` if there is no ceiling.",
          ),
        budget: z
          .object({
            limit: budgetLimitSchema.describe("The option that decided how many rows to measure."),
            reduced: z.boolean().describe("Whether it left out rows of the measurement, or all of them."),
            grace_seconds: z.optional(z.number().describe("The grace, if it decided and is limited.")),
          })
          .optional()
          .describe(
            "The limit of the session's budget that the measurement was taken under; absent if none applied (at start and end, for a baseline, without a budget).",
          ),
      })
      .describe("What the measurement cost."),
    receipt: z
      .array(evidenceSchema)
      .describe("Evidence of the guards that measuring did not disturb training."),
    provenance: z
      .object({
        hash: z
          .string()
          .nullable()
          .describe(
            "`hashJson` (`pe128:…`) of the evaluation's name and version and of all following fields except `created_by`. Null, as is `items_hash`, if nothing was prepared: the measurement was skipped or its items could not be read.",
          ),
        items_hash: z.string().nullable().describe("Hash of the items."),
        items: z
          .int()
          .nonnegative()
          .nullable()
          .describe("Number of items of the evaluation; null if they could not be read."),
        evaluation: json.describe("Options of the evaluation, as it reports them."),
        model: json.describe(
          "The model's identity and context length, without the weights' fingerprint, which is in `weights`.",
        ),
        tokenizer: z.string().nullable().describe("Fingerprint of the tokenizer; null without one."),
        seed: z.string().describe("Seed of the run."),
        created_by: z.string().describe("Package and version that wrote the snapshot."),
      })
      .describe("Everything that a value depends on, besides the weights."),
    weights: z
      .string()
      .nullable()
      .describe("Fingerprint of the measured weights; null if no guard reports one."),
    saved: z
      .object({
        path: z.string().nullable().describe("Where the weights were saved; null after an error."),
        error: z.string().nullable().describe("The error; null if the weights were saved."),
      })
      .optional()
      .describe(
        "Where the session's `saveAtFiring` saved the measured weights, or the error it threw; absent if nothing was saved.",
      ),
    answer_fields: answerFieldsSchema
      .nullable()
      .optional()
      .describe(
        "The fields of the rows that hold questions, answers and grades; null if rows are no answers, absent if the evaluation names none.",
      ),
    samples: z
      .object({
        file: z.string().describe("Name of the file."),
        rows: z.int().nonnegative().describe("Number of rows in the file."),
        sha256: sha256Schema.optional().describe("SHA-256 of the file's bytes, in hexadecimal."),
      })
      .nullable()
      .describe("The file of the rows, in the same folder, which the store sets; null if there are no rows."),
    sha256: sha256Schema
      .optional()
      .describe(
        "SHA-256 of this snapshot's canonical JSON (RFC 8785) without this field, in hexadecimal, which the store sets.",
      ),
  })
  .catchall(json);

export type MetricValue = z.infer<typeof metricValueSchema>;
export type Paired = z.infer<typeof pairedSchema>;
export type BudgetLimit = z.infer<typeof budgetLimitSchema>;
export type SnapshotStatus = z.infer<typeof statusSchema>;
/** The JSON record of one measurement. Published as a JSON Schema (`@periodic-eval/core/schema.json`). */
export type Snapshot = Pick<z.infer<typeof snapshotSchema>, KnownKey> & { [plainKey: string]: unknown };
type KnownKey = keyof (typeof snapshotSchema)["shape"];

/** Identifies a snapshot within a run. */
export interface SnapshotKey {
  readonly phase: string;
  readonly id: string;
  readonly step: number;
}

/** One item or one result of an evaluation. Ids are unique within it; rows of two measurements are paired by id. */
export interface Row {
  readonly id: string;
}
