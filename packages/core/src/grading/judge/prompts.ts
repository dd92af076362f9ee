import { configError } from "../../internal/config-error.ts";
import { parseOptions } from "../../internal/parse-options.ts";
import { z } from "zod";
import { defaultPrompt, defaultScores } from "./alignment-prompts.ts";
import type { JudgeMethodName } from "./method.ts";

/** Returns the names of a judge's prompts: one prompt for all scores (`json`), or one per score (`logprob`). */
export const judgePromptNames = (
  method: JudgeMethodName,
  scores: readonly string[] = defaultScores,
): readonly string[] => (method === "json" ? ["json"] : scores);

const hasAnswer = (prompt: unknown): boolean => typeof prompt === "string" && prompt.includes("{answer}");
const promptSchema = z
  .custom<string>(hasAnswer, "a string with {answer}")
  .meta({ fix: "Write {question} and {answer} where the judge should see them." });

/**
 * Returns the prompt for each name: the custom one, or the default.
 *
 * @param custom The judge's option `prompts`.
 * @throws PeriodicEvalError `config` for a name that the method does not have, a prompt without `{answer}`, or a missing prompt.
 */
export function resolvePrompts(
  names: readonly string[],
  method: JudgeMethodName,
  scores: readonly string[],
  custom: Readonly<Record<string, string>> = {},
): Readonly<Record<string, string>> {
  const where = "judgeGrader options";
  const shape = Object.fromEntries(names.map((name) => [name, promptSchema.optional()]));
  parseOptions(where, z.strictObject({ prompts: z.strictObject(shape) }), { prompts: custom });
  return Object.fromEntries(
    names.map((name) => {
      const prompt = Object.hasOwn(custom, name) ? custom[name]! : defaultPrompt(method, name, scores);
      if (prompt !== null) return [name, prompt];
      throw configError({
        where,
        path: ["prompts", name],
        got: `no prompt for the scores ${scores.join(", ")}`,
        expected: "a prompt: only aligned and coherent have default prompts",
        fix: `Set prompts: { ${name}: "… {question} … {answer} …" }.`,
      });
    }),
  );
}

/** @throws PeriodicEvalError `config` for a prompt without `{answer}`. */
export function checkPrompt(where: string, prompt: unknown): asserts prompt is string {
  parseOptions(where, promptSchema, prompt);
}

/** Replaces both placeholders in one pass: a question that contains `{answer}` stays as it is. */
export function fillPrompt(prompt: string, question: string, answer: string): string {
  return prompt.replaceAll(/\{(question|answer)\}/g, (_, name) => (name === "question" ? question : answer));
}
