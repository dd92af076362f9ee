import type { MeasureContext, Row } from "../evaluation/types.ts";
import type { Json } from "../json.ts";
import type { Prompt, Sampling, With } from "../model/types.ts";
import { hashJson } from "../random/hash.ts";
import { seedOf } from "../random/streams.ts";

/** One question to one persona. */
export interface CompletionItem extends Row {
  readonly question: string;
  /** Id of the persona; null where nobody in particular is asked. */
  readonly persona: string | null;
  readonly prompt: Prompt;
}

/** One completion. Its id is the item's and, behind a `#`, the number of the sample from 0. */
export interface CompletionRow extends Row {
  readonly item: string;
  readonly question: string;
  readonly persona: string | null;
  readonly sample: number;
  readonly text: string;
  /** `length`: it was cut off at `maxNewTokens`, or the model's window. */
  readonly finish: "stop" | "length";
}

/** Items asked in one call, of `inCalls`. */
export const completionItemsPerCall = 16;

/**
 * `samples` completions of each item, in the order of items, in one call. Each draws from a stream of its own, named by
 * step, prompt and sample, whoever asks: evaluations of one step that ask the same prompt under the same sampling share
 * its completions, and items of the same prompt do.
 *
 * @throws whatever the model throws.
 */
export async function sampleCompletions(
  model: With<"generate">,
  items: readonly CompletionItem[],
  { samples, sampling }: { readonly samples: number; readonly sampling: Omit<Sampling, "seed"> },
  { signal, seed }: MeasureContext,
): Promise<readonly CompletionRow[]> {
  const asked = items.flatMap((item) => Array.from({ length: samples }, (_, sample) => ({ item, sample })));
  const requests = asked.map(({ item, sample }) => ({
    prompt: item.prompt,
    sampling: { ...sampling, seed: seedOf(seed, hashJson(item.prompt as unknown as Json), sample) },
  }));
  const written = await model.generate(requests, { signal });
  return asked.map(({ item, sample }, at) => ({
    id: `${item.id}#${sample}`,
    item: item.id,
    question: item.question,
    persona: item.persona,
    sample,
    text: written[at]!.text,
    finish: written[at]!.finish,
  }));
}
