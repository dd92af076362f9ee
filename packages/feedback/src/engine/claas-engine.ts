import { join } from "node:path";
import { configError, isRecord, quoteValue, modelError, fileError } from "@periodic-eval/contracts/options";
import { PeriodicEvalError, type Json } from "@periodic-eval/core";
import { at, isString, trackCall, type JsonService } from "@periodic-eval/remote";
import { readIfPresent, writeFileAtomic } from "@periodic-eval/store";
import { tokenEnv, type ServiceFacts } from "./service-facts.ts";
import { serviceModel } from "./service-model.ts";
import type {
  FeedbackExample,
  FeedbackModel,
  OpenRequest,
  UpdateRecord,
  UpdateReport,
  TrainedState,
} from "./types.ts";

export interface ClaasParts {
  readonly service: JsonService;
  /** The service without retries: a repeated request would train twice. */
  readonly once: JsonService;
  readonly gateway: JsonService | null;
  readonly facts: ServiceFacts;
  readonly baseModel: string | null;
}

/** Facts that such a service does not report, each with the reason. */
const unknown = {
  updates: "the service reports no number of updates; the run counts only the requests that it sent itself",
  truncated_tokens: "the service does not report how many tokens of a context it cut",
  seeds: "the service takes no seed, so its answers cannot be drawn again",
  model: "the service does not report its base model",
} as const;

/**
 * Opens an adapter of a service that replies `{ lora_id, … }` without its number of updates, such as CLaaS
 * (github.com/kfallah/CLaaS, commit 34fa060). Such a service makes one gradient step per request and trains a repeated request
 * again. So each request is written to a journal in the run's folder before it is sent, and is never sent twice.
 *
 * @throws PeriodicEvalError `config` for a preference that such a service cannot follow; `store` for a lost journal or adapter.
 */
export async function openClaas(parts: ClaasParts, request: OpenRequest): Promise<FeedbackModel> {
  const { service, gateway, facts } = parts;
  const { folder, signal } = request;
  if (request.hasTeacherTurns) throw noTeacherTurns(service.url);
  const isResumed = (request.earlier ?? null) !== null;
  let journal = isResumed
    ? settle(await readJournal(folder))
    : newJournal(await createAdapter(parts, request), service.url);
  if (isResumed) await checkAdapter(service, journal.lora_id, signal);
  await writeJournal(folder, journal);
  const loraId = journal.lora_id;
  const model = serviceModel({ service, gateway, facts, name: modelNameOf(loraId), adapter: loraId });
  const { updates, last } = journal;

  return {
    loraId,
    evaluable: model,
    unknown,
    trained: { updates, last },
    async sample(requests, callSignal) {
      const drawn = await model.generate(
        requests.map(({ prompt, maxNewTokens, seed }) => ({
          prompt: { messages: [{ role: "user", content: prompt }] },
          sampling: { maxNewTokens, temperature: 1, seed },
        })),
        { signal: callSignal },
      );
      // The service trains on the text.
      return drawn.map(({ text, finish }) => ({ text, finish }));
    },
    async update(batch, record, callSignal) {
      const save = async (next: Journal) => writeJournal(folder, (journal = next));
      const sender = { once: parts.once, loraId, request, save };
      return train(sender, journal, { batch, record }, callSignal);
    },
    dispose() {},
  };
}

const newJournal = (loraId: unknown, url: string): Journal => {
  if (isString(loraId) && loraId !== "") return { lora_id: loraId, updates: 0, last: null, sending: null };
  throw modelError(
    `${url}/v1/lora/init`,
    "a reply without lora_id",
    "the adapter's name (lora_id)",
    "Use a service that reports it: requests must name the adapter.",
  );
};

async function createAdapter(
  { service, baseModel }: ClaasParts,
  { loraId, signal }: OpenRequest,
): Promise<unknown> {
  const body = { lora_id: loraId, ...(baseModel !== null && { base_model: baseModel }) };
  // The service may choose another name, such as one with a suffix.
  return at(await initAdapter(service, body, signal), "lora_id");
}

/** Asks for a new adapter. CLaaS replies 403 to a base model that it does not have; elsewhere 403 is about the token. */
async function initAdapter(service: JsonService, body: Json, signal: AbortSignal): Promise<unknown> {
  try {
    return await service.ask("v1/lora/init", body, signal);
  } catch (error) {
    if (!PeriodicEvalError.is(error, "config")) throw error;
    if (error.detail?.kind !== "http" || error.detail.status !== 403) throw error;
    throw configError({
      where: error.where,
      got: error.got,
      expected: "a base model that the service accepts",
      fix: `Set base_model to a model that the service names, or ${tokenEnv} if it needs a token.`,
      cause: error,
    });
  }
}

