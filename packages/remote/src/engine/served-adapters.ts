import { PeriodicEvalError, type EvaluableModel, type OpenedModel } from "@periodic-eval/core";
import { errorMessage } from "@periodic-eval/core/internal";
import { hashText } from "@periodic-eval/core/random";
import { existsSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { readAdapter } from "./adapter-files.ts";
import { ensureLoaded, newAdapter, unload, type ServedAdapter } from "./adapters.ts";
import type { Connection } from "./connect.ts";
import { baseTarget, modelOf } from "./model.ts";
import type { Replica } from "./pool.ts";
import { serverError } from "./server-error.ts";
import type { Target } from "./target.ts";

/** The adapters that one `ServedModel` has loaded. */
export interface ServedAdapters {
  open(path: string, signal: AbortSignal): Promise<OpenedModel>;
  dispose(): Promise<void>;
}

interface Adapters {
  readonly connection: Connection;
  readonly engine: string;
  readonly base: EvaluableModel;
  readonly loaded: Map<string, { readonly adapter: ServedAdapter; readonly stop: AbortController }>;
}

export function openAdapters(connection: Connection, engine: string, base: EvaluableModel): ServedAdapters {
  const adapters: Adapters = { connection, engine, base, loaded: new Map() };
  return {
    open: (path, signal) => open(adapters, path, signal),
    dispose: async () =>
      void (await Promise.all([...adapters.loaded.keys()].map((name) => close(adapters, name)))),
  };
}

async function open(adapters: Adapters, path: string, signal: AbortSignal): Promise<OpenedModel> {
  const { connection, engine, base, loaded } = adapters;
  const { settings, pool, probe } = connection;
  const where = `${settings.where} with ${path}`;
  if (!existsSync(join(path, "adapter_config.json"))) throw notAnAdapter(where, path);
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
    await close(adapters, adapter.name);
    throw error;
  }
  const { weights: ofBase } = base.identity;
  const weights = ofBase === null ? null : hashText(`${ofBase} ${adapter.files.hash}`);
  const target = adapterTarget(connection, adapter, stop.signal);
  return {
    model: modelOf(connection, engine, target, { path, weights }, base),
    fingerprint: () => weights,
    baseFingerprint: () => ofBase,
    dispose: () => close(adapters, adapter.name),
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
    run: (signal, work, only) =>
      pool.run({
        model: name,
        signal,
        work: (replica) => withAdapter(replica, work),
        ...(only && { only }),
      }),
  };
}

const unloadSeconds = 30;

/** Unloads an adapter from all replicas, after its requests in flight. */
async function close({ connection, loaded }: Adapters, name: string): Promise<void> {
  const { settings, pool } = connection;
  const found = loaded.get(name);
  if (found === undefined) return;
  loaded.delete(name);
  const signal = AbortSignal.timeout(1000 * unloadSeconds);
  const work = async (replica: Replica) => {
    if (replica.adapters.has(name)) await unload(replica, name, signal);
  };
  await pool.runOnEach({ model: name, signal, work }).catch((error: unknown) => {
    console.warn(`[periodic-eval] ${settings.where}: could not unload ${name} (${errorMessage(error)})`);
  });
  found.stop.abort();
}

const notAnAdapter = (where: string, path: string) =>
  serverError({
    where,
    got: `${path}, a folder without adapter_config.json`,
    expected: "an adapter: a running server cannot load other weights",
    fix: "Serve the checkpoint itself, or measure it in this process.",
  });
