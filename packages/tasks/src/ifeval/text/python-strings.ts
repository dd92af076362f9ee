import { pythonWhitespace } from "@periodic-eval/contracts/options";

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
