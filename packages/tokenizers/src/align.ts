/**
 * Returns the half-open range of UTF-8 bytes in `text` of each token of `ids`. Derives it from the spelling of the tokens,
 * because the tokenizer returns no offsets. Null if a normalizer changed the text, so that spelling and text disagree.
 */
export function tokenByteRanges(
  codec: Codec,
  text: string,
  ids: readonly number[],
): readonly (readonly [start: number, end: number])[] | null {
  const bytes = utf8.encode(text);
  const ranges: [number, number][] = [];
  let at = 0;
  for (const id of ids) {
    const token = codec.tokenOf(id);
    if (token === undefined) return null;
    const length = spelledLength(codec, { id, token }, bytes.subarray(at));
    if (length === null) return null;
    ranges.push([at, at + length]);
    at += length;
  }
  return at === bytes.length ? ranges : null;
}

/** Returns how many of the bytes the token spells from the first one; null if it spells others. */
function spelledLength(
  codec: Codec,
  { id, token }: { readonly id: number; readonly token: string },
  bytes: Uint8Array,
): number | null {
  if (codec.specialIds.has(id)) return lengthIf(bytes, utf8.encode(token));
  if (codec.isByteLevel) {
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
}
