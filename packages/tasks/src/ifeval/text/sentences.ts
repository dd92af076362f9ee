import { readFileSync } from "node:fs";
import { nltkPattern, isLower, isUpper, stripEnd } from "./pattern.ts";

const read = new Map<string, ReadonlySet<string>>();

/**
 * Whether a word is in a file of `tables/`. The words are general knowledge, not NLTK's English model, whose licence is not stated;
 * benchmarks/results/ifeval.md reports how often both decide alike.
 *
 * - `abbreviations`: their period ends no sentence, unless the next word looks like a beginning. "etc.", "e.g." and "i.e." are not
 *   listed, because NLTK ends a sentence after them.
 * - `openers` are rarely part of a name. Capitalized, they begin a sentence even after an abbreviation or an ellipsis.
 * - `common-words` are usually in lower case. Capitalized, they begin a sentence after an initial: "Plan A. Make a list." has two
 *   sentences, "J. Smith" has one.
 */
function isAmong(table: "abbreviations" | "openers" | "common-words", word: string): boolean {
  if (!read.has(table)) {
    const text = readFileSync(new URL(`../../../tables/${table}.txt`, import.meta.url), "utf8");
    read.set(table, new Set(text.trim().split(/\s+/u)));
  }
  return read.get(table)!.has(word);
}

/** The characters that may directly follow a sentence's final period; they also end words. */
const closing = String.raw`[!?;:@*"'‘’“”«»(){}[\]]`;
const dotsOrDashes = String.raw`(?:--+|\.\.+|\.\s(?:\.\s)+\.)`;
const wordEnd = String.raw`\s|$|${closing}|${dotsOrDashes}`;

/** A word with its period; or dots, dashes or another mark. */
const token = nltkPattern(
  String.raw`${dotsOrDashes}|(?![,;:@#&*"\x60\-(){}[\]])\S+?(?=${wordEnd}|,(?=${wordEnd}))|\S`,
  "g",
);
const possibleEnd = nltkPattern(String.raw`[.?!](?=(${closing}|(\s+)\S+))`, "g");
const closers = nltkPattern(String.raw`^["'‘’“”«»)}\]]+?(?:\s+|$|(?=--))`);
const number = nltkPattern(String.raw`^-?[.,]?\d[\d,.\-]*\.?$`);
const initial = nltkPattern(String.raw`^(?!\d)\w\.$`);

/**
 * Splits a text into sentences with Punkt (Kiss and Strunk 2006), as in NLTK 3.10, with the words of `isAmong`. A
 * period, question mark or exclamation mark before whitespace or a closing mark ends a sentence, unless its word is an
 * abbreviation, an initial or a number and the next word does not look like a beginning. Line breaks end no sentence.
 * benchmarks/results/ifeval.md describes the tables and how often they agree with NLTK's.
 */
export function sentences(text: string): string[] {
  const cut: { readonly start: number; readonly end: number }[] = [];
  let start = 0;
  for (const { end, next, context } of possibleEnds(text)) {
    if (!endsWithin(context)) continue;
    cut.push({ start, end });
    start = next;
  }
  cut.push({ start, end: stripEnd(text).length });
  return withClosers(text, cut);
}

export const countSentences = (text: string): number => sentences(text).length;

interface PossibleEnd {
  readonly end: number;
  /** Where the following text begins. */
  readonly next: number;
  /** The word before, the mark and the following text, which decide. */
  readonly context: string;
}

/** Yields marks that may end a sentence; of several marks after one word (`what?!`) only the last. */
function* possibleEnds(text: string): Generator<PossibleEnd> {
  let word = { start: 0, end: 0 };
  let pending: PossibleEnd | null = null;
  for (const { 0: mark, 1: follows, 2: space, index } of text.matchAll(possibleEnd)) {
    const lastSpace = /[ \t-\r](?=[^ \t-\r]*$)/u.exec(text.slice(word.end, index))?.index ?? 0;
    const start = lastSpace > 0 ? word.end + lastSpace + 1 : word.start;
    if (pending !== null && word.end <= start) yield pending;
    word = { start, end: index };
    const end = index + mark.length;
    pending = {
      end,
      next: end + (space?.length ?? 0),
      context: text.slice(start, end) + follows!,
    };
  }
  if (pending !== null) yield pending;
}

interface Word {
  readonly text: string;
  /** The word in lower case; all numbers share one kind. */
  readonly kind: string;
  readonly is: "end" | "abbreviation" | "ellipsis" | "other";
}

function wordOf(text: string): Word {
  const lower = text.toLowerCase();
  return { text, kind: number.test(lower) ? "##number##" : lower, is: classOf(text, lower) };
}

function classOf(text: string, lower: string): Word["is"] {
  if (text === "." || text === "?" || text === "!") return "end";
  if (/^\.{2,}$/u.test(text)) return "ellipsis";
  if (!text.endsWith(".") || text.endsWith("..")) return "other";
  const stem = lower.slice(0, -1);
  const isListed = [stem, stem.split("-").at(-1)!].some((word) => isAmong("abbreviations", word));
  return isListed ? "abbreviation" : "end";
}

/** Whether a sentence ends before the last word of the context. */
function endsWithin(context: string): boolean {
  const words = context.split("\n").flatMap((line) => (line.match(token) ?? []).map(wordOf));
  return words.slice(0, -1).some((word, at) => isEnd(word, words[at + 1]!));
}

function isEnd(word: Word, next: Word): boolean {
  if (!word.text.endsWith(".")) return word.is === "end";
  const isInitial = initial.test(word.text);
  const start = beginningOf(next);
  if ((word.is === "abbreviation" || word.is === "ellipsis") && !isInitial) return start === "yes";
  if (!isInitial && word.kind !== "##number##") return word.is === "end";
  if (start === "no" || word.is !== "end") return false;
  return !(isInitial && start === "unknown" && isUpper(first(next)) && !isCommon(bare(next)));
}

const isCommon = (word: string): boolean => isAmong("openers", word) || isAmong("common-words", word);

/** Whether a word looks like the first of a sentence. */
function beginningOf(next: Word): "yes" | "no" | "unknown" {
  if (/^[;:,.!?]$/u.test(next.text)) return "no";
  if (isUpper(first(next)) && isAmong("openers", bare(next))) return "yes";
  return isLower(first(next)) ? "no" : "unknown";
}

const first = ({ text }: Word): string => String.fromCodePoint(text.codePointAt(0)!);

/** Returns the word's kind without a final period that ends a sentence. */
const bare = ({ kind, is }: Word): string =>
  is === "end" && kind.length > 1 && kind.endsWith(".") ? kind.slice(0, -1) : kind;

/** Moves closing marks after the end of a sentence into that sentence. */
function withClosers(
  text: string,
  cut: readonly { readonly start: number; readonly end: number }[],
): string[] {
  let skipped = 0;
  return cut.flatMap(({ start, end }, at) => {
    const from = start + skipped;
    const next = cut[at + 1];
    const match = next === undefined ? null : closers.exec(text.slice(next.start, next.end));
    skipped = match?.[0].length ?? 0;
    const to = match === null ? end : next!.start + stripEnd(match[0]).length;
    return from < to || match !== null ? [text.slice(from, to)] : [];
  });
}
