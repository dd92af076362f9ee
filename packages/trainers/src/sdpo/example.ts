import { PeriodicEvalError, type Prompt, type Tokenizer } from "@periodic-eval/core";
import { checkKeys, errorMessage, quoteValue } from "@periodic-eval/core/internal";

/** An answer, and what was said of it. */
export interface SDPOExample {
  /** What was asked, as the model was given it when it answered. */
  readonly prompt: Prompt;
  /** Token ids of the answer, the token that ended it included. */
  readonly response: readonly number[];
  /** log p of each of these when they were drawn, in nats, by the model's own distribution (temperature 1, all tokens). */
  readonly oldLogProbs: readonly number[];
  /** Goes into the last user turn of a chat, where the teacher reads it. */
  readonly feedback?: string;
  /** What the teacher reads before the answer, in place of `feedback`: for prompts that have no turns. */
  readonly teacherPrompt?: Prompt;
}

/** An example as token ids: what the student reads, and what the teacher reads. */
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
  /** As the configuration has it, with `{prompt}` and `{feedback}`. */
  readonly hindsight: string;
  readonly vocabSize: number;
  /** In tokens, prompt and answer together. */
  readonly longest: number;
}

const known = ["prompt", "response", "oldLogProbs", "feedback", "teacherPrompt"] as const;

/** Throws a `data` error, which names the example by its number, for one that cannot be learned from. */
export function readExample(example: SDPOExample, number: number, options: ReadingOptions): RenderedExample {
  const where = `SDPO example ${number}`;
  checkKeys(where, example, known);
  const { oldLogProbs, response } = example;
  const student = readAnswer(example, where, options);
  const isLogProb = (value: unknown) => Number.isFinite(value) && (value as number) <= rounding;
  const wrong = wrongIn(oldLogProbs, isLogProb, "number");
  if (wrong !== null || oldLogProbs.length !== response.length)
    throw refused(
      `${where} oldLogProbs`,
      wrong ?? `${oldLogProbs.length} numbers`,
      `${response.length} log-probs, one for each token of the response`,
      "Give those of sampling, in nats; logProbs() of the trainer reads them before the update.",
    );
  const read = { response, prompt: teacherPromptOf(example, where, options.hindsight) };
  return { student, teacher: readAnswer(read, where, options, "teacher's prompt"), oldLogProbs };
}

const refused = (where: string, got: string, expected: string, fix: string, cause?: unknown) =>
  new PeriodicEvalError({ code: "data", where, got, expected, fix, cause });

/** What is wrong with a list that wants one entry or more of a kind, holes and undefined included; null where nothing is. */
function wrongIn(list: unknown, isRight: (value: unknown) => boolean, kind: string): string | null {
  if (!Array.isArray(list)) return quoteValue(list);
  const at = list.findIndex((value) => !isRight(value));
  if (at !== -1) return `${quoteValue(list[at])} at index ${at}`;
  return list.length === 0 ? `no ${kind}` : null;
}

/** A log-prob of 0 may come out above it by rounding. */
const rounding = 1e-3;

/**
 * The ids of a prompt and of the answer to it.
 *
 * @param promptName how errors call the prompt
 * @throws PeriodicEvalError `data` for what the model cannot read
 */
export function readAnswer(
  { prompt, response }: Pick<SDPOExample, "prompt" | "response">,
  where: string,
  { tokenizer, vocabSize, longest }: Omit<ReadingOptions, "hindsight">,
  promptName = "prompt",
): Scored {
  const isId = (id: unknown) => Number.isInteger(id) && (id as number) >= 0 && (id as number) < vocabSize;
  const ids = `token ids from 0 to ${vocabSize - 1}`;
  const wrongToken = wrongIn(response, isId, "token");
  if (wrongToken !== null)
    throw refused(`${where} response`, wrongToken, ids, "Give the tokens that the model drew.");
  const wherePrompt = `${where} ${promptName}`;
  const before = idsOf(tokenizer, prompt, wherePrompt);
  const wrong = wrongIn(before, isId, "token");
  if (wrong !== null) throw refused(wherePrompt, wrong, ids, "Nothing is predicted without a prompt.");
  const length = before.length + response.length;
  if (length > longest)
    throw refused(
      wherePrompt,
      `${length} tokens with the response`,
      `at most ${longest}, the model's context`,
      "Shorten it.",
    );
  return {
    ids: Int32Array.from([...before, ...response]),
    scored: Int32Array.from(response, (_, at) => before.length + at),
  };
}

function idsOf(tokenizer: Tokenizer, prompt: Prompt, where: string): readonly number[] {
  try {
    return tokenizer.render(prompt).ids;
  } catch (cause) {
    throw refused(
      where,
      errorMessage(cause),
      "a chat that the template renders",
      "Correct the messages.",
      cause,
    );
  }
}

/** The prompt with the feedback in its last user turn. */
function teacherPromptOf(example: SDPOExample, where: string, hindsight: string): Prompt {
  const { prompt, feedback, teacherPrompt } = example;
  const refusedFeedback = (got: string, expected: string, fix: string) =>
    refused(`${where} feedback`, got, expected, fix);
  if ((feedback === undefined) === (teacherPrompt === undefined))
    throw refusedFeedback(
      feedback === undefined ? "neither feedback nor teacherPrompt" : "both feedback and teacherPrompt",
      "one of the two",
      "Give what was said of the response, or what the teacher reads before it.",
    );
  if (teacherPrompt !== undefined) return teacherPrompt;
  if (typeof feedback !== "string" || feedback.trim() === "")
    throw refusedFeedback(quoteValue(feedback), "a text", "Give what was said of the response.");
  const turns = "messages" in prompt ? prompt.messages : [];
  const at = turns.findLastIndex(({ role }) => role === "user");
  if (!("messages" in prompt) || at === -1)
    throw refusedFeedback(
      "feedback beside a prompt without a user turn",
      "a chat with one",
      "Give teacherPrompt in place of feedback.",
    );
  // By pieces: neither text is looked through for what the other one holds.
  const content = hindsight.replaceAll(/\{(prompt|feedback)\}/g, (_, name) =>
    name === "prompt" ? turns[at]!.content : feedback,
  );
  return { ...prompt, messages: turns.with(at, { ...turns[at]!, content }) };
}
