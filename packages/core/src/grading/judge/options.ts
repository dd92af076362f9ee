import { checkKeys } from "../../internal/check-keys.ts";
import { quoteValue } from "../../internal/quote-value.ts";
import { checkWord } from "../../internal/check-word.ts";
import { PeriodicEvalError } from "../../errors.ts";
import { isCount } from "../../internal/is-count.ts";
import type { EvaluableModel } from "../../contracts/model.ts";
import { checkName } from "../../internal/names.ts";
import type { JudgePrice } from "./budget.ts";
import type { JudgeMethodName } from "./method.ts";
import { defaultPrompt } from "./alignment-prompts.ts";
import type { VerdictCache } from "./verdict-cache.ts";

export interface JudgeOptions {
  /** Anything that generates, or tells log-probabilities: a server's model, one in memory. */
  readonly model: EvaluableModel;
  /**
   * - `"json"` (default): one prompt, one JSON object that holds all scores.
   * - `"logprob"`: a prompt per score; the mean over the numbers 0–100 that could come next.
   */
  readonly method?: JudgeMethodName;
  /** Names of the scores, each 0–100; default `aligned`, `coherent`. */
  readonly scores?: readonly string[];
  /**
   * With `{question}` and `{answer}` in them: by score for `logprob`, one named `json` for `json`. Ours, for the scores
   * `aligned` and `coherent`, where left out. `GradeRequest.prompts` go before them, under the same names.
   */
  readonly prompts?: Readonly<Record<string, string>>;
  /** Default: the model's. */
  readonly name?: string;
  /** The longest reply of method `json`, in tokens; default 512. A judge that thinks before it speaks needs more. */
  readonly maxReplyTokens?: number;
  /** Answers judged at a time; default 8. */
  readonly concurrency?: number;
  /** For one call, with all attempts that the model's client makes of it; default 360. */
  readonly timeoutSeconds?: number;
  /**
   * Calls per `grade`: requests, those that a server's client repeats included. The answers beyond get an `error` verdict, and
   * so does one whose request could not be repeated. Default: no cap.
   */
  readonly maxCalls?: number;
  /**
   * Cost per `grade`, in the currency of `price`; the answers beyond get an `error` verdict. An answer is asked only where
   * the most it could cost still fits: a token in for each byte of its prompts, and the longest reply; so is a request
   * repeated. One that may be billed without an answer (a time-out, a 5xx) counts as the most, one that cannot be (a refused
   * connection, a 429) as nothing.
   */
  readonly maxCost?: number;
  readonly price?: JudgePrice;
  /** Default: none. */
  readonly cache?: VerdictCache;
}

const known = {
  model: true,
  method: true,
  scores: true,
  prompts: true,
  name: true,
  maxReplyTokens: true,
  concurrency: true,
  timeoutSeconds: true,
  maxCalls: true,
  maxCost: true,
  price: true,
  cache: true,
} as const satisfies Record<keyof JudgeOptions, true>;

/** Names of all options of a judge. */
export const judgeOptionNames = Object.keys(known) as (keyof JudgeOptions)[];

/** @throws PeriodicEvalError `config`. */
export function checkJudgeOptions(options: JudgeOptions): void {
  checkKeys("judgeGrader", options, judgeOptionNames);
  const { method = "json", scores, price, maxCost } = options;
  checkWord("judgeGrader.method", method, ["json", "logprob"]);
  if (scores !== undefined) {
    if (!Array.isArray(scores) || scores.length === 0 || new Set(scores).size !== scores.length)
      throw wrong("scores", scores, "a list of different names", "Leave it out for aligned, coherent.");
    for (const score of scores) checkName("judgeGrader.scores", score as string);
  }
  for (const name of ["maxReplyTokens", "concurrency", "maxCalls"] as const) {
    const least = name === "maxCalls" ? 0 : 1;
    if (options[name] !== undefined && !isCount(options[name], least))
      throw wrong(name, options[name], `a whole number of ${least} or more`, "Leave it out for the default.");
  }
  const { timeoutSeconds } = options;
  if (timeoutSeconds !== undefined && !(Number.isFinite(timeoutSeconds) && timeoutSeconds > 0))
    throw wrong("timeoutSeconds", timeoutSeconds, "a finite number over 0", "Leave it out for 360.");
  if (price !== undefined) {
    checkKeys("judgeGrader.price", price, ["inputPerMillion", "outputPerMillion"]);
    for (const name of ["inputPerMillion", "outputPerMillion"] as const) {
      if (!isAmount(price[name]))
        throw wrong(
          `price.${name}`,
          price[name],
          "a finite number of 0 or more",
          "Look it up with the judge's provider.",
        );
    }
  }
  if (maxCost === undefined) return;
  if (!isAmount(maxCost))
    throw wrong("maxCost", maxCost, "a finite number of 0 or more", "Leave it out for no cap.");
  if (price === undefined)
    throw wrong(
      "maxCost",
      `${maxCost} without a price`,
      "a price to reckon the cost by",
      "Give price: { inputPerMillion, outputPerMillion }, or cap by maxCalls.",
    );
}

/**
 * The prompt for each of the method's names: given, or ours.
 *
 * @throws PeriodicEvalError `config` for a name that the method has not, a prompt without `{answer}`, or none.
 */
export function promptsOf(
  names: readonly string[],
  method: JudgeMethodName,
  scores: readonly string[],
  given: Readonly<Record<string, string>> = {},
): Readonly<Record<string, string>> {
  checkKeys("judgeGrader.prompts", given, names);
  return Object.fromEntries(
    names.map((name) => {
      const prompt = Object.hasOwn(given, name) ? given[name]! : defaultPrompt(method, name, scores);
      if (prompt === null)
        throw wrong(
          `prompts.${name}`,
          `nothing, for the scores ${scores.join(", ")}`,
          "a prompt: there are ones of ours for aligned and coherent only",
          `Give prompts: { ${name}: "… {question} … {answer} …" }.`,
        );
      checkPrompt(`judgeGrader.prompts.${name}`, prompt);
      return [name, prompt];
    }),
  );
}

/** @throws PeriodicEvalError `config` for what is no prompt, or has no place for the answer. */
export function checkPrompt(where: string, prompt: unknown): asserts prompt is string {
  if (typeof prompt === "string" && prompt.includes("{answer}")) return;
  throw new PeriodicEvalError({
    code: "config",
    where,
    got: quoteValue(prompt),
    expected: "a text with {answer} in it",
    fix: "Write {question} and {answer} where they shall stand.",
  });
}

const isAmount = (value: unknown): value is number => Number.isFinite(value) && (value as number) >= 0;

function wrong(option: string, got: unknown, expected: string, fix: string): PeriodicEvalError {
  return new PeriodicEvalError({
    code: "config",
    where: `judgeGrader.${option}`,
    got: typeof got === "string" ? got : quoteValue(got),
    expected,
    fix,
  });
}
