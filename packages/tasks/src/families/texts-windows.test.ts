import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { rollingWindows } from "./texts.ts";

// lm-evaluation-harness 0.4.13: [make_disjoint_window(w) for w in
// get_rolling_token_windows(list(range(1, n + 1)), 0, max_seq_len, context_len)]; the prefix token is 0.
const goldens: readonly (readonly [
  n: number,
  window: number,
  contextLen: number,
  (readonly number[])[][],
])[] = [
  [
    10,
    4,
    1,
    [
      [[0], [1, 2, 3, 4]],
      [[4], [5, 6, 7, 8]],
      [
        [6, 7, 8],
        [9, 10],
      ],
    ],
  ],
  [
    9,
    4,
    3,
    [
      [[0], [1, 2, 3, 4]],
      [
        [2, 3, 4],
        [5, 6],
      ],
      [
        [4, 5, 6],
        [7, 8],
      ],
      [[5, 6, 7, 8], [9]],
    ],
  ],
  [4, 4, 1, [[[0], [1, 2, 3, 4]]]],
  [1, 4, 1, [[[0], [1]]]],
  [
    8,
    4,
    1,
    [
      [[0], [1, 2, 3, 4]],
      [[4], [5, 6, 7, 8]],
    ],
  ],
  [
    5,
    2,
    2,
    [
      [[0], [1, 2]],
      [[1, 2], [3]],
      [[2, 3], [4]],
      [[3, 4], [5]],
    ],
  ],
];

describe("rollingWindows", () => {
  it.each(goldens)(
    "splits %i tokens by %i with context_len %i like the reference",
    (n, window, contextLen, expected) => {
      const ids = Array.from({ length: n + 1 }, (_, id) => id);
      const windows = rollingWindows(ids.length, window, window - contextLen + 1);
      expect(windows.map(({ start, from, to }) => [ids.slice(start, from), ids.slice(from, to)])).toEqual(
        expected,
      );
    },
  );

  it("scores each token after the first exactly once, after at least one token, in windows that fit", () => {
    const size = fc.integer({ min: 1, max: 9 });
    fc.assert(
      fc.property(fc.nat(40), size, size, (length, window, some) => {
        const windows = rollingWindows(length, window, Math.min(window, some));
        const scored = windows.flatMap(({ from, to }) =>
          Array.from({ length: to - from }, (_, i) => from + i),
        );
        expect(scored).toEqual(Array.from({ length: Math.max(0, length - 1) }, (_, i) => i + 1));
        for (const { start, from, to } of windows) {
          expect(start).toBeLessThan(from);
          // The model scores the last token but does not read it.
          expect(to - 1 - start).toBeLessThanOrEqual(window);
        }
      }),
    );
  });
});
