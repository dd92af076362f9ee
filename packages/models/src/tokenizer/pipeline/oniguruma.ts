import {
  anyCase,
  codeOf,
  PatternReader,
  readClass,
  readEscapedCharacter,
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
  if (!translator.reader.isAtEnd) throw new Unsupported("a closing parenthesis without an opening one");
  return new RegExp(source, "gv");
}

const anchors: Readonly<Record<string, string>> = {
  b: `(?:(?<=${word})(?!${word})|(?<!${word})(?=${word}))`,
  B: `(?:(?<=${word})(?=${word})|(?<!${word})(?!${word}))`,
};

/** Pairs of letters for which Oniguruma, without case, also matches a single ligature or letter. */
const ligatures = /ss|ff|fi|fl|st/;

class Translator {
  readonly reader: PatternReader;
  private groups = 0;

  constructor(pattern: string) {
    this.reader = new PatternReader(pattern);
  }

  /** Reads up to the end of the pattern or a closing parenthesis. */
  alternatives(options: Options): Piece {
    const { reader } = this;
    const flags = /^\(\?([im]*)(?:-([im]+))?\)/.exec(this.upcoming(8));
    if (flags !== null) {
      reader.at += flags[0].length;
      return this.alternatives(withFlags(options, flags));
    }
    const sequences = [this.sequence(options)];
    while (reader.skip("|")) sequences.push(this.sequence(options));
    const source = sequences.map((sequence) => sequence.source).join("|");
    return { source, canBeEmpty: sequences.some(({ canBeEmpty }) => canBeEmpty), isRepeatable: true };
  }

  private upcoming(length: number): string {
    return Array.from({ length }, (_, i) => this.reader.peek(i)).join("");
  }

  private sequence(options: Options): Piece {
    const { reader } = this;
    let source = "";
    let canBeEmpty = true;
    let letters = "";
    while (!reader.isAtEnd && reader.peek() !== "|" && reader.peek() !== ")") {
      const piece = this.quantified(this.atom(options), options);
      letters = piece.literal === undefined ? "" : (letters + piece.literal.toLowerCase()).slice(-2);
      if (options.ignoresCase && ligatures.test(letters)) throw new Unsupported(`"${letters}" without case`);
      source += piece.source;
      canBeEmpty &&= piece.canBeEmpty;
    }
    return { source, canBeEmpty, isRepeatable: true };
  }

  private atom(options: Options): Piece {
    const { reader } = this;
    const { ignoresCase, dotMatchesAll } = options;
    const set = readSetEscape(reader, ignoresCase);
    if (set !== null) return { source: set, canBeEmpty: false, isRepeatable: true };
    if (reader.skip("(")) return this.group(options);
    if (reader.skip("["))
      return { source: readClass(reader, ignoresCase), canBeEmpty: false, isRepeatable: true };
    if (reader.skip(".")) {
      const source = dotMatchesAll ? "\\p{Any}" : "[^\\n]";
      return { source, canBeEmpty: false, isRepeatable: true };
    }
    if (reader.skip("^")) return anchor("(?:^|(?<=\\n)(?!$))");
    if (reader.skip("$")) return anchor("(?=\\n|$)");
    if (reader.peek() === "\\" && reader.peek(1) in anchors) {
      reader.take();
      return anchor(anchors[reader.take()]!);
    }
    if (/[*+?]/.test(reader.peek())) throw new Unsupported(`${reader.peek()} without anything to repeat`);
    const character = reader.skip("\\") ? readEscapedCharacter(reader) : reader.take();
    const source = ignoresCase ? `[${anyCase(character)}]` : codeOf(character);
    return { source, canBeEmpty: false, isRepeatable: true, literal: character };
  }

