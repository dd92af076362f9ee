/** Words and numbers in small letters: on ASCII those of Google's `rouge-score` 0.1.2 without stemming. */
const tokensOf = (text: string): readonly string[] => text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];

/**
 * ROUGE-L F1 of two texts (Lin 2004): twice the longest common subsequence of their words over the number of both's words.
 * From 0 to 1, the same either way round. Texts that are equal have 1, without a word too.
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

/** The mean ROUGE-L F1 over all pairs of several texts: how alike samples of one prompt are. Null for fewer than two. */
export function selfRougeL(texts: readonly string[]): number | null {
  const scores = texts.flatMap((one, at) => texts.slice(at + 1).map((other) => rougeL(one, other)));
  return scores.length === 0 ? null : scores.reduce((sum, score) => sum + score, 0) / scores.length;
}
