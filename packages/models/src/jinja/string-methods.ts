import { fail } from "./errors.ts";
import { asInteger, toIndex } from "./numbers.ts";
import type { Methods } from "./parameters.ts";
import { str } from "./print.ts";
import { isTrue, listOf } from "./sequences.ts";
import { capitalize, characters, lengthOf, splitLines, strip, title } from "./text.ts";
import { Tuple, isText, typeName, type Value } from "./values.ts";

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

function find(self: string, sub: Value, isLast: boolean): number {
  const sought = text(sub);
  const at = isLast ? self.lastIndexOf(sought) : self.indexOf(sought);
  return at < 0 ? -1 : lengthOf(self.slice(0, at));
}

const affix = (isAffix: (self: string, affix: string) => boolean) =>
  [
    "prefix/",
    (self: string, prefix: Value) => {
      const options = prefix instanceof Tuple ? prefix.items : [prefix];
      return options.some((option) => isAffix(self, text(option)));
    },
  ] as const;

function count(self: string, sub: Value): number {
  const sought = text(sub);
  return sought === "" ? lengthOf(self) + 1 : self.split(sought).length - 1;
}

/** Python's `str.replace`; a negative maximum replaces all. */
export function replace(self: string, old: string, replacement: string, maximum: number): string {
  const parts = old === "" ? ["", ...characters(self), ""] : self.split(old);
  const count = maximum < 0 ? parts.length - 1 : Math.min(maximum, parts.length - 1);
  return [...parts.slice(0, count), parts.slice(count).join(old)].join(replacement);
}

function join(self: string, items: Value): string {
  const parts = listOf(items).map((item) =>
    isText(item) ? str(item) : fail(`expected str instance, ${typeName(item)} found`),
  );
  return parts.join(self);
}

export const stringMethods: Methods = {
  capitalize: ["", capitalize],
  count: ["sub/", count],
  endswith: affix((self, end) => self.endsWith(end)),
  find: ["sub/", (self: string, sub: Value) => find(self, sub, false)],
  index: [
    "sub/",
    (self: string, sub: Value) => {
      const at = find(self, sub, false);
      return at < 0 ? fail("substring not found") : at;
    },
  ],
  join: ["iterable/", join],
  lower: ["", (self: string) => self.toLowerCase()],
  lstrip: stripped("left"),
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
  rfind: ["sub/", (self: string, sub: Value) => find(self, sub, true)],
  rsplit: splitter(true),
  rstrip: stripped("right"),
  split: splitter(false),
  splitlines: ["keepends?", (self: string, keepEnds: Value = false) => splitLines(self, isFlag(keepEnds))],
  startswith: affix((self, start) => self.startsWith(start)),
  strip: stripped("both"),
  title: ["", title],
  upper: ["", (self: string) => self.toUpperCase()],
};

function isFlag(value: Value): boolean {
  return asInteger(value) === undefined ? fail("an integer is required") : isTrue(value);
}
