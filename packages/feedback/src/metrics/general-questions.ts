import * as z from "zod";
import { readNamedFile } from "../config/file-errors.ts";
import { saysOneOf } from "../graders/shipped.ts";
import type { GeneralProbe } from "./general-probes.ts";

/** A question that shows general ability, with the words of a right answer. */
export interface GeneralQuestion {
  readonly prompt: string;
  /** The answer is right if it contains one of these strings as whole words, in any case. */
  readonly says: readonly string[];
}

/** Minimum number of questions: with fewer, one answer decides whether 0.8 of the ability is left. */
const minQuestions = 8;

const text = z.string("a non-empty string").refine((value) => value.trim() !== "", "a non-empty string");
const saysRule = "a string, or a non-empty array of strings";
const question = z.strictObject(
  {
    prompt: text,
    says: z.union([text.transform((one) => [one]), z.array(text).min(1)], saysRule),
  } satisfies Record<keyof GeneralQuestion, z.ZodType>,
  "an object with prompt and says",
);
const schema = z.strictObject(
  {
    questions: z
      .array(question, "an array of questions")
      .min(minQuestions, `at least ${minQuestions} questions`),
  },
  "an object with questions",
);

/**
 * Reads questions from a YAML file `{ questions: [{ prompt, says }] }`.
 *
 * @param where The configuration key of the path, for errors.
 * @throws PeriodicEvalError `config` for a missing file, or with file and line for wrong content.
 */
export async function readGeneralQuestions(
  path: string,
  where = "general_probes",
): Promise<readonly GeneralQuestion[]> {
  const expected = "a YAML file { questions: [{ prompt, says }] }";
  return (await readNamedFile(path, schema, { where, expected })).questions;
}

/** Returns a probe that scores 1 for an answer with the right words, and 0 for any other. */
export function probeOf({ prompt, says }: GeneralQuestion, at: number): GeneralProbe {
  const isRight = saysOneOf(says, true);
  return {
    id: `question_${at}`,
    kind: "instruction",
    prompt,
    score: async (answer) =>
      isRight(answer) === 1
        ? { score: 1, raw: null }
        : { score: 0, raw: `not ${says.join(" or ")}: ${JSON.stringify(answer.slice(0, 60))}` },
  };
}
