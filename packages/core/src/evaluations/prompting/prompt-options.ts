import * as z from "zod";
import type { Sampling, SystemPrompt, TemplateKwargs } from "@periodic-eval/contracts";
import {
  isRecord,
  jsonFault,
  parseOptions,
  samplingSchema as ofRequests,
} from "@periodic-eval/contracts/options";

/** Variables that the chat template receives besides the chat. */
export interface ChatTemplateOptions {
  readonly kwargs: TemplateKwargs;
}

/** Whether a value is `{ text }`, a system prompt as a string. */
export const isTextPrompt = (system: unknown): system is { readonly text: string } =>
  isRecord(system) && typeof system["text"] === "string" && Object.keys(system).length === 1;

const isSystemPrompt = (system: unknown): boolean =>
  system === "omit" || system === "no_system_block" || isTextPrompt(system);

/** Rejects every other string: a chat would render it as a system message without content. */
export const systemPromptSchema = z
  .custom<SystemPrompt>(isSystemPrompt, '"omit", "no_system_block" or { text: string }')
  .meta({ fix: 'Write { text: "…" } for a prompt, { text: "" } for an empty one.' });

export const chatTemplateSchema = z.strictObject({
  kwargs: z
    .custom<TemplateKwargs>(
      (kwargs) => isRecord(kwargs) && jsonFault(kwargs) === null,
      "an object of names and JSON values",
    )
    .meta({
      fix: "Write { name: value }, with strings, finite numbers, booleans, null, arrays and objects.",
    }),
} satisfies Record<keyof ChatTemplateOptions, z.ZodType>);

/** How completions are sampled. The session names the seed of each measurement. */
export type SamplingOptions = Omit<Sampling, "seed" | "topTokens">;

/** Every field of `SamplingOptions`, each optional. */
export const samplingSchema = ofRequests.omit({ seed: true, topTokens: true }).partial();

/**
 * Returns the defaults, overridden by the options that are set.
 *
 * @throws PeriodicEvalError `config` for a wrong option; `where` names the options in the error.
 */
export function resolveSampling(
  where: string,
  options: Partial<SamplingOptions> = {},
  defaults: SamplingOptions,
): SamplingOptions {
  parseOptions(where, samplingSchema, options);
  return { ...defaults, ...options };
}
