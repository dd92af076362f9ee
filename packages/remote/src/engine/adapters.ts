import { PeriodicEvalError } from "@periodic-eval/core";
import { at, isString } from "../http/reply-fields.ts";
import { untracked } from "../http/track-requests.ts";
import { withSampleAdapter, type AdapterFiles } from "./adapter-files.ts";
import { isLeftover, newAdapterName } from "./adapter-names.ts";
import type { Replica } from "./pool.ts";
import { largestDifference, listModels, probeNats } from "./probes.ts";
import { serverError } from "./server-error.ts";

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
  const nats = await probeNats(replica, { where, name, isAdapter: true }, probe.ids, signal);
  adapter.nats ??= nats;
  const difference = largestDifference(nats, adapter.nats);
  if (difference <= probe.tolerance) return;
  throw serverError({
    where,
    got: `log-probabilities of ${replica.url} that differ from another replica's by up to ${difference.toPrecision(2)} nats`,
    expected: `at most ${probe.tolerance.toPrecision(2)}`,
    fix: "Check that all replicas read the same adapter folder, and that it is not written while they do.",
  });
}

/**
 * Proves that a server applies adapters to a kind of module: vLLM loads an adapter on a module outside of `--lora-target-modules`
 * with "Success" and ignores it.
 */
async function proveKind(
  replica: Replica,
  { where, files }: ServedAdapter,
  kind: string,
  probe: BaseProbe,
  signal: AbortSignal,
): Promise<void> {
  if (replica.provenKinds.has(kind)) return;
  const name = newAdapterName();
  const nats = await withSampleAdapter(files, kind, async (folder) => {
    await load(replica, name, folder, where, signal);
    try {
      return await probeNats(replica, { where, name, isAdapter: true }, probe.ids, signal);
    } finally {
      await unload(replica, name, signal);
    }
  });
  if (largestDifference(nats, probe.nats) <= 10 * probe.tolerance)
    throw serverError({
      where,
      got: `a server, ${replica.url}, that ignores adapters on ${kind}`,
      expected: `one that applies all modules of the adapter: ${[...files.samples.keys()].join(", ")}`,
      fix: `Start vLLM with --lora-target-modules ${[...files.samples.keys()].join(" ")}, or without it.`,
    });
  replica.provenKinds.add(kind);
}

async function load(
  replica: Replica,
  name: string,
  folder: string,
  where: string,
  signal: AbortSignal,
): Promise<void> {
  const body = { lora_name: name, lora_path: folder };
  const { status, body: reply } = await replica.service.reply("v1/load_lora_adapter", body, signal, {
    isJson: false,
  });
  if (status < 300) return;
  // The reply to an earlier attempt may have been lost.
  if (status === 400 && (await listModels(replica, signal)).some(({ id }) => id === name)) return;
  const message = [at(reply, "error", "message"), at(reply, "message")].find(isString);
  const isUnknownRoute = status === 404 && message === undefined;
  throw serverError({
    where,
    got: `${status}${message === undefined ? "" : `: ${message}`} from ${replica.url}`,
    expected: "a loaded adapter",
    fix: isUnknownRoute
      ? "Start vLLM with --enable-lora and VLLM_ALLOW_RUNTIME_LORA_UPDATING=True."
      : "Check that the server can read the folder at the same path, that its rank is at most --max-lora-rank, and that the server runs with --enable-lora.",
    detail: { kind: "http", status },
  });
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
