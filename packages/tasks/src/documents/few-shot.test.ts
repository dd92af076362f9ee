import { describe, expect, it } from "vitest";
import { drawExamples, type FewShot } from "./few-shot.ts";

const isSame = (a: number, b: number) => a === b;
const thirty = Array.from({ length: 30 }, (_, at) => at);
const six = thirty.slice(0, 6);
const twins = Array.from({ length: 12 }, (_, at) => Math.floor(at / 2));

describe("draws the examples of lm-evaluation-harness", () => {
  // lm-evaluation-harness 0.4.13, documents {"i": i}: s = ContextSampler(pool, rnd=None); s.set_rnd(1234);
  // [s.sample(n=shots, eval_doc=doc if isSame else None) for doc in documents]
  const goldens: readonly (readonly [
    string,
    readonly number[],
    FewShot<number>,
    readonly (readonly number[])[],
  ])[] = [
    [
      "from a separate pool",
      six.slice(0, 3),
      { pool: thirty, shots: 4 },
      [
        [24, 14, 3, 0],
        [2, 29, 25, 18],
        [1, 21, 22, 2],
      ],
    ],
    [
      "from the documents' own file, without the document itself",
      six,
      { pool: thirty, shots: 4, isSame },
      [
        [24, 14, 3, 2],
        [29, 25, 18, 21],
        [22, 3, 24, 11],
        [7, 0, 25, 11],
        [19, 15, 14, 2],
        [22, 3, 27, 0],
      ],
    ],
    [
      "from a pool in which only the document itself is left out",
      six.slice(0, 4),
      { pool: six, shots: 5, isSame },
      [
        [3, 4, 5, 2, 1],
        [0, 2, 5, 4, 3],
        [4, 3, 5, 1, 0],
        [0, 1, 5, 4, 2],
      ],
    ],
    [
      // The first draw of five holds both 0s, so four are drawn again from the rest.
      "from a pool with repeated rows",
      twins.slice(0, 8),
      { pool: twins, shots: 4, isSame },
      [
        [1, 5, 3, 5],
        [5, 5, 2, 3],
        [4, 3, 0, 5],
        [5, 0, 0, 4],
        [1, 0, 4, 3],
        [4, 5, 0, 4],
        [2, 4, 0, 5],
        [2, 2, 1, 4],
      ],
    ],
    // These two cases use FirstNSampler instead of ContextSampler.
    ["in order, with the sampler `first`", [0], { pool: thirty, shots: 2, sampler: "first" }, [[0, 1]]],
    [
      "in order, without the document itself",
      six.slice(0, 3),
      { pool: thirty, shots: 2, sampler: "first", isSame },
      [
        [1, 2],
        [0, 2],
        [0, 1],
      ],
    ],
  ];
  it.each(goldens)("%s", (_, documents, fewShot, expected) => {
    expect(drawExamples(documents, fewShot, "t")).toEqual(expected);
  });
});

it("draws the same examples for a document whatever follows it", () => {
  const fewShot = { pool: thirty, shots: 3 };
  expect(drawExamples(six.slice(0, 2), fewShot, "t")).toEqual(drawExamples(six, fewShot, "t").slice(0, 2));
});

it("draws different examples with a different seed, and none for 0 shots", () => {
  const of = (seed: number) => drawExamples([0], { pool: thirty, shots: 4, seed }, "t");
  expect(of(1)).not.toEqual(of(1234));
  expect(drawExamples([0, 1], { pool: [], shots: 0 }, "t")).toEqual([[], []]);
});

it("rejects more shots than the pool has", () => {
  const of = (fewShot: Partial<FewShot<number>>) => () =>
    drawExamples([0], { pool: six, shots: 6, ...fewShot }, "gsm8k");
  expect(of({})).not.toThrow();
  expect(of({ shots: 7 })).toThrow(
    "gsm8k options.shots: got 7 with a pool of 6, expected at most the size of the pool.",
  );
  expect(of({ isSame })).toThrow(
    "got 6 with a pool of 6, expected fewer examples than the pool has: one more",
  );
  expect(of({ sampler: "first", isSame })).toThrow("got 6 with a pool of 6");
  expect(of({ shots: -1 })).toThrow("got -1");
});
