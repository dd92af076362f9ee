import type { Abilities, MeasureContext, Prompt, RenderedPrompt, Row } from "@periodic-eval/core";
import { opensThinking, renderEach, requestsFor, stripThinking } from "@periodic-eval/core/evaluations";
import type { CompleteOptions } from "./benchmark-options.ts";
import type { BenchmarkCompletion } from "./benchmark-task.ts";
import type { AnsweredCompletion, CompletionModel } from "./engine.ts";

export type GenerationOptions = Pick<
  CompleteOptions,
  "numSamples" | "maxTokens" | "temperature" | "nConcurrent"
>;

/** Returns how many tasks make at most `nConcurrent` requests; at least one. */
export const tasksPerCall = ({ numSamples, nConcurrent }: GenerationOptions): number =>
  Math.max(1, Math.floor(nConcurrent / numSamples));

/**
 * Generates `numSamples` completions of each task, with at most `nConcurrent` requests at once. Each completion has its own
 * random stream, named by step, prompt and sample, so that equal prompts at one step share completions.
 *
 * @param rendered The chats as `renderChats` returns them, at least those of the items.
 * @returns The completions by item id.
 */
export async function generateFor(
  model: Pick<CompletionModel, "generate">,
  items: readonly (Row & { readonly chat: Prompt })[],
  { rendered, ...how }: GenerationOptions & { readonly rendered: RenderedChats },
  { signal, seed }: MeasureContext,
): Promise<ReadonlyMap<string, readonly BenchmarkCompletion[]>> {
  const { numSamples, maxTokens, temperature, nConcurrent } = how;
  const chats = items.map(({ chat }) => chat);
  const requests = requestsFor(
    chats,
    { first: 0, end: numSamples },
    { maxNewTokens: maxTokens, temperature },
    seed,
  );
  const completions: AnsweredCompletion[] = [];
  while (completions.length < requests.length) {
    const next = requests.slice(completions.length, completions.length + nConcurrent);
    completions.push(...(await model.generate(next, { signal })));
  }
  const written = completions.values();
  return new Map(
    items.map(({ id, chat }) => {
      const prompt = rendered.get(chat);
      if (prompt?.status === "rejected") throw prompt.reason;
      const isOpened = opensThinking(prompt?.value.text ?? null);
      const promptTokens = prompt?.value.ids.length ?? null;
      const samples = Array.from({ length: numSamples }, () => {
        const { text, ids, finish, usage } = written.next().value!;
        return {
          text,
          answer: stripThinking(text, { isOpened }),
          ids,
          finish,
          inputTokens: usage?.inputTokens ?? promptTokens,
          outputTokens: usage?.outputTokens ?? ids?.length ?? null,
        };
      });
      return [id, samples];
    }),
  );
}

/** Chats as the tokenizer renders them, or the error of each that its template refuses. */
export type RenderedChats = ReadonlyMap<Prompt, PromiseSettledResult<RenderedPrompt>>;

/** Renders chats with one call; returns an empty map for a model without a tokenizer. */
export async function renderChats(model: object, chats: readonly Prompt[]): Promise<RenderedChats> {
  const { tokenizer } = model as Partial<Abilities>;
  if (tokenizer === undefined) return new Map();
  const rendered = await renderEach(tokenizer, chats);
  return new Map(chats.map((chat, at) => [chat, rendered[at]!]));
}
