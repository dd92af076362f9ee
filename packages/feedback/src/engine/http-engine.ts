import type { Json } from "@periodic-eval/core";
import { parseOptions } from "@periodic-eval/contracts/options";
import { jsonService, requestLimits } from "@periodic-eval/remote";
import * as z from "zod";
import { openClaas } from "./claas-engine.ts";
import { factsOf, type ServiceFacts, tokenEnv } from "./service-facts.ts";
import type { FeedbackEngine, FeedbackModel, OpenRequest } from "./types.ts";

export interface HttpEngineOptions {
  /** URL of a service that trains on feedback, such as CLaaS. */
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
 * receives the feedback. The token of both is read only from the environment variable OPENCLAW_GATEWAY_TOKEN. The service does not
 * report its number of updates, so each update is sent once, also if its reply is lost.
 *
 * If the service lacks an ability that a metric needs, the metric is null, with a reason. A service with `/v1/score` returns
 * log p; none returns entropies.
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
    async open(request: OpenRequest): Promise<FeedbackModel> {
      const known = await knownFacts(request.signal);
      const once = open(serviceUrl, { maxRetries: 0 });
      return openClaas({ service, once, gateway, facts: known, baseModel }, request);
    },
  };
}
