import { isAll, isCased, isIdentifier, isTitle } from "./character-types.ts";
import { fail } from "./errors.ts";
import { asInteger, toIndex } from "./numbers.ts";
import type { Methods } from "./parameters.ts";
import { str } from "./print.ts";
import { bounds, isTrue, listOf } from "./sequences.ts";
import { capitalize, characters, lengthOf, splitLines, strip, title, unitIndex } from "./text.ts";
import { Tuple, isText, typeName, type Value } from "./values.ts";
import { repeated, spend } from "./work.ts";

/** Converts an argument that must be a string. */
export function text(value: Value): string {
  return isText(value) ? str(value) : fail(`expected str, not ${typeName(value)}`);
}

const optionalText = (value: Value | undefined): string | null =>
  value === undefined || value === null ? null : text(value);

const stripped = (sides: "both" | "left" | "right") =>
  ["chars/?", (self: string, chars?: Value) => strip(self, optionalText(chars), sides)] as const;

/** Python's `str.split` and `str.rsplit`. */
function split(self: string, separator: string | null, maximum: number, fromRight: boolean): string[] {
  const limit = maximum < 0 ? Infinity : maximum;
  spend(self.length);
  if (separator === "") fail("empty separator");
  if (separator !== null) {
    const all = self.split(separator);
    if (all.length - 1 <= limit) return all;
    if (!fromRight) return [...all.slice(0, limit), all.slice(limit).join(separator)];
    return splitFromRight(self, separator, limit);
  }
  if (!fromRight) {
    const words: string[] = [];
    let rest = strip(self, null, "left");
    while (rest !== "" && words.length < limit) {
      const word = characters(rest);
      const end = word.findIndex((character) => strip(character, null, "both") === "");
      const length = end < 0 ? rest.length : word.slice(0, end).join("").length;
      words.push(rest.slice(0, length));
      rest = strip(rest.slice(length), null, "left");
      spend(rest.length);
    }
    return rest === "" ? words : [...words, rest];
  }
  const reverse = (part: string) => characters(part).toReversed().join("");
  return split(reverse(self), null, maximum, false).map(reverse).toReversed();
}

function splitFromRight(self: string, separator: string, limit: number): string[] {
  const parts: string[] = [];
  let rest = self;
  while (parts.length < limit) {
    const at = rest.lastIndexOf(separator);
    if (at < 0) break;
    parts.unshift(rest.slice(at + separator.length));
    rest = rest.slice(0, at);
  }
  return [rest, ...parts];
}

const splitter = (fromRight: boolean) =>
  [
    "sep? maxsplit?",
    (self: string, sep?: Value, maximum: Value = -1) =>
      split(self, optionalText(sep), toIndex(maximum), fromRight),
  ] as const;

function partition(self: string, separator: Value, fromRight: boolean): Tuple {
  const sep = text(separator);
  if (sep === "") fail("empty separator");
  const at = fromRight ? self.lastIndexOf(sep) : self.indexOf(sep);
  if (at < 0) return new Tuple(fromRight ? ["", "", self] : [self, "", ""]);
  return new Tuple([self.slice(0, at), sep, self.slice(at + sep.length)]);
}

interface Section {
  readonly part: string;
  /** The first character of the part, in code points. */
  readonly first: number;
  /** Whether the section begins inside the text. */
  readonly isInside: boolean;
}

/** The part of a text that optional arguments `start` and `end` select. */
function section(self: string, start: Value | undefined, end: Value | undefined): Section {
  const length = lengthOf(self);
  const from = start === undefined || start === null ? null : toIndex(start);
  const to = end === undefined || end === null ? null : toIndex(end);
  const [first, last] = bounds(from, to, 1, length);
  const part = self.slice(unitIndex(self, first), Math.max(unitIndex(self, first), unitIndex(self, last)));
  return { part, first, isInside: from === null || from <= length };
}

function find(self: string, sub: Value, start: Value | undefined, end: Value | undefined, isLast: boolean) {
  const { part, first, isInside } = section(self, start, end);
  spend(part.length);
  const sought = text(sub);
  const isPossible = isInside && (sought !== "" || !isReversed(self, start, end));
  const at = !isPossible ? -1 : isLast ? part.lastIndexOf(sought) : part.indexOf(sought);
  return at < 0 ? -1 : first + lengthOf(part.slice(0, at));
}

/** Whether the end of a section lies before its start. */
function isReversed(self: string, start: Value | undefined, end: Value | undefined): boolean {
  const length = lengthOf(self);
  const [first] = bounds(toIndex(start ?? 0), null, 1, length);
  const [, last] = bounds(null, end === undefined || end === null ? null : toIndex(end), 1, length);
  return last < first;
}

const finder = (isLast: boolean, mustExist: boolean) =>
  [
    "sub/ start/? end/?",
    (self: string, sub: Value, start?: Value, end?: Value) => {
      const at = find(self, sub, start, end, isLast);
      return at < 0 && mustExist ? fail("substring not found") : at;
    },
  ] as const;

