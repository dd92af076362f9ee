import {
  defineEvaluation,
  permutationTest,
  PeriodicEvalError,
  type Json,
  type LogLikelihood,
  type MetricKit,
  type Row,
} from "@periodic-eval/core";
import { hashJson } from "@periodic-eval/core/random";
import { checkKeys } from "@periodic-eval/core/internal";
import { measureInBatches, nestedSubset } from "@periodic-eval/core/evaluations";
import type { LogprobPair, Preference } from "../preferences/preference.ts";

export interface PreferenceMarginOptions {
  readonly preference: Pick<Preference, "name" | "logprob_pairs">;
}

interface PairItem extends Row, LogprobPair {}

/** One pair: Σ log p of either answer after the prompt, in nats, and how many tokens it has. */
export interface PreferenceMarginRow extends Row {
  readonly chosenNats: number;
  readonly chosenTokens: number;
  readonly rejectedNats: number;
  readonly rejectedTokens: number;
}

/** Of a pair, in nats: how much likelier the answer is that the preference wants. */
export const marginOf = ({ chosenNats, rejectedNats }: PreferenceMarginRow): number =>
  chosenNats - rejectedNats;

/** The same by token of each answer: what one answer is longer does not count. */
export const marginPerTokenOf = (row: PreferenceMarginRow): number =>
  row.chosenNats / row.chosenTokens - row.rejectedNats / row.rejectedTokens;

/**
 * Whether a preference is learnt, by what the model finds likely to be said: log p of the answer that the preference wants
 * minus that of the one that it does not, after the same prompt, a user turn. `logprob_margin`, the primary metric, is the
 * mean over held-out pairs of the differences of Σ log p; `logprob_margin_per_token` of those of the means by token. Nothing
 * is drawn: a look pairs each pair with itself at the baseline, so that only what training changed is left.
 *
 * @throws PeriodicEvalError `config` for an unknown option; `model` where a log-likelihood is no number.
 */
export function preferenceMarginEvaluation(options: PreferenceMarginOptions) {
  checkKeys("preferenceMargin", options, ["preference"]);
  const { name, logprob_pairs: pairs } = options.preference;
  const items: readonly PairItem[] = pairs.map((pair, at) => ({ id: `${name}/${at}`, ...pair }));
  const provenance: Json = { preference: name, pairs_hash: hashJson(pairs.map((pair) => ({ ...pair }))) };
  return defineEvaluation({
    name: "logprob",
    version: "logprob-1",
    needs: ["logLikelihoods"],
    provenance: () => provenance,
    items: () => nestedSubset(items, { n: null, seed: 42 }),
    measure: (model, asked, context) =>
      measureInBatches(asked, context, async (some): Promise<readonly PreferenceMarginRow[]> => {
        const requests = some.flatMap(({ prompt, chosen, rejected }) =>
          [chosen, rejected].map((continuation) => ({
            context: { messages: [{ role: "user", content: prompt }] },
            continuation,
          })),
        );
        const scores = await model.logLikelihoods(requests, { signal: context.signal });
        return some.map(({ id }, at) => rowOf(id, scores[2 * at]!, scores[2 * at + 1]!));
      }),
    metrics: ({ mean }: MetricKit<PreferenceMarginRow>) => ({
      logprob_margin: mean(marginOf, { unit: "nats", higherIsBetter: true, primary: true }),
      logprob_margin_per_token: mean(marginPerTokenOf, { unit: "nats per token", higherIsBetter: true }),
    }),
  });
}

function rowOf(id: string, chosen: LogLikelihood, rejected: LogLikelihood): PreferenceMarginRow {
  const bad = [chosen, rejected].find(({ sumNats }) => !Number.isFinite(sumNats));
  if (bad !== undefined) {
    throw new PeriodicEvalError({
      code: "model",
      where: `pair ${id}`,
      got: `Σ log p of ${bad.sumNats}`,
      expected: "a finite number",
      fix: "Look at the loss: weights that are NaN or infinite answer so.",
    });
  }
  return {
    id,
    chosenNats: chosen.sumNats,
    chosenTokens: chosen.tokenNats.length,
    rejectedNats: rejected.sumNats,
    rejectedTokens: rejected.tokenNats.length,
  };
}

/** How margins changed since the baseline, over the pairs that both looks have. */
export interface MarginDelta {
  /** Mean change, in nats; null without a pair. */
  readonly delta: number | null;
  readonly deltaPerToken: number | null;
  readonly n: number;
  /** Two-sided sign-flip test of the changes: exact up to 13 pairs, else of 10,000 draws. */
  readonly p: number | null;
}

export function marginDelta(
  now: readonly PreferenceMarginRow[],
  baseline: readonly PreferenceMarginRow[],
  seed = "42",
): MarginDelta {
  const before = new Map(baseline.map((row) => [row.id, row]));
  const both = now.flatMap((row) => {
    const earlier = before.get(row.id);
    return earlier === undefined ? [] : [[row, earlier] as const];
  });
  const changeOf = (margin: (row: PreferenceMarginRow) => number) =>
    both.length === 0
      ? null
      : both.reduce((sum, [row, earlier]) => sum + margin(row) - margin(earlier), 0) / both.length;
  // Exchanging the one value of each look turns the sign of their difference.
  const pairs = both.map(([row, earlier]) => ({ now: [marginOf(row)], before: [marginOf(earlier)] }));
  return {
    delta: changeOf(marginOf),
    deltaPerToken: changeOf(marginPerTokenOf),
    n: both.length,
    p: permutationTest(pairs, seed).p,
  };
}
