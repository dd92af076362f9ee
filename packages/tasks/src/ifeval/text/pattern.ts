import { pythonWhitespace } from "@periodic-eval/core/internal";

interface Alphabet {
  /** What `\s` holds, as the inside of a character class. */
  readonly space: string;
  /** What `\w` holds. */
  readonly word: string;
}

/**
 * Of Python's `re`: `str.isspace`, which has U+001C–U+001F and U+0085 and lacks U+FEFF; `str.isalnum` and `_`, which
 * lack combining marks, so that a word of Hindi is several.
 */
const python: Alphabet = {
  space: pythonWhitespace.slice(1, -1),
  word: String.raw`\p{L}\p{N}_`,
};

/** Of the module `regex`, with which NLTK reads its patterns since 3.10: the classes of Unicode's report 18. */
const unicode: Alphabet = {
  space: String.raw`\p{White_Space}`,
  word: String.raw`\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control}`,
};

/**
 * A regular expression that means what it means to Python's `re` on `str`: `\s`, `\S`, `\w`, `\d` and `\b` over
 * Unicode, `.` any character but a line feed, `$` the end or before a last line feed. Further syntax is JavaScript's,
 * with the flags `u` and those given; not `m`, whose line ends are others than Python's.
 */
export const pattern = (source: string, flags = ""): RegExp => translate(source, flags, python);

/** A regular expression as it is read inside NLTK 3.10. */
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

/** How often a pattern with the flag `g` is found, no two findings overlapping: the length of `re.findall`. */
export const countOf = (found: RegExp, text: string): number => text.match(found)?.length ?? 0;

/** The part of a pattern that is this text, letter for letter. */
export const literally = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|]/gu, String.raw`\$&`);

/**
 * The same, whatever the case, in a pattern with the flag `i`: to Python the four letters i are then one, dotted or
 * not, as to JavaScript they are not; of all others the two agree.
 */
export const literallyOfAnyCase = (text: string): string =>
  literally(text).replace(/[iI\u0130\u0131]/gu, String.raw`[i\u0130\u0131]`);
