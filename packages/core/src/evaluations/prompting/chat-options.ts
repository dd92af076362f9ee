import { quoteValue } from "../../internal/quote-value.ts";
import { PeriodicEvalError } from "../../errors.ts";

/**
 * Refuses what is no `SystemPrompt`: a word that is none would be rendered as a system message without content.
 *
 * @throws PeriodicEvalError `config` at `where`.
 */
export function checkSystem(where: string, system: unknown): void {
  if (system === "omit" || system === "no_system_block") return;
  if (isTextPrompt(system)) return;
  throw new PeriodicEvalError({
    code: "config",
    where,
    got: quoteValue(system),
    expected: '"omit", "no_system_block" or { text: string }',
    fix:
      typeof system === "string" && system !== "empty"
        ? `Write { text: ${quoteValue(system)} } for a prompt of these words.`
        : 'Write { text: "…" }, with { text: "" } for an empty prompt.',
  });
}

export const isTextPrompt = (system: unknown): system is { readonly text: string } =>
  typeof system === "object" &&
  system !== null &&
  typeof (system as { text?: unknown }).text === "string" &&
  Object.keys(system).length === 1;
