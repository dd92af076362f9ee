import type { Abilities, GenerateRequest, Json, MeasureContext, Prompt, Row } from "@periodic-eval/core";
import { hashJson, seedOf } from "@periodic-eval/core/random";
import { opensThinking, stripThinking } from "@periodic-eval/core/evaluations";
import type { BenchmarkCompletion } from "./benchmark-task.ts";
import type { AnsweredCompletion, CompletionModel } from "./engine.ts";

export interface GenerationOptions {
  readonly numSamples: number;
  readonly maxTokens: number;
  readonly temperature: number;
  readonly nConcurrent: number;
}

/** Returns how many tasks make at most `nConcurrent` requests; at least one. */
export const tasksPerCall = ({ numSamples, nConcurrent }: GenerationOptions): number =>
  Math.max(1, Math.floor(nConcurrent / numSamples));

/**
 * Generates `numSamples` completions of each task, with at most `nConcurrent` requests at once. Each completion has its own
 * random stream, named by step, prompt and sample, so that equal prompts at one step share completions.
 *
 * @param model A model whose evaluation wants the ability `tokenizer`.
 * @returns The completions by item id.
 */
export async function generateFor(
  model: Pick<CompletionModel, "generate">,
  items: readonly (Row & { readonly chat: Prompt })[],
  how: GenerationOptions,
  { signal, seed }: MeasureContext,
): Promise<ReadonlyMap<string, readonly BenchmarkCompletion[]>> {
  const { numSamples, maxTokens, temperature, nConcurrent } = how;
  const requests = items.flatMap(({ chat }) => {
    const named = hashJson(chat as unknown as Json);
    return Array.from({ length: numSamples }, (_, sample): GenerateRequest => {
      const sampling = { maxNewTokens: maxTokens, temperature, seed: seedOf(seed, named, sample) };
      return { prompt: chat, sampling };
    });
  });
  const completions: AnsweredCompletion[] = [];
  while (completions.length < requests.length) {
    const next = requests.slice(completions.length, completions.length + nConcurrent);
    completions.push(...(await model.generate(next, { signal })));
  }
  const written = completions.values();
  return new Map(
    items.map(({ id, chat }) => {
      const isOpened = opensThinking(model, chat);
      const promptTokens = tokensOf(model, chat);
      const own = Array.from({ length: numSamples }, () => {
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
      return [id, own];
    }),
  );
}

/** Returns the number of prompt tokens; null if the model has no tokenizer. */
export function tokensOf(model: object, chat: Prompt): number | null {
  const { tokenizer } = model as Partial<Abilities>;
  return tokenizer === undefined ? null : tokenizer.render(chat, { ending: "generation" }).ids.length;
}
