/** What stands where no number was found, as lm-evaluation-harness has it. */
const invalid = "[invalid]";

/** The filters of gsm8k, by name: what of a completion is compared. */
export const answerFilters = {
  /** The number behind the first `#### `. */
  "strict-match": (text: string): string => /#### (-?[0-9.,]+)/.exec(text)?.[1] ?? invalid,
  /** The last thing that looks like a number. */
  "flexible-extract": (text: string): string => text.match(/-?[$0-9.,]{2,}|-?[0-9]+/g)?.at(-1) ?? invalid,
} as const;

export type AnswerFilter = keyof typeof answerFilters;

/** Removed before answers are compared: commas, dollar signs, all up to the last `#### `, a full stop at the end. */
const ignored = [/,/g, /\$/g, /[^]*#### /g, /\.(?=\n?$)/g];

/** `exact_match` of lm-evaluation-harness 0.4.13, as its gsm8k has it: what is ignored taken away, whatever the case. */
export function isSameAnswer(extracted: string, reference: string): boolean {
  return normalized(extracted) === normalized(reference);
}

const normalized = (text: string): string =>
  ignored.reduce((rest, pattern) => rest.replaceAll(pattern, ""), text).toLowerCase();
