import { isRecord } from "@periodic-eval/core/internal";

/** Replacements that multiply a text by more than this could exhaust the memory. */
const maxGrowth = 1_000;

/**
 * Returns the factor by which the replacements of a normalizer or decoder could multiply the length of a text. A regular expression
 * counts as one that matches before every character.
 */
export function growthOf(part: unknown): number {
  if (!isRecord(part)) return 1;
  const { pattern, content, normalizers, decoders } = part;
  const inner = [normalizers, decoders].filter(Array.isArray).flat();
  const own =
    isRecord(pattern) && typeof content === "string" ? growthOfReplacement(pattern["String"], content) : 1;
  return inner.reduce<number>((product, one) => product * growthOf(one), own);
}

const growthOfReplacement = (text: unknown, { length }: string): number =>
  typeof text === "string" && text !== "" ? Math.max(1, length / text.length) : 1 + length;

/** Whether the replacements of this normalizer or decoder multiply a text too often. */
export const growsTooMuch = (part: unknown): boolean => growthOf(part) > maxGrowth;

/** Whether the regular expressions of a pipeline may together take very long for a short text. */
export const holdsSlowPattern = (part: unknown): boolean =>
  patternsIn(part).reduce((sum, pattern) => (sum > maxWays ? sum : sum + workOf(pattern).ways), 0) > maxWays;

/** Whether a pipeline holds a regular expression that no time limit may end: the engine cannot be interrupted between alternatives. */
export const holdsEndlessPattern = (part: unknown): boolean =>
  patternsIn(part).some((pattern) => workOf(pattern).choices > maxChoices);

/** Published pipelines have less than half. */
const maxWays = 200;
/** Published patterns have less than ten. */
const maxChoices = 100_000;
/** In characters. Published ones have less than half. */
const maxPattern = 4_000;
const quantifiers = /[*+?]|\{\d*,?\d*\}/y;

function patternsIn(part: unknown): readonly string[] {
  if (!isRecord(part) && !Array.isArray(part)) return [];
  return Object.entries(part).flatMap(([name, inner]) =>
    name === "Regex" && typeof inner === "string" ? [inner] : patternsIn(inner),
  );
}

/** Whether a model may take seconds for a text of a thousand characters. No published model does. */
export function isSlowModel(model: Readonly<Record<string, unknown>>): boolean {
  const { max_input_chars_per_word: longest = 100, continuing_subword_prefix: prefix = "##" } = model;
  // WordPiece takes the cube of a word's length, and writes the prefix at each try.
  return (
    model["type"] === "WordPiece" &&
    !(Number(longest) <= 200 && typeof prefix === "string" && prefix.length < 10)
  );
}

/**
 * Returns the work that a regular expression may need.
 * - `ways`: in how many ways its optional parts and alternatives combine; each way takes at most the cube of a text's length.
 *   Infinity if it repeats a group that can match one text in several ways, as in `(a+)+` or `(a?a){9}`, which takes exponential
 *   time, or has three repetitions in one alternative, as in `a*a*a*b`.
 * - `choices`: in how many ways the alternatives of its groups combine. The engine copies a group that is repeated up to three times.
 */
function workOf(pattern: string): { readonly ways: number; readonly choices: number } {
  if (pattern.length > maxPattern) return { ways: Infinity, choices: Infinity };
  // Escapes and classes are single characters here.
  const plain = pattern.replaceAll(/\\./gsu, "x").replaceAll(/\[[^\]]*\]/gu, "x");
  /** Of each open group: its alternatives, whether it can match in several ways, and the choices before it. */
  const open: { alternatives: number; isAmbiguous: boolean; readonly before: number }[] = [];
  let [sum, ways, repetitions, choices] = [0, 1, 0, 1];
  for (let at = 0; at < plain.length; at++) {
    const sign = plain[at]!;
    quantifiers.lastIndex = at + 1;
    const [quantifier = ""] = sign === "(" ? [] : (quantifiers.exec(plain) ?? []);
    const isOptional = quantifier === "?";
    const isChoice = /[*+?,]/.test(quantifier);
    if (isOptional) ways *= 2;
    else if (isChoice && ++repetitions > 2) ways = Infinity;
    if (sign === "(") open.push({ alternatives: 1, isAmbiguous: false, before: choices });
    else if (sign === "|" && open.length > 0) {
      open.at(-1)!.alternatives += 1;
      open.at(-1)!.isAmbiguous = true;
    } else if (sign === "|") {
      sum += ways;
      [ways, repetitions] = [1, 0];
    }
    const group = sign === ")" ? open.pop() : undefined;
    if (group !== undefined) {
      const own = (choices / group.before) * group.alternatives;
      ways *= group.alternatives;
      choices = group.before * (quantifier.startsWith("{") ? own ** 3 : own);
      if (group.isAmbiguous && quantifier !== "" && !isOptional) ways = Infinity;
    }
    if (choices > maxChoices) return { ways: Infinity, choices };
    if (open.length > 0) open.at(-1)!.isAmbiguous ||= isChoice || group?.isAmbiguous === true;
  }
  return { ways: sum + ways, choices };
}
