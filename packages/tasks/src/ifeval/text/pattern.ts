import { pythonWhitespace } from "@periodic-eval/contracts/options";

interface Alphabet {
  /** The characters of `\s`, as the inside of a character class. */
  readonly space: string;
  /** The characters of `\w`. */
  readonly word: string;
}

/**
 * The classes of Python's `re`: `str.isspace`, which includes U+001C–U+001F and U+0085 but not U+FEFF; `str.isalnum` and `_`,
 * which exclude combining marks, so that a Hindi word counts as several.
 */
const python: Alphabet = {
  space: pythonWhitespace.slice(1, -1),
  word: String.raw`\p{L}\p{N}_`,
};

/** The classes of the module `regex`, which NLTK uses since 3.10: those of Unicode report 18. */
const unicode: Alphabet = {
  space: String.raw`\p{White_Space}`,
  word: String.raw`\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control}`,
};

/**
 * Compiles a regular expression with the meaning that it has in Python's `re` on `str`: `\s`, `\S`, `\w`, `\d` and `\b` over
 * Unicode, `.` for any character but a line feed, `$` for the end or before a final line feed. All other syntax is JavaScript's,
 * with the flag `u` and those given. Do not pass `m`: its line ends differ from Python's.
 */
export const pattern = (source: string, flags = ""): RegExp => translate(source, flags, python);

/** Compiles a regular expression with the meaning that it has in NLTK 3.10. */
export const nltkPattern = (source: string, flags = ""): RegExp => translate(source, flags, unicode);

function translate(source: string, flags: string, { space, word }: Alphabet): RegExp {
  const outside: Readonly<Record<string, string>> = {
    s: `[${space}]`,
    S: `[^${space}]`,
    w: `[${word}]`,
    d: String.raw`\p{Nd}`,
    b: `(?:(?<=[${word}])(?![${word}])|(?<![${word}])(?=[${word}]))`,
    ".": String.raw`[^\n]`,
    $: String.raw`(?=\n?(?![^]))`,
  };
  const inside: Readonly<Record<string, string>> = { s: space, w: word, d: String.raw`\p{Nd}` };
  let isInClass = false;
  const translated = source.replace(/\\(.)|[[\].$]/gsu, (matched, escaped: string | undefined) => {
    if (escaped !== undefined && /[sSwdb]/u.test(escaped))
      return (isInClass ? inside : outside)[escaped] ?? matched;
    if (matched === "[") isInClass = true;
    else if (matched === "]") isInClass = false;
    return isInClass ? matched : (outside[matched] ?? matched);
  });
  return new RegExp(translated, `u${flags}`);
}

/** Counts the non-overlapping matches of a pattern with the flag `g`: the length of `re.findall`. */
export const countOf = (regex: RegExp, text: string): number => text.match(regex)?.length ?? 0;

/** Escapes a string for use in a pattern. */
export const literally = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|]/gu, String.raw`\$&`);

/**
 * Escapes a string for use in a pattern with the flag `i`. Python then treats the four letters i, dotted or not, as equal and
 * JavaScript does not; they agree on all other letters.
 */
export const literallyOfAnyCase = (text: string): string =>
  literally(text).replace(/[iI\u0130\u0131]/gu, String.raw`[i\u0130\u0131]`);

const space = new RegExp(pythonWhitespace, "u");
const runsOfSpace = new RegExp(`${pythonWhitespace}+`, "u");

/** Implements `str.strip(characters)`, for characters of one UTF-16 unit. */
export const strip = (text: string, characters?: string): string =>
  stripEnd(stripStart(text, characters), characters);

/** Implements `str.lstrip(characters)`. */
export function stripStart(text: string, characters?: string): string {
  let from = 0;
  while (from < text.length && isAmong(text[from]!, characters)) from++;
  return text.slice(from);
}

/** Implements `str.rstrip(characters)`. */
export function stripEnd(text: string, characters?: string): string {
  let to = text.length;
  while (to > 0 && isAmong(text[to - 1]!, characters)) to--;
  return text.slice(0, to);
}

const isAmong = (character: string, characters: string | undefined): boolean =>
  characters === undefined ? space.test(character) : characters.includes(character);

/** Implements `str.split()`: the non-empty parts between whitespace. */
export const words = (text: string): string[] => text.split(runsOfSpace).filter((part) => part !== "");

/** Implements `str.isupper()`: at least one cased character, and no lower-case or title-case one. */
export const isUpper = (text: string): boolean =>
  /\p{Uppercase}/u.test(text) && !/[\p{Lowercase}\p{Lt}]/u.test(text);

/** Implements `str.islower()`: at least one cased character, and no upper-case or title-case one. */
export const isLower = (text: string): boolean =>
  /\p{Lowercase}/u.test(text) && !/[\p{Uppercase}\p{Lt}]/u.test(text);
