import { z } from "zod";
import type { SystemPrompt, TemplateKwargs } from "../../contracts/model.ts";
import { isRecord } from "../../internal/is-record.ts";
import { jsonFault } from "../../internal/json.ts";

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
