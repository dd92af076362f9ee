import { PeriodicEvalError, type OpenedModel } from "@periodic-eval/core";
import { checkAdapterBase } from "@periodic-eval/data";
import { errorMessage, printable } from "@periodic-eval/contracts/options";
import { hashText } from "@periodic-eval/core/random";
import { existsSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { readAdapter } from "./adapter-files.ts";
import { ensureLoaded, newAdapter, unload, type ServedAdapter } from "./adapters.ts";
import type { Connection } from "./connect.ts";
import { baseTarget, modelOf } from "./model.ts";
import type { Replica, Target } from "./pool.ts";
import { serverError } from "./wire.ts";

/** The adapters that one `ServedModel` has loaded. */
export interface ServedAdapters {
  open(path: string, signal: AbortSignal): Promise<OpenedModel>;
  dispose(): Promise<void>;
}

type Loaded = Map<string, { readonly adapter: ServedAdapter; readonly stop: AbortController }>;

export function openAdapters(connection: Connection): ServedAdapters {
  const loaded: Loaded = new Map();
  return {
    open: (path, signal) => open(connection, loaded, path, signal),
    dispose: async () =>
      void (await Promise.all([...loaded.keys()].map((name) => close(connection, loaded, name)))),
  };
}

async function open(
  connection: Connection,
  loaded: Loaded,
  path: string,
  signal: AbortSignal,
): Promise<OpenedModel> {
  const { settings, pool, probe, listed } = connection;
  const where = `${settings.where} with ${path}`;
  if (settings.engine !== "vllm") throw noAdapters(where);
  if (!existsSync(join(path, "adapter_config.json"))) throw notAnAdapter(where, path);
  const compare = await checkAdapterBase(path, listed.root ?? settings.model);
  // The server's weights have no hash to compare with.
  await compare(() => null);
  const adapter = newAdapter(where, await readAdapter(realpathSync(path)));
  const stop = new AbortController();
  loaded.set(adapter.name, { adapter, stop });
  try {
    await pool.runOnEach({
      model: adapter.name,
      signal,
      work: (replica) => ensureLoaded(replica, adapter, probe, stop.signal),
    });
  } catch (error) {
    await close(connection, loaded, adapter.name);
    throw error;
  }
  const base = modelOf(connection, baseTarget(connection), null, null);
  const { weights: ofBase } = base.identity;
  const weights = ofBase === null ? null : hashText(`${ofBase} ${adapter.files.hash}`);
  const target = adapterTarget(connection, adapter, stop.signal);
  return {
    model: modelOf(connection, target, { path, weights }, base),
    fingerprint: () => weights,
    baseFingerprint: () => ofBase,
    dispose: () => close(connection, loaded, adapter.name),
  };
}

function adapterTarget(connection: Connection, adapter: ServedAdapter, lifetime: AbortSignal): Target {
  const { pool, probe } = connection;
  const { name, where } = adapter;
  /** A replica that restarted has lost its adapters, and answers 404. */
  const withAdapter = async <T>(replica: Replica, work: (replica: Replica) => Promise<T>) => {
    await ensureLoaded(replica, adapter, probe, lifetime);
    try {
      return await work(replica);
    } catch (error) {
      const isHttp = PeriodicEvalError.is(error) && error.detail?.kind === "http";
      if (!isHttp || error.detail.status !== 404) throw error;
      replica.adapters.delete(name);
      replica.provenKinds.clear();
      await ensureLoaded(replica, adapter, probe, lifetime);
      return work(replica);
    }
  };
  return {
    ...baseTarget(connection),
    where,
    name,
    isAdapter: true,
    run: (signal, work) => pool.run({ model: name, signal, work: (replica) => withAdapter(replica, work) }),
  };
}

const unloadSeconds = 30;

/** Unloads an adapter from all replicas, after its requests in flight. */
async function close(connection: Connection, loaded: Loaded, name: string): Promise<void> {
  const { settings, pool } = connection;
  const adapter = loaded.get(name);
  if (adapter === undefined) return;
  loaded.delete(name);
  const signal = AbortSignal.timeout(1000 * unloadSeconds);
  const work = async (replica: Replica) => {
    if (replica.adapters.has(name)) await unload(replica, name, signal);
  };
  await pool.runOnEach({ model: name, signal, work }).catch((error: unknown) => {
    console.warn(
      printable(`[periodic-eval] ${settings.where}: could not unload ${name} (${errorMessage(error)})`),
    );
  });
  adapter.stop.abort();
}

const noAdapters = (where: string) =>
  serverError({
    where,
    got: "a server that is not known to be vLLM",
    expected: "vLLM, which loads adapters while it runs",
    fix: "Serve the checkpoint itself, or connect with vllm().",
  });

const notAnAdapter = (where: string, path: string) =>
  serverError({
    where,
    got: `${path}, a folder without adapter_config.json`,
    expected: "an adapter: a running server cannot load other weights",
    fix: "Serve the checkpoint itself, or measure it in this process. `adapterFolder` of @periodic-eval/models downloads an adapter of the hub.",
  });
