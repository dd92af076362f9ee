import type { MeasureContext, Row } from "../../contracts/evaluation.ts";
import type { Json } from "../../contracts/json.ts";
import type { Prompt, Sampling, ModelWith } from "../../contracts/model.ts";
import { hashJson } from "../../random/hash.ts";
import { seedOf } from "../../random/streams.ts";
import { opensThinking, stripThinking } from "./strip-thinking.ts";

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
  /** What is graded: the text, or what follows its thinking; null where the thinking did not end. */
  readonly answer: string | null;
}

export interface Completing {
  /** Completions of each item. */
  readonly samples: number;
  readonly sampling: Omit<Sampling, "seed">;
  /** The answer is what follows the thinking; else all of the text. */
  readonly stripThinking: boolean;
}

/** Items asked in one call, of `inCalls`. */
export const completionItemsPerCall = 16;

/**
 * `samples` completions of each item, in the order of items, in one call. Each draws from a stream of its own, named by
 * step, prompt and sample, whoever asks: evaluations of one step that ask the same prompt under the same sampling share
 * its completions, and items of the same prompt do.
 *
 * @param model one whose evaluation wants the ability `tokenizer`
 * @throws whatever the model throws.
 */
export async function sampleCompletions(
  model: ModelWith<"generate">,
  items: readonly CompletionItem[],
  { samples, sampling, stripThinking: strips }: Completing,
  { signal, seed }: MeasureContext,
): Promise<readonly CompletionRow[]> {
  const asked = items.flatMap((item) => Array.from({ length: samples }, (_, sample) => ({ item, sample })));
  const requests = asked.map(({ item, sample }) => ({
    prompt: item.prompt,
    sampling: { ...sampling, seed: seedOf(seed, hashJson(item.prompt as unknown as Json), sample) },
  }));
  const written = await model.generate(requests, { signal });
  const opened = new Map(strips ? items.map(({ id, prompt }) => [id, opensThinking(model, prompt)]) : []);
  const answerOf = (item: string, text: string) =>
    strips ? stripThinking(text, { isOpened: opened.get(item)! }) : text;
  return asked.map(({ item, sample }, at) => ({
    id: `${item.id}#${sample}`,
    item: item.id,
    question: item.question,
    persona: item.persona,
    sample,
    text: written[at]!.text,
    finish: written[at]!.finish,
    answer: answerOf(item.id, written[at]!.text),
  }));
}
