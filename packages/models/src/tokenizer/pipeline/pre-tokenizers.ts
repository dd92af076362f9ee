import { toByteLetters } from "./normalizers.ts";
import { translateOniguruma, readPattern, findMatches, type Match } from "./oniguruma.ts";
import type { Part } from "./part.ts";
import { charClass } from "./unicode.ts";

const splitBehaviors = ["Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"] as const;

type SplitBehavior = (typeof splitBehaviors)[number];

/** Returns the parts of a text and where each starts; `isInverted` splits at what does not match. */
function splitText(
  regex: RegExp,
  text: string,
  behavior: SplitBehavior,
  isInverted = false,
): [part: string, start: number][] {
  const ranges = findMatches(regex, text);
  const matches = isInverted ? ranges.map(([start, end, is]): Match => [start, end, !is]) : ranges;
  return joined(matches, behavior).map(([start, end]) => [text.slice(start, end), start]);
}

function joined(
  matches: readonly Match[],
  behavior: SplitBehavior,
): (readonly [number, number, ...unknown[]])[] {
  switch (behavior) {
    case "Isolated":
      return [...matches];
    case "Removed":
      return matches.filter(([, , isMatch]) => !isMatch);
    case "Contiguous":
      return merged(matches, (isMatch, wasMatch) => isMatch === wasMatch);
    case "MergedWithPrevious":
      return merged(matches, (isMatch, wasMatch) => isMatch && !wasMatch);
    case "MergedWithNext":
      return merged(matches.toReversed(), (isMatch, wasMatch) => isMatch && !wasMatch).reverse();
  }
}

/** Extends a range by the following one where `joins` says so; what comes before the first range is no match. */
function merged(
  matches: readonly Match[],
  joins: (isMatch: boolean, wasMatch: boolean) => boolean,
): [number, number][] {
  const ranges: [number, number][] = [];
  let wasMatch = false;
  for (const [start, end, isMatch] of matches) {
    const last = ranges.at(-1);
    if (last !== undefined && joins(isMatch, wasMatch)) {
      last[0] = Math.min(last[0], start);
      last[1] = Math.max(last[1], end);
    } else ranges.push([start, end]);
    wasMatch = isMatch;
  }
  return ranges;
}

/** A part of a normalized text. */
export interface Piece {
  readonly text: string;
  /** Whether it begins with the first character of the input. */
  readonly isFirst: boolean;
}

export type PreTokenizer = (pieces: readonly Piece[]) => Piece[];

const preTokenizers: Readonly<Record<string, (part: Part) => PreTokenizer>> = {
  ByteLevel: byteLevel,
  Digits: (part) =>
    characters(charClass.numeric, part.boolean("individual_digits") ? "Isolated" : "Contiguous"),
  Metaspace: (part) => metaspace(readMetaspace(part)),
  Punctuation: (part) =>
    characters(charClass.punctuation, part.choice("behavior", splitBehaviors, "Isolated")),
  Sequence(part) {
    const steps = part.parts("pretokenizers").map(readPreTokenizer);
    return (pieces) => steps.reduce<Piece[]>((current, step) => step(current), [...pieces]);
  },
  Split: (part) =>
    splitter(readPattern(part), part.choice("behavior", splitBehaviors), part.boolean("invert")),
  Whitespace() {
    const { word, whitespace } = charClass;
    return splitter(new RegExp(`[${word}]+|[^[${word}]${whitespace}]+`, "gv"), "Removed", true);
  },
  WhitespaceSplit: () => characters(charClass.whitespace, "Removed"),
};

export function readPreTokenizer(part: Part): PreTokenizer {
  return part.component(preTokenizers);
}

function splitter(regex: RegExp, behavior: SplitBehavior, isInverted = false): PreTokenizer {
  return (pieces) => {
    const parts: Piece[] = [];
    for (const { text, isFirst } of pieces) {
      // Expressions like GPT-2's match everything. Then their matches are the parts.
      const matches = behavior === "Isolated" && !isFirst ? text.match(regex) : null;
      if (matches !== null && isCover(matches, text))
        for (const match of matches) parts.push({ text: match, isFirst: false });
      else
        for (const [part, at] of splitText(regex, text, behavior, isInverted))
          if (part !== "") parts.push({ text: part, isFirst: isFirst && at === 0 });
    }
    return parts;
  };
}

function isCover(matches: readonly string[], text: string): boolean {
  let length = 0;
  for (const match of matches) {
    if (match === "") return false;
    length += match.length;
  }
  return length === text.length;
}

const characters = (set: string, behavior: SplitBehavior) => splitter(new RegExp(`[${set}]`, "gv"), behavior);

export interface Metaspace {
  readonly replacement: string;
  readonly scheme: "always" | "first" | "never";
  readonly splits: boolean;
}

/** Reads the options of Metaspace, which pre-tokenizer and decoder share. */
export function readMetaspace(part: Part): Metaspace {
  const scheme = part.choice("prepend_scheme", ["always", "first", "never"], "always");
  if (part.fields["add_prefix_space"] === false && scheme !== "never")
    throw part.error("add_prefix_space", `false, with the prepend_scheme ${scheme}`, "never");
  const splits = part.fields["split"] == null ? true : part.boolean("split");
  return { replacement: part.char("replacement"), scheme, splits };
}

function metaspace({ replacement, scheme, splits }: Metaspace): PreTokenizer {
  const beforeReplacement = new RegExp(`(?=\\u{${replacement.codePointAt(0)!.toString(16)}})`, "v");
  return (pieces) =>
    pieces.flatMap(({ text: original, isFirst }) => {
      let text = original.replaceAll(" ", replacement);
      if ((scheme === "always" || (scheme === "first" && isFirst)) && !text.startsWith(replacement))
        text = replacement + text;
      if (!splits) return [{ text, isFirst }];
      return text.split(beforeReplacement).map((part, i) => ({ text: part, isFirst: isFirst && i === 0 }));
    });
}

/** GPT-2's expression. */
const gpt2 = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

function byteLevel(part: Part): PreTokenizer {
  const addsSpace = part.boolean("add_prefix_space");
  part.boolean("trim_offsets");
  const split = part.boolean("use_regex", true)
    ? splitter(translateOniguruma(gpt2), "Isolated")
    : (pieces: readonly Piece[]) => pieces;
  const withSpace = (text: string) => (!addsSpace || text.startsWith(" ") ? text : ` ${text}`);
  return (pieces) =>
    split(pieces.map(({ text, ...rest }) => ({ text: withSpace(text), ...rest }))).map(
      ({ text, isFirst }) => ({
        text: toByteLetters(text),
        isFirst,
      }),
    );
}
