import type { Json } from "@periodic-eval/core";
import { canonicalJson, hashJson } from "@periodic-eval/core/random";
import { encodePair } from "@periodic-eval/core/evaluations";
import type { FeedbackExample, TrainedState } from "../engine/types.ts";
import type { AdapterSettings, AdapterStore } from "./adapters.ts";
import { checkLength } from "./prompt-length.ts";
import { refused } from "./refusals.ts";
import type { OpenAdapter, ResidentModel } from "./resident-model.ts";
import type { FeedbackBody, FeedbackRequest, InitBody } from "./wire.ts";

export interface Learning {
  readonly adapters: AdapterStore;
  readonly resident: ResidentModel;
  /** Name of the base model. No adapter may have this name. */
  readonly baseName: string;
}

/** Opens an adapter at its newest checkpoint, or creates it, and returns its state. */
export async function initAdapter(
  { base_model: asked, ...settings }: InitBody,
  { adapters, resident, baseName }: Learning,
): Promise<Json> {
  const wrong = (where: string, got: string, expected: string, fix: string) =>
    refused(409, "adapter_differs", { where, got: JSON.stringify(got), expected, fix });
  if (asked != null && asked !== baseName)
    throw wrong("base_model", asked, JSON.stringify(baseName), "Use a service with that model.");
  const { lora_id: loraId } = settings;
  if (loraId === baseName)
    throw wrong("lora_id", loraId, "a name that differs from the base model's", "Rename the adapter.");
  await adapters.check(settings);
  // The settings are written after the model has opened with them, so that wrong settings do not reserve the name.
  const adapter = await resident.adapter(loraId, settings);
  try {
    await adapters.keep(settings);
  } catch (error) {
    // An adapter whose settings are not stored must not answer requests.
    await resident.dispose();
    throw error;
  }
  return stateOf(loraId, adapter.trained());
}

/**
 * Trains one update on answers with feedback. If `step_id` is that of the last update, returns that update's result and trains
 * nothing.
 *
 * @throws HTTPException 409 for a different update with the last `step_id`, and for a `step` out of order.
 */
export async function learn(
  body: FeedbackBody,
  { adapters, resident }: Learning,
  signal: AbortSignal,
): Promise<Json> {
  const loraId = loraIdOf(body);
  const adapter = await resident.adapter(loraId);
  checkTraining(body.requests, (await adapters.read(loraId))!);
  const { updates, last } = adapter.trained();
  const requests = body.requests as unknown as Json;
  const stepId = body.step_id ?? hashJson({ updates: body.step ?? updates, requests });
  const requestsHash = hashJson(requests);
  if (last?.stepId === stepId) {
    const isOther = last.requestsHash !== undefined && last.requestsHash !== requestsHash;
    if (isOther || (body.step != null && body.step !== last.step))
      throw refused(409, "step_differs", {
        where: `the adapter ${loraId}`,
        got: isOther
          ? `other requests with the step_id of its last update, ${stepId}`
          : `step ${body.step!} with the step_id of its last update, ${stepId}, which was step ${last.step}`,
        expected: "the same requests and step as before, or another step_id",
        fix: "Use a new step_id for each update. Nothing was trained.",
      });
  } else {
    if (body.step != null && body.step !== updates)
      throw refused(409, "step_out_of_order", {
        where: `the adapter ${loraId}`,
        got: `step ${body.step}, after ${updates} updates`,
        expected: `step ${updates}${last === null ? "" : `, or a repetition of the last one, ${last.stepId}`}`,
        fix: "POST /v1/lora/init returns the adapter's state.",
      });
    const examples = await examplesOf(adapter, body.requests, signal);
    await adapter.update(examples, {
      stepId,
      step: updates,
      draft: body.draft ?? null,
      requestsHash,
    });
  }
  return { status: "ok", batch_size: body.requests.length, ...stateOf(loraId, adapter.trained()) };
}

