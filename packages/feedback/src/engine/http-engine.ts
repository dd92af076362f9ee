import { PeriodicEvalError, type Json } from "@periodic-eval/core";
import { isCount, parseOptions } from "@periodic-eval/contracts/options";
import { at, isString, jsonService, requestLimits, type JsonService } from "@periodic-eval/remote";
import * as z from "zod";
import { initAdapter, openClaas } from "./claas-engine.ts";
import { sampleAnswers, type Trace } from "./sample-answers.ts";
import { serviceModel } from "./service-model.ts";
import { factsOf, type ServiceFacts, type Wire } from "./service-facts.ts";
import { tokenEnv } from "./token.ts";
import type {
  FeedbackEngine,
  FeedbackExample,
  FeedbackModel,
  OpenRequest,
  TrainedState,
  UpdateRecord,
  UpdateReport,
} from "./types.ts";

export interface HttpEngineOptions {
  /** URL of a service that trains on feedback, such as CLaaS. */
  readonly serviceUrl: string;
  /** URL of a gateway that answers instead of the service. Null: the service answers. */
  readonly gatewayUrl?: string | null;
  /** The model that the service must have. Null: any model. */
  readonly baseModel?: string | null;
  /** How the service reports its updates. Null: found by its replies. */
  readonly wire?: Wire | null;
  /** Timeout of one attempt. Default 290. */
  readonly timeoutSeconds?: number;
  /** Retries of a request. Default 8, within 40 seconds. Requests that check the service have at most one retry. */
  readonly maxRetries?: number;
}

const optionsSchema = z.strictObject({
  serviceUrl: z.string(),
  gatewayUrl: z.string().nullable().optional(),
  baseModel: z.string().nullable().optional(),
  wire: z.enum(["native", "claas"]).nullable().optional(),
  ...requestLimits({ timeoutSeconds: 290, maxRetries: 8 }),
} satisfies Record<keyof HttpEngineOptions, z.ZodType>);

/**
 * Creates an engine that trains through a service. The service, or a gateway in front of it, generates answers; the service
 * receives the feedback. The token of both is read only from the environment variable OPENCLAW_GATEWAY_TOKEN. If the reply to a
 * request is lost, the engine sends the request again: the service recognises an update by its id and does not train it twice.
 *
 * If the service lacks an ability that a metric needs, the metric is null, with a reason. A service with `/v1/score` returns
 * log p; none returns entropies.
 *
 * A service that does not report its number of updates (`wire: "claas"`) is sent each update once, also if its reply is lost.
 *
 * @throws PeriodicEvalError `config` for a wrong option; `check` also throws it for a service that does not train.
 */
export function httpEngine(options: HttpEngineOptions): FeedbackEngine {
  parseOptions("httpEngine options", optionsSchema, options);
  const { serviceUrl, gatewayUrl = null, baseModel = null, wire = null, ...limits } = options;
  const open = (url: string, more = {}) => jsonService({ url, tokenEnv, ...limits, ...more });
  const service = open(serviceUrl);
  const gateway = gatewayUrl === null ? null : open(gatewayUrl);
  let facts: ServiceFacts | null = null;
  const knownFacts = async (signal: AbortSignal) => {
    const { maxRetries = 1 } = limits;
    const once = open(serviceUrl, { maxRetries: Math.min(maxRetries, 1) });
    return (facts ??= await factsOf(once, baseModel, wire, signal));
  };
  const claas = (known: ServiceFacts, request: OpenRequest, initReply: unknown) => {
    facts = { ...known, wire: "claas" };
    const once = open(serviceUrl, { maxRetries: 0 });
    return openClaas({ service, once, gateway, facts, baseModel }, request, initReply);
  };

  return {
    describe: (): Json => ({
      engine: "http",
      service: service.url,
      gateway: gateway?.url ?? null,
      model: facts?.model ?? null,
      trainer: facts?.engine ?? null,
      ...(facts?.wire === "claas" && { wire: facts.wire }),
    }),
    async check(signal) {
      await knownFacts(signal);
    },
    async open(request: OpenRequest): Promise<FeedbackModel> {
      const { loraId, training, stepsPerBatch, seed, earlier = null, signal } = request;
      const found = await knownFacts(signal);
      const wasClaas = at(earlier, "wire") === "claas";
      if (found.wire === "claas" || (found.wire === null && wasClaas)) return claas(found, request, null);
      const reply = await initAdapter(
        service,
        {
          lora_id: loraId,
          ...(found.wire === null && baseModel !== null && { base_model: baseModel }),
          training: { ...training },
          steps_per_batch: stepsPerBatch,
          seed,
        },
        signal,
      );
      const isNative = [at(reply, "updates"), at(reply, "last")].some((field) => field !== undefined);
      // A run that began with a service that reports its updates needs one when it resumes.
      if (found.wire === null && !isNative && earlier === null) return claas(found, request, reply);
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
        sample: (requests, given) => sampleAnswers(model, requests, given),
        update: (batch, record, given) => update(service, loraId, { batch, record }, given),
        dispose() {},
      };
    },
  };
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
    Number.isFinite(value) ? value : null,
  ]);
  const missing = numbers.filter(([, value]) => value === null);
  const report: UpdateReport = {
    metrics: Object.fromEntries(numbers) as UpdateReport["metrics"],
    subSteps,
    ...(missing.length > 0 && {
      unknown: Object.fromEntries(
        missing.map(([name]) => [name, "the service's reply has no number for it in last.metrics"]),
      ),
    }),
  };
  return { updates, last: { stepId, step, draft: (at(last, "draft") ?? null) as Json, report } };
}

const unusable = (where: string, got: string, expected: string): PeriodicEvalError =>
  new PeriodicEvalError({
    code: "model",
    where,
    got,
    expected,
    fix: "Use a service that reports its updates, or set wire=claas for one that does not: then each request is sent once.",
  });
