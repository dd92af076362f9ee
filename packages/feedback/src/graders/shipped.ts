import { PeriodicEvalError, ruleGrader, type Grader } from "@periodic-eval/core";
import type { VerifierArgs } from "@periodic-eval/core/grading";
import { checkKeys, quoteValue } from "@periodic-eval/core/internal";
import { stripThinking } from "@periodic-eval/core/evaluations";
import { findEmoji } from "./emoji.ts";
import { countSentences, countWords } from "./sentences.ts";

/** Reward from 0 to 1 of an answer whose thinking is taken off. */
type Rule = (answer: string) => number;

interface Shipped {
  readonly args: readonly string[];
  /** @throws PeriodicEvalError `config` at `where` for wrong arguments. */
  open(args: VerifierArgs, where: string): Rule;
}

/** Up to so many sentences an answer is concise; from so many on it is not at all. */
const [concise, verbose] = [3, 9];
/** An answer of fewer words is no answer: a model that falls silent shall not pass for a concise one. */
const fewestWords = 10;

/** 1 where there is no emoji; an answer without a word, which has none either, gets 0. */
export const noEmoji: Rule = (answer) => (findEmoji(answer).length === 0 && countWords(answer) > 0 ? 1 : 0);

/** 1 up to three sentences, 0 from nine on, linear between; 0 for fewer than ten words. */
export const conciseness: Rule = (answer) => {
  if (countWords(answer) < fewestWords) return 0;
  return Math.min(1, Math.max(0, (verbose - countSentences(answer)) / (verbose - concise)));
};

/** 1 where an answer says one of these, as whole words, capitals aside. What is said about it is not looked at. */
export function saysOneOf(texts: readonly string[]): Rule {
  const escaped = texts.map((one) =>
    one
      .trim()
      .replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`)
      .replaceAll(/\s+/g, String.raw`\s+`),
  );
  const pattern = new RegExp(String.raw`(?<![\p{L}\p{N}])(?:${escaped.join("|")})(?![\p{L}\p{N}])`, "iu");
  return (answer) => (pattern.test(answer) ? 1 : 0);
}

export const shippedVerifiers: Readonly<Record<string, Shipped>> = {
  no_emoji: { args: [], open: () => noEmoji },
  concise: { args: [], open: () => conciseness },
  /** `says`: a name, or a list of what the model may call itself. */
  identity: {
    args: ["says"],
    open({ says = "Wren" }, where) {
      const texts: unknown = typeof says === "string" ? [says] : says;
      if (
        Array.isArray(texts) &&
        texts.length > 0 &&
        texts.every((one) => typeof one === "string" && one.trim() !== "")
      )
        return saysOneOf(texts);
      throw new PeriodicEvalError({
        code: "config",
        where: `${where}.says`,
        got: quoteValue(says),
        expected: "a name, or a list of names",
        fix: "Write what the model shall call itself.",
      });
    },
  },
};

/**
 * A grader that ships, by its name: its verdicts have the score `reward`, from 0 to 1. Thinking (`<think>…</think>`) is
 * taken off first; where it does not end there is no answer, and the verdict is `unparsed`.
 *
 * @throws PeriodicEvalError `config` for arguments that it does not have.
 */
export function shippedGrader(name: string, args: VerifierArgs, where: string): Grader {
  const { args: known, open } = shippedVerifiers[name]!;
  checkKeys(where, args, known);
  const rule = open(args, where);
  return ruleGrader({
    name,
    version: `1 ${quoteValue(args)}`,
    rule(_, text) {
      const answer = stripThinking(text);
      return answer === null ? null : { reward: rule(answer) };
    },
  });
}
