import { onigurumaSet, onigurumaUnassigned } from "./unicode.ts";

/** The characters of a pattern that remain to be read. */
export class PatternReader {
  at = 0;
  private readonly characters: readonly string[];

  constructor(pattern: string) {
    this.characters = [...pattern];
  }

  get isAtEnd(): boolean {
    return this.at >= this.characters.length;
  }

  peek(offset = 0): string {
    return this.characters[this.at + offset] ?? "";
  }

  take(): string {
    if (this.isAtEnd) throw new Unsupported("a pattern that ends in the middle");
    return this.characters[this.at++]!;
  }

  /** Reads `text` if it comes next, and returns whether it did. */
  skip(text: string): boolean {
    if (
      !this.characters
        .slice(this.at, this.at + text.length)
        .join("")
        .startsWith(text)
    )
      return false;
    this.at += text.length;
    return true;
  }

  takeUntil(end: string): string {
    let text = "";
    while (!this.skip(end)) text += this.take();
    return text;
  }
}

/** A construct whose meaning in Oniguruma has no exact translation here. */
export class Unsupported extends Error {}

const word = onigurumaSet("\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}");
const decimal = onigurumaSet("\\p{Nd}");

/** The set of `\w` outside brackets, where Oniguruma asks a table of Latin-1 with ², ³, ¹ and fractions. */
export const wordOutsideBrackets = `[${word}\\u{b2}\\u{b3}\\u{b9}\\u{bc}-\\u{be}]`;

/** Sets of the escapes `\w`, `\d` and `\s` in brackets. */
const shorthand: Readonly<Record<string, string>> = {
  w: word,
  d: decimal,
  s: "\\p{White_Space}",
};

const categories =
  "L Lu Ll Lt Lm Lo M Mn Mc Me N Nd Nl No P Pc Pd Ps Pe Pi Pf Po S Sm Sc Sk So Z Zs Zl Zp Cc Cf Co".split(
    " ",
  );

/** Sets by the name of a property in lower case, without the spaces, hyphens and underscores that Oniguruma ignores. */
const properties: Readonly<Record<string, string>> = {
  ...Object.fromEntries(categories.map((name) => [name.toLowerCase(), onigurumaSet(`\\p{${name}}`)])),
  ll: onigurumaSet("\\p{Ll}\\u{295}"),
  lo: `[${onigurumaSet("\\p{Lo}")}--\\u{295}]`,
  c: onigurumaUnassigned("\\p{C}"),
  cn: onigurumaUnassigned("\\p{Cn}"),
  letter: onigurumaSet("\\p{L}"),
  mark: onigurumaSet("\\p{M}"),
  number: onigurumaSet("\\p{N}"),
  punctuation: onigurumaSet("\\p{P}"),
  symbol: onigurumaSet("\\p{S}"),
  separator: onigurumaSet("\\p{Z}"),
  alphabetic: onigurumaSet("\\p{Alphabetic}"),
  uppercase: onigurumaSet("\\p{Uppercase}"),
  lowercase: onigurumaSet("\\p{Lowercase}\\u{295}"),
  whitespace: "\\p{White_Space}",
  any: "\\p{Any}",
};

/** Reads `{name}` or `{^name}` after `\p` or `\P`. */
export function readProperty(reader: PatternReader, isNegated: boolean, ignoresCase: boolean): string {
  if (!reader.skip("{")) throw new Unsupported("\\p without braces");
  const isInverse = reader.skip("^") !== isNegated;
  const name = reader.takeUntil("}");
  const key = name.replaceAll(/[ _-]/g, "").toLowerCase();
  const set = properties[key] ?? script(name);
  if (ignoresCase && !/^(?:n|nd|nl|no|number|p.?|punctuation|z.?|whitespace|any)$/.test(key))
    throw new Unsupported(`\\p{${name}} without case`);
  return isInverse ? `[^${set}]` : set;
}

function script(name: string): string {
  const canonical = name
    .split(/[ _-]/)
    .map((part) => part.slice(0, 1).toUpperCase() + part.slice(1).toLowerCase())
    .join("_");
  const set = `\\p{Script=${canonical}}`;
  try {
    new RegExp(set, "v");
  } catch {
    throw new Unsupported(`the property \\p{${name}}`);
  }
  return onigurumaSet(set);
}

export const codeOf = (character: string): string => `\\u{${character.codePointAt(0)!.toString(16)}}`;

