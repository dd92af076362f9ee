/** Returns lower-case words and numbers: on ASCII, the tokens of Google's `rouge-score` 0.1.2 without stemming. */
const tokensOf = (text: string): readonly string[] => text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];

/**
 * Returns the ROUGE-L F1 of two texts (Lin 2004), from 0 to 1: twice the length of their longest common subsequence of words,
 * divided by the total number of words. Symmetric. Identical texts score 1, even if they
 * contain no words.
 */
export function rougeL(first: string, second: string): number {
  if (first === second) return 1;
  const [a, b] = [tokensOf(first), tokensOf(second)];
  if (a.length === 0 || b.length === 0) return 0;
  return (2 * longestCommon(a, b)) / (a.length + b.length);
}

function longestCommon(a: readonly string[], b: readonly string[]): number {
  let row = new Uint32Array(b.length + 1);
  for (const word of a) {
    const next = new Uint32Array(b.length + 1);
    for (let j = 1; j <= b.length; j += 1)
      next[j] = word === b[j - 1] ? row[j - 1]! + 1 : Math.max(row[j]!, next[j - 1]!);
    row = next;
  }
  return row[b.length]!;
}

/** Returns the mean ROUGE-L F1 over all pairs of texts; null for fewer than two. */
export function selfRougeL(texts: readonly string[]): number | null {
  const scores = texts.flatMap((one, at) => texts.slice(at + 1).map((other) => rougeL(one, other)));
  return scores.length === 0 ? null : scores.reduce((sum, score) => sum + score, 0) / scores.length;
}
