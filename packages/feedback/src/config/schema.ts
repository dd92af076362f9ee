import { numberToOne, filledString } from "@periodic-eval/contracts/options";
import * as z from "zod";

const text = filledString("a non-empty string");
const count = (minimum: number) => {
  const expected = `an integer of ${minimum} or more`;
  return z.int(expected).min(minimum, expected);
};
const atLeast = (minimum: number) => {
  const expected = `a number of ${minimum} or more`;
  return z.number(expected).min(minimum, expected);
};
const share = numberToOne("a number above 0 and at most 1");

export const metricNames = ["logprob", "compliance", "general", "collapse"] as const;
export type MetricName = (typeof metricNames)[number];

/** Named lists of metrics, for `metrics: quick`. `quick` omits the metrics that sample many answers. */
export const metricPresets: Readonly<Record<string, readonly MetricName[]>> = {
  all: metricNames,
  quick: ["logprob", "compliance"],
};

const metricList = "an array of logprob, compliance, general and collapse, or one of the names all and quick";

const trainingFields = {
  learning_rate: share.default(3e-5).describe("Learning rate of AdamW, constant."),
  alpha: share
    .default(0.5)
    .describe("Weight α of the generalised Jensen-Shannon divergence between student and teacher."),
  is_clip: atLeast(1).default(5).describe("Upper limit of the importance ratios."),
  max_grad_norm: z
    .number("a number above 0")
    .gt(0, "a number above 0")
    .default(1)
    .describe("Longer gradients are shortened to this norm."),
  kl_reg_weight: atLeast(0).default(0).describe("Weight of the KL divergence from the base model."),
  teacher_top_k: count(1)
    .default(100)
    .describe("Number of the teacher's most likely tokens over which the divergence is computed."),
};

export const trainingSchema = z.strictObject(trainingFields, "an object");

const url = z
  .url({ protocol: /^https?$/, error: "a URL that begins with http:// or https://" })
  .nullable()
  .default(null);

const fields = {
  mode: z
    .literal("local", '"local"')
    .default("local")
    .describe(
      "Where models are trained: in this process, or by the service at `service_url`. The cloud modes of other harnesses (`modal`, `tinker`) are rejected without `service_url`, and ignored with it.",
    ),
  base_model: text
    .nullable()
    .default(null)
    .describe("A model folder or a name on the Hugging Face Hub. Null: the caller's default model."),
  preferences: z
    .array(text, "an array of preferences")
    .min(1, "at least one preference")
    .default(["no_emoji", "concise", "identity"])
    .describe("Names of shipped preferences or of preferences in `preferences_dir`, or paths of YAML files."),
  preferences_dir: text
    .nullable()
    .default(null)
    .describe(
      "Folder in which preferences are found by name, before the folder `preference` beside the configuration. Null: the shipped preferences for instruction-tuned models.",
    ),
  collapse_probes: text
    .nullable()
    .default(null)
    .describe("A YAML file `{ text, prompts }`. Null: probes in plain English."),
  general_probes: text
    .nullable()
    .default(null)
    .describe(
      "A YAML file `{ questions: [{ prompt, says }] }` for `general`, at least 8. Null: a coding task and three instructions in English.",
    ),
  metrics: z
    .array(z.enum(metricNames, metricList), metricList)
    .min(1, metricList)
    .default([...metricNames])
    .describe("Metrics, or one of the names `all` and `quick` (logprob and compliance)."),
  num_steps: count(1).default(20).describe("Batches of feedback per preference."),
  batch_size: count(1).default(4).describe("Answers per batch."),
  steps_per_batch: count(1).default(4).describe("Gradient steps on each batch."),
  feedback_repetitions: count(1).default(1).describe("How many times the feedback is repeated in a turn."),
  collapse_steps: z
    .array(count(0), "an array of steps")
    .default([0, 5, 10, 15, 19])
    .describe(
      "Steps, counted from 0, after which collapse is measured. Steps beyond the last one are ignored.",
    ),
  plots: z
    .boolean("true or false")
    .default(true)
    .describe("Whether the command writes `plots/` and `index.html` at the end."),
  seed: count(0).default(42).describe("Seed of training and of the measurements."),
  lora_id_prefix: text.default("eval").describe("Prefix of the adapters' names."),
  output_dir: text
    .optional()
    .describe(
      "Folder of the run's files, relative to the working directory. Default: `./runs/feedback-<UTC timestamp>`.",
    ),
  service_url: url.describe(
    "A service that answers and trains, such as CLaaS; also `claas_url`. Null: this process does both.",
  ),
  gateway_url: url.describe(
    "A gateway that answers instead of the service; also `openclaw_url`. Its token is read only from the environment variable `OPENCLAW_GATEWAY_TOKEN`. Null: the service answers.",
  ),
  training: trainingSchema.prefault({}).describe("Options of self-distillation."),
};

export const configSchema = z.strictObject(fields, "an object");

/** The configuration of a run as a program or a file writes it. A key that is absent or null has its default. */
export type HarnessConfigInput = {
  readonly [Key in keyof typeof fields]?: z.input<(typeof fields)[Key]> | null;
};

/** The configuration of a run with its defaults and absolute paths, as `loadHarnessConfig` returns it. */
export type HarnessConfig = Omit<z.infer<typeof configSchema>, "output_dir"> & {
  readonly output_dir: string;
};
