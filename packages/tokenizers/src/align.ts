/**
 * Returns the half-open range of UTF-8 bytes in `spelled` of each token of `ids`. Derives it from the spelling of the tokens,
 * because the tokenizer returns no offsets. Null if the tokens spell another text.
 */
export function tokenByteRanges(
  codec: Codec,
  { text, segments, isByteLevel }: SpelledText,
  ids: readonly number[],
): readonly (readonly [start: number, end: number])[] | null {
  const ranges: [number, number][] = [];
  let position = 0;
  let at = 0;
  for (const segment of segments) {
    if (segment.at !== position) at = byteLength(text.slice(0, segment.at));
    position = segment.at + segment.text.length;
    const bytes = utf8.encode(segment.text);
    const end = at + bytes.length;
    if (segment.id !== null) {
      if (ids[ranges.length] !== segment.id) return null;
      ranges.push([at, end]);
      at = end;
    }
    while (at < end) {
      const id = ids[ranges.length];
      const token = id === undefined ? undefined : codec.tokenOf(id);
      if (token === undefined) return null;
      const rest = bytes.subarray(bytes.length - (end - at));
      const length = codec.specialIds.has(id!)
        ? lengthIf(rest, utf8.encode(token))
        : spelledLength(token, rest, isByteLevel);
      if (length === null) return null;
      ranges.push([at, at + length]);
      at += length;
    }
  }
  return ranges.length === ids.length ? ranges : null;
}

/** Returns the text that the tokens of a text spell. */
export function spell(codec: Codec, text: string): SpelledText {
  const unchanged = (): SpelledText => ({
    text,
    segments: [{ id: null, text, at: 0 }],
    isByteLevel: codec.isByteLevel,
    positionOf: (position) => position,
  });
  return codec.spell?.(text) ?? unchanged();
}

/** Returns how many of the bytes the token spells from the first one; null if it spells others. */
function spelledLength(token: string, bytes: Uint8Array, isByteLevel: boolean): number | null {
  if (isByteLevel) {
    const letters = [...token].map((letter) => byteOfLetter.get(letter));
    // Added tokens that are not special do not use the byte alphabet.
    return lengthIf(
      bytes,
      letters.includes(undefined) ? utf8.encode(token) : Uint8Array.from(letters as number[]),
    );
  }
  const byte = /^<0x([0-9A-F]{2})>$/.exec(token)?.[1];
  if (byte !== undefined) return lengthIf(bytes, Uint8Array.of(Number.parseInt(byte, 16)));
  let at = 0;
  for (const [i, part] of token.split(/(▁)/).entries()) {
    const spellings = part === "▁" ? [" ", "▁"] : [part];
    const length = spellings
      .map((spelling) => lengthIf(bytes.subarray(at), utf8.encode(spelling)))
      .find((some) => some !== null);
    // Metaspace pipelines add a leading space that is not in the text.
    if (length === undefined && !(part === "▁" && i === 1 && at === 0)) return null;
    at += length ?? 0;
  }
  return at;
}

const utf8 = new TextEncoder();

export const byteLength = (text: string): number => utf8.encode(text).length;

const lengthIf = (bytes: Uint8Array, start: Uint8Array): number | null =>
  start.every((byte, i) => bytes[i] === byte) ? start.length : null;

/** GPT-2's byte alphabet: printable bytes map to themselves, the others to U+0100 and following, in order. */
export const byteLetters: readonly string[] = (() => {
  const printable = (byte: number) =>
    (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
  let next = 256;
  return Array.from({ length: 256 }, (_, byte) => String.fromCodePoint(printable(byte) ? byte : next++));
})();

const byteOfLetter = new Map(byteLetters.map((letter, byte) => [letter, byte]));

/** Converts strings to ids and back, without chat templates. */
export interface Codec {
  readonly vocabSize: number;
  encode(text: string, specialTokens: boolean): number[];
  decode(ids: readonly number[], specialTokens: boolean): string;
  tokenOf(id: number): string | undefined;
  idOf(token: string): number | undefined;
  readonly specialIds: ReadonlySet<number>;
  /** Whether tokens are spelled in GPT-2's byte alphabet. */
  readonly isByteLevel: boolean;
  /** Returns the text that the tokens of `encode` spell. Default: the text itself. */
  spell?(text: string): SpelledText;
}

/** A text after the normalizer, which the tokens spell. */
export interface SpelledText {
  readonly text: string;
  /**
   * The added tokens and the text between them, in order. `id` is null for other text; `at` counts UTF-16 units of `text`. The
   * text of an added token has the whitespace that it takes.
   */
  readonly segments: readonly { readonly id: number | null; readonly text: string; readonly at: number }[];
  /** Whether tokens spell it in GPT-2's byte alphabet. */
  readonly isByteLevel: boolean;
  /** Returns where in `text` a position of the text before the normalizer is. Both count UTF-16 units. */
  positionOf(position: number): number;
}
