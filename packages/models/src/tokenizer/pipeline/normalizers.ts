import { byteLetters } from "@periodic-eval/tokenizers";
import type { Part } from "./part.ts";
import { findMatches, readPattern } from "./oniguruma.ts";
import { lowercase, normalize } from "./unicode.ts";

export type Normalizer = (text: string) => string;

/** Reads the character map of a SentencePiece model: a double-array trie (Darts), and the replacements behind it. */
function readCharsmap(part: Part): Normalizer {
  const damaged = (got: string) =>
    part.error("precompiled_charsmap", got, "the base64 of a character map of SentencePiece");
  let bytes: Uint8Array;
  try {
    bytes = Uint8Array.from(atob(part.string("precompiled_charsmap")), (byte) => byte.charCodeAt(0));
  } catch {
    throw damaged("a string that is not base64");
  }
  const view = new DataView(bytes.buffer);
  const size = bytes.length < 4 ? 0 : view.getUint32(0, true);
  if (size === 0 || size % 4 !== 0 || size + 4 > bytes.length) throw damaged("a map of a wrong size");
  const units = Uint32Array.from({ length: size / 4 }, (_, i) => view.getUint32(4 + 4 * i, true));
  const replacements = bytes.subarray(4 + size);
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

  const replacementAt = (start: number): string => {
    const end = replacements.indexOf(0, start);
    return decoder.decode(replacements.subarray(start, end === -1 ? undefined : end));
  };
  /** Returns what replaces the text: the entry of its shortest prefix that the map has, or null. */
  const transform = (text: string): string | null => {
    const start = shortestPrefix(units, new TextEncoder().encode(text));
    return start === null ? null : replacementAt(start);
  };
  const wholeOf = (grapheme: string) =>
    grapheme.length < 6 && byteLength(grapheme) < 6 ? transform(grapheme) : null;
  return (text) => {
    let result = "";
    for (const grapheme of graphemes(text)) {
      const whole = wholeOf(grapheme);
      if (whole === null) for (const character of grapheme) result += transform(character) ?? character;
      else result += whole;
    }
    return result;
  };
}

const byteLength = (text: string): number => new TextEncoder().encode(text).length;
const segmenter = new Intl.Segmenter("en", { granularity: "grapheme" });

function* graphemes(text: string): Generator<string> {
  // A character of these is a grapheme by itself, whatever follows it among them.
  if (/^[ -~]*$/.test(text)) yield* text;
  else for (const { segment } of segmenter.segment(text)) yield segment;
}

/** Returns the value of the shortest key of the trie that `bytes` begins with, or null. */
function shortestPrefix(units: Uint32Array, bytes: Uint8Array): number | null {
  const offset = (unit: number) => (unit >>> 10) << ((unit & 0x200) >>> 6);
  let at = offset(units[0]!);
  for (const byte of bytes) {
    if (byte === 0) return null;
    at ^= byte;
    const unit = units[at];
    if (unit === undefined || (unit & 0x8000_00ff) >>> 0 !== byte) return null;
    at ^= offset(unit);
    const value = units[at];
    if (((unit >>> 8) & 1) === 1) return value === undefined ? null : value & 0x7fff_ffff;
  }
  return null;
}

const normalizers: Readonly<Record<string, (part: Part) => Normalizer>> = {
  ByteLevel: () => toByteLetters,
  Lowercase: () => lowercase,
  NFC: () => (text) => normalize(text, "NFC"),
  NFD: () => (text) => normalize(text, "NFD"),
  NFKC: () => (text) => normalize(text, "NFKC"),
  NFKD: () => (text) => normalize(text, "NFKD"),
  Precompiled: readCharsmap,
  Prepend(part) {
    const prefix = part.string("prepend");
    return (text) => (text === "" ? "" : prefix + text);
  },
  Replace: readReplacer,
  Sequence(part) {
    const steps = part.parts("normalizers").map(readNormalizer);
    return (text) => steps.reduce((current, apply) => apply(current), text);
  },
  Strip(part) {
    const start = part.boolean("strip_left") ? /^\p{White_Space}+/u : /^/;
    const end = part.boolean("strip_right") ? /\p{White_Space}+$/u : /$/;
    return (text) => text.replace(start, "").replace(end, "");
  },
};

export function readNormalizer(part: Part): Normalizer {
  return part.component(normalizers);
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

/** Spells a text in GPT-2's alphabet, one letter for each byte of UTF-8. */
export function toByteLetters(text: string): string {
  if (/^[!-~]*$/.test(text)) return text;
  let letters = "";
  for (const byte of new TextEncoder().encode(text)) letters += byteLetters[byte]!;
  return letters;
}
