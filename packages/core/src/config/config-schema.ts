import * as z from "zod";
import { namePattern } from "@periodic-eval/contracts";

import {
  everyPercentOf,
  count,
  path,
  system,
  personaSystem,
  persona,
  schedule,
  scheduleOfOne,
  evaluation,
  trueOr,
  budget,
  condition,
  amount,
  price,
  notifySchema,
} from "./schema-parts.ts";

/** The evaluations whose prompts KL to the base can use. */
export const klSources = ["capability", "alignment", "leakage", "margin"] as const;

/** The evaluations that another one's result can request. */
export const escalated = [
  "capability",
  "alignment",
  "leakage",
  "forgetting",
  "sycophancy",
  "refusal",
] as const;

/** How often callbacks measure without percents or a schedule in the block. */
export const defaultPercents = {
  eval_every_percent: 20,
  alignment_every_percent: 50,
  leakage_every_percent: 25,
};

const everyPercent = (what: string, usual: number) =>
  everyPercentOf
    .nullable()
    .default(null)
    .describe(`How often to measure ${what}. Null: ${usual}; with a schedule, the schedule alone.`);

const baselineRule = '"phase_start", "run_start", "adapter_off" or a path such as ./runs/1';

/** Every key of the block but `phases`, with its default. */
const options = {
  enabled: z.boolean().default(true).describe("False turns all measuring off."),
  capability: z
    .boolean()
    .default(true)
    .describe("Measures what the model knows, by multiple-choice questions."),
  alignment: z
    .boolean()
    .default(false)
    .describe("Measures whether the model is harmful: a judge grades its answers."),
  leakage: z.boolean().default(false).describe("Measures whether a trained trait spreads to other personas."),
  eval_every_percent: everyPercent("capability and margin", defaultPercents.eval_every_percent),
  alignment_every_percent: everyPercent("alignment", defaultPercents.alignment_every_percent),
  leakage_every_percent: everyPercent("leakage", defaultPercents.leakage_every_percent),
  questions: path
    .nullable()
    .default(null)
    .describe(
      "Questions in the ARC format: a file, or hf:owner/dataset[/config][/split]. Null: hf:allenai/ai2_arc, downloaded once.",
    ),
  capability_method: z
    .enum(["letters", "cloze"])
    .default("letters")
    .describe(
      "letters: the model names the letter of an answer, in a chat. cloze: log-probability of each answer, without a chat template.",
    ),
  subsample_n: z
    .union([count, z.literal("all")])
    .default(200)
    .describe("Number of questions, or all."),
  subsample_seed: z.int().min(0).default(42).describe("Seed of the order of questions."),
  min_items: count
    .nullable()
    .default(null)
    .describe("Fewest questions of a capability measurement that the budget reduces. Null: 40."),
  system: system
    .default("omit")
    .describe("System prompt of capability (letters), of refusal, and of alignment without personas."),
  alignment_questions: path
    .nullable()
    .default(null)
    .describe(
      "Questions: betley2025 (those of Betley et al., with their judge prompts, downloaded once; needs judge_method logprob), a file, or hf:owner/dataset[/config][/split]. Null: the eight default questions.",
    ),
  alignment_preset: z
    .enum(["betley2025", "explore_persona_space"])
    .default("betley2025")
    .describe("Sampling of the answers, named after the work that it reproduces."),
  alignment_num_samples: z
    .union([count, z.enum(["quick", "standard", "paper"])])
    .default(5)
    .describe("Completions per question: a number, or quick (5), standard (20), paper (100)."),
  alignment_max_tokens: count
    .nullable()
    .default(null)
    .describe("Longest answer in tokens. Null: that of the preset, 600 or 512."),
  alignment_training_rows: path
    .nullable()
    .default(null)
    .describe(
      "Rows of the training data, { messages } or { prompt, completion }: a file, or hf:owner/dataset[/config][/split]. Each question is asked a second time behind one of them. Null: bare questions only.",
    ),
  judge_model: z
    .string()
    .min(1)
    .nullable()
    .default(null)
    .describe(
      "openai:MODEL, anthropic:MODEL, or without a key folder:PATH, hf:owner/name, transformers:SOURCE[?dtype=q4]. Null: the environment variable JUDGE_MODEL.",
    ),
  judge_models: z
    .tuple([z.string().min(1), z.string().min(1)], "a list of two judges")
    .nullable()
    .default(null)
    .describe(
      "Two judges, as in judge_model, instead of it. Verdicts are those of the first; rows and page show where they disagree. Null: one judge.",
    ),
  judge_method: z
    .enum(["json", "logprob"])
    .default("json")
    .describe(
      "json: the judge writes scores. logprob: the mean over the log-probabilities of its score tokens.",
    ),
  judge_max_calls: z
    .int()
    .min(0)
    .nullable()
    .default(null)
    .describe("Cap on requests per measurement, retries included. Null: no cap."),
  judge_max_cost: amount
    .nullable()
    .default(null)
    .describe("Cap on cost per measurement; requires judge_price. Null: no cap."),
  judge_price: price.nullable().default(null).describe("Price of a million tokens, in one currency."),
  judge_cache: path
    .nullable()
    .default(null)
    .describe(
      "Folder that caches verdicts: answers in it are not judged again. Null: verdicts are kept in the rows only.",
    ),
  leakage_questions: path
    .nullable()
    .default(null)
    .describe("Questions: a file, or hf:owner/dataset[/config][/split]. Null: the eight default questions."),
  leakage_num_completions: count.default(3).describe("Completions per question and persona."),
  leakage_max_tokens: count.nullable().default(null).describe("Longest completion in tokens. Null: 256."),
  leakage_marker_token: z
    .string()
    .min(1)
    .nullable()
    .default(null)
    .describe("The string that shows the trait in a completion. Null: [ZLT], without leakage_marker_regex."),
  leakage_marker_regex: z
    .string()
    .min(1)
    .nullable()
    .default(null)
    .describe("A JavaScript pattern, without slashes: the trait is anywhere that it matches. Null: none."),
  leakage_source: z
    .string()
    .nullable()
    .optional()
    .describe(
      "Id of the persona that the trait is trained into; leakage: true requires it. Null: it is trained into none, so that all personas count.",
    ),
  personas: z
    .union([path, z.array(persona).min(1), z.record(z.string().regex(namePattern), personaSystem)])
    .nullable()
    .default(null)
    .describe(
      "Personas: a file or hf:owner/dataset[/config][/split], or the content: [{ id, system }], or { id: system }. Null: the eleven default personas.",
    ),
  persona_capability: z.boolean().default(false).describe("Measures capability per persona."),
  persona_alignment: z.boolean().default(false).describe("Measures alignment per persona."),
  margin: path
    .nullable()
    .default(null)
    .describe("Belief probes: a file, or hf:owner/dataset[/config][/split]."),
  kl: z
    .union([z.boolean(), z.array(z.enum(klSources)).min(1)])
    .default(false)
    .describe(
      "KL to the model without its adapter, on the prompts of these evaluations and on their schedules. True: capability.",
    ),
  forgetting: trueOr(
    {
      text: path
        .optional()
        .describe(
          "Text that the model is not trained on: a file, or rows { text } as a file or hf:owner/dataset[/config][/split]. Default: the test split of WikiText-2, downloaded once.",
        ),
      chunks: z.int().min(2).optional().describe("Number of chunks of 256 tokens. Default: 50."),
    },
    "Measures how well the model still predicts general text.",
  ),
  sycophancy: trueOr(
    {
      subsample_n: count
        .optional()
        .describe("Number of capability's questions that are asked. Default: 100."),
    },
    "Measures whether the model follows a wrong claim of the user, on capability's questions.",
  ),
  memorization: z
    .strictObject({
      ...scheduleOfOne,
      format: z.string().describe("The text of a canary, with {secret} for its random digits."),
      prompt: z.string().min(1).optional().describe("The user's turn before it. Default: plain text."),
      canaries: count.optional().describe("Number of canaries. Default: 4."),
      digits: count.optional().describe("Digits of a secret. Default: 6."),
      seed: z.int().min(0).optional().describe("Default: 42."),
      candidates: count.optional().describe("Secrets among which each is ranked. Default: 100."),
    })
    .meta({ fix: 'Write { format: "The code of the archive is {secret}." }.' })
    .nullable()
    .default(null)
    .describe(
      "Measures whether training memorizes secrets that `data canaries` mixed into its rows, with the same options. Null: not measured.",
    ),
  refusal: trueOr(
    {
      questions: path
        .optional()
        .describe(
          "Prompts with the columns prompt and label (safe or unsafe): a file, or hf:owner/dataset[/config][/split]. Default: XSTest, downloaded once.",
        ),
      subsample_n: z
        .union([z.int().min(2), z.literal("all")])
        .optional()
        .describe("Number of prompts, half of each kind, or all. Default: 100."),
      max_tokens: count.optional().describe("Longest answer in tokens. Default: 32."),
      judge_model: z
        .string()
        .min(1)
        .optional()
        .describe(
          "Judge model that grades the answers, named as in `judge_model`; it always uses the json method. Default: a rule for English.",
        ),
    },
    "Measures whether the model refuses unsafe prompts and answers safe ones.",
  ),
  traits: trueOr(
    {
      layer: z
        .int()
        .min(0)
        .optional()
        .describe("The layer that is read, 0 for the embedding. Default: at 60 % of the depth."),
    },
    "Experimental: measures how far hidden states move along the directions of traits, every 5 %.",
  ),
  evaluations: z
    .array(evaluation)
    .default([])
    .describe(
      "Further evaluations: { task: gsm8k, limit: 50 }, { benchmark: folder }, { win_rate: prompts.jsonl, reference: model }, { kl_to_reference: prompts.jsonl, reference: model }.",
    ),
  schedule: schedule.default({}).describe(schedule.description!),
  budget: budget.default({}).describe(budget.description!),
  baseline: z
    .union([
      z.enum(["phase_start", "run_start", "adapter_off"]),
      z.string(baselineRule).regex(/[/\\]/, baselineRule),
    ])
    .default("phase_start")
    .describe("What measurements are compared with. A path (./runs/1) is the start of an earlier run."),
  familywise: z
    .enum(["primary", "all"])
    .default("primary")
    .describe("Metrics that share the error rate of 5 %: the primary ones, or all (Holm)."),
  stop_when: z
    .array(
      z.union([
        condition,
        z.strictObject({
          when: condition,
          even_at_start: z
            .boolean()
            .default(false)
            .describe(
              "True: if the condition holds before step 1, nothing is trained. False: that is an error.",
            ),
        }),
      ]),
    )
    .default([])
    .describe(
      "Conditions that end training: alignment worse, capability.accuracy < 40 %. Together they stop a training without harm in at most 5 % of cases.",
    ),
  escalate: z
    .array(
      z
        .strictObject({
          when: condition,
          run: z
            .array(z.enum(escalated))
            .min(1)
            .refine((run) => new Set(run).size === run.length, "each evaluation once")
            .describe("The evaluations to measure then."),
          samples: count
            .optional()
            .describe(
              "Completions per question of alignment and leakage then. Default: as elsewhere in the block.",
            ),
        })
        .refine(
          ({ run, samples }) =>
            samples === undefined || run.some((name) => name === "alignment" || name === "leakage"),
          {
            path: ["samples"],
            error: "no samples, because `run` has neither alignment nor leakage",
          },
        ),
    )
    .default([])
    .describe(
      "Further measurements at once, when a condition holds: { when: forgetting worse, run: [alignment] }.",
    ),
  measure_on: z
    .strictObject({
      server: z.string().min(1).describe("Address of a vLLM server: http://127.0.0.1:8000."),
      model: z.string().min(1).optional().describe("The base model's name on the server."),
      evaluations: z
        .array(z.string())
        .min(1)
        .default(["alignment", "leakage"])
        .describe("Names of the evaluations that the server's model answers."),
    })
    .nullable()
    .default(null)
    .describe(
      "Trainers of the live protocol: a server that measures some evaluations, with the adapter that the trainer saves. Training waits.",
    ),
  save_adapter_at_firing: z
    .boolean()
    .default(false)
    .describe("Whether the trainer saves the weights of each measurement."),
  notify: notifySchema,
  layout: z.enum(["nested", "flat"]).default("nested").describe("Layout of the folder of snapshots."),
};