/** Requires that the service still lists the adapter, if it has such a list. */
async function checkAdapter(service: JsonService, loraId: string, signal: AbortSignal): Promise<void> {
  const { body } = await service.reply(`v1/lora?prefix=${encodeURIComponent(loraId)}`, undefined, signal);
  const adapters = at(body, "loras");
  if (!Array.isArray(adapters) || adapters.includes(loraId)) return;
  throw fileError(
    service.url,
    `no adapter ${loraId}`,
    "the adapter that this run trains",
    "Restore the adapter, or choose another output_dir to train a new one.",
  );
}

/** The name under which the service's inference server loads an adapter. */
const modelNameOf = (loraId: string): string =>
  loraId.replaceAll(/[^\w.-]+/g, "-").replaceAll(/^-+|-+$/g, "") || "lora";

interface Sender {
  readonly once: JsonService;
  readonly loraId: string;
  readonly request: OpenRequest;
  readonly save: (journal: Journal) => Promise<void>;
}

interface Update {
  readonly batch: readonly FeedbackExample[];
  readonly record: UpdateRecord;
}

/** Sends the batch once per gradient step. The journal has each request before it is sent. */
async function train(
  { once, loraId, request, save }: Sender,
  journal: Journal,
  { batch, record }: Update,
  signal: AbortSignal,
): Promise<UpdateReport> {
  const where = `${once.url}/v1/feedback`;
  // The service rejects an empty answer.
  const filled = batch.filter(({ answer }) => answer.text.trim() !== "");
  if (filled.length === 0) throw emptyBatch(record.step);
  const body = {
    requests: filled.map(({ prompt, answer, feedback }) => ({
      lora_id: loraId,
      prompt,
      response: answer.text,
      feedback,
      training: { ...request.training },
    })),
  };
  let sending = { record, replies: 0, report: emptyReport, in_flight: false };
  let confirmed = 0;
  for (let step = 0; step < request.stepsPerBatch; step += 1) {
    signal.throwIfAborted();
    await save({ ...journal, sending: { ...sending, in_flight: true } });
    const reply = await send(once, body, async () => save({ ...journal, sending }));
    if (isConfirmed(reply, where)) confirmed += 1;
    sending = { ...sending, replies: step + 1, report: reportOf(reply, confirmed, step + 1) };
    await save({ ...journal, sending });
    const trainedId = at(reply, "lora_id");
    if (isString(trainedId) && trainedId !== loraId) throw otherAdapter(where, trainedId, loraId);
  }
  const { report } = sending;
  await save({ ...journal, updates: journal.updates + 1, last: { ...record, report }, sending: null });
  return report;
}

/**
 * Sends one request. `onRefusal` runs if the service has certainly not trained it: it was not reached, or it rejected the request.
 * An interrupt waits for the reply: without it, nobody knows whether the request was trained.
 */
async function send(once: JsonService, body: Json, onRefusal: () => Promise<void>): Promise<unknown> {
  let mayHaveTrained = true;
  const { signal } = new AbortController();
  const beforeRequest = () => (mayBeBilled: boolean) => void (mayHaveTrained = mayBeBilled);
  try {
    return await trackCall({ signal, beforeRequest }, (call) =>
      call.send(() => once.ask("v1/feedback", body, call.signal)),
    );
  } catch (error) {
    if (!PeriodicEvalError.is(error)) throw error;
    // `model` means no reply, or a status such as 500, which the service also sends after it has trained.
    if (error.code === "model" && mayHaveTrained)
      throw unconfirmed(error.where, error.got, error.expected, error);
    await onRefusal();
    throw error;
  }
}

/** Metrics that the charts show. */
const shown = ["loss", "distill_loss", "kl_reg", "mean_is_ratio", "clip_fraction", "grad_norm"] as const;

const emptyReport: UpdateReport = {
  metrics: Object.fromEntries(shown.map((name) => [name, null])),
  subSteps: 0,
  unknown: Object.fromEntries(shown.map((name) => [name, "the service confirmed no gradient step"])),
};

/**
 * Whether a reply confirms a gradient step: its status is `ok`. Without a status, nobody knows.
 *
 * @throws PeriodicEvalError `model` for any other status. The journal then holds the request as sent and not confirmed.
 */
function isConfirmed(reply: unknown, where: string): boolean {
  const status = at(reply, "status") ?? null;
  if (status === null || status === "ok") return status !== null;
  throw unconfirmed(where, `a reply with status ${quoteValue(status, 60)}`, 'a reply with status "ok"');
}

