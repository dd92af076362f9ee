/**
 * Returns the unbiased pass@k of a problem with `c` correct of `n` samples: 1 − C(n−c, k)/C(n, k) (Chen et al. 2021, arXiv
 * 2107.03374). Null if k > n.
 */
export function passAtK(n: number, c: number, k: number): number | null {
  if (k > n) return null;
  let noneCorrect = 1;
  for (let i = n - c + 1; i <= n; i++) noneCorrect *= Math.max(0, 1 - k / i);
  return 1 - noneCorrect;
}

/** Returns pass^k, the chance that k samples are all correct: C(c, k)/C(n, k) (Yao et al. 2024, τ-bench, arXiv 2406.12045). Null if k > n. */
export function passHatK(n: number, c: number, k: number): number | null {
  if (k > n) return null;
  let allCorrect = 1;
  for (let i = 0; i < k; i++) allCorrect *= Math.max(0, c - i) / (n - i);
  return allCorrect;
}