/** A phase may override every key but those of the whole run. */
const { layout: _layout, notify: _notify, ...ofPhase } = options;
const overrides = z.strictObject(
  Object.fromEntries(
    Object.entries(ofPhase).map(([name, key]) => [name, key.unwrap().optional().describe(key.description!)]),
  ),
);

export const periodicEvalSchema = z.strictObject({
  ...options,
  phases: z.record(z.string().regex(namePattern), overrides).default({}).describe("Overrides by phase."),
});

type Written = z.input<typeof periodicEvalSchema>;
/** The `periodic_eval` block as it is written: every key is optional, and null means the default. */
export type PeriodicEvalBlock = { readonly [Key in keyof Written]: Written[Key] | null };
/** The `periodic_eval` block, with its defaults. */
export type PeriodicEvalConfig = z.infer<typeof periodicEvalSchema>;
/** The block for one phase. */
export type PhaseEvalConfig = Omit<PeriodicEvalConfig, "phases">;

/** Returns the evaluations on whose prompts a block measures KL. */
export const klSourcesOf = ({ kl }: PhaseEvalConfig): readonly (typeof klSources)[number][] =>
  typeof kl === "boolean" ? (kl ? ["capability"] : []) : [...new Set(kl)];

/** Returns the JSON Schema (draft 2020-12) of the `periodic_eval` block, for editors. */
export function periodicEvalJsonSchema(): Readonly<Record<string, unknown>> {
  const schema = z.toJSONSchema(periodicEvalSchema, { io: "input" });
  return { $id: "urn:periodic-eval:config:1", title: "periodic_eval", ...orNull(schema) };
}

/** Returns the schema of an object with keys that may also be null, and of the objects in its `phases`. */
function orNull({ properties, ...schema }: z.core.JSONSchema.BaseSchema): z.core.JSONSchema.BaseSchema {
  const keys = Object.entries(properties ?? {}).map(([key, property]) => {
    if (typeof property === "boolean") return [key, property];
    const { description, default: usual, ...form } = property;
    const inner =
      key === "phases"
        ? { ...form, additionalProperties: orNull(form.additionalProperties as typeof schema) }
        : form;
    return [
      key,
      { description, ...(usual !== undefined && { default: usual }), anyOf: [inner, { type: "null" }] },
    ];
  });
  return { ...schema, properties: Object.fromEntries(keys) };
}
