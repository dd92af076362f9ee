import { PeriodicEvalError, type Json } from "@periodic-eval/core";
import { at, isString, arrayOrNull, type JsonService } from "@periodic-eval/remote";

/** What a service is and can do. */
export interface ServiceFacts {
  /** What its base model is asked by; null where it does not tell. */
  readonly model: string | null;
  readonly engine: Json;
  /** Whether it tells log p of given texts. */
  readonly canScore: boolean;
  /** What it can do beyond what such services have in common; of ours. */
  readonly extensions: ReadonlySet<string>;
}

/**
 * Asks a service what it can do; nothing is changed by it.
 *
 * @throws PeriodicEvalError `config` for a service that does not train, or trains another model; `model` where it cannot be
 *   reached.
 */
export async function factsOf(
  service: JsonService,
  baseModel: string | null,
  signal: AbortSignal,
): Promise<ServiceFacts> {
  let health = await service.reply("v1/health", undefined, signal);
  if (isLacking(health.status)) health = await service.reply("health", undefined, signal);
  // A body that no such path takes: what is there refuses it, and does nothing.
  const has = async (path: string) => !isLacking((await service.reply(path, {}, signal)).status);
  const missing: string[] = [];
  for (const path of ["v1/lora/init", "v1/feedback"]) if (!(await has(path))) missing.push(`/${path}`);
  if (missing.length > 0)
    throw wrong(
      service.url,
      `a service without ${missing.join(" and ")}`,
      "one that trains on feedback",
      "Give the address of one, as `periodic-eval feedback serve` runs it; a gateway goes into gateway_url.",
    );
  const model = at(health.body, "model");
  if (baseModel !== null && isString(model) && model !== baseModel)
    throw wrong(
      "base_model",
      JSON.stringify(baseModel),
      `${JSON.stringify(model)}, which ${service.url} has`,
      "Leave it out, or start the service with this model.",
    );
  return {
    model: isString(model) ? model : null,
    engine: (at(health.body, "engine") ?? null) as Json,
    canScore: await has("v1/score"),
    extensions: new Set((arrayOrNull(at(health.body, "extensions")) ?? []).filter(isString)),
  };
}

/** Statuses that say that there is no such path. */
const isLacking = (status: number): boolean => [404, 405, 501].includes(status);

const wrong = (where: string, got: string, expected: string, fix: string): PeriodicEvalError =>
  new PeriodicEvalError({ code: "config", where, got, expected, fix });