type State = { readonly [field: string]: Json };

const stateOf = (loraId: string, { updates, last }: TrainedState): State => ({
  lora_id: loraId,
  updates,
  last:
    last === null
      ? null
      : {
          step_id: last.stepId,
          step: last.step,
          draft: last.draft,
          metrics: { ...last.report.metrics },
          sub_steps: last.report.subSteps,
        },
});

/** Returns the name of the adapter, which the body or each of its requests contains. */
function loraIdOf({ lora_id: given, requests }: FeedbackBody): string {
  const named = [given, ...requests.map(({ lora_id: one }) => one)].filter((one) => one !== undefined);
  const [first] = named;
  if (first !== undefined && named.every((one) => one === first)) return first;
  throw refused(400, "invalid_value", {
    where: "lora_id",
    got: first === undefined ? "no lora_id" : [...new Set(named)].join(", "),
    expected: "one adapter",
    fix: "Send one request per adapter.",
  });
}

/** Requires that each request has the adapter's training settings or none: they cannot change between updates. */
function checkTraining(requests: readonly FeedbackRequest[], { training }: AdapterSettings): void {
  const kept: Readonly<Record<string, Json>> = training;
  for (const { training: asked } of requests) {
    const other = Object.entries(asked ?? {}).find(
      ([name, value]) => canonicalJson(kept[name] ?? null) !== canonicalJson(value as Json),
    );
    if (other === undefined) continue;
    throw refused(409, "adapter_differs", {
      where: `training.${other[0]}`,
      got: JSON.stringify(other[1]),
      expected: JSON.stringify(kept[other[0]] ?? null),
      fix: "Send the settings from POST /v1/lora/init, or omit training.",
    });
  }
}

/**
 * Converts requests to training examples. Missing token ids are encoded from the answer. Missing log-probs are computed with the
 * weights before this update.
 */
async function examplesOf(
  { evaluable }: OpenAdapter,
  requests: readonly FeedbackRequest[],
  signal: AbortSignal,
): Promise<readonly FeedbackExample[]> {
  for (const [at, request] of requests.entries())
    for (const name of ["prompt", "response", "feedback", "teacher_turn"] as const)
      checkLength(evaluable, `requests.${at}.${name}`, request[name] ?? "");
  const tokenizer = evaluable.tokenizer!;
  const drawn = requests.map((request, at) => {
    const { prompt, response, response_token_ids: given, response_logprobs: logprobs } = request;
    const context = { messages: [{ role: "user", content: prompt }] };
    const unknown = given?.find((id) => id >= tokenizer.vocabSize);
    if (unknown !== undefined)
      throw refused(400, "invalid_value", {
        where: `requests.${at}.response_token_ids`,
        got: String(unknown),
        expected: `ids below ${tokenizer.vocabSize}`,
        fix: "Send ids of this model's tokenizer, or omit the field.",
      });
    const encoded = () =>
      response === "" ? [] : encodePair(tokenizer, { context, continuation: response }).continuation;
    // Log-probs without token ids cannot be assigned to tokens.
    return { context, ids: given ?? encoded(), nats: given == null ? null : (logprobs ?? null) };
  });
  const unscored = drawn.filter(({ ids, nats }) => nats === null && ids.length > 0);
  const scores = await evaluable.logLikelihoods!(
    unscored.map(({ context, ids }) => ({ context, continuation: { ids } })),
    { signal },
  );
  const nats = new Map(unscored.map((one, at) => [one, scores[at]!.tokenNats]));
  return requests.map(({ prompt, response, feedback, teacher_turn: teacherTurn }, at): FeedbackExample => {
    const one = drawn[at]!;
    const trace = { ids: [...one.ids], nats: [...(one.nats ?? nats.get(one) ?? [])] };
    return {
      prompt,
      answer: { text: response, finish: "stop", trace },
      feedback,
      teacherTurn: teacherTurn ?? null,
    };
  });
}
