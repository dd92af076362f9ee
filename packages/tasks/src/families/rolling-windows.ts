/** Tokens scored in one pass: `[from, to)` of the sequence, with `[start, from)` as context. */
export interface RollingWindow {
  readonly start: number;
  readonly from: number;
  readonly to: number;
}

/**
 * Returns windows over a sequence longer than a model's context. Every token but the first is scored exactly once, as in
 * lm-evaluation-harness 0.4.13 (`get_rolling_token_windows`, made disjoint), whose `context_len` is window − stride + 1. Each
 * window but the first is full: the last tokens get the longest context that fits.
 *
 * @param length Tokens of the sequence. The first is context only.
 * @param window Most tokens that the model reads. It scores as many, and does not read the last of them.
 * @param stride Tokens scored by each window but the first and the last; 1 to `window`.
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
