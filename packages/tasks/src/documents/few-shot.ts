import { PeriodicEvalError } from "@periodic-eval/core";
import { pythonRandom } from "@periodic-eval/core/random";
import { isCount, quoteValue } from "@periodic-eval/core/internal";

export interface FewShot<D> {
  /** Where examples are drawn from, in the file's order. */
  readonly pool: readonly D[];
  /** Examples before each document. */
  readonly shots: number;
  /** Default 1234, as lm-evaluation-harness. */
  readonly seed?: number;
  /**
   * `random` (default): drawn anew for each document, from one stream over all of them; `first`: the pool's first, as MMLU's
   * (`first_n`).
   */
  readonly sampler?: "random" | "first";
  /**
   * Whether two rows are the same one; given where documents are in the pool themselves, and a document is to be left
   * out of its own examples. One more is then drawn.
   */
  readonly isSame?: (a: D, b: D) => boolean;
}

/**
 * The examples of each document, in the documents' order, as lm-evaluation-harness 0.4.13 draws them (`api/samplers.py`,
 * Python's `Random(1234)`): the i-th document's depend on how many were drawn before it, so that documents are given in
 * their file's order, from its first.
 *
 * @param where names the task in errors: `gsm8k`
 * @throws PeriodicEvalError `config` for more examples than the pool has.
 */
export function drawExamples<D>(
  documents: readonly D[],
  { pool, shots, seed = 1234, sampler = "random", isSame }: FewShot<D>,
  where: string,
): readonly (readonly D[])[] {
  if (!isCount(shots)) throw wrong(where, quoteValue(shots), "a whole number of 0 or more");
  if (!Number.isSafeInteger(seed)) throw wrong(`${where} fewshotSeed`, quoteValue(seed), "a whole number");
  if (shots === 0) return documents.map(() => []);
  const { sample } = pythonRandom(seed);
  const drawn = (count: number, from: readonly D[]) => {
    if (count > from.length) throw tooFew(where, shots, pool.length, count - shots);
    return sampler === "first" ? from.slice(0, count) : sample(from.length, count).map((at) => from[at]!);
  };
  return documents.map((document) => {
    if (isSame === undefined) return drawn(shots, pool);
    const others = (rows: readonly D[]) => rows.filter((row) => !isSame(row, document));
    if (sampler === "first") return drawn(shots, others(pool));
    const kept = others(drawn(shots + 1, pool)).slice(0, shots);
    // Rows that repeat the document may take more than the one that was drawn for it.
    return kept.length === shots ? kept : drawn(shots, others(pool));
  });
}

const tooFew = (where: string, shots: number, size: number, more: number) =>
  wrong(
    where,
    `${shots} of a pool of ${size}`,
    `no more than the pool has${more > 0 ? ", one of them in the question's place" : ""}`,
  );

const wrong = (where: string, got: string, expected: string) =>
  new PeriodicEvalError({
    code: "config",
    where: `${where} shots`,
    got,
    expected,
    fix: "Lower `shots`, or name a larger pool.",
  });
