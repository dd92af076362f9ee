// The live protocol: what a trainer's process and the host say to each other. docs/reference/live-protocol.md explains it.
import { evidenceSchema } from "@periodic-eval/contracts";
import * as z from "zod";

/** The version that this host speaks. It changes only when a client of an older one would misbehave. */
export const protocolVersion = 1;

/** Longest line, in bytes. */
export const maximumLine = 64 * 2 ** 20;

const ids = z.array(z.int().nonnegative());
const count = z.int().nonnegative();
const name = z.string().min(1);
/** Null is NaN or an infinity. */
const nats = z
  .number()
  .max(1e-3)
  .nullable()
  .transform((value) => value ?? Number.NaN);
const entropy = z
  .number()
  .nonnegative()
  .nullable()
  .transform((value) => value ?? Number.NaN);
const json = z.json();

/** Little-endian float32 numbers, in base64. */
const vector = z.base64().describe("Little-endian float32 numbers, in base64.");

const metricsSchema = z.record(z.string(), z.number().nullable());

const loggedSchema = z
  .array(z.object({ step: count, metrics: metricsSchema }))
  .describe("What the trainer logged since the last message, by step. Null is NaN or an infinity.");

const rowAbilities = ["log_likelihoods", "next_token", "generate", "hidden_states"] as const;
export type RowAbility = (typeof rowAbilities)[number];

export const helloSchema = z.object({
  protocol: z.int().positive().describe("The version that the client speaks."),
  client: z.object({ name, version: z.string() }).describe("The client's program."),
  run_dir: z.string().min(1).describe("The run's folder."),
  phase: name.default("train"),
  config: z
    .union([z.string(), z.record(z.string(), json), z.null()])
    .default(null)
    .describe("A file with the `periodic_eval` block, the block itself, or null for its defaults."),
  max_steps: count.nullable().describe("Optimizer steps of the phase; null if they are unknown."),
  step: count.default(0).describe("Completed optimizer steps."),
  epoch: z.number().nonnegative().default(0),
  state: json
    .default(null)
    .describe("What `save` returned for the checkpoint that training resumes from; null if none."),
  model: z.object({
    name,
    engine: name.describe("Such as `torch-cuda`."),
    dtype: name.describe("Such as `float32 (bfloat16 autocast)`."),
    adapter: z.string().nullable().default(null),
    context_length: count.nullable().describe("In tokens; null if it is unknown."),
    vocab_size: count.describe("Width of the logits, which can exceed the tokenizer's vocabulary."),
    abilities: z.array(name).describe(`Of ${rowAbilities.join(", ")}; others are ignored.`),
    base: z.boolean().describe("Whether `on: base` gives exactly the model without its adapter."),
    tolerance_nats: z
      .number()
      .nonnegative()
      .nullable()
      .default(null)
      .describe("By how much a log-prob may depend on its batch, in nats; null if nothing is known."),
    details: json
      .default(null)
      .describe(
        "Versions and settings that can change a number. `layers`, the number of layers, checks options.",
      ),
  }),
  tokenizer: z.object({
    fingerprint: name.describe("Hash of everything that changes an encoding or a rendering."),
    vocab_size: count,
    stop_ids: ids.describe("Ids that end a completion."),
    eos_id: count.nullable(),
    has_template: z.boolean().describe("Whether it renders chats."),
  }),
  guards: z.array(name).describe("What `enter` and `leave` observe, in the order of entering."),
  ranks: z.int().positive().default(1).describe("Processes that train."),
  can_save: z.boolean().default(false).describe("Whether `save_checkpoint` is answered."),
});
export type Hello = z.infer<typeof helloSchema>;

export const stepSchema = z.object({
  step: count,
  epoch: z.number().nonnegative().optional(),
  max_steps: count.nullable().optional(),
  logged: loggedSchema.default([]),
});

/** The calls of a trainer, and what each carries. */
export const trainerCalls = {
  hello: helloSchema,
  step: stepSchema,
  save: z.object({}),
  end: z.object({ logged: loggedSchema.default([]) }),
  fail: z.object({ message: z.string(), logged: loggedSchema.default([]) }),
  close: z.object({ logged: loggedSchema.default([]) }),
} as const;
export type TrainerMethod = keyof typeof trainerCalls;
export type TrainerParams = { readonly [M in TrainerMethod]: z.infer<(typeof trainerCalls)[M]> };

/** The answer to each call of the trainer. */
export const doneSchema = z.object({
  next_step: count
    .nullable()
    .describe(
      "The next step whose end the host wants to hear of; null: none. Steps between need no message.",
    ),
  stop: z.string().nullable().describe("Why training should end now."),
  save: z.string().nullable().describe("Why the trainer should save a checkpoint now."),
  metrics: z
    .array(z.object({ step: count, values: metricsSchema }))
    .describe("Numbers for the trainer's own loggers."),
  clean_step: count
    .optional()
    .describe("The last step up to which no condition of `stop_when` was met; omitted while there is none."),
  state: json.optional().describe("The answer to `save`: belongs into the checkpoint."),
  protocol: z
    .int()
    .positive()
    .optional()
    .describe("The answer to `hello`: the version that the host speaks."),
});
export type Done = z.infer<typeof doneSchema>;

const on = z.enum(["model", "base"]);

