/** Tokens that are scored in one pass: `[from, to)` of the sequence, after those of `[start, from)`. */
export interface RollingWindow {
  readonly start: number;
  readonly from: number;
  readonly to: number;
}

/**
 * Windows over a sequence longer than a model reads, in which every token but the first is scored exactly once:
 * lm-evaluation-harness 0.4.13 (`get_rolling_token_windows`, made disjoint), whose `context_len` is window − stride + 1.
 * Each window but the first is full: the last tokens have as much before them as fits.
 *
 * @param length of the sequence in tokens, the first of which stands before what is scored
 * @param window the most tokens that the model reads; it then scores as many, the last of which it does not read
 * @param stride tokens scored by each window but the first and the last; 1 to `window`
 */
export function rollingWindows(
  length: number,
  window: number,
  stride: number = window,
): readonly RollingWindow[] {
  const windows: RollingWindow[] = [];
  for (let from = 1; from < length;) {
    const to = Math.min(length, from + (windows.length === 0 ? window : stride));
    windows.push({ start: Math.max(0, to - 1 - window), from, to });
    from = to;
  }
  return windows;
}
