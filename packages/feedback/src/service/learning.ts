import type { Json } from "@periodic-eval/core";
import { canonicalJson, hashJson } from "@periodic-eval/core/random";
import { checkKeys } from "@periodic-eval/core/internal";
import { encodePair } from "@periodic-eval/core/evaluations";
import { trainingNames } from "../config/schema.ts";
import type { FeedbackExample, TrainedState } from "../engine/types.ts";
import type { AdapterSettings, AdapterStore } from "./adapters.ts";
import { refused } from "./refusals.ts";
import type { OpenAdapter, ResidentModel } from "./resident-model.ts";
import type { FeedbackBody, InitBody, ToldBody } from "./wire.ts";

export interface Learning {
  readonly adapters: AdapterStore;
  readonly resident: ResidentModel;
  /** Of the base model, which no adapter may have. */
  readonly baseName: string;
}

/** An adapter of this name, new or as its newest checkpoint has it, and what it has learned. */
export async function initAdapter(
  { base_model: asked, ...settings }: InitBody,
  { adapters, resident, baseName }: Learning,
): Promise<Json> {
  const wrong = (where: string, got: string, expected: string, fix: string) =>
    refused(409, "adapter_differs", { where, got: JSON.stringify(got), expected, fix });
  if (asked != null && asked !== baseName)
    throw wrong("base_model", asked, JSON.stringify(baseName), "Ask a service of that model.");
  const { lora_id: loraId } = settings;
  if (loraId === baseName)
    throw wrong("lora_id", loraId, "another name than the base model's", "Rename the adapter.");
  await adapters.check(settings);
  // A name is taken once a model is there for it: settings that none can be opened with are not kept.
  const adapter = await resident.adapter(loraId, settings);
  try {
    await adapters.keep(settings);
  } catch (error) {
    // Nobody may be answered by an adapter that is not kept.
    await resident.dispose();
    throw error;
  }
  return stateOf(loraId, adapter.trained());
}

/**
 * One update on answers that were told something. Asked again under a `step_id` that was the last one, it tells what that
 * update gave and trains nothing.
 *
 * @throws HTTPException 409 for another update under the last one's name, and for a `step` that is not the next.
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
          ? `other requests under the step_id of its last update, ${stepId}`
          : `step ${body.step!} under the step_id of its last update, ${stepId}, which was step ${last.step}`,
        expected: "what that update was asked, or another step_id",
        fix: "Name each update by itself; nothing was trained.",
      });
  } else {
    if (body.step != null && body.step !== updates)
      throw refused(409, "step_out_of_order", {
        where: `the adapter ${loraId}`,
        got: `step ${body.step}, after ${updates} updates`,
        expected: `step ${updates}${last === null ? "" : `, or again the last one, ${last.stepId}`}`,
        fix: "POST /v1/lora/init tells where it stands.",
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

/** Beside the requests, or in each of them. */
function loraIdOf({ lora_id: given, requests }: FeedbackBody): string {
  const named = [given, ...requests.map(({ lora_id: one }) => one)].filter((one) => one !== undefined);
  const [first] = named;
  if (first !== undefined && named.every((one) => one === first)) return first;
  throw refused(400, "invalid_value", {
    where: "lora_id",
    got: first === undefined ? "none" : [...new Set(named)].join(", "),
    expected: "one adapter",
    fix: "Send the feedback of each adapter by itself.",
  });
}

/** An adapter is trained alike from its first update to its last: what a request says of it must be that. */
function checkTraining(requests: readonly ToldBody[], { training }: AdapterSettings): void {
  const kept: Readonly<Record<string, Json>> = training;
  for (const [at, { training: asked }] of requests.entries()) {
    checkKeys(`requests.${at}.training`, asked ?? {}, trainingNames);
    const other = Object.entries(asked ?? {}).find(
      ([name, value]) => canonicalJson(kept[name] ?? null) !== canonicalJson(value as Json),
    );
    if (other === undefined) continue;
    throw refused(409, "adapter_differs", {
      where: `training.${other[0]}`,
      got: JSON.stringify(other[1]),
      expected: JSON.stringify(kept[other[0]] ?? null),
      fix: "POST /v1/lora/init says how an adapter is trained.",
    });
  }
}

/**
 * Where a request does not tell the tokens of its answer, those that its text is encoded to; where it does not tell their log
 * p when they were drawn, that by the weights as they are, before this update.
 */
async function examplesOf(
  { evaluable }: OpenAdapter,
  requests: readonly ToldBody[],
  signal: AbortSignal,
): Promise<readonly FeedbackExample[]> {
  const tokenizer = evaluable.tokenizer!;
  const drawn = requests.map((request, at) => {
    const { prompt, response, response_token_ids: told, response_logprobs: logprobs } = request;
    const context = { messages: [{ role: "user", content: prompt }] };
    const unknown = told?.find((id) => id >= tokenizer.vocabSize);
    if (unknown !== undefined)
      throw refused(400, "invalid_value", {
        where: `requests.${at}.response_token_ids`,
        got: String(unknown),
        expected: `ids below ${tokenizer.vocabSize}`,
        fix: "Send the ids of this model's tokenizer, or none.",
      });
    const encoded = () =>
      response === "" ? [] : encodePair(tokenizer, { context, continuation: response }).continuation;
    // Log p of tokens that are not told belong to none that are known.
    return { context, ids: told ?? encoded(), nats: told == null ? null : (logprobs ?? null) };
  });
  const owed = drawn.filter(({ ids, nats }) => nats === null && ids.length > 0);
  const scores = await evaluable.logLikelihoods!(
    owed.map(({ context, ids }) => ({ context, continuation: { ids } })),
    { signal },
  );
  const nats = new Map(owed.map((one, at) => [one, scores[at]!.tokenNats]));
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
