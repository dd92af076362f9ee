import { bulkTokenizer, type CallOptions, type EvaluableModel } from "@periodic-eval/core";
import { concurrentCallsFor } from "../http/request-limits.ts";
import { generateChats, generate } from "./generation.ts";
import { identityOf, type Connection } from "./connect.ts";
import { fingerprintOf } from "./probes.ts";
import { logLikelihoods, nextToken } from "./scoring.ts";
import type { Target } from "./pool.ts";

export function baseTarget({ settings, pool, contextLimit, generation }: Connection): Target {
  const { where, model } = settings;
  return {
    where,
    name: model,
    isAdapter: false,
    pool,
    // The server generates one token after each prompt, and the last token of a sequence is scored but not read.
    limits: { window: contextLimit - 2, vocabSize: Infinity },
    contextLimit,
    topCount: generation?.topCount ?? 0,
    hasTokenNats: generation?.hasTokenNats ?? false,
    run: (signal, work) => pool.run({ model, signal, work }),
  };
}

/** Returns a model with the abilities that its server has. */
export function modelOf(
  connection: Connection,
  target: Target,
  adapter: { readonly path: string; readonly weights: string | null } | null,
  base: EvaluableModel | null,
): EvaluableModel {
  const { settings, pool, probe, generation, hasChat, contextLimit, check } = connection;
  const { tokenizer } = settings;
  const bulk = tokenizer && bulkTokenizer(tokenizer);
  const weights = adapter === null ? probe && fingerprintOf(probe.nats) : adapter.weights;
  return {
    identity: { ...identityOf(connection), weights, adapter: adapter?.path ?? null },
    contextLength: contextLimit === Infinity ? null : contextLimit - 2,
    isServed: true,
    ...(probe !== null && { toleranceNats: probe.tolerance }),
    concurrentCalls: concurrentCallsFor(pool.capacity),
    check: ({ signal }: CallOptions) => check(signal),
    ...(base !== null && { base }),
    ...(bulk !== null && { tokenizer: bulk }),
    ...(bulk !== null &&
      probe !== null && {
        logLikelihoods: (requests, options) => logLikelihoods(target, bulk, requests, options),
        nextToken: (requests, options) => nextToken(target, bulk, requests, options),
      }),
    ...(tokenizer !== null &&
      generation !== null && {
        generate: (requests, options) => generate(target, tokenizer, requests, options),
      }),
    ...(hasChat && { generate: (requests, options) => generateChats(target, requests, options) }),
  };
}
