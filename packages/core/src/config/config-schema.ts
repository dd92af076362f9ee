import { z } from "zod";
import { namePattern } from "../contracts/snapshot.ts";

const percent = z.number().gt(0).max(100);
const count = z.int().min(1);
const path = z.string().min(1);
const system = z.union([
  z.literal("omit"),
  z.literal("no_system_block"),
  z.strictObject({ text: z.string() }),
]);
/** As files of personas have it, too: a text is the prompt, null is none. */
const personaSystem = z.union([z.string(), z.null(), z.strictObject({ text: z.string() })]);
const persona = z.strictObject({ id: z.string().regex(namePattern), system: personaSystem });

const schedule = z
  .strictObject({
    every_steps: count.optional(),
    every_epochs: z.number().gt(0).optional(),
    every_seconds: z.number().gt(0).optional(),
    at_steps: z.array(count).optional(),
    at_percents: z.array(percent).optional(),
    times_per_phase: count.optional(),
  })
  .describe("Of every callback, in place of the usual percents; percents that are written add to it.");

/** Its other keys are of its kind, which core does not know. */
const evaluation = z.looseObject({
  id: z.string().regex(namePattern).optional().describe("Of the snapshots. Default: the evaluation's name."),
  every_percent: percent
    .optional()
    .describe("Default: eval_every_percent, and where there is a schedule that alone."),
  schedule: schedule.optional().describe("Of this evaluation, in place of the block's."),
});

const budget = z
  .strictObject({
    overhead_percent: z
      .number()
      .gt(0)
      .nullable()
      .optional()
      .describe("Ceiling; null turns the governor off."),
    seconds_per_window: z.number().gt(0).nullable().optional(),
    drain_seconds: z.number().min(0).optional(),
    min_free_bytes: z.number().min(0).nullable().optional(),
  })
  .describe("What measuring may take; see the session's budget.");

const amount = z.number().min(0);
const price = z.strictObject({ input_per_million: amount, output_per_million: amount });

/** Whose prompts KL to the base can be measured on. */
export const klSources = ["capability", "alignment", "leakage", "margin"] as const;

/** How often is measured where neither percents nor a schedule are written. */
export const defaultPercents = {
  eval_every_percent: 20,
  alignment_every_percent: 50,
  leakage_every_percent: 25,
};

const everyPercent = (what: string, usual: number) =>
  percent
    .nullable()
    .default(null)
    .describe(`${what} Null: ${usual}, and where there is a schedule that alone.`);

/** Every key of the block but `phases`, with its default. */
const options = {
  enabled: z.boolean().default(true).describe("False: nothing is measured."),
  capability: z.boolean().default(true),
  alignment: z.boolean().default(false),
  leakage: z.boolean().default(false),
  eval_every_percent: everyPercent("Of capability and margin.", defaultPercents.eval_every_percent),
  alignment_every_percent: everyPercent("Of alignment.", defaultPercents.alignment_every_percent),
  leakage_every_percent: everyPercent("Of leakage.", defaultPercents.leakage_every_percent),
  questions: path
    .nullable()
    .default(null)
    .describe("ARC-format questions. Null: arc_challenge/test.jsonl, and where it is missing a warning."),
  capability_method: z.enum(["letters", "cloze"]).default("letters"),
  subsample_n: count.nullable().default(200).describe("Null: all."),
  subsample_seed: z.int().min(0).default(42),
  system: system
    .default("omit")
    .describe("System prompt of capability (letters) and of alignment without personas."),
  alignment_questions: path.nullable().default(null).describe("Null: eight of our own."),
  alignment_preset: z.enum(["betley2025", "explore_persona_space"]).default("betley2025"),
  alignment_num_samples: z.union([count, z.enum(["quick", "standard", "paper"])]).default(5),
  judge_model: z.string().min(1).nullable().default(null).describe("Null: the environment's JUDGE_MODEL."),
  judge_method: z.enum(["json", "logprob"]).default("json"),
  judge_max_calls: z
    .int()
    .min(0)
    .nullable()
    .default(null)
    .describe("Requests of each look, those that are repeated included. Null: no cap."),
  judge_max_cost: amount.nullable().default(null).describe("Of each look; wants judge_price. Null: no cap."),
  judge_price: price.nullable().default(null).describe("Of a million tokens, in any one currency."),
  judge_cache: path
    .nullable()
    .default(null)
    .describe(
      "A folder of verdicts: what is in it is not judged again. Null: nothing is kept but in the rows.",
    ),
  leakage_questions: path.nullable().default(null).describe("Null: eight of our own."),
  leakage_num_completions: count.default(3),
  leakage_marker_token: z.string().min(1).default("[ZLT]"),
  leakage_source: z
    .string()
    .nullable()
    .default(null)
    .describe("Id of the persona that the trait is trained into."),
  personas: z
    .union([path, z.array(persona).min(1), z.record(z.string().regex(namePattern), personaSystem)])
    .nullable()
    .default(null)
    .describe(
      "Of leakage: a file, or what one holds: [{ id, system }], or { id: system }. Null: eleven of our own.",
    ),
  persona_capability: z.boolean().default(false).describe("Capability of each persona."),
  persona_alignment: z.boolean().default(false).describe("Alignment of each persona."),
  margin: path.nullable().default(null).describe("A file of belief probes."),
  kl: z
    .union([z.boolean(), z.array(z.enum(klSources)).min(1)])
    .default(false)
    .describe(
      "KL to the model without its adapter, on the prompts of these and when they are measured. True: of capability.",
    ),
  evaluations: z
    .array(evaluation)
    .default([])
    .describe("Further evaluations: { task: gsm8k, data: folder, limit: 50 }, { benchmark: folder }."),
  schedule: schedule.default({}),
  budget: budget.default({}),
  baseline: z
    .union([z.enum(["phase_start", "run_start", "adapter_off"]), z.string().regex(/[/\\]/)])
    .default("phase_start")
    .describe("What looks are compared with; a path (./runs/1) is an earlier run's start."),
  familywise: z.enum(["primary", "all"]).default("primary"),
  save_adapter_at_firing: z
    .boolean()
    .default(false)
    .describe("Whether the trainer keeps the weights that each look measured."),
  layout: z.enum(["nested", "flat"]).default("nested").describe("Of the snapshots' folder."),
};

/** What a phase may set for itself: not where the run is written. */
const { layout: _layout, ...ofPhase } = options;
const overrides = z.strictObject(
  Object.fromEntries(Object.entries(ofPhase).map(([name, one]) => [name, one.unwrap().optional()])),
);

export const periodicEvalSchema = z.strictObject({
  ...options,
  phases: z
    .record(z.string().regex(namePattern), overrides)
    .default({})
    .describe("By phase: what is other there."),
});

/** The `periodic_eval` block, with its defaults. */
export type PeriodicEvalConfig = z.infer<typeof periodicEvalSchema>;
/** The block for one phase. */
export type PhaseEvalConfig = Omit<PeriodicEvalConfig, "phases">;

/** The published JSON Schema (draft 2020-12) of the `periodic_eval` block, for editors. */
export function periodicEvalJsonSchema(): Readonly<Record<string, unknown>> {
  return {
    $id: "urn:periodic-eval:config:1",
    title: "periodic_eval",
    ...z.toJSONSchema(periodicEvalSchema, { io: "input" }),
  };
}
