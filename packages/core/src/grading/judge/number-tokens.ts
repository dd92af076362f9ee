import type { Prompt, Tokenizer } from "../../contracts/model.ts";
import { errorMessage } from "../../internal/error-message.ts";

/** The integers that a judge may answer. */
export const numbers: readonly string[] = Array.from({ length: 101 }, (_, value) => String(value));

/** All prefixes of the two words that a judge may answer instead, from the shortest to the whole word. */
export const wordStarts: readonly string[] = ["CODE", "REFUSAL"].flatMap((word) =>
  Array.from(word, (_, at) => word.slice(0, at + 1)),
);

/** The tokens that an answer may start with, or why the numbers are not single tokens. */
export type AnswerTokens =
  | { readonly ids: readonly number[]; readonly texts: readonly string[] }
  | { readonly fault: string };

/**
 * Proves that each of 0–100 is one distinct token at the start of the judge's answer: the prompt's ids and one more. The result
 * also contains the numbers after a space and the prefixes of CODE and REFUSAL, if they are one token there.
 */
export function answerTokens(tokenizer: Tokenizer, prompt: Prompt): AnswerTokens {
  try {
    const { text, ids: before } = tokenizer.render(prompt);
    if (text === null) return { fault: "the prompt renders to no text" };
    const tokens = new Map<number, string>();
    const add = (answer: string): string | null => {
      const ids = tokenizer.encode(text + answer, { specialTokens: false });
      const own = ids.slice(before.length);
      if (before.some((id, at) => ids[at] !== id))
        return `"${answer}" changes the tokens of the prompt before it`;
      if (own.length !== 1) return `"${answer}" is ${own.length} tokens`;
      if (tokens.has(own[0]!)) return `"${answer}" and "${tokens.get(own[0]!)}" are one token`;
      tokens.set(own[0]!, answer);
      return null;
    };
    for (const number of numbers) {
      const fault = add(number);
      if (fault !== null) return { fault };
    }
    for (const more of [...numbers.map((number) => ` ${number}`), ...wordStarts]) add(more);
    return { ids: [...tokens.keys()], texts: [...tokens.values()] };
  } catch (error) {
    return { fault: `the judge's chat template failed (${errorMessage(error)})` };
  }
}
