import type { Message, Prompt } from "@periodic-eval/core";
import { pythonWhitespace } from "@periodic-eval/core/internal";
import type { ChatOptions } from "./task.ts";

/** A solved example. */
export interface Example {
  readonly question: string;
  readonly answer: string;
}

export interface HarnessPrompt {
  /** Stands before the examples; of a chat, in its system message. */
  readonly description: string;
  readonly examples: readonly Example[];
  readonly question: string;
  /** Left out: plain text. */
  readonly chat?: ChatOptions | undefined;
}

const [targetDelimiter, fewshotDelimiter] = [" ", "\n\n"];

/**
 * A prompt as lm-evaluation-harness 0.4.13 forms it (`ConfigurableTask.fewshot_context`). As text: description, each
 * example `question answer` and a blank line, the question. As a chat: system text and description in one system message,
 * where there is either; then each example a user and an assistant turn, or all of it in one user turn.
 *
 * Deviations: `system: ""` is passed as an empty system message, which keeps a template from injecting its own (the harness
 * passes none). Where a template refuses system messages the prompt is a template failure (the harness drops them). White
 * space that ends a template's generation prompt stays in the context of a choice (the harness scores it with the choice):
 * the log-likelihoods of all choices of a question differ by that of the white space alike, by up to 3.5e-3 of SmolLM2's.
 */
export function harnessPrompt({ description, examples, question, chat }: HarnessPrompt): Prompt {
  if (chat === undefined) return { text: `${description}${asText(examples)}${question}` };
  const system = joined(chat.system ?? "", description);
  const turns = examples.flatMap((one): Message[] => [
    { role: "user", content: one.question },
    { role: "assistant", content: one.answer },
  ]);
  const messages =
    chat.fewshotAsMultiturn === false
      ? [{ role: "user", content: `${asText(examples)}${question}` }]
      : [...turns, { role: "user", content: question }];
  const isNone = system === "" && chat.system === undefined;
  return isNone ? { messages } : { messages, system: { text: system } };
}

/** Between prompt and choice: in a chat the choice begins the assistant's turn. */
export const choiceDelimiter = (chat: ChatOptions | undefined): string =>
  chat === undefined ? targetDelimiter : "";

const asText = (examples: readonly Example[]): string =>
  examples
    .map(({ question, answer }) => `${question}${targetDelimiter}${answer}${fewshotDelimiter}`)
    .join("");

/** A blank line between, where neither has white space at the seam. */
function joined(system: string, description: string): string {
  if (system === "" || description === "") return system + description;
  const hasSpace = endsInSpace.test(system) || beginsWithSpace.test(description);
  return `${system}${hasSpace ? "" : fewshotDelimiter}${description}`;
}

const endsInSpace = new RegExp(`${pythonWhitespace}$`, "u");
const beginsWithSpace = new RegExp(`^${pythonWhitespace}`, "u");
