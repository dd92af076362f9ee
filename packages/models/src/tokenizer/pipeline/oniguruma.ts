import {
  anyCase,
  codeOf,
  PatternReader,
  readClass,
  readSetEscape,
  wordOutsideBrackets as word,
  Unsupported,
} from "./oniguruma-class.ts";
import { errorMessage } from "@periodic-eval/contracts/options";
import type { Part } from "./part.ts";

/** A half-open range of UTF-16 units of a text, and whether it matches a pattern. */
export type Match = readonly [start: number, end: number, isMatch: boolean];

/** Reads `pattern`: `{ "String": … }` or `{ "Regex": … }`. The result has the flags `g` and `v`. */
export function readPattern(part: Part): RegExp {
  const pattern = part.part("pattern");
  if ("String" in pattern.fields) {
    const characters = [...pattern.string("String")];
    return new RegExp(characters.map((c) => `\\u{${c.codePointAt(0)!.toString(16)}}`).join(""), "gv");
  }
  const source = pattern.string("Regex");
  try {
    return translateOniguruma(source);
  } catch (cause) {
    if (!(cause instanceof Unsupported || cause instanceof SyntaxError)) throw cause;
    throw pattern.error(
      "Regex",
      `${JSON.stringify(source)}: ${errorMessage(cause)} is wrong, or not supported`,
      "a regular expression of Oniguruma that can be translated into one of JavaScript",
      "Rewrite the expression without it, with the same matches.",
    );
  }
}

/** Returns ranges that cover the text. An empty match directly after another match does not count, as in tokenizers. */
export function findMatches(regex: RegExp, text: string): Match[] {
  const matches: Match[] = [];
  if (text === "") return matches;
  let lastEnd = 0;
  let isAfterMatch = false;
  regex.lastIndex = 0;
  for (let match = regex.exec(text); match !== null; match = regex.exec(text)) {
    const start = match.index;
    const end = start + match[0].length;
    if (end === start) {
      // V8 finds empty matches of lookarounds in the middle of surrogate pairs.
      if (start > 0 && text.codePointAt(start - 1)! > 0xffff) {
        regex.lastIndex = start + 1;
        continue;
      }
      regex.lastIndex += (text.codePointAt(end) ?? 0) > 0xffff ? 2 : 1;
      if (isAfterMatch && lastEnd === end) continue;
    }
    if (lastEnd !== start) matches.push([lastEnd, start, false]);
    matches.push([start, end, true]);
    lastEnd = end;
    isAfterMatch = true;
  }
  if (lastEnd !== text.length) matches.push([lastEnd, text.length, false]);
  return matches;
}

interface Options {
  readonly ignoresCase: boolean;
  readonly dotMatchesAll: boolean;
  readonly isInLookbehind: boolean;
}

/** A translated piece of a pattern. */
interface Piece {
  readonly source: string;
  readonly canBeEmpty: boolean;
  /** Whether it consumes characters, so that a quantifier may follow. */
  readonly isRepeatable: boolean;
  /** The character, if the piece is one. */
  readonly literal?: string;
}

/**
 * Translates a regular expression of Oniguruma, which tokenizers uses with Ruby's syntax and UTF-8, into one of JavaScript
 * with the same matches.
 *
 * @throws Unsupported for a construct without an exact translation, and for a wrong pattern.
 */
export function translateOniguruma(pattern: string): RegExp {
  const translator = new Translator(pattern);
  const { source } = translator.alternatives({
    ignoresCase: false,
    dotMatchesAll: false,
    isInLookbehind: false,
  });
  if (translator.rest !== "") throw new Unsupported("a closing parenthesis without an opening one");
  return new RegExp(source, "gv");
}

const anchors: Readonly<Record<string, string>> = {
  "^": "(?:^|(?<=\\n)(?!$))",
  $: "(?=\\n|$)",
  "\\b": `(?:(?<=${word})(?!${word})|(?<!${word})(?=${word}))`,
  "\\B": `(?:(?<=${word})(?=${word})|(?<!${word})(?!${word}))`,
};

/** Pairs of letters for which Oniguruma, without case, also matches a single ligature or letter. */
const ligatures = /ss|ff|fi|fl|st/;

class Translator extends PatternReader {
  private groups = 0;

  /** Reads up to the end of the pattern or a closing parenthesis. */
  alternatives(options: Options): Piece {
    const flags = this.read(/^\(\?([im]*)(?:-([im]+))?\)/);
    if (flags !== null) return this.alternatives(withFlags(options, flags));
    const sequences = [this.sequence(options)];
    while (this.read(/^\|/) !== null) sequences.push(this.sequence(options));
    const source = sequences.map((sequence) => sequence.source).join("|");
    return { ...piece(source), canBeEmpty: sequences.some(({ canBeEmpty }) => canBeEmpty) };
  }

