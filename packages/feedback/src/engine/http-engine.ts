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
  /** URL of a service that trains on feedback, such as `periodic-eval feedback serve`. */
  readonly serviceUrl: string;
  /** URL of a gateway that answers instead of the service. Null: the service answers. */
  readonly gatewayUrl?: string | null;
  /** The model that the service must have. Null: any model. */
  readonly baseModel?: string | null;
  /** Timeout of one attempt. Default 290. */
  readonly timeoutSeconds?: number;
  /** Retries of a request. Default 8, within 40 seconds. Requests that check the service have at most one retry. */
  readonly maxRetries?: number;
}

const optionsSchema = z.strictObject({
  serviceUrl: z.string(),
  gatewayUrl: z.string().nullable().optional(),
  baseModel: z.string().nullable().optional(),
  ...requestLimits({ timeoutSeconds: 290, maxRetries: 8 }),
} satisfies Record<keyof HttpEngineOptions, z.ZodType>);

/**
 * Creates an engine that trains through a service. The service, or a gateway in front of it, generates answers; the service
 * receives the feedback. The token of both is read only from the environment variable OPENCLAW_GATEWAY_TOKEN. If the reply to a
 * request is lost, the engine sends the request again: the service recognises an update by its id and does not train it twice.
 *
 * If the service lacks an ability that a metric needs, the metric is null, with a reason. Any service with `/v1/score` returns
 * log p; only `periodic-eval feedback serve` returns entropies.
 *
 * @throws PeriodicEvalError `config` for a wrong option; `check` also throws it for a service that does not train.
 */
export function httpEngine(options: HttpEngineOptions): FeedbackEngine {
  parseOptions("httpEngine options", optionsSchema, options);
  const { serviceUrl, gatewayUrl = null, baseModel = null, ...limits } = options;
  const open = (url: string, more = {}) => jsonService({ url, tokenEnv, ...limits, ...more });
  const service = open(serviceUrl);
  const gateway = gatewayUrl === null ? null : open(gatewayUrl);
  let facts: ServiceFacts | null = null;
  const knownFacts = async (signal: AbortSignal) => {
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
      await knownFacts(signal);
    },
    async open({ loraId, training, stepsPerBatch, seed, signal }: OpenRequest): Promise<FeedbackModel> {
      const found = await knownFacts(signal);
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
      const common = { service, facts: found };
      const model = serviceModel({ ...common, name: loraId, gateway, adapter: loraId });
      // The base model does not go through the gateway, which may know only adapters.
      const base =
        found.model === null
          ? null
          : serviceModel({ ...common, name: found.model, gateway: null, adapter: null });
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

/** Data that `sample` keeps for `update`: token ids and their log p; null if the server does not return them. */
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
  throw unusable(
    `${service.url}/v1/feedback`,
    `the update ${last?.stepId ?? "without a step_id"}`,
    record.stepId,
  );
}

/** Parses the state of an adapter from a reply. Throws if it is missing: the number of completed updates would be unknown. */
function stateOf(reply: unknown, url: string): TrainedState {
  const updates = at(reply, "updates");
  const last = at(reply, "last");
  if (!isCount(updates))
    throw unusable(url, "an adapter without a number of updates", "its number of updates (updates)");
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
    throw unusable(
      url,
      `an adapter with ${updates} updates and no data about the last one`,
      "its step_id, step, metrics and sub_steps (last)",
    );
  const numbers = Object.entries(metrics).map(([name, value]) => [
    name,
    typeof value === "number" ? value : null,
  ]);
  const report = { metrics: Object.fromEntries(numbers) as UpdateReport["metrics"], subSteps };
  return { updates, last: { stepId, step, draft: (at(last, "draft") ?? null) as Json, report } };
}

const unusable = (where: string, got: string, expected: string): PeriodicEvalError =>
  new PeriodicEvalError({
    code: "model",
    where,
    got,
    expected,
    fix: "Use a service that reports its updates, such as `periodic-eval feedback serve`. Without this report, a step whose reply is lost would be trained twice.",
  });
