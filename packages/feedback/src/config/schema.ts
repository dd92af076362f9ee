import { z } from "zod";

const text = z.string("expected a text").min(1, "expected a text");
const count = (least: number) => {
  const expected = `expected a whole number of ${least} or more`;
  return z.int(expected).min(least, expected);
};
const atLeast = (least: number) => {
  const expected = `expected a number of ${least} or more`;
  return z.number(expected).min(least, expected);
};
const share = z.number("expected a number over 0 and up to 1").gt(0, "expected a number over 0 and up to 1");

export const metricNames = ["logprob", "compliance", "general", "collapse"] as const;
export type MetricName = (typeof metricNames)[number];

/** Lists of metrics by name: `metrics=quick`, which leaves out what has to sample much. */
export const metricPresets: Readonly<Record<string, readonly MetricName[]>> = {
  all: metricNames,
  quick: ["logprob", "compliance"],
};

const metricList =
  "expected a list of logprob, compliance, general, collapse, or one of the words all and quick";

const trainingFields = {
  learning_rate: share.max(1, "expected a number over 0 and up to 1").default(3e-5),
  /** Of the generalised Jensen-Shannon divergence between student and teacher. */
  alpha: share.max(1, "expected a number over 0 and up to 1").default(0.5),
  /** Importance ratios are cut to at most this. */
  is_clip: atLeast(1).default(5),
  max_grad_norm: z.number("expected a number over 0").gt(0, "expected a number over 0").default(1),
  kl_reg_weight: atLeast(0).default(0),
  /** Tokens of the teacher that the divergence is taken over. */
  teacher_top_k: count(1).default(100),
};

export const trainingSchema = z.object(trainingFields, "expected a map");

const address = z
  .url({ protocol: /^https?$/, error: "expected an address that begins with http:// or https://" })
  .nullable()
  .default(null);

const fields = {
  /** Where models are trained: here, or by the service that `service_url` names. */
  mode: z.literal("local", 'expected "local"').default("local"),
  /** A model's folder, or its name at the hub; null: the one that whoever runs the harness has by default. */
  base_model: text.nullable().default(null),
  /** Names of preferences that ship (or lie in `preferences_dir`), or paths of their YAML files. */
  preferences: z
    .array(text, "expected a list of preferences")
    .min(1, "expected a preference or more")
    .default(["no_emoji", "concise", "identity"]),
  /** Where names of preferences are looked for; null: among those that ship for models that follow instructions. */
  preferences_dir: text.nullable().default(null),
  /** A YAML file of what collapse is looked for on; null: in plain English. */
  collapse_probes: text.nullable().default(null),
  metrics: z
    .array(z.enum(metricNames, metricList), metricList)
    .min(1, metricList)
    .default([...metricNames]),
  /** Batches of feedback a preference. */
  num_steps: count(1).default(20),
  /** Answers a batch. */
  batch_size: count(1).default(4),
  /** Gradient steps on each batch. */
  steps_per_batch: count(1).default(4),
  /** How often the feedback is said over. */
  feedback_repetitions: count(1).default(1),
  /** After which steps, counted from 0, collapse is looked for; those beyond the last step are passed over. */
  collapse_steps: z.array(count(0), "expected a list of steps").default([0, 5, 10, 15, 19]),
  plots: z.boolean("expected true or false").default(true),
  seed: count(0).default(42),
  lora_id_prefix: text.default("eval"),
  /** `./data/evals/<UTC stamp>` where left out. */
  output_dir: text.optional(),
  /** A service that answers and trains, as `periodic-eval feedback serve` runs one; null: this process does. */
  service_url: address,
  /** A gateway that answers in its place; null: the service directly. */
  gateway_url: address,
  training: trainingSchema.prefault({}),
};

export const trainingNames: readonly string[] = Object.keys(trainingFields);
export const configNames: readonly string[] = Object.keys(fields);
export const configSchema = z.object(fields, "expected a map");

/** The configuration of a run with its defaults, paths absolute; `loadHarnessConfig` makes one. */
export type HarnessConfig = Omit<z.infer<typeof configSchema>, "output_dir"> & {
  readonly output_dir: string;
};
