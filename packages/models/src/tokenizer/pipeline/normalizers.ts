import { byteLetters } from "@periodic-eval/tokenizers";
import { readCharsmap } from "./charsmap.ts";
import type { Normalizer } from "./normalizer.ts";
import type { Part } from "./part.ts";
import { findMatches, readPattern } from "./pattern.ts";
import { charClass, lowercase, normalize } from "./unicode.ts";

/** A normalizer that treats the first character by itself. */
const byCharacter = (apply: (text: string) => string): Normalizer => ({
  apply,
  startOf: (text, count) => apply(text.slice(0, count)).length,
});

const normalizers: Readonly<Record<string, (part: Part) => Normalizer>> = {
  BertNormalizer: bert,
  ByteLevel: () => byCharacter(toByteLetters),
  Lowercase: () => byCharacter(lowercase),
  NFC: () => byCharacter((text) => normalize(text, "NFC")),
  NFD: () => byCharacter((text) => normalize(text, "NFD")),
  NFKC: () => byCharacter((text) => normalize(text, "NFKC")),
  NFKD: () => byCharacter((text) => normalize(text, "NFKD")),
  Precompiled: readCharsmap,
  Prepend: (part) => prepend(part.string("prepend")),
  Replace: replace,
  Sequence: (part) => sequence(part.parts("normalizers").map(readNormalizer)),
  Strip: (part) => strip(part.boolean("strip_left"), part.boolean("strip_right")),
  StripAccents: () => byCharacter(remover(charClass.mark)),
};

export function readNormalizer(part: Part): Normalizer {
  return part.component(normalizers);
}

function sequence(normalizers: readonly Normalizer[]): Normalizer {
  return {
    apply: (text) => normalizers.reduce((current, { apply }) => apply(current), text),
    startOf: (text, count) => {
      for (const { apply, startOf } of normalizers) {
        count = startOf(text, count);
        text = apply(text);
      }
      return count;
    },
  };
}

const remover = (characters: string) => {
  const regex = new RegExp(`[${characters}]`, "gv");
  return (text: string) => text.replaceAll(regex, "");
};

function strip(left: boolean, right: boolean): Normalizer {
  const start = /^\p{White_Space}+/u;
  const end = /\p{White_Space}+$/u;
  return {
    apply: (text) => {
      const rest = left ? text.replace(start, "") : text;
      return right ? rest.replace(end, "") : rest;
    },
    startOf: (text, count) => Math.max(0, count - (left ? (start.exec(text)?.[0].length ?? 0) : 0)),
  };
}

function bert(part: Part): Normalizer {
  const lowers = part.boolean("lowercase");
  const stripsAccents = part.fields["strip_accents"] == null ? lowers : part.boolean("strip_accents");
  const steps: ((text: string) => string)[] = [];
  if (part.boolean("clean_text")) {
    const removeControls = remover(charClass.control);
    steps.push((text) => removeControls(text).replaceAll(/\p{White_Space}/gu, " "));
  }
  if (part.boolean("handle_chinese_chars")) {
    const chinese = new RegExp(`[${charClass.chinese}]`, "gv");
    steps.push((text) => text.replaceAll(chinese, " $& "));
  }
  if (stripsAccents) {
    const removeMarks = remover(charClass.nonspacingMark);
    steps.push((text) => removeMarks(normalize(text, "NFD")));
  }
  if (lowers) steps.push(lowercase);
  return byCharacter((text) => steps.reduce((current, step) => step(current), text));
}

function replace(part: Part): Normalizer {
  const regex = readPattern(part);
  const content = part.string("content");
  return {
    apply: readReplacer(part),
    // A replacement belongs to the last character of its match.
    startOf: (text, count) => {
      let start = 0;
      for (const [from, to, isMatch] of findMatches(regex, text)) {
        const last = to - (Array.from(text.slice(from, to)).at(-1)?.length ?? 0);
        if (isMatch ? last >= count && to > 0 : from >= count) break;
        start += isMatch ? content.length : Math.min(to, count) - from;
      }
      return start;
    },
  };
}

/** Reads `pattern` and `content`, and returns the function that replaces each match. */
export function readReplacer(part: Part): (text: string) => string {
  const regex = readPattern(part);
  const content = part.string("content");
  const literal = part.part("pattern").fields["String"];
  if (typeof literal === "string" && literal !== "") return (text) => text.replaceAll(literal, () => content);
  return (text) =>
    findMatches(regex, text)
      .map(([start, end, isMatch]) => (isMatch ? content : text.slice(start, end)))
      .join("");
}

function prepend(prefix: string): Normalizer {
  return {
    apply: (text) => (text === "" ? "" : prefix + text),
    startOf: (_, count) => (count === 0 ? 0 : prefix.length + count),
  };
}

/** Spells a text in GPT-2's alphabet, one letter for each byte of UTF-8. */
export function toByteLetters(text: string): string {
  if (/^[!-~]*$/.test(text)) return text;
  let letters = "";
  for (const byte of new TextEncoder().encode(text)) letters += byteLetters[byte]!;
  return letters;
}
