import { countOf, nltkPattern, pattern, words } from "./pattern.ts";
import { sentences } from "./sentences.ts";

const runs = nltkPattern(String.raw`\w+`, "g");

/** Counts runs of letters, digits and underscores ("don't" has two), like NLTK's `RegexpTokenizer(r"\w+")`. */
export const countWords = (text: string): number => countOf(runs, text);

type Rule = readonly [found: RegExp, put: string];
const rule = (source: string, put: string, flags = "g"): Rule => [nltkPattern(source, flags), put];
const apart = (source: string): Rule => rule(source, " $& ");

const openingQuotes: readonly Rule[] = [
  apart("[‘“„«]|\x60+"),
  rule('^"', "``"),
  apart("``"),
  rule(String.raw`(?<=[ <({[])(?:''|")`, " `` "),
  // Splits 'tis, but not clitics such as 's.
  rule(String.raw`(?<!\w)'(?=\w)(?!(?:[dmnst]|ll|[rv]e)\b)`, "$& ", "gi"),
];

const marks: readonly Rule[] = [
  // Splits the last period; others are part of their word. NLTK's `\s*` could also match the spaces before it.
  rule(String.raw`(?<=[^.])\.([ "'’”»>)}\]]*)(?:(?! )\s\s*)?$`, " . $1 "),
  rule(String.raw`([,:])([^\d])`, " $1 $2"),
  apart("[,:]$"),
  apart(String.raw`\.\.+`),
  apart(String.raw`[!?;*@#$%&‒–—―]`),
  rule("(?<=[^'])' ", " ' "),
  apart(String.raw`[<>(){}[\]]|--`),
];

const closingQuotes: readonly Rule[] = [
  apart("[’”»]|''"),
  rule('"', " '' "),
  rule(String.raw`\s+`, " "),
  rule("(?<=[^' ])'[dmsDMS]? ", " $&"),
  rule("(?<=[^' ])(?:'(?:[rv]e|[RV]E|ll|LL)|n't|N'T) ", " $&"),
];

/** Contractions of two words. These are the only rules that NLTK compiles with Python's `re`. */
const contractions: readonly Rule[] = [
  ...["can not", "d 'ye", "gim me", "gon na", "got ta", "lem me", "more 'n"].map(
    (parts) => String.raw`\b(${parts.replace(" ", ")(")})\b`,
  ),
  String.raw`\b(wan)(na)(?=\s)`,
  String.raw` ('t)(is|was)\b`,
].map((source) => [pattern(source, "gi"), " $1 $2 "]);

/**
 * Splits each sentence into words, numbers and marks as in the Penn Treebank: "DON'T" becomes `DO` and `N'T`; hyphens do not
 * split. The rules are Robert MacIntyre's, with the quotes and dashes that NLTK 3.10 adds (`word_tokenize`).
 */
export const treebankWords = (text: string): string[] => sentences(text).flatMap(wordsOfSentence);

function wordsOfSentence(sentence: string): string[] {
  const marked = put([...openingQuotes, ...marks], sentence);
  return words(put([...closingQuotes, ...contractions], ` ${marked} `));
}

const put = (rules: readonly Rule[], text: string): string =>
  rules.reduce((changed, [regex, replacement]) => changed.replace(regex, replacement), text);