  private sequence(options: Options): Piece {
    let source = "";
    let canBeEmpty = true;
    let letters = "";
    while (!/^(?:$|[|)])/.test(this.rest)) {
      const next = this.quantified(this.atom(options), options);
      letters = next.literal === undefined ? "" : (letters + next.literal.toLowerCase()).slice(-2);
      if (options.ignoresCase && ligatures.test(letters)) throw new Unsupported(`"${letters}" without case`);
      source += next.source;
      canBeEmpty &&= next.canBeEmpty;
    }
    return { ...piece(source), canBeEmpty };
  }

  private atom(options: Options): Piece {
    const { ignoresCase, dotMatchesAll } = options;
    const set = readSetEscape(this, ignoresCase);
    if (set !== null) return piece(set);
    if (this.read(/^\(/) !== null) return this.group(options);
    if (this.read(/^\[/) !== null) return piece(readClass(this, ignoresCase));
    if (this.read(/^\./) !== null) return piece(dotMatchesAll ? "\\p{Any}" : "[^\\n]");
    const at = this.read(/^(?:[\^$]|\\[bB])/);
    if (at !== null) return anchor(anchors[at[0]]!);
    if (/^[*+?]/.test(this.rest)) throw new Unsupported(`${this.rest[0]} without anything to repeat`);
    const character = this.character();
    return {
      ...piece(ignoresCase ? `[${anyCase(character)}]` : codeOf(character)),
      literal: character,
    };
  }

  /** Reads a group after its opening parenthesis. */
  private group(options: Options): Piece {
    const flags = this.read(/^\?([im]*)(?:-([im]+))?:/);
    if (flags !== null) return this.closed("(?:", withFlags(options, flags));
    const look = this.read(/^\?<?[=!]/)?.[0];
    if (look !== undefined) {
      const isInLookbehind = options.isInLookbehind || look.startsWith("?<");
      return anchor(this.closed(`(${look}`, { ...options, isInLookbehind }).source);
    }
    if (this.read(/^\?>/) !== null) return this.atomic(this.closed("(?:", options), options);
    // Nothing refers to groups, because references are refused.
    if (this.read(/^\?<[^>]*>/) === null && this.rest.startsWith("?"))
      throw new Unsupported(`the group (${this.rest.slice(0, 2)}`);
    return this.closed("(?:", options);
  }

  private closed(start: string, options: Options): Piece {
    const inside = this.alternatives(options);
    if (this.read(/^\)/) === null) throw new Unsupported("an opening parenthesis without a closing one");
    return { ...inside, source: `${start}${inside.source})` };
  }

  /** Forbids backtracking into a piece: a lookahead captures it, and a reference consumes what was captured. */
  private atomic(inside: Piece, { isInLookbehind }: Options): Piece {
    if (isInLookbehind) throw new Unsupported("an atomic group in a lookbehind");
    // Groups inside have been counted before, but open after this group.
    if (/\\k</.test(inside.source)) throw new Unsupported("an atomic group in another");
    const name = `atomic${this.groups++}`;
    return { ...inside, source: `(?:(?=(?<${name}>${inside.source}))\\k<${name}>)`, isRepeatable: true };
  }

  private quantified(once: Piece, options: Options): Piece {
    const match = this.read(/^(?:[*+?]|(?=\{,?\d)\{(\d{0,5})(,?)(\d{0,5})\})/);
    if (match === null) return once;
    if (!once.isRepeatable) throw new Unsupported("a quantifier of an assertion");
    const [sign, least, comma, most] = match as unknown as [string, ...(string | undefined)[]];
    const result =
      least === undefined
        ? this.repeated(once, sign, options)
        : this.counted(once, sign, [least, comma!, most!]);
    if (/^(?:[*+?]|\{\d*,?\d*\})/.test(this.rest)) throw new Unsupported("a quantifier after a quantifier");
    return result;
  }

  private repeated({ source, canBeEmpty }: Piece, sign: string, options: Options): Piece {
    if (canBeEmpty && sign !== "?") throw new Unsupported(emptyLoop);
    const result = { ...piece(source + sign), canBeEmpty: canBeEmpty || sign !== "+" };
    if (this.read(/^\?/) !== null) return { ...result, source: `${result.source}?` };
    return this.read(/^\+/) === null ? result : this.atomic(result, options);
  }

  private counted(once: Piece, interval: string, [least, comma, most]: [string, string, string]): Piece {
    if (most !== "" && Number(least) > Number(most)) throw new Unsupported(interval);
    if (once.canBeEmpty && ((comma !== "" && most === "") || Number(most || least) > 1))
      throw new Unsupported(emptyLoop);
    const canBeEmpty = once.canBeEmpty || Number(least) === 0;
    const source = `${once.source}{${least === "" ? "0" : least}${comma}${most}}`;
    // A `?` after a fixed number makes the whole optional, and a `+` is no possessive sign, as in Ruby.
    if (this.read(/^\?/) !== null)
      return comma === ""
        ? { ...piece(`(?:${source})?`), canBeEmpty: true }
        : { ...piece(`${source}?`), canBeEmpty };
    if (this.read(/^\+/) === null) return { ...piece(source), canBeEmpty };
    if (canBeEmpty) throw new Unsupported(emptyLoop);
    return piece(`(?:${source})+`);
  }
}

const emptyLoop = "a repetition of a part that can be empty";

/** Returns a piece that consumes at least one character. */
const piece = (source: string): Piece => ({ source, canBeEmpty: false, isRepeatable: true });

const anchor = (source: string): Piece => ({ source, canBeEmpty: true, isRepeatable: false });

function withFlags(options: Options, [, on, off = ""]: readonly (string | undefined)[]): Options {
  const has = (flag: string, before: boolean) => (on!.includes(flag) || before) && !off.includes(flag);
  return {
    ...options,
    ignoresCase: has("i", options.ignoresCase),
    dotMatchesAll: has("m", options.dotMatchesAll),
  };
}
