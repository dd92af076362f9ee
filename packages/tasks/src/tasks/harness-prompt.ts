import type { Message, Prompt } from "@periodic-eval/core";
import { pythonWhitespace } from "@periodic-eval/contracts/options";
import type { ChatOptions } from "./task.ts";

/** A solved example. */
export interface Example {
  readonly question: string;
  readonly answer: string;
}

export interface HarnessPrompt {
  /** Comes before the examples; in a chat it is part of the system message. */
  readonly description: string;
  readonly examples: readonly Example[];
  readonly question: string;
  /** Default: plain text. */
  readonly chat?: ChatOptions | undefined;
}

const [targetDelimiter, fewshotDelimiter] = [" ", "\n\n"];

/**
 * Builds a prompt as lm-evaluation-harness 0.4.13 does (`ConfigurableTask.fewshot_context`). Plain text is the description, then
 * each example as `question answer` and a blank line, then the question. A chat has one system message with system prompt and
 * description, if there is either; then each example is a user turn and an assistant turn, or everything is one user turn.
 *
 * Deviations: `system: ""` passes an empty system message, which keeps a template from injecting its default (the harness passes
 * none). If a template rejects system messages, the prompt is a template failure (the harness drops the message). Whitespace at
 * the end of a template's generation prompt belongs to the context of a choice (the harness scores it with the choice): the
 * log-likelihoods of all choices of a question shift by that of the whitespace, by up to 3.5e-3 nats on SmolLM2.
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
  const hasNoSystem = system === "" && chat.system === undefined;
  return hasNoSystem ? { messages } : { messages, system: { text: system } };
}

/** Returns the string between prompt and choice. In a chat the choice begins the assistant's turn, so it is empty. */
export const choiceDelimiter = (chat: ChatOptions | undefined): string =>
  chat === undefined ? targetDelimiter : "";

const asText = (examples: readonly Example[]): string =>
  examples
    .map(({ question, answer }) => `${question}${targetDelimiter}${answer}${fewshotDelimiter}`)
    .join("");

/** Joins two strings with a blank line, unless one of them has whitespace at the seam. */
function joined(system: string, description: string): string {
  if (system === "" || description === "") return system + description;
  const hasSpace = endsInSpace.test(system) || beginsWithSpace.test(description);
  return `${system}${hasSpace ? "" : fewshotDelimiter}${description}`;
}

const endsInSpace = new RegExp(`${pythonWhitespace}$`, "u");
const beginsWithSpace = new RegExp(`^${pythonWhitespace}`, "u");
