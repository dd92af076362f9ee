import { configError, shortMessage, modelError } from "@periodic-eval/contracts/options";
import type { Json } from "@periodic-eval/core";
import { at, isString, type JsonService } from "@periodic-eval/remote";

/** The model and the abilities of a service. */
export interface ServiceFacts {
  /** Name of the base model; null if the service does not report it. */
  readonly model: string | null;
  readonly engine: Json;
  /** Whether the service computes the log p of given text. */
  readonly canScore: boolean;
}

/**
 * Queries the abilities of a service without changing it.
 *
 * @throws PeriodicEvalError `config` for a service that does not train or has another model; `model` if it cannot be reached or
 *   its worker is unhealthy.
 */
export async function factsOf(
  service: JsonService,
  baseModel: string | null,
  signal: AbortSignal,
): Promise<ServiceFacts> {
  let health = await service.reply("v1/health", undefined, signal);
  if (isMissing(health.status)) health = await service.reply("health", undefined, signal);
  // The body is empty: an existing path rejects it and does nothing.
  const has = async (path: string) => !isMissing((await service.reply(path, {}, signal)).status);
  const missing: string[] = [];
  for (const path of ["v1/lora/init", "v1/feedback"]) if (!(await has(path))) missing.push(`/${path}`);
  if (missing.length > 0)
    throw configError({
      where: service.url,
      got: `a service without ${missing.join(" and ")}`,
      expected: "a service that trains on feedback",
      fix: "Set service_url to such a service, and gateway_url to a gateway.",
    });
  const fault = at(health.body, "worker", "error");
  if (at(health.body, "worker", "status") === "unhealthy")
    throw modelError(
      `${service.url}/v1/health`,
      `a service whose worker is unhealthy${isString(fault) ? `: ${shortMessage(fault)}` : ""}`,
      "a worker that can train",
      "Check the service's log, and start its worker.",
    );
  const model = at(health.body, "model");
  if (baseModel !== null && isString(model) && model !== baseModel)
    throw configError({
      where: "base_model",
      value: baseModel,
      expected: `${JSON.stringify(model)}, the model of ${service.url}`,
      fix: "Remove base_model, or start the service with this model.",
    });
  return {
    model: isString(model) ? model : null,
    engine: (at(health.body, "engine") ?? null) as Json,
    canScore: await has("v1/score"),
  };
}

/** Whether a status means that the path does not exist. */
const isMissing = (status: number): boolean => [404, 405, 501].includes(status);

/** Environment variable with the token of gateways and services. The token is read from nowhere else. */
export const tokenEnv = "OPENCLAW_GATEWAY_TOKEN";
