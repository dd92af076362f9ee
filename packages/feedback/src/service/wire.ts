import { z } from "zod";
import { trainingSchema } from "../config/schema.ts";

/** What may name an adapter: it becomes a folder's name. */
export const loraIdPattern = /^[A-Za-z0-9][\w.-]{0,127}$/;

const filled = z.string().min(1);
const tokenIds = z.array(z.int().min(0));
/** Rounding may lift the log of a probability of 1 above 0. */
const nats = z.array(z.number().max(1e-4, "expected log p, which is 0 at most"));
const loraId = z
  .string()
  .regex(loraIdPattern, "expected a name of letters, digits, dots, dashes and underscores, 128 at most");

/** Texts alone: models here read nothing else. */
const content = z.union([
  z.string(),
  z
    .array(z.strictObject({ type: z.literal("text"), text: z.string() }))
    .transform((parts) => parts.map(({ text }) => text).join("")),
]);
const conversation = z
  .array(z.strictObject({ role: z.enum(["system", "user", "assistant"]), content }))
  .min(1);
const templateKwargs = z.record(z.string(), z.json()).nullish();
const seed = z.union([z.int(), z.string()]);

const asked = {
  model: filled,
  max_tokens: z.int().min(1).nullish(),
  max_completion_tokens: z.int().min(1).nullish(),
  temperature: z.number().min(0).nullish(),
  top_p: z.number().gt(0).max(1).nullish(),
  top_k: z.int().min(1).nullish(),
  stop: z.union([filled, z.array(filled)]).nullish(),
  logprobs: z.boolean().nullish(),
  /** As vLLM names it. */
  return_token_ids: z.boolean().nullish(),
  chat_template_kwargs: templateKwargs,
  stream: z.literal(false, "expected false: answers come whole").nullish(),
  n: z.literal(1, "expected 1: ask again, with another seed, for another answer").nullish(),
  top_logprobs: z.literal(0, "expected 0: no other tokens are told").nullish(),
  frequency_penalty: z.literal(0).nullish(),
  presence_penalty: z.literal(0).nullish(),
  response_format: z.strictObject({ type: z.literal("text") }).nullish(),
  user: z.unknown().optional(),
  metadata: z.unknown().optional(),
  store: z.unknown().optional(),
};

/** OpenAI's, as far as a model here can do as it is asked; `seed` may be a name too. */
export const chatSchema = z.strictObject({ ...asked, messages: conversation, seed: seed.nullish() });
/** vLLM's `/v1/chat/completions/batch`: a choice for each conversation. `seeds`, one each, are ours. */
export const chatBatchSchema = z
  .strictObject({
    ...asked,
    messages: z.array(conversation).min(1),
    seed: seed.nullish(),
    seeds: z.array(seed).nullish(),
  })
  .refine(({ messages, seeds }) => seeds == null || seeds.length === messages.length, {
    path: ["seeds"],
    message: "expected one for each conversation",
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
const hasOne = ({ messages, prompt, prompt_token_ids: promptIds, ...said }: Scored): boolean =>
  [messages, prompt, promptIds].filter((one) => one !== undefined).length === 1 &&
  [said.completion, said.completion_token_ids].filter((one) => one !== undefined).length === 1;
const oneOfEach =
  "expected one of messages, prompt and prompt_token_ids, and one of completion and completion_token_ids";

export const scoredSchema = z.strictObject(scored).refine(hasOne, oneOfEach);
export type ScoredBody = z.infer<typeof scoredSchema>;
export const scoreSchema = z.strictObject({ model: filled, ...scored }).refine(hasOne, oneOfEach);
export const scoreBatchSchema = z.strictObject({ model: filled, requests: z.array(scoredSchema).min(1) });
export const entropiesSchema = z.strictObject({ model: filled, entropies_of: z.array(filled).min(1) });

export const initSchema = z.strictObject({
  lora_id: loraId,
  base_model: filled.nullish(),
  training: trainingSchema.strict().prefault({}),
  steps_per_batch: z.int().min(1).default(4),
  seed: z.int().min(0).default(42),
});
export type InitBody = z.infer<typeof initSchema>;

const told = z
  .strictObject({
    lora_id: loraId.optional(),
    prompt: z.string(),
    response: z.string(),
    feedback: filled,
    response_token_ids: tokenIds.nullish(),
    response_logprobs: nats.nullish(),
    teacher_turn: z.string().nullish(),
    training: z.record(z.string(), z.json()).nullish(),
  })
  .refine(
    ({ response_token_ids: ids, response_logprobs: logprobs }) =>
      ids == null || logprobs == null || ids.length === logprobs.length,
    { path: ["response_logprobs"], message: "expected one for each of response_token_ids" },
  );
export type ToldBody = z.infer<typeof told>;

export const feedbackSchema = z.strictObject({
  lora_id: loraId.optional(),
  /** Names the update: asked again under the same name, it is told and not done again. */
  step_id: z.string().min(1).max(256).nullish(),
  step: z.int().min(0).nullish(),
  draft: z.json().optional(),
  requests: z.array(told).min(1),
});
export type FeedbackBody = z.infer<typeof feedbackSchema>;