/** The set of a character in all its cases, of which `s` and `k` have three. */
export function anyCase(character: string): string {
  if (!/[a-zA-Z]/.test(character)) {
    if (character > "\x7f") throw new Unsupported(`${character} without case`);
    return codeOf(character);
  }
  const lower = character.toLowerCase();
  const third = lower === "s" ? "ſ" : lower === "k" ? "\u212a" : "";
  return [lower, lower.toUpperCase(), ...third].map(codeOf).join("");
}

const controls: Readonly<Record<string, string>> = {
  t: "\t",
  n: "\n",
  r: "\r",
  f: "\f",
  v: "\v",
  a: "\x07",
  e: "\x1b",
};

/** Reads the rest of an escape that stands for one character, after the backslash. */
export function readEscapedCharacter(reader: PatternReader): string {
  const letter = reader.take();
  if (letter in controls) return controls[letter]!;
  const digits = (pattern: RegExp, text: string) => {
    const value = pattern.test(text) ? Number.parseInt(text, 16) : Number.NaN;
    if (!(value <= 0x10ffff) || (value >= 0xd800 && value < 0xe000))
      throw new Unsupported(`\\${letter}${text}`);
    return String.fromCodePoint(value);
  };
  if (letter === "x" && reader.skip("{")) return digits(/^[0-9a-fA-F]{1,8}$/, reader.takeUntil("}"));
  // Larger values of two digits are single bytes of UTF-8.
  if (letter === "x") return digits(/^[0-7][0-9a-fA-F]$/, reader.take() + reader.take());
  if (letter === "u")
    return digits(/^[0-9a-fA-F]{4}$/, reader.take() + reader.take() + reader.take() + reader.take());
  if (/[0-9A-Za-z]/.test(letter)) throw new Unsupported(`\\${letter}`);
  return letter;
}

/** Reads a bracketed class after its `[`. */
export function readClass(reader: PatternReader, ignoresCase: boolean): string {
  const isNegated = reader.skip("^");
  if (isNegated && ignoresCase) throw new Unsupported("a negated class without case");
  if (reader.peek() === "]") throw new Unsupported("a class that begins with ]");
  const operands: string[][] = [[]];
  while (!reader.skip("]")) {
    if (reader.skip("&&")) operands.push([]);
    else operands.at(-1)!.push(readClassItem(reader, ignoresCase));
  }
  if (operands.some(({ length }) => length === 0)) throw new Unsupported("an empty operand of &&");
  const body =
    operands.length === 1 ? operands[0]!.join("") : operands.map((items) => `[${items.join("")}]`).join("&&");
  return `[${isNegated ? "^" : ""}${body}]`;
}

function readClassItem(reader: PatternReader, ignoresCase: boolean): string {
  if (reader.skip("[:")) throw new Unsupported("a bracket [: :]");
  if (reader.skip("[")) return readClass(reader, ignoresCase);
  const set = readSetEscape(reader, ignoresCase, true);
  if (set !== null) return set;
  const first = readClassCharacter(reader);
  const isRange = reader.peek() === "-" && !["]", "[", ""].includes(reader.peek(1));
  if (!isRange || (reader.peek(1) === "\\" && /[wWdDsSpP]/.test(reader.peek(2))))
    return ignoresCase ? anyCase(first) : codeOf(first);
  reader.take();
  const last = readClassCharacter(reader);
  const [from, to] = [first.codePointAt(0)!, last.codePointAt(0)!];
  if (from > to) throw new Unsupported("a range whose ends are reversed");
  if (!ignoresCase) return `${codeOf(first)}-${codeOf(last)}`;
  if (to > 0x7f) throw new Unsupported("a range beyond ASCII without case");
  return Array.from({ length: to - from + 1 }, (_, i) => anyCase(String.fromCharCode(from + i))).join("");
}

function readClassCharacter(reader: PatternReader): string {
  const character = reader.take();
  return character === "\\" ? readEscapedCharacter(reader) : character;
}

/** Reads `\w`, `\p{…}` and the like if they come next, else returns null. */
export function readSetEscape(
  reader: PatternReader,
  ignoresCase: boolean,
  isInBrackets = false,
): string | null {
  if (reader.peek() !== "\\") return null;
  const letter = reader.peek(1);
  const lower = letter.toLowerCase();
  if (!"wdsp".includes(lower) || lower === "") return null;
  reader.at += 2;
  if (lower === "p") return readProperty(reader, letter === "P", ignoresCase);
  const set = lower === "w" && !isInBrackets ? wordOutsideBrackets : shorthand[lower]!;
  return letter === lower ? set : `[^${set}]`;
}
