import {
  defineEvaluation,
  permutationTest,
  type Json,
  type LogLikelihood,
  type MetricKit,
  type Row,
} from "@periodic-eval/core";
import { hashJson } from "@periodic-eval/core/random";
import { isRecord, parseOptions, modelError } from "@periodic-eval/contracts/options";
import { measureInBatches, nestedSubset } from "@periodic-eval/core/evaluations";
import * as z from "zod";
import type { LogprobPair, Preference } from "../preferences/preference.ts";

export interface PreferenceMarginOptions {
  readonly preference: Pick<Preference, "name" | "logprob_pairs">;
}

const optionsSchema = z.strictObject({
  preference: z.custom<PreferenceMarginOptions["preference"]>(isRecord, "a preference"),
} satisfies Record<keyof PreferenceMarginOptions, z.ZodType>);

interface PairItem extends Row, LogprobPair {}

/** The row of a pair: Σ log p of each answer after the prompt, in nats, and its number of tokens. */
export interface PreferenceMarginRow extends Row {
  readonly chosenNats: number;
  readonly chosenTokens: number;
  readonly rejectedNats: number;
  readonly rejectedTokens: number;
  /** Tokens cut from the context of both answers to fit the model; null if the engine does not report it. */
  readonly truncatedTokens: number | null;
}

/** Returns Σ log p of the chosen answer minus that of the rejected one, in nats. */
export const marginOf = ({ chosenNats, rejectedNats }: PreferenceMarginRow): number =>
  chosenNats - rejectedNats;

/** Returns the difference of the mean log p per token, in nats, which does not depend on the answers' lengths. */
export const marginPerTokenOf = (row: PreferenceMarginRow): number =>
  row.chosenNats / row.chosenTokens - row.rejectedNats / row.rejectedTokens;

/**
 * Measures whether the model learned a preference: log p of the chosen answer minus that of the rejected one, after the same
 * prompt as a user turn. `logprob_margin`, the primary metric, is the mean over held-out pairs of the differences of Σ log p;
 * `logprob_margin_per_token` uses the mean log p per token. The metric samples nothing and compares each pair with the same pair
 * at the baseline, so that only training can change it.
 *
 * @throws PeriodicEvalError `config` for a wrong option; `model` if a log-likelihood is not finite.
 */
export function preferenceMarginEvaluation(options: PreferenceMarginOptions) {
  parseOptions("preferenceMargin options", optionsSchema, options);
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
    answers: null,
    metrics: ({ mean }: MetricKit<PreferenceMarginRow>) => ({
      logprob_margin: mean(marginOf, { unit: "nats", higherIsBetter: true, primary: true }),
      logprob_margin_per_token: mean(marginPerTokenOf, { unit: "nats per token", higherIsBetter: true }),
    }),
  });
}

function rowOf(id: string, chosen: LogLikelihood, rejected: LogLikelihood): PreferenceMarginRow {
  const bad = [chosen, rejected].find(({ sumNats }) => !Number.isFinite(sumNats));
  if (bad !== undefined) {
    throw modelError(
      `pair ${id}`,
      `Σ log p of ${bad.sumNats}`,
      "a finite number",
      "Check the loss: the weights are probably NaN or infinite.",
    );
  }
  return {
    id,
    chosenNats: chosen.sumNats,
    chosenTokens: chosen.tokenNats.length,
    rejectedNats: rejected.sumNats,
    rejectedTokens: rejected.tokenNats.length,
    truncatedTokens: sumOrNull([chosen.truncatedTokens, rejected.truncatedTokens]),
  };
}

/** Returns the sum of counts; null if one of them is unknown. */
export const sumOrNull = (counts: readonly (number | null)[]): number | null =>
  counts.every((count) => count !== null) ? counts.reduce((sum, count) => sum + count, 0) : null;

/** The change of margins since the baseline, over the pairs that both measurements have. */
export interface MarginDelta {
  /** Mean change, in nats; null if the measurements have no common pair. */
  readonly delta: number | null;
  readonly deltaPerToken: number | null;
  readonly n: number;
  /** Two-sided sign-flip test of the changes: exact up to 13 pairs, else 10,000 draws. */
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
  // Each side has one value: exchanging the two flips the sign of their difference.
  const pairs = both.map(([row, earlier]) => ({ now: [marginOf(row)], before: [marginOf(earlier)] }));
  return {
    delta: changeOf(marginOf),
    deltaPerToken: changeOf(marginPerTokenOf),
    n: both.length,
    p: permutationTest(pairs, seed).p,
  };
}
