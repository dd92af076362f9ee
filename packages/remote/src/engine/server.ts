import type { EvaluableModel, OpenedModel } from "@periodic-eval/core";
import { checkAdapterBase } from "@periodic-eval/core/hub";
import { existsSync, realpathSync } from "node:fs";
import { join, resolve } from "node:path";
import { connect, type Connection } from "./connect.ts";
import { baseTarget, modelOf } from "./model.ts";
import { parseServerOptions, type ServedModel, type ServerOptions } from "./options.ts";
import { serverError } from "./server-error.ts";
import { openAdapters } from "./served-adapters.ts";

/**
 * Connects to a model on vLLM, or on several replicas of it. Small requests find out what the server can do; what it cannot
 * give is absent from the model's abilities.
 *
 * Log-likelihoods come from prompt log-probs over this library's token ids, which equal those of a model in memory, and
 * completions are sampled by the server from the same ids. Two tokens less than `--max-model-len` can be scored. Replicas share
 * the requests; a request that fails on one is repeated on another. See docs/engines.md for the settings of a server.
 *
 * @throws PeriodicEvalError `config` for a wrong option or an unknown model; `model` for a server that cannot be reached, for another
 *   tokenizer than the server's, and for replicas that differ.
 */
export const vllm = (options: ServerOptions): Promise<ServedModel> => openServer("vllm", "vllm", options);

/** Connects to a model on a server with OpenAI's API, as `vllm` does, but without adapters. */
export const openAICompatible = (options: ServerOptions): Promise<ServedModel> =>
  openServer("openAICompatible", "openai-compatible", options);

async function openServer(name: string, engine: string, options: ServerOptions): Promise<ServedModel> {
  const settings = parseServerOptions(name, options);
  const { signal = new AbortController().signal } = options;
  const connection = await connect(settings, signal);
  const base = modelOf(connection, engine, baseTarget(connection), null, null);
  const adapters = engine === "vllm" ? openAdapters(connection, engine, base) : null;
  return {
    ...base,
    openCheckpoint: async (source, path = null, { signal: stop = signal } = {}) => {
      checkBase(connection, source);
      if (path === null || isServedFolder(connection, path)) return openedBase(base);
      if (adapters === null) throw noAdapters(settings.where, path);
      const compareWeights = await checkAdapterBase(path, connection.listed.root ?? source);
      await compareWeights(() => null);
      return adapters.open(path, stop);
    },
    dispose: async () => adapters?.dispose(),
  };
}

const openedBase = (model: EvaluableModel): OpenedModel => ({
  model,
  fingerprint: () => model.identity.weights,
  baseFingerprint: () => model.identity.weights,
});

/** @throws PeriodicEvalError `model` unless `base` is the served model. */
function checkBase({ settings, listed }: Connection, base: string): void {
  const isSame = base === settings.model || base === listed.root;
  if (isSame || isServedFolder({ listed }, base)) return;
  throw serverError({
    where: settings.where,
    got: `the base model "${base}"`,
    expected: `"${settings.model}"${listed.root === null ? "" : ` or "${listed.root}"`}, the model of the server`,
    fix: "Name the model that the server runs.",
  });
}

/** Whether a folder is the one that the server loaded, or a copy of it at another path with the same name. */
function isServedFolder({ listed: { root } }: Pick<Connection, "listed">, folder: string): boolean {
  if (root === null || existsSync(join(folder, "adapter_config.json"))) return false;
  const real = (path: string) => (existsSync(path) ? realpathSync(path) : resolve(path));
  return real(folder) === real(root);
}

const noAdapters = (where: string, path: string) =>
  serverError({
    where,
    got: `the checkpoint ${path}`,
    expected: "the base model: this kind of server loads no adapters",
    fix: "Serve the checkpoint itself, or connect with vllm().",
  });