const affix = (isAffix: (part: string, affix: string) => boolean) =>
  [
    "prefix/ start/? end/?",
    (self: string, prefix: Value, start?: Value, end?: Value) => {
      const { part, isInside } = section(self, start, end);
      const options = prefix instanceof Tuple ? prefix.items : [prefix];
      const isPossible = (option: string) => isInside && (option !== "" || !isReversed(self, start, end));
      return options.some((option) => isPossible(text(option)) && isAffix(part, text(option)));
    },
  ] as const;

function count(self: string, sub: Value, start?: Value, end?: Value): number {
  const { part, isInside } = section(self, start, end);
  const sought = text(sub);
  spend(part.length);
  if (!isInside || isReversed(self, start, end)) return 0;
  return sought === "" ? lengthOf(part) + 1 : part.split(sought).length - 1;
}

/** Python's `str.replace`; a negative maximum replaces all. */
export function replace(self: string, old: string, replacement: string, maximum: number): string {
  const parts = old === "" ? ["", ...characters(self), ""] : self.split(old);
  const count = maximum < 0 ? parts.length - 1 : Math.min(maximum, parts.length - 1);
  const result = [...parts.slice(0, count), parts.slice(count).join(old)].join(replacement);
  spend(result.length);
  return result;
}

type Aligned = (self: string, missing: number, width: number, fill: string) => string;

const justifier = (align: Aligned) =>
  [
    "width/ fillchar/?",
    (self: string, width: Value, fill: Value = " ") => {
      if (lengthOf(text(fill)) !== 1) fail("The fill character must be exactly one character long");
      return align(self, Math.max(0, toIndex(width) - lengthOf(self)), toIndex(width), text(fill));
    },
  ] as const;

const centered: Aligned = (self, missing, width, fill) => {
  const left = (missing >> 1) + (missing & width & 1);
  return repeated(fill, left) + self + repeated(fill, missing - left);
};

/** Python's `str.center`. */
export const center = (self: string, width: number): string =>
  centered(self, Math.max(0, width - lengthOf(self)), width, " ");

function zfill(self: string, width: Value): string {
  const [, sign = "", rest = ""] = /^([+-]?)([^]*)$/.exec(self)!;
  return sign + repeated("0", toIndex(width) - lengthOf(self)) + rest;
}

function join(self: string, items: Value): string {
  const parts = listOf(items).map((item) =>
    isText(item) ? str(item) : fail(`expected str instance, ${typeName(item)} found`),
  );
  const result = parts.join(self);
  spend(result.length);
  return result;
}

const predicate = (test: (self: string) => boolean) => ["", test] as const;

export const stringMethods: Methods = {
  capitalize: ["", capitalize],
  center: justifier(centered),
  count: ["sub/ start/? end/?", count],
  endswith: affix((part, end) => part.endsWith(end)),
  find: finder(false, false),
  index: finder(false, true),
  isalnum: predicate(isAll.alphanumeric),
  isalpha: predicate(isAll.alphabetic),
  isascii: predicate((self) => /^\p{ASCII}*$/u.test(self)),
  isdecimal: predicate(isAll.decimal),
  isdigit: predicate(isAll.digit),
  isidentifier: predicate(isIdentifier),
  islower: predicate((self) => isCased(self, "lower")),
  isnumeric: predicate(isAll.numeric),
  isprintable: predicate((self) => self === "" || isAll.printable(self)),
  isspace: predicate((self) => self !== "" && strip(self, null, "both") === ""),
  istitle: predicate(isTitle),
  isupper: predicate((self) => isCased(self, "upper")),
  join: ["iterable/", join],
  ljust: justifier((self, missing, _, fill) => self + repeated(fill, missing)),
  lower: ["", (self: string) => self.toLowerCase()],
  lstrip: stripped("left"),
  partition: ["sep/", (self: string, sep: Value) => partition(self, sep, false)],
  removeprefix: [
    "prefix/",
    (self: string, prefix: Value) => (self.startsWith(text(prefix)) ? self.slice(text(prefix).length) : self),
  ],
  removesuffix: [
    "suffix/",
    (self: string, end: Value) =>
      self.endsWith(text(end)) ? self.slice(0, self.length - text(end).length) : self,
  ],
  replace: [
    "old/ new/ count/?",
    (self: string, old: Value, replacement: Value, maximum: Value = -1) =>
      replace(self, text(old), text(replacement), toIndex(maximum)),
  ],
  rfind: finder(true, false),
  rindex: finder(true, true),
  rjust: justifier((self, missing, _, fill) => repeated(fill, missing) + self),
  rpartition: ["sep/", (self: string, sep: Value) => partition(self, sep, true)],
  rsplit: splitter(true),
  rstrip: stripped("right"),
  split: splitter(false),
  splitlines: ["keepends?", (self: string, keepEnds: Value = false) => splitLines(self, isFlag(keepEnds))],
  startswith: affix((part, start) => part.startsWith(start)),
  strip: stripped("both"),
  title: ["", title],
  upper: ["", (self: string) => self.toUpperCase()],
  zfill: ["width/", zfill],
};

function isFlag(value: Value): boolean {
  return asInteger(value) === undefined ? fail("an integer is required") : isTrue(value);
}
