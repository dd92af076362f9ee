import type { EvaluableModel, Json, Tokenizer } from "@periodic-eval/core";
import { jsonService } from "../http/json-service.ts";
import { unloadLeftovers, type BaseProbe } from "./adapters.ts";
import type { ServerSettings } from "./options.ts";
import { openPool, type Pool, type Replica } from "./pool.ts";
import {
  batchDifference,
  checkTokenizer,
  findModel,
  largestDifference,
  listModels,
  orMissing,
  probeChat,
  probeGeneration,
  probeIds,
  probeNats,
  toleranceOf,
  type GenerationFacts,
  type ListedModel,
} from "./probes.ts";
import { serverError } from "./wire.ts";
import { at, isString } from "../http/reply-fields.ts";

/** A server whose abilities are known. */
export interface Connection {
  readonly settings: ServerSettings;
  readonly pool: Pool;
  readonly listed: ListedModel;
  readonly version: string | null;
  readonly contextLimit: number;
  /** Null if the server returns no prompt log-probabilities, or without a tokenizer. */
  readonly probe: BaseProbe | null;
  /** By how much log-probabilities depend on the other prompts of a batch; null without `probe`. */
  readonly batchDifference: number | null;
  /** Null if the server does not generate from token ids. */
  readonly generation: GenerationFacts | null;
  readonly hasChat: boolean;
  /** Compares every replica with the start. */
  readonly check: (signal: AbortSignal) => Promise<void>;
}

/** A server that starts slowly is waited for by the retries of later requests, not by the first. */
const retriesAtStart = 3;

/** Connects to all replicas, and tries with small requests what they can do. */
export async function connect(settings: ServerSettings, signal: AbortSignal): Promise<Connection> {
  const { where, urls, model, maxRetries, concurrency, tokenizer } = settings;
  const replicas = urls.map((url) => openReplica(settings, url, Math.min(retriesAtStart, maxRetries)));
  const [first] = replicas as [Replica];
  const asked = { where, name: model, isAdapter: false };
  const listed = await listedModel(settings, replicas, signal);
  const contextLimit = listed.contextLimit ?? Infinity;
  const hasTokenizer = tokenizer !== null && (await haveTokenizer(settings, tokenizer, replicas, signal));
  const ids = hasTokenizer ? probeIds(tokenizer, contextLimit) : null;
  const nats = ids && (await orMissing(() => probeNats(first, asked, ids, signal)));
  const difference = ids && nats && (await batchDifference(first, asked, ids, nats, signal));
  const probe = ids && nats && { ids, nats, tolerance: toleranceOf(difference ?? 0) };
  for (const replica of replicas.slice(1)) await checkReplica(settings, probe, replica, signal);
  for (const replica of replicas) await unloadLeftovers(replica, signal);
  const lifetime = new AbortController().signal;
  const pool = openPool({
    replicas: urls.map((url) => openReplica(settings, url, 0)),
    concurrency,
    maxRetries,
    revive: (replica) => checkReplica(settings, probe, replica, lifetime),
  });
  return {
    settings,
    pool,
    listed,
    version: await versionOf(first, signal),
    contextLimit,
    probe,
    batchDifference: difference,
    generation: tokenizer && ids && (await probeGeneration(first, asked, tokenizer, ids, signal)),
    hasChat: tokenizer === null && (await probeChat(first, model, signal)),
    check: (stop) =>
      pool.runOnEach({ model, signal: stop, work: (server) => checkReplica(settings, probe, server, stop) }),
  };
}

const openReplica = (
  { tokenEnv, timeoutSeconds }: ServerSettings,
  url: string,
  maxRetries: number,
): Replica => ({
  url,
  service: jsonService({ url, tokenEnv, timeoutSeconds, maxRetries }),
  adapters: new Map(),
  provenKinds: new Set(),
});

/** @throws PeriodicEvalError if a replica does not list the model, or with another limit. */
async function listedModel(
  { where, model }: ServerSettings,
  replicas: readonly Replica[],
  signal: AbortSignal,
): Promise<ListedModel> {
  const listed = await Promise.all(
    replicas.map(async (server) => findModel(await listModels(server, signal), model, where, server.url)),
  );
  const first = listed[0]!;
  const other = listed.findIndex(({ contextLimit }) => contextLimit !== first.contextLimit);
  if (other === -1) return first;
  throw serverError({
    where,
    got: `a limit of ${listed[other]!.contextLimit} tokens on ${replicas[other]!.url} and of ${first.contextLimit} on ${replicas[0]!.url}`,
    expected: "replicas with the same --max-model-len",
    fix: "Start all replicas with the same settings.",
  });
}

/** Returns false if a replica has no usable `/tokenize`: the tokenizer then cannot be checked, so nothing is sent as token ids. */
async function haveTokenizer(
  { where, model }: ServerSettings,
  tokenizer: Tokenizer,
  replicas: readonly Replica[],
  signal: AbortSignal,
): Promise<boolean> {
  const checks = replicas.map((replica) => checkTokenizer(replica, tokenizer, model, where, signal));
  return !(await Promise.all(checks)).includes(false);
}

/** @throws PeriodicEvalError `model` if a replica does not serve the same model as the first one did at the start. */
async function checkReplica(
  { where, model, urls }: ServerSettings,
  probe: BaseProbe | null,
  replica: Replica,
  signal: AbortSignal,
): Promise<void> {
  const models = await listModels(replica, signal);
  findModel(models, model, where, replica.url);
  const names = new Set(models.map(({ id }) => id));
  const lost = [...replica.adapters.keys()].filter((name) => !names.has(name));
  for (const name of lost) replica.adapters.delete(name);
  // It was restarted, perhaps with other settings.
  if (lost.length > 0) replica.provenKinds.clear();
  if (probe === null) return;
  const nats = await probeNats(replica, { where, name: model, isAdapter: false }, probe.ids, signal);
  const difference = largestDifference(nats, probe.nats);
  if (difference <= probe.tolerance) return;
  throw serverError({
    where,
    got: `log-probabilities of ${replica.url} that differ by up to ${difference.toPrecision(2)} nats per token from those of ${urls[0]} at the start`,
    expected: `at most ${probe.tolerance.toPrecision(2)}`,
    fix: "Serve the same model with the same dtype on all replicas, and do not replace it during a run.",
  });
}

async function versionOf(replica: Replica, signal: AbortSignal): Promise<string | null> {
  const reply = await replica.service.reply("version", undefined, signal, { isJson: false });
  const version = at(reply.body, "version");
  return isString(version) ? version : null;
}

/** Returns the part of the model's identity that does not depend on the adapter. */
export function identityOf({
  settings,
  listed,
  version,
  batchDifference: difference,
  contextLimit,
}: Connection): Pick<EvaluableModel["identity"], "name" | "engine" | "dtype"> & { readonly details: Json } {
  return {
    name: settings.model,
    engine: settings.engine,
    dtype: "unknown",
    details: {
      version,
      root: listed.root,
      max_model_len: contextLimit === Infinity ? null : contextLimit,
      // Rounding only: a number would differ from one start to the next.
      scores_depend_on_batch: difference === null ? null : difference > 1e-3,
    },
  };
}
