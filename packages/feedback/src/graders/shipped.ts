import { ruleGrader, type Grader, type GradeRequest } from "@periodic-eval/core";
import type { VerifierArgs } from "@periodic-eval/core/grading";
import { parseOptions, quoteValue } from "@periodic-eval/contracts/options";
import { stripThinking } from "@periodic-eval/core/evaluations";
import * as z from "zod";
import { findEmoji } from "./emoji.ts";
import { countSentences, countWords, isCutOff } from "./sentences.ts";

/** Returns the reward, from 0 to 1, of an answer whose thinking is removed. `finish` is undefined if it is unknown. */
type Rule = (answer: string, finish?: GradeRequest["finish"]) => number;

/** A rule, and the version of its rewards. */
interface VersionedRule {
  readonly rule: Rule;
  readonly version: number;
}

/** Creates a rule. Throws a PeriodicEvalError `config` at `where` for wrong arguments. */
type OpenRule = (args: VerifierArgs, where: string) => VersionedRule;

/** An answer gets the full reward up to the first number of sentences, and none from the second number on. */
const [concise, verbose] = [3, 9];

/** Returns 1 for an answer without emoji, and 0 for one with emoji or without a word. */
export const noEmoji: Rule = (answer) => (findEmoji(answer).length === 0 && countWords(answer) > 0 ? 1 : 0);

/**
 * Returns 1 up to three sentences, and falls linearly to 0 at nine. Returns 0 for an answer without a word and for one that was cut
 * off, so that a model that stops answering does not count as concise. The text shows a cut only if `finish` is unknown.
 */
export const conciseness: Rule = (answer, finish) => {
  const cutOff = finish === undefined ? isCutOff(answer) : finish === "length";
  return countWords(answer) === 0 || cutOff ? 0 : brevity(answer);
};

const brevity: Rule = (answer) =>
  Math.min(1, Math.max(0, (verbose - countSentences(answer)) / (verbose - concise)));

/**
 * Returns 1 for an answer that contains one of the strings, in any case. Ignores the context of the match.
 *
 * @param wholeWords Whether a match inside a longer word does not count.
 */
export function saysOneOf(texts: readonly string[], wholeWords: boolean): Rule {
  const escaped = texts.map((one) =>
    one
      .trim()
      .replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`)
      .replaceAll(/\s+/g, String.raw`\s+`),
  );
  const one = `(?:${escaped.join("|")})`;
  const pattern = new RegExp(wholeWords ? String.raw`(?<![\p{L}\p{N}])${one}(?![\p{L}\p{N}])` : one, "iu");
  return (answer) => (pattern.test(answer) ? 1 : 0);
}

const withoutArgs =
  (versioned: VersionedRule): OpenRule =>
  (args, where) => {
    parseOptions(where, z.strictObject({}), args);
    return versioned;
  };

const namesRule = "a name, or a non-empty array of names";
const isName = (value: unknown) => typeof value === "string" && value.trim() !== "";
const identityArgs = z.strictObject({
  /** The names that the model may call itself. */
  says: z
    .custom<string | readonly string[]>(
      (value) => isName(value) || (Array.isArray(value) && value.length > 0 && value.every(isName)),
      namesRule,
    )
    .meta({ fix: "Write the names that the model may call itself." })
    .default("Kuro"),
});

export const shippedVerifiers: Readonly<Record<string, OpenRule>> = {
  no_emoji: withoutArgs({ rule: noEmoji, version: 1 }),
  concise: withoutArgs({ rule: conciseness, version: 2 }),
  identity(args, where) {
    const { says } = parseOptions(where, identityArgs, args);
    return { rule: saysOneOf(typeof says === "string" ? [says] : says, false), version: 2 };
  },
};

/**
 * Creates a shipped grader by its name. Its verdicts have the score `reward`, from 0 to 1. Thinking (`<think>…</think>`) is
 * removed first; if it does not end, the verdict is `unparsed`.
 *
 * @throws PeriodicEvalError `config` for wrong arguments.
 */
export function shippedGrader(name: string, args: VerifierArgs, where: string): Grader {
  return graderOf(name, args, shippedVerifiers[name]!(args, where));
}

function graderOf(name: string, args: VerifierArgs, { rule, version }: VersionedRule): Grader {
  const graderFor = (finish: GradeRequest["finish"]) =>
    ruleGrader({
      name,
      version: `${version} ${quoteValue(args)}`,
      rule(_, text) {
        const answer = stripThinking(text);
        return answer === null ? null : { reward: rule(answer, finish) };
      },
    });
  return {
    ...graderFor(undefined),
    async grade(requests, options) {
      const verdicts = requests.map((request) => graderFor(request.finish).grade([request], options));
      return (await Promise.all(verdicts)).flat();
    },
  };
}
