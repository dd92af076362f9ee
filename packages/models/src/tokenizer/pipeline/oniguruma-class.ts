import { onigurumaSet, onigurumaUnassigned } from "./unicode.ts";

/** A pattern that is being read. */
export class PatternReader {
  constructor(public rest: string) {}

  /** Reads what an expression with `^` matches, and returns the match; null if it does not match. */
  read(pattern: RegExp): RegExpExecArray | null {
    const match = pattern.exec(this.rest);
    if (match !== null) this.rest = this.rest.slice(match[0].length);
    return match;
  }

  /** Reads a character, or an escape that stands for one. */
  character(): string {
    return this.read(/^\\/) === null ? this.#next() : this.#escaped();
  }

  #next(): string {
    const match = this.read(/^[^]/u);
    if (match === null) throw new Unsupported("a pattern that ends in the middle");
    return match[0];
  }

  #escaped(): string {
    // Larger values of two digits are single bytes of UTF-8.
    const code = this.read(/^(?:x\{([\da-fA-F]{1,8})\}|x([0-7][\da-fA-F])|u([\da-fA-F]{4}))/);
    if (code !== null) {
      const value = Number.parseInt((code[1] ?? code[2] ?? code[3])!, 16);
      if (value > 0x10ffff || (value >= 0xd800 && value < 0xe000)) throw new Unsupported(`\\${code[0]}`);
      return String.fromCodePoint(value);
    }
    const letter = this.#next();
    if (letter in controls) return controls[letter]!;
    if (/[0-9A-Za-z]/.test(letter)) throw new Unsupported(`\\${letter}`);
    return letter;
  }
}

/** A construct whose meaning in Oniguruma has no exact translation here. */
export class Unsupported extends Error {}

const controls: Readonly<Record<string, string>> = {
  t: "\t",
  n: "\n",
  r: "\r",
  f: "\f",
  v: "\v",
  a: "\x07",
  e: "\x1b",
};

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
function readProperty(reader: PatternReader, isNegated: boolean, ignoresCase: boolean): string {
  const match = reader.read(/^\{(\^?)([^}]*)\}/);
  if (match === null) throw new Unsupported("\\p without braces");
  const [, inverse, name] = match as unknown as [string, string, string];
  const key = name.replaceAll(/[ _-]/g, "").toLowerCase();
  const set = properties[key] ?? script(name);
  if (ignoresCase && !/^(?:n|nd|nl|no|number|p.?|punctuation|z.?|whitespace|any)$/.test(key))
    throw new Unsupported(`\\p{${name}} without case`);
  return (inverse !== "") !== isNegated ? `[^${set}]` : set;
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

/** Reads a bracketed class after its `[`. */
export function readClass(reader: PatternReader, ignoresCase: boolean): string {
  const isNegated = reader.read(/^\^/) !== null;
  if (isNegated && ignoresCase) throw new Unsupported("a negated class without case");
  if (reader.rest.startsWith("]")) throw new Unsupported("a class that begins with ]");
  const operands = [""];
  while (reader.read(/^\]/) === null)
    if (reader.read(/^&&/) === null) operands.push(operands.pop()! + readClassItem(reader, ignoresCase));
    else operands.push("");
  if (operands.includes("")) throw new Unsupported("an empty operand of &&");
  const body = operands.length === 1 ? operands[0]! : operands.map((items) => `[${items}]`).join("&&");
  return `[${isNegated ? "^" : ""}${body}]`;
}

function readClassItem(reader: PatternReader, ignoresCase: boolean): string {
  if (reader.read(/^\[:/) !== null) throw new Unsupported("a bracket [: :]");
  if (reader.read(/^\[/) !== null) return readClass(reader, ignoresCase);
  const set = readSetEscape(reader, ignoresCase, true);
  if (set !== null) return set;
  const first = reader.character();
  if (reader.read(/^-(?=[^\][])(?!\\[wWdDsSpP])/) === null)
    return ignoresCase ? anyCase(first) : codeOf(first);
  const last = reader.character();
  const [from, to] = [first.codePointAt(0)!, last.codePointAt(0)!];
  if (from > to) throw new Unsupported("a range whose ends are reversed");
  if (!ignoresCase) return `${codeOf(first)}-${codeOf(last)}`;
  if (to > 0x7f) throw new Unsupported("a range beyond ASCII without case");
  return Array.from({ length: to - from + 1 }, (_, i) => anyCase(String.fromCharCode(from + i))).join("");
}

/** Reads `\w`, `\p{…}` and the like if they come next, else returns null. */
export function readSetEscape(
  reader: PatternReader,
  ignoresCase: boolean,
  isInBrackets = false,
): string | null {
  const letter = reader.read(/^\\([wdsp])/i)?.[1];
  if (letter === undefined) return null;
  const lower = letter.toLowerCase();
  if (lower === "p") return readProperty(reader, letter === "P", ignoresCase);
  const set = lower === "w" && !isInBrackets ? wordOutsideBrackets : shorthand[lower]!;
  return letter === lower ? set : `[^${set}]`;
}
