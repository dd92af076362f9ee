/** GPT-2's alphabet: a printable byte maps to its own character, other bytes map in order to U+0100 and above. */
const letters: readonly string[] = (() => {
  const isPrintable = (byte: number): boolean =>
    (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
  let next = 256;
  return Array.from({ length: 256 }, (_, byte) => String.fromCodePoint(isPrintable(byte) ? byte : next++));
})();

/** GPT-2's pre-tokenization: contractions; words, numbers and punctuation with an optional leading space; whitespace. */
const pieces = /'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+/gu;

export interface BytePairs {
  /** Tokens in the order of their ids: the 256 bytes, then one per merge. */
  readonly vocab: readonly string[];
  readonly merges: readonly (readonly [left: string, right: string])[];
}

/**
 * Trains byte-pair encoding (Sennrich et al. 2016, arXiv:1508.07909) over bytes, as in GPT-2: repeatedly merges the most
 * frequent pair inside the pieces. Breaks ties by the lexical order of the pairs, so the result is deterministic. Takes time
 * proportional to pairs × merges, which suffices for a vocabulary of a thousand tokens.
 */
export function trainBytePairs(texts: readonly string[], vocabSize: number): BytePairs {
  const words = countPieces(texts);
  const vocab = [...letters].sort((a, b) => (a.codePointAt(0) as number) - (b.codePointAt(0) as number));
  const merges: [string, string][] = [];
  while (vocab.length < vocabSize) {
    const pair = mostFrequentPair(words);
    if (pair === null) break;
    for (const word of words) mergeIn(word.parts, pair);
    merges.push(pair);
    vocab.push(pair[0] + pair[1]);
  }
  return { vocab, merges };
}

interface Word {
  readonly parts: string[];
  readonly count: number;
}

function countPieces(texts: readonly string[]): Word[] {
  const counts = new Map<string, number>();
  for (const text of texts)
    for (const [piece] of text.matchAll(pieces)) counts.set(piece, (counts.get(piece) ?? 0) + 1);
  const encoder = new TextEncoder();
  return [...counts].map(([piece, count]) => ({
    parts: [...encoder.encode(piece)].map((byte) => letters[byte] as string),
    count,
  }));
}

function mostFrequentPair(words: readonly Word[]): [string, string] | null {
  const counts = new Map<string, number>();
  for (const { parts, count } of words) {
    for (let i = 0; i + 1 < parts.length; i += 1) {
      const key = `${parts[i]} ${parts[i + 1]}`;
      counts.set(key, (counts.get(key) ?? 0) + count);
    }
  }
  let best: string | null = null;
  let most = 1;
  for (const [key, count] of counts) {
    if (count > most || (count === most && best !== null && key < best)) [best, most] = [key, count];
  }
  return best === null ? null : (best.split(" ") as [string, string]);
}

function mergeIn(parts: string[], [left, right]: readonly [string, string]): void {
  for (let i = 0; i + 1 < parts.length; i += 1) {
    if (parts[i] === left && parts[i + 1] === right) parts.splice(i, 2, left + right);
  }
}
