import type { BulkTokenizer, Prompt, RenderedPrompt, Tokenizer } from "@periodic-eval/contracts";
import { mapInTurns } from "./event-loop.ts";

/**
 * Returns a tokenizer of this process as the ability `tokenizer` of a model: `{ ...model, tokenizer: bulkTokenizer(tokenizer) }`. It
 * yields to events every 50 ms.
 */
export function bulkTokenizer(tokenizer: Tokenizer): BulkTokenizer {
  const { fingerprint, vocabSize, stopIds, eosId } = tokenizer;
  const unlimited = new AbortController().signal;
  const each = <T, R>(items: readonly T[], signal: AbortSignal | undefined, map: (item: T) => R) =>
    mapInTurns(items, { signal: signal ?? unlimited, where: "tokenizer" }, map);
  return {
    fingerprint,
    vocabSize,
    stopIds,
    ...(eosId !== undefined && { eosId }),
    encode: (texts, { signal, ...options } = {}) =>
      each(texts, signal, (text) => tokenizer.encode(text, options)),
    decode: (rows, { signal, ...options } = {}) =>
      each(rows, signal, (ids) => tokenizer.decode(ids, options)),
    render: (prompts, { signal, ...options } = {}) =>
      each(prompts, signal, (prompt) => tokenizer.render(prompt, options)),
  };
}

/** Renders prompts for generation, and returns the error of each that fails: a template may refuse some chats. */
export async function renderEach(
  tokenizer: BulkTokenizer,
  prompts: readonly Prompt[],
  render = (some: readonly Prompt[]): Promise<readonly RenderedPrompt[]> => tokenizer.render(some),
): Promise<readonly PromiseSettledResult<RenderedPrompt>[]> {
  try {
    return (await render(prompts)).map((value) => ({ status: "fulfilled", value }));
  } catch {
    return Promise.allSettled(prompts.map(async (prompt) => (await render([prompt]))[0]!));
  }
}