const generateRow = z.object({
  prompt: ids,
  max_new_tokens: count,
  temperature: z.number().nonnegative(),
  top_p: z.number().optional(),
  top_k: count.optional(),
  stop: z.array(z.string()).optional(),
  top_tokens: count.optional(),
  seed: z.string().describe("Names the random stream of the row."),
});

/** The calls of the host: what each carries, and the schema of a row of its answer, or of its whole answer. */
export const hostCalls = {
  encode: { params: z.object({ texts: z.array(z.string()), special_tokens: z.boolean() }), row: ids },
  decode: { params: z.object({ rows: z.array(ids), special_tokens: z.boolean() }), row: z.string() },
  render: {
    params: z.object({
      chats: z.array(
        z.object({
          messages: z.array(z.looseObject({ role: z.string() })),
          template_kwargs: z.record(z.string(), z.unknown()).optional(),
        }),
      ),
      ending: z.enum(["generation", "continue", "complete"]),
    }),
    row: z.object({ text: z.string(), ids }),
  },
  log_likelihoods: {
    params: z.object({
      on,
      rows: z.array(z.object({ context: ids, continuation: ids })),
      greedy_ids: z.boolean().describe("Whether to return the most likely id in place of each token."),
    }),
    row: z.object({
      nats: z.array(nats).describe("log p of each token of the continuation."),
      greedy: z.array(z.boolean()).describe("Whether each token was a most likely one."),
      greedy_ids: ids.optional(),
    }),
  },
  next_token: {
    params: z.object({
      on,
      rows: z.array(ids),
      candidates: z.union([z.literal("all"), z.array(ids)]).describe("Ids of each row, or the whole width."),
    }),
    row: z.object({ nats: vector, entropy_nats: entropy }),
  },
  generate: {
    params: z.object({ on, rows: z.array(generateRow) }),
    row: z.object({
      text: z.string().describe("Without special tokens, before the stop string."),
      ids: ids.describe("All generated ids, a stop id included."),
      nats: z.array(nats),
      finish: z.enum(["stop", "length"]),
      top: z.array(z.array(z.tuple([z.string(), nats]))).optional(),
    }),
  },
  hidden_states: {
    params: z.object({
      on,
      rows: z.array(
        z.object({ ids, from: count.describe("The mean of the positions from here to the end.") }),
      ),
      layers: z
        .union([z.literal("all"), z.array(count)])
        .describe("0 is the embedding; the last one is after the final norm."),
    }),
    row: z.object({ layers: z.array(vector) }),
  },
  enter: {
    params: z.object({ seed: z.string() }),
    result: z.object({ before: z.record(z.string(), z.string().nullable()) }),
  },
  leave: {
    params: z.object({}),
    result: z.object({
      evidence: z.array(evidenceSchema).describe("Of each guard, in the order of entering."),
      details: z
        .record(z.string(), json)
        .optional()
        .describe("Details of the model that changed since `hello`, such as the size of batches."),
    }),
  },
  save_checkpoint: { params: z.object({ step: count }), result: z.object({ path: z.string().min(1) }) },
} as const;
export type HostMethod = keyof typeof hostCalls;

/** One row of a call's answer; `never` for calls that are answered at once. */
export type RowOf<M extends HostMethod> = (typeof hostCalls)[M] extends { row: infer S extends z.ZodType }
  ? z.infer<S>
  : never;
export type ResultOf<M extends HostMethod> = (typeof hostCalls)[M] extends {
  result: infer S extends z.ZodType;
}
  ? z.infer<S>
  : never;
export type ParamsOf<M extends HostMethod> = z.infer<(typeof hostCalls)[M]["params"]>;

/** The calls whose answers are rows. */
export type RowMethod = {
  [M in HostMethod]: (typeof hostCalls)[M] extends { row: unknown } ? M : never;
}[HostMethod];

export const errorSchema = z.object({
  code: z.string().describe("`model`, `data`, `config`, `cancelled`, `memory` or another word."),
  where: z.string(),
  got: z.string(),
  expected: z.string().default(""),
  fix: z.string().default(""),
});
export type WireError = z.infer<typeof errorSchema>;

/** The notices of both sides, and what each carries. */
export const notices = {
  cancel: z.object({ call: z.int().positive() }),
  wake: z.object({}),
  ping: z.object({}),
  warn: z.object({ message: z.string() }),
} as const;

/** One line. A call has `method` and `id`, a notice only `method`; every other message answers the call with its `id`. */
export const messageSchema = z.union([
  z.object({ id: z.int().positive(), method: name, params: z.record(z.string(), json).default({}) }),
  z
    .object({ id: z.never().optional(), method: name, params: z.record(z.string(), json).default({}) })
    .describe("A notice: `cancel`, `wake`, `ping` or `warn`. Others are ignored."),
  z.object({ id: z.int().positive(), rows: z.array(json) }).describe("The next rows of an answer."),
  z
    .object({ id: z.int().positive(), progress: z.object({ tokens: count }) })
    .describe("Tokens read and written so far."),
  z.object({ id: z.int().positive(), result: json }).describe("Ends an answer."),
  z.object({ id: z.int().positive(), error: errorSchema }).describe("Ends an answer."),
]);
export type WireMessage = z.infer<typeof messageSchema>;
