import { PeriodicEvalError, type ErrorDetails, type Prompt, type Tokenizer } from "@periodic-eval/core";
import { errorMessage, parseOptions, quoteValue } from "@periodic-eval/contracts/options";
import * as z from "zod";
import { uncheckedField } from "../trainer/trainer-options.ts";

/** An answer of the model, and feedback on it. */
export interface SDPOExample {
  /** The prompt that the model answered. */
  readonly prompt: Prompt;
  /** Token ids of the answer, its stop token included. */
  readonly response: readonly number[];
  /** log p of each of these tokens at sampling, in nats, under the model's own distribution (temperature 1, all tokens). */
  readonly oldLogProbs: readonly number[];
  /** Feedback on the answer. The teacher reads it in the last user turn of the chat. */
  readonly feedback?: string;
  /** The teacher's prompt; an alternative to `feedback`, for prompts without turns. */
  readonly teacherPrompt?: Prompt;
}

/** An example as token ids, for the student and for the teacher. */
export interface RenderedExample {
  readonly student: Scored;
  readonly teacher: Scored;
  readonly oldLogProbs: readonly number[];
}

/** A prompt and the answer, with the positions of the answer's tokens. */
export interface Scored {
  readonly ids: Int32Array;
  readonly scored: Int32Array;
}

export interface ReadingOptions {
  readonly tokenizer: Tokenizer;
  /** `SDPOConfig.hindsight`, with `{prompt}` and `{feedback}`. */
  readonly hindsight: string;
  readonly vocabSize: number;
  /** Maximum tokens of prompt and answer together. */
  readonly longest: number;
}

const exampleSchema = z.strictObject({
  prompt: uncheckedField,
  response: uncheckedField,
  oldLogProbs: uncheckedField,
  feedback: uncheckedField,
  teacherPrompt: uncheckedField,
} satisfies Record<keyof SDPOExample, z.ZodType>);

/**
 * Renders an example.
 *
 * @throws PeriodicEvalError `data`, with the number of the example, if it cannot be learned from; `config` for an unknown key.
 */
export function readExample(example: SDPOExample, number: number, options: ReadingOptions): RenderedExample {
  const where = `SDPO example ${number}`;
  parseOptions(where, exampleSchema, example);
  const { oldLogProbs, response } = example;
  const student = readAnswer(example, where, options);
  const isLogProb = (value: unknown) => Number.isFinite(value) && (value as number) <= rounding;
  const wrong = describeInvalid(oldLogProbs, isLogProb, "number");
  if (wrong !== null || oldLogProbs.length !== response.length)
    throw exampleError({
      where: `${where}.oldLogProbs`,
      got: wrong ?? `${oldLogProbs.length} numbers`,
      expected: `${response.length} log-probs, one per token of the response`,
      fix: "Pass those of sampling, in nats; logProbs() of the trainer computes them before the update.",
    });
  const read = { response, prompt: teacherPromptOf(example, where, options.hindsight) };
  return { student, teacher: readAnswer(read, where, options, "teacherPrompt"), oldLogProbs };
}

const exampleError = (details: Omit<ErrorDetails, "code">): PeriodicEvalError =>
  new PeriodicEvalError({ code: "data", ...details });

/** Describes the first invalid entry of an array, holes included, or an empty array; null if the array is valid. */
function describeInvalid(list: unknown, isValid: (value: unknown) => boolean, kind: string): string | null {
  if (!Array.isArray(list)) return quoteValue(list);
  const at = list.findIndex((value) => !isValid(value));
  if (at !== -1) return `${quoteValue(list[at])} at index ${at}`;
  return list.length === 0 ? `no ${kind}` : null;
}

/** Rounding can lift a log-prob of 0 this far above 0. */
const rounding = 1e-3;

/**
 * Returns the ids of a prompt and the answer to it.
 *
 * @param promptName Names the prompt in errors.
 * @throws PeriodicEvalError `data` if the model cannot read them.
 */
export function readAnswer(
  { prompt, response }: Pick<SDPOExample, "prompt" | "response">,
  where: string,
  { tokenizer, vocabSize, longest }: Omit<ReadingOptions, "hindsight">,
  promptName = "prompt",
): Scored {
  const isId = (id: unknown) => Number.isInteger(id) && (id as number) >= 0 && (id as number) < vocabSize;
  const expected = `token ids from 0 to ${vocabSize - 1}`;
  const wrongToken = describeInvalid(response, isId, "token");
  if (wrongToken !== null)
    throw exampleError({
      where: `${where}.response`,
      got: wrongToken,
      expected,
      fix: "Pass the tokens that the model drew.",
    });
  const promptAt = `${where}.${promptName}`;
  const before = idsOf(tokenizer, prompt, promptAt);
  const wrong = describeInvalid(before, isId, "token");
  if (wrong !== null)
    throw exampleError({
      where: promptAt,
      got: wrong,
      expected,
      fix: "Use the model's tokenizer, and a prompt of one token or more.",
    });
  const length = before.length + response.length;
  if (length > longest)
    throw exampleError({
      where: promptAt,
      got: `${length} tokens with the response`,
      expected: `at most ${longest}, the model's context length`,
      fix: "Shorten it.",
    });
  return {
    ids: Int32Array.from([...before, ...response]),
    scored: Int32Array.from(response, (_, at) => before.length + at),
  };
}

function idsOf(tokenizer: Tokenizer, prompt: Prompt, where: string): readonly number[] {
  try {
    return tokenizer.render(prompt).ids;
  } catch (cause) {
    throw exampleError({
      where,
      got: errorMessage(cause),
      expected: "a chat that the template can render",
      fix: "Correct the messages.",
      cause,
    });
  }
}

/** Returns the teacher's prompt: `teacherPrompt`, or the prompt with the feedback in its last user turn. */
function teacherPromptOf(example: SDPOExample, exampleAt: string, hindsight: string): Prompt {
  const { prompt, feedback, teacherPrompt } = example;
  const where = `${exampleAt}.feedback`;
  if ((feedback === undefined) === (teacherPrompt === undefined))
    throw exampleError({
      where,
      got: feedback === undefined ? "neither feedback nor teacherPrompt" : "both feedback and teacherPrompt",
      expected: "one of the two",
      fix: "Pass the feedback on the response, or the teacher's prompt.",
    });
  if (teacherPrompt !== undefined) return teacherPrompt;
  if (typeof feedback !== "string" || feedback.trim() === "")
    throw exampleError({
      where,
      got: quoteValue(feedback),
      expected: "a non-empty string",
      fix: "Pass the feedback on the response.",
    });
  const turns = "messages" in prompt ? prompt.messages : [];
  const at = turns.findLastIndex(({ role }) => role === "user");
  if (!("messages" in prompt) || at === -1)
    throw exampleError({
      where,
      got: "feedback for a prompt without a user turn",
      expected: "a chat with a user turn",
      fix: "Pass teacherPrompt instead of feedback.",
    });
  // One pass over the template, so that placeholders inside the prompt or the feedback are not replaced.
  const content = hindsight.replaceAll(/\{(prompt|feedback)\}/g, (_, name) =>
    name === "prompt" ? turns[at]!.content : feedback,
  );
  return { ...prompt, messages: turns.with(at, { ...turns[at]!, content }) };
}
