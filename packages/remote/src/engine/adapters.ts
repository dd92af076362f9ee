import { PeriodicEvalError } from "@periodic-eval/core";
import { shortMessage } from "@periodic-eval/contracts/options";
import { failedAttemptOf } from "../http/json-service.ts";
import { at, isString } from "../http/reply-fields.ts";
import { untracked } from "../http/track-requests.ts";
import { withSampleAdapter, type AdapterFiles, isLeftover, newAdapterName } from "./adapter-files.ts";
import type { Replica } from "./pool.ts";
import { largestDifference, listModels, probeNats } from "./probes.ts";
import { serverError } from "./wire.ts";

/** The probe of a server's base model. */
export interface BaseProbe {
  readonly ids: readonly number[];
  readonly nats: readonly number[];
  /** Larger differences in a token's log-probability are not rounding, in nats. */
  readonly tolerance: number;
}

/** An adapter that replicas load under one name. */
export interface ServedAdapter {
  readonly where: string;
  readonly name: string;
  readonly files: AdapterFiles;
  /** The probe's log-probabilities with this adapter, once a replica has loaded it. */
  nats: readonly number[] | null;
}

export const newAdapter = (where: string, files: AdapterFiles): ServedAdapter => ({
  where,
  name: newAdapterName(),
  files,
  nats: null,
});

/** Unloads the adapters that processes of this machine have left behind, when they crashed. */
export async function unloadLeftovers(replica: Replica, signal: AbortSignal): Promise<void> {
  const models = await listModels(replica, signal);
  for (const { id } of models) if (isLeftover(id)) await unload(replica, id, signal);
}

/** Loads an adapter onto a replica, unless it is loaded or being loaded. */
export function ensureLoaded(
  replica: Replica,
  adapter: ServedAdapter,
  probe: BaseProbe | null,
  signal: AbortSignal,
): Promise<void> {
  const known = replica.adapters.get(adapter.name);
  if (known !== undefined) return known;
  const loading = untracked(() => loadAndCheck(replica, adapter, probe, signal));
  replica.adapters.set(adapter.name, loading);
  loading.catch(() => replica.adapters.delete(adapter.name));
  return loading;
}

async function loadAndCheck(
  replica: Replica,
  adapter: ServedAdapter,
  probe: BaseProbe | null,
  signal: AbortSignal,
): Promise<void> {
  const { where, name, files } = adapter;
  if (probe === null)
    throw serverError({
      where,
      got: "a server without prompt log-probabilities, or a model without its tokenizer",
      expected: "both, to prove that the server uses the adapter",
      fix: "Serve with vLLM and give the tokenizer.",
    });
  for (const kind of files.samples.keys()) await proveKind(replica, adapter, kind, probe, signal);
  await load(replica, name, files.folder, where, signal);
  try {
    await checkNumbers(replica, adapter, probe, signal);
  } catch (error) {
    await unload(replica, name, signal);
    throw error;
  }
}

/** @throws PeriodicEvalError `model` if the replica's numbers differ from those of the first that loaded the adapter. */
async function checkNumbers(
  replica: Replica,
  adapter: ServedAdapter,
  { ids, tolerance }: BaseProbe,
  signal: AbortSignal,
): Promise<void> {
  const { where, name } = adapter;
  const nats = await probeNats(replica, { where, name, isAdapter: true }, ids, signal);
  adapter.nats ??= nats;
  const difference = largestDifference(nats, adapter.nats);
  if (difference <= tolerance) return;
  throw serverError({
    where,
    got: `log-probabilities of ${replica.url} that differ from another replica's by up to ${difference.toPrecision(2)} nats`,
    expected: `at most ${tolerance.toPrecision(2)}`,
    fix: "Check that all replicas read the same adapter folder, and that it is not written while they do.",
  });
}

/**
 * Proves that a server applies adapters to a kind of module: vLLM loads an adapter on a module outside of `--lora-target-modules`
 * with "Success" and ignores it. An old vLLM ignores the adapter's patterns.
 */