  /** Reads a group after its opening parenthesis. */
  private group(options: Options): Piece {
    const { reader } = this;
    const flags = /^\?([im]*)(?:-([im]+))?:/.exec(this.upcoming(8));
    if (flags !== null) {
      reader.at += flags[0].length;
      return this.closed("(?:", withFlags(options, flags));
    }
    for (const start of ["?=", "?!", "?<=", "?<!"])
      if (reader.skip(start)) {
        const isInLookbehind = options.isInLookbehind || start.startsWith("?<");
        const { source } = this.closed(`(${start}`, { ...options, isInLookbehind });
        return anchor(source);
      }
    if (reader.skip("?>")) return this.atomic(this.closed("(?:", options), options);
    // Nothing refers to groups, because references are refused.
    if (reader.skip("?<")) reader.takeUntil(">");
    else if (reader.peek() === "?") throw new Unsupported(`the group (?${reader.peek(1)}`);
    return this.closed("(?:", options);
  }

  private closed(start: string, options: Options): Piece {
    const inside = this.alternatives(options);
    if (!this.reader.skip(")")) throw new Unsupported("an opening parenthesis without a closing one");
    return { ...inside, source: `${start}${inside.source})` };
  }

  /** Forbids backtracking into a piece: a lookahead captures it, and a reference consumes what was captured. */
  private atomic(piece: Piece, { isInLookbehind }: Options): Piece {
    if (isInLookbehind) throw new Unsupported("an atomic group in a lookbehind");
    // Groups inside have been counted before, but open after this group.
    if (/\\k</.test(piece.source)) throw new Unsupported("an atomic group in another");
    const name = `atomic${this.groups++}`;
    return { ...piece, source: `(?:(?=(?<${name}>${piece.source}))\\k<${name}>)`, isRepeatable: true };
  }

  private quantified(piece: Piece, options: Options): Piece {
    const { reader } = this;
    const interval = /^\{(\d{0,5})(,?)(\d{0,5})\}/.exec(this.upcoming(13));
    const isInterval = interval !== null && (interval[1] !== "" || interval[3] !== "");
    if (!isInterval && !/^[*+?]$/.test(reader.peek())) return piece;
    if (!piece.isRepeatable) throw new Unsupported("a quantifier of an assertion");
    const { source } = piece;
    let result: Piece;
    if (isInterval) {
      reader.at += interval[0].length;
      const [, least, comma, most] = interval;
      if (most !== "" && Number(least) > Number(most)) throw new Unsupported(interval[0]);
      if (piece.canBeEmpty && comma !== "" && most === "") throw new Unsupported(emptyLoop);
      if (piece.canBeEmpty && Number(most || least) > 1) throw new Unsupported(emptyLoop);
      const canBeEmpty = piece.canBeEmpty || Number(least) === 0;
      const repeated = `${source}{${least === "" ? "0" : least}${comma}${most}}`;
      result = { source: repeated, canBeEmpty, isRepeatable: true };
      // A `?` after a fixed number makes the whole optional, as in Ruby.
      if (reader.skip("?"))
        result =
          comma === ""
            ? { ...result, source: `(?:${repeated})?`, canBeEmpty: true }
            : { ...result, source: `${repeated}?` };
      // A `+` is no possessive sign after braces, as in Ruby.
      else if (reader.skip("+")) {
        if (result.canBeEmpty) throw new Unsupported(emptyLoop);
        result = { ...result, source: `(?:${repeated})+` };
      }
    } else {
      const sign = reader.take();
      if (piece.canBeEmpty && sign !== "?") throw new Unsupported(emptyLoop);
      result = {
        source: `${source}${sign}`,
        canBeEmpty: piece.canBeEmpty || sign !== "+",
        isRepeatable: true,
      };
      if (reader.skip("?")) result = { ...result, source: `${result.source}?` };
      else if (reader.skip("+")) result = this.atomic(result, options);
    }
    if (/^[*+?]$/.test(reader.peek()) || /^\{\d*,?\d*\}/.test(this.upcoming(13)))
      throw new Unsupported("a quantifier after a quantifier");
    return result;
  }
}

const emptyLoop = "a repetition of a part that can be empty";

const anchor = (source: string): Piece => ({ source, canBeEmpty: true, isRepeatable: false });

function withFlags(options: Options, [, on, off = ""]: readonly (string | undefined)[]): Options {
  const has = (flag: string, before: boolean) => (on!.includes(flag) || before) && !off.includes(flag);
  return {
    ...options,
    ignoresCase: has("i", options.ignoresCase),
    dotMatchesAll: has("m", options.dotMatchesAll),
  };
}
