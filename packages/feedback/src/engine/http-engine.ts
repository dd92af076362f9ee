import { PeriodicEvalError, type Json } from "@periodic-eval/core";
import { isCount, parseOptions } from "@periodic-eval/core/internal";
import { at, isString, jsonService, requestLimits, type JsonService } from "@periodic-eval/remote";
import { z } from "zod";
import { serviceModel, type ServiceModel } from "./service-model.ts";
import { factsOf, type ServiceFacts } from "./service-facts.ts";
import { tokenEnv } from "./token.ts";
import type {
  FeedbackAnswer,
  FeedbackEngine,
  FeedbackExample,
  FeedbackModel,
  OpenRequest,
  TrainedState,
  UpdateRecord,
  UpdateReport,
} from "./types.ts";

export interface HttpEngineOptions {
  /** Of a service that trains, as `periodic-eval feedback serve` runs one. */
  readonly serviceUrl: string;
  /** Of a gateway that answers in its place; null: the service itself. */
  readonly gatewayUrl?: string | null;
  /** The model that the service is to have; null: whichever it has. */
  readonly baseModel?: string | null;
  /** For one attempt of a request; default 290. */
  readonly timeoutSeconds?: number;
  /** Of a request; default 8, within 40 seconds. Whether the service is there at all is tried twice. */
  readonly maxRetries?: number;
}

const optionsSchema = z.strictObject({
  serviceUrl: z.string(),
  gatewayUrl: z.string().nullable().optional(),
  baseModel: z.string().nullable().optional(),
  ...requestLimits({ timeoutSeconds: 290, maxRetries: 8 }),
} satisfies Record<keyof HttpEngineOptions, z.ZodType>);

/**
 * Trains by a service at an address: answers are asked of it (or of a gateway before it), what is told them is sent to it. The
 * token of either is read from OPENCLAW_GATEWAY_TOKEN alone. A request whose reply is lost is sent again: the service knows an
 * update by its name, and does none twice.
 *
 * Log p comes from the service, entropies from one of ours; a metric that needs what a service lacks is null, with the reason.
 *
 * @throws PeriodicEvalError `config` for a wrong option; and, from `check`, for a service that does not train.
 */
export function httpEngine(options: HttpEngineOptions): FeedbackEngine {
  parseOptions("httpEngine options", optionsSchema, options);
  const { serviceUrl, gatewayUrl = null, baseModel = null, ...limits } = options;
  const open = (url: string, more = {}) => jsonService({ url, tokenEnv, ...limits, ...more });
  const service = open(serviceUrl);
  const gateway = gatewayUrl === null ? null : open(gatewayUrl);
  let facts: ServiceFacts | null = null;
  const known = async (signal: AbortSignal) => {
    const { maxRetries = 1 } = limits;
    const once = open(serviceUrl, { maxRetries: Math.min(maxRetries, 1) });
    return (facts ??= await factsOf(once, baseModel, signal));
  };

  return {
    describe: (): Json => ({
      engine: "http",
      service: service.url,
      gateway: gateway?.url ?? null,
      model: facts?.model ?? null,
      trainer: facts?.engine ?? null,
    }),
    async check(signal) {
      await known(signal);
    },
    async open({ loraId, training, stepsPerBatch, seed, signal }: OpenRequest): Promise<FeedbackModel> {
      const able = await known(signal);
      const reply = await service.ask(
        "v1/lora/init",
        {
          lora_id: loraId,
          training: { ...training },
          steps_per_batch: stepsPerBatch,
          seed,
        },
        signal,
      );
      const common = { service, facts: able };
      const model = serviceModel({ ...common, name: loraId, gateway, adapter: loraId });
      // Not through a gateway, which may know adapters alone.
      const base =
        able.model === null
          ? null
          : serviceModel({ ...common, name: able.model, gateway: null, adapter: null });
      return {
        evaluable: { ...model, ...(base !== null && { base }) },
        trained: stateOf(reply, service.url),
        sample: (requests, given) => sample(model, requests, given),
        update: (batch, record, given) => update(service, loraId, { batch, record }, given),
        dispose() {},
      };
    },
  };
}

/** What `sample` keeps of an answer for `update`: ids, and their log p; null where the server does not tell. */
interface Trace {
  readonly ids: readonly number[] | null;
  readonly nats: readonly number[] | null;
}

async function sample(
  model: ServiceModel,
  requests: Parameters<FeedbackModel["sample"]>[0],
  signal: AbortSignal,
): Promise<readonly FeedbackAnswer[]> {
  const drawn = await model.traced(
    requests.map(({ prompt, maxNewTokens, seed }) => ({
      prompt: { messages: [{ role: "user", content: prompt }] },
      sampling: { maxNewTokens, temperature: 1, seed },
    })),
    { signal },
  );
  return drawn.map(({ text, finish, ids, tokenNats }): FeedbackAnswer => {
    const nats = ids !== null && tokenNats?.length === ids.length ? tokenNats : null;
    return { text, finish, trace: { ids: ids && [...ids], nats: nats && [...nats] } };
  });
}

async function update(
  service: JsonService,
  loraId: string,
  { batch, record }: { readonly batch: readonly FeedbackExample[]; readonly record: UpdateRecord },
  signal: AbortSignal,
): Promise<UpdateReport> {
  const reply = await service.ask(
    "v1/feedback",
    {
      lora_id: loraId,
      step_id: record.stepId,
      step: record.step,
      draft: record.draft,
      requests: batch.map(({ prompt, answer, feedback, teacherTurn }) => {
        const { ids, nats } = answer.trace as unknown as Trace;
        return {
          prompt,
          response: answer.text,
          feedback,
          ...(ids !== null && { response_token_ids: ids }),
          ...(nats !== null && { response_logprobs: nats }),
          ...(teacherTurn !== null && { teacher_turn: teacherTurn }),
        };
      }),
    },
    signal,
  );
  const { last } = stateOf(reply, service.url);
  if (last?.stepId === record.stepId) return last.report;
  throw unclear(`${service.url}/v1/feedback`, `the update ${last?.stepId ?? "of no name"}`, record.stepId);
}

/** What an adapter has learned, as the service tells it: without it nobody could say which steps are done. */
function stateOf(reply: unknown, url: string): TrainedState {
  const updates = at(reply, "updates");
  const last = at(reply, "last");
  if (!isCount(updates))
    throw unclear(url, "an adapter whose updates are not told", "how many it has (updates)");
  if (last === null && updates === 0) return { updates, last };
  const [stepId, step, subSteps] = [at(last, "step_id"), at(last, "step"), at(last, "sub_steps")];
  const metrics = at(last, "metrics");
  if (
    !isString(stepId) ||
    !isCount(step) ||
    !isCount(subSteps) ||
    typeof metrics !== "object" ||
    metrics === null
  )
    throw unclear(
      url,
      `an adapter of ${updates} updates whose last one is not told`,
      "its step_id, step, metrics and sub_steps (last)",
    );
  const numbers = Object.entries(metrics).map(([name, value]) => [
    name,
    typeof value === "number" ? value : null,
  ]);
  const report = { metrics: Object.fromEntries(numbers) as UpdateReport["metrics"], subSteps };
  return { updates, last: { stepId, step, draft: (at(last, "draft") ?? null) as Json, report } };
}

const unclear = (where: string, got: string, expected: string): PeriodicEvalError =>
  new PeriodicEvalError({
    code: "model",
    where,
    got,
    expected,
    fix: "Train by a service that tells it, as `periodic-eval feedback serve` does: a step whose reply is lost would be done twice.",
  });