async function proveKind(
  replica: Replica,
  { where, files }: ServedAdapter,
  kind: string,
  probe: BaseProbe,
  signal: AbortSignal,
): Promise<void> {
  const proof = files.hasPatterns ? `${kind} by pattern` : kind;
  if (replica.provenKinds.has(proof)) return;
  const sampleNats = (byPattern: boolean) =>
    withSampleAdapter(files, kind, { byPattern }, async (folder) => {
      const name = newAdapterName();
      await load(replica, name, folder, where, signal);
      try {
        return await probeNats(replica, { where, name, isAdapter: true }, probe.ids, signal);
      } finally {
        await unload(replica, name, signal);
      }
    });
  const nats = await sampleNats(false);
  if (largestDifference(nats, probe.nats) <= 10 * probe.tolerance)
    throw serverError({
      where,
      got: `a server, ${replica.url}, that ignores adapters on ${kind}`,
      expected: `one that applies all modules of the adapter: ${[...files.samples.keys()].join(", ")}`,
      fix:
        kind === "lm_head"
          ? "Merge the adapter into its base model and serve the result: vLLM's engine dies when it scores with adapters on lm_head."
          : `Start vLLM with --lora-target-modules ${[...files.samples.keys()].filter((module) => module !== "lm_head").join(" ")}.`,
    });
  if (files.hasPatterns && largestDifference(await sampleNats(true), nats) > probe.tolerance)
    throw serverError({
      where,
      got: `a server, ${replica.url}, that ignores rank_pattern and alpha_pattern`,
      expected: "one that scales each module as PEFT does",
      fix: "Update vLLM, or train with one rank and one alpha.",
    });
  replica.provenKinds.add(proof);
}

async function load(
  replica: Replica,
  name: string,
  folder: string,
  where: string,
  signal: AbortSignal,
): Promise<void> {
  const refusal = await askToLoad(replica, { lora_name: name, lora_path: folder }, signal);
  if (refusal === null) return;
  // The reply to an earlier attempt may have been lost.
  if (refusal.status === 400 && (await listModels(replica, signal)).some(({ id }) => id === name)) return;
  throw serverError({
    where,
    got: `${refusal.got} from ${replica.url}`,
    expected: "a loaded adapter",
    fix: refusal.isUnknownRoute
      ? "Start vLLM with --enable-lora and VLLM_ALLOW_RUNTIME_LORA_UPDATING=True."
      : "Check that the server can read the folder at the same path, that its rank is at most --max-lora-rank, and that the server runs with --enable-lora.",
    detail: { kind: "http", status: refusal.status },
  });
}

interface Refusal {
  readonly status: number;
  readonly got: string;
  /** The server has no route to load adapters. */
  readonly isUnknownRoute: boolean;
}

/** Returns null for a loaded adapter. */
async function askToLoad(replica: Replica, body: object, signal: AbortSignal): Promise<Refusal | null> {
  try {
    const path = "v1/load_lora_adapter";
    const { status, body: reply } = await replica.service.reply(path, body, signal, { isJson: false });
    if (status < 300) return null;
    const message = [at(reply, "error", "message"), at(reply, "message")].find(isString);
    const got = message === undefined ? `${status}` : `${status}: ${shortMessage(message)}`;
    return { status, got, isUnknownRoute: status === 404 && message === undefined };
  } catch (error) {
    // vLLM answers 500 to an adapter that it does not accept, and continues to run.
    if (!PeriodicEvalError.is(error) || failedAttemptOf(error)?.status !== 500) throw error;
    const { status } = await replica.service.reply("health", undefined, signal, { isJson: false });
    if (status >= 300) throw error;
    return { status: 500, got: error.got, isUnknownRoute: false };
  }
}

/** Unloads an adapter. A server that has lost it is no error. */
export async function unload(replica: Replica, name: string, signal: AbortSignal): Promise<void> {
  replica.adapters.delete(name);
  const body = { lora_name: name };
  await replica.service
    .reply("v1/unload_lora_adapter", body, signal, { isJson: false })
    .catch((error: unknown) => {
      if (!PeriodicEvalError.is(error)) throw error;
    });
}