/** Reads the metrics of the newest gradient step. `total_loss` is our `loss`. An unknown value is null, with the reason. */
function reportOf(reply: unknown, confirmed: number, replies: number): UpdateReport {
  const metadata = at(reply, "distill_result", "metadata");
  const reported = Object.entries(isRecord(metadata) ? metadata : {}).filter(
    (entry): entry is [string, number] => Number.isFinite(entry[1]),
  );
  const { total_loss: loss, ...rest } = Object.fromEntries(reported);
  const numbers: Readonly<Record<string, number>> = { ...rest, ...(loss !== undefined && { loss }) };
  const missing = shown.filter((name) => numbers[name] === undefined);
  return {
    metrics: { ...numbers, ...Object.fromEntries(missing.map((name) => [name, null])) },
    subSteps: confirmed === replies ? replies : null,
    unknown: {
      ...(confirmed < replies && {
        sub_step_count: `${confirmed} to ${replies}: ${replies - confirmed} of ${replies} replies have no status, and the service does not report what it has trained`,
      }),
      ...Object.fromEntries(missing.map((name) => [name, whyMissing(reply, name)])),
    },
  };
}

function whyMissing(reply: unknown, name: (typeof shown)[number]): string {
  const field = name === "loss" ? "total_loss" : name;
  const path = ["distill_result", "metadata", field];
  const absent = path.findIndex((_, last) => (at(reply, ...path.slice(0, last + 1)) ?? null) === null);
  if (absent >= 0) return `the service's reply has no ${path.slice(0, absent + 1).join(".")}`;
  return `the service's reply has ${quoteValue(at(reply, ...path), 60)} for ${path.join(".")}, which is not a number`;
}

const unconfirmed = (where: string, got: string, expected: string, cause?: unknown): PeriodicEvalError =>
  modelError(
    where,
    `${got}; it is unknown whether the service trained this request`,
    expected,
    "Check the service, then run again: the request is not sent a second time, and the step's line says that its number of gradient steps is unknown.",
    cause,
  );

const noTeacherTurns = (url: string): PeriodicEvalError =>
  configError({
    where: "hindsight",
    got: `a template for the teacher's turn, and the service ${url}, which writes this turn itself`,
    expected: "a preference without hindsight",
    fix: "Remove hindsight from the preference's file, or train in this process (without service_url).",
  });

const emptyBatch = (step: number): PeriodicEvalError =>
  modelError(
    `step ${step}`,
    "a batch of empty answers",
    "at least one answer with a word",
    "Check the model: it ends each answer before the first token.",
  );

const otherAdapter = (where: string, got: string, expected: string): PeriodicEvalError =>
  modelError(
    where,
    `the adapter ${got}`,
    `${expected}, the adapter of this run`,
    "Use a service that trains an adapter in place.",
  );

/**
 * The requests that a run sent to a service which does not report its updates: `updates.json` in the preference's folder. It
 * takes the place of a checkpoint when the run resumes.
 */
interface Journal {
  /** The adapter's name at the service. */
  readonly lora_id: string;
  /** Finished updates. */
  readonly updates: number;
  readonly last: TrainedState["last"];
  /** The update that was begun and not finished. */
  readonly sending: {
    readonly record: UpdateRecord;
    /** Requests whose reply arrived. */
    readonly replies: number;
    /** The report after these. */
    readonly report: UpdateReport;
    /** Whether one more request was sent whose reply has not arrived. */
    readonly in_flight: boolean;
  } | null;
}

const pathOf = (folder: string): string => join(folder, "updates.json");

const writeJournal = (folder: string, journal: Journal): Promise<void> =>
  writeFileAtomic(pathOf(folder), `${JSON.stringify(journal, null, 2)}\n`);

/** @throws PeriodicEvalError `store` for a missing or damaged journal. */
async function readJournal(folder: string): Promise<Journal> {
  const text = await readIfPresent(pathOf(folder));
  try {
    if (text !== null) return JSON.parse(text) as Journal;
  } catch {
    // The error below says what to do.
  }
  throw fileError(
    pathOf(folder),
    text === null ? "no such file" : "a damaged file",
    "the run's record of its requests to the service",
    "Choose another output_dir, or remove the preference's folder to train a new adapter.",
  );
}

/**
 * Returns the journal of a resumed run. If the service trained, or may have trained, part of an unfinished update, the update
 * counts as finished: sending it again could train it twice. Its number of gradient steps is null if a reply is missing.
 */
function settle(journal: Journal): Journal {
  const { sending, updates } = journal;
  if (sending === null) return journal;
  const { record, replies, report, in_flight: inFlight } = sending;
  if (replies === 0 && !inFlight) return { ...journal, sending: null };
  const settledReport: UpdateReport = inFlight
    ? {
        ...report,
        subSteps: null,
        unknown: {
          ...report.unknown,
          sub_step_count: `${report.subSteps === null ? "0 to" : `${replies} or`} ${replies + 1}: the service did not confirm request ${replies + 1}, and it does not report what it has trained`,
        },
      }
    : report;
  return { ...journal, updates: updates + 1, last: { ...record, report: settledReport }, sending: null };
}
