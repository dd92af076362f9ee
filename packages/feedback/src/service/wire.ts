import type { Json } from "@periodic-eval/core";
import * as z from "zod";
import { trainingNames, trainingSchema } from "../config/schema.ts";

/** Pattern of adapter names, which become folder names. */
export const loraIdPattern = /^[A-Za-z0-9][\w.-]{0,127}$/;

/** Any JSON value: bodies are parsed JSON. */
const json = z.custom<Json>();

/**
 * Like `z.array`, but reports only the first wrong element: a body has room for millions, and zod would describe each.
 *
 * @param least The minimum length.
 */
function list<T extends z.ZodType>(element: T, least = 0) {
  const any = z.array(z.unknown()).min(least).meta({ element });
  return any.transform((items, context): z.output<T>[] => {
    const valid: z.output<T>[] = [];
    for (const [at, item] of items.entries()) {
      const parsed = element.safeParse(item);
      if (!parsed.success) {
        const [issue] = parsed.error.issues;
        context.issues.push({ ...issue!, input: item, path: [at, ...issue!.path] } as z.core.$ZodRawIssue);
        return z.NEVER;
      }
      valid.push(parsed.data);
    }
    return valid;
  });
}

const filled = z.string().min(1);
const tokenIds = list(z.int().min(0));
/** Log-probabilities. The tolerance is for rounding, which can raise the log of a probability of 1 above 0. */
const nats = list(z.number("a log-probability of at most 0").max(1e-4, "a log-probability of at most 0"));
const loraId = z
  .string()
  .regex(loraIdPattern, "a name of at most 128 letters, digits, dots, dashes and underscores");

/** Content of a message. Only text: the models accept no other input. */
const content = z.union([
  z.string(),
  list(z.strictObject({ type: z.literal("text"), text: z.string() })).transform((parts) =>
    parts.map(({ text }) => text).join(""),
  ),
]);
const conversation = list(z.strictObject({ role: z.enum(["system", "user", "assistant"]), content }), 1);
const templateKwargs = z.record(z.string(), json).nullish();
const seed = z.union([z.int(), z.string()]);

const chatFields = {
  model: filled,
  max_tokens: z.int().min(1).nullish(),
  max_completion_tokens: z.int().min(1).nullish(),
  temperature: z.number().min(0).nullish(),
  top_p: z.number().gt(0).max(1).nullish(),
  top_k: z.int().min(1).nullish(),
  stop: z.union([filled, list(filled)]).nullish(),
  logprobs: z.boolean().nullish(),
  /** vLLM's name for it. */
  return_token_ids: z.boolean().nullish(),
  chat_template_kwargs: templateKwargs,
  stream: z.literal(false, "false: streaming is not supported").nullish(),
  n: z.literal(1, "1: send another request, with another seed, for another answer").nullish(),
  top_logprobs: z.literal(0, "0: other tokens are not reported").nullish(),
  frequency_penalty: z.literal(0).nullish(),
  presence_penalty: z.literal(0).nullish(),
  response_format: z.strictObject({ type: z.literal("text") }).nullish(),
  user: z.unknown().optional(),
  metadata: z.unknown().optional(),
  store: z.unknown().optional(),
};

/** OpenAI's request, without the fields that this service cannot support. `seed` may also be a string. */
export const chatSchema = z.strictObject({ ...chatFields, messages: conversation, seed: seed.nullish() });
/** vLLM's `/v1/chat/completions/batch`: one choice per conversation. `seeds`, one per conversation, is an extension. */
export const chatBatchSchema = z
  .strictObject({
    ...chatFields,
    messages: list(conversation, 1),
    seed: seed.nullish(),
    seeds: list(seed).nullish(),
  })
  .refine(({ messages, seeds }) => seeds == null || seeds.length === messages.length, {
    path: ["seeds"],
    message: "one for each conversation",
  });
export type ChatBody = z.infer<typeof chatSchema>;
export type ChatBatchBody = z.infer<typeof chatBatchSchema>;

const scored = {
  messages: conversation.optional(),
  prompt: z.string().optional(),
  prompt_token_ids: tokenIds.optional(),
  completion: z.string().optional(),
  completion_token_ids: tokenIds.optional(),
  chat_template_kwargs: templateKwargs,
};
type Scored = z.infer<z.ZodObject<typeof scored>>;
const hasOne = ({ messages, prompt, prompt_token_ids: promptIds, ...rest }: Scored): boolean =>
  [messages, prompt, promptIds].filter((one) => one !== undefined).length === 1 &&
  [rest.completion, rest.completion_token_ids].filter((one) => one !== undefined).length === 1;
const oneOfEach =
  "one of messages, prompt and prompt_token_ids, and one of completion and completion_token_ids";

export const scoredSchema = z.strictObject(scored).refine(hasOne, oneOfEach);
export type ScoredBody = z.infer<typeof scoredSchema>;
export const scoreSchema = z.strictObject({ model: filled, ...scored }).refine(hasOne, oneOfEach);
export const scoreBatchSchema = z.strictObject({ model: filled, requests: list(scoredSchema, 1) });
export const entropiesSchema = z.strictObject({ model: filled, entropies_of: list(filled, 1) });

export const initSchema = z.strictObject({
  lora_id: loraId,
  base_model: filled.nullish(),
  training: trainingSchema.prefault({}),
  steps_per_batch: z.int().min(1).default(4),
  seed: z.int().min(0).default(42),
});
export type InitBody = z.infer<typeof initSchema>;

/** Training settings of one request. They are only compared with the adapter's, so their values are not checked. */
const trainingToCompare = z.strictObject(
  Object.fromEntries(trainingNames.map((name) => [name, json.optional()])),
);

const feedbackRequest = z
  .strictObject({
    lora_id: loraId.optional(),
    prompt: z.string(),
    response: z.string(),
    feedback: filled,
    response_token_ids: tokenIds.nullish(),
    response_logprobs: nats.nullish(),
    teacher_turn: z.string().nullish(),
    training: trainingToCompare.nullish(),
  })
  .refine(
    ({ response_token_ids: ids, response_logprobs: logprobs }) =>
      ids == null || logprobs == null || ids.length === logprobs.length,
    { path: ["response_logprobs"], message: "one for each of response_token_ids" },
  );
export type FeedbackRequest = z.infer<typeof feedbackRequest>;

export const feedbackSchema = z.strictObject({
  lora_id: loraId.optional(),
  /** Name of the update. A repeated request with the same name returns the first result and trains nothing. */
  step_id: z.string().min(1).max(256).nullish(),
  step: z.int().min(0).nullish(),
  draft: json.optional(),
  requests: list(feedbackRequest, 1),
});
export type FeedbackBody = z.infer<typeof feedbackSchema>;
