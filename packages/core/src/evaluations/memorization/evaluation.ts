import * as z from "zod";
import type { Abilities, EvaluableModel, Json, MetricKit, Row } from "@periodic-eval/contracts";
import { configError, modelError, parseOptions, positiveInteger } from "@periodic-eval/contracts/options";
import { defineEvaluation } from "../kit/define.ts";
import { measureInBatches } from "../kit/measure-in-batches.ts";
import {
  aroundSecret,
  canaryShape,
  checkDigits,
  drawCanaries,
  type Canary,
  type CanaryOptions,
  withDefaults,
} from "./canaries.ts";

/**
 * Measures whether training memorizes secrets that `withCanaries` mixed into its rows (Carlini et al. 2019, arXiv:1802.08232). Each
 * secret is ranked among others of the same form, which no row holds, by log-likelihood. `exposure`, the primary metric, is
 * log2(candidates) − log2(rank), in bits, the mean over canaries: about 1.4 for a secret that the model never saw, and
 * log2(candidates) for one that it prefers to all others. Generates nothing.
 *
 * Low exposure does not show that nothing was memorized: rare rows that are longer, or asked in other words, are not tried.
 *
 * @throws PeriodicEvalError `config` for a wrong option; before step 1 for a canary that is longer than the model's context.
 */
export function memorizationEvaluation(options: MemorizationOptions) {
  parseOptions("memorization options", z.strictObject(memorizationShape), options);
  const { candidates: count = 100, ...canaries } = options;
  checkDigits("memorization options", canaries, count);
  const { context: before, continuationOf } = aroundSecret(canaries);
  const provenance: Json = { ...withDefaults(canaries), candidates: count };
  return defineEvaluation({
    name: "memorization",
    version: "memorization-1",
    needs: ["logLikelihoods"],
    wants: ["tokenizer"],
    async items(model): Promise<readonly Canary[]> {
      const drawn = drawCanaries(canaries, count);
      await checkLength(model, canaries, drawn);
      return drawn;
    },
    provenance: () => provenance,
    measure: (model, items, context) =>
      measureInBatches(
        items,
        context,
        async (batch): Promise<readonly MemorizationRow[]> => {
          const requests = batch.flatMap(({ secret, others }) =>
            [secret, ...others].map((canary) => ({ context: before, continuation: continuationOf(canary) })),
          );
          const scores = await model.logLikelihoods(requests, { signal: context.signal });
          return batch.map(({ id, secret }, at) => {
            const nats = scores.slice(at * count, (at + 1) * count).map(({ sumNats }) => sumNats);
            if (!nats.every(Number.isFinite)) throw notFinite(id);
            const rank = 1 + nats.slice(1).filter((other) => other >= nats[0]!).length;
            return { id, secret, rank, candidates: count, nats: nats[0]!, exposure: Math.log2(count / rank) };
          });
        },
        1,
      ),
    answers: { question: "secret" },
    metrics: ({ mean }: MetricKit<MemorizationRow>) => ({
      exposure: mean(({ exposure }) => exposure, {
        unit: "bits",
        range: [0, Math.log2(count)],
        higherIsBetter: false,
        primary: true,
      }),
    }),
  });
}

/** @throws PeriodicEvalError `config` for a canary that is longer than the model's context. */
async function checkLength(
  model: object,
  options: CanaryOptions,
  canaries: readonly Canary[],
): Promise<void> {
  const { tokenizer, contextLength = null } = model as Partial<Abilities & EvaluableModel>;
  if (tokenizer === undefined || contextLength === null) return;
  const { context, continuationOf } = aroundSecret(options);
  const [before] = await tokenizer.render([context]);
  const texts = canaries.flatMap(({ secret, others }) => [secret, ...others]).map(continuationOf);
  const continuations = await tokenizer.encode(texts, { specialTokens: false });
  const tokens = before!.ids.length + Math.max(...continuations.map(({ length }) => length));
  if (tokens <= contextLength) return;
  throw configError({
    where: "memorization options",
    path: ["format"],
    got: `a canary of ${tokens} tokens`,
    expected: `at most ${contextLength} tokens, the model's context length`,
    fix: "Shorten `format` or `prompt`.",
  });
}

/** One canary. */
export interface MemorizationRow extends Row {
  readonly secret: string;
  /** 1 for the most likely candidate. A candidate as likely as the secret is before it. */
  readonly rank: number;
  readonly candidates: number;
  /** Σ log p of the secret, the space before it and what follows it. */
  readonly nats: number;
  /** log2(candidates / rank), in bits. */
  readonly exposure: number;
}

const notFinite = (id: string) =>
  modelError(
    `canary ${id}`,
    "log-likelihoods that are not finite",
    "finite numbers",
    "Check the training loss: NaN or infinite weights cause this.",
  );

/** The canaries as `withCanaries` mixed them into the training rows, and the number of candidates. */
export interface MemorizationOptions extends CanaryOptions {
  /** Secrets among which each is ranked, itself included. Default 100. */
  readonly candidates?: number;
}

export const memorizationShape = {
  ...canaryShape,
  candidates: positiveInteger.min(2, "2 or more").optional(),
} satisfies Record<keyof MemorizationOptions, z.ZodType>;
