import { hubNameOf } from "@periodic-eval/data";
import { existsSync, realpathSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { jsonService } from "../http/json-service.ts";
import { connect, type Connection } from "./connect.ts";
import { baseTarget, modelOf } from "./model.ts";
import {
  defaultKeyEnv,
  parseServerOptions,
  type ServedModel,
  type ServerOptions,
  type ServerSettings,
} from "./options.ts";
import { listModels, type ListedModel } from "./probes.ts";
import { serverError } from "./wire.ts";
import { openAdapters } from "./served-adapters.ts";

/**
 * Connects to a model on vLLM, or on several replicas of it. Small requests find out what the server can do; what it cannot
 * give is absent from the model's abilities.
 *
 * Log-likelihoods come from prompt log-probs over this library's token ids, which equal those of a model in memory, and
 * completions are sampled by the server from the same ids. Two tokens less than `--max-model-len` can be scored. Replicas share
 * the requests; a request that fails on one is repeated on another. See docs/guides/servers.md for the settings of a server.
 *
 * @throws PeriodicEvalError `config` for a wrong option or an unknown model; `model` for a server that cannot be reached, for another
 *   tokenizer than the server's, and for replicas that differ.
 */
export const vllm = (options: ServerOptions): Promise<ServedModel> => openServer("vllm", "vllm", options);

/** Connects to a model on a server with OpenAI's API, as `vllm` does, but without adapters. */
export const openAICompatible = (options: ServerOptions): Promise<ServedModel> =>
  openServer("openAICompatible", "openai-compatible", options);

async function openServer(
  name: string,
  engine: ServerSettings["engine"],
  options: ServerOptions,
): Promise<ServedModel> {
  const settings = parseServerOptions(name, engine, options);
  const { signal = new AbortController().signal } = options;
  const connection = await connect(settings, signal);
  const adapters = openAdapters(connection);
  return {
    ...modelOf(connection, baseTarget(connection), null, null),
    async openCheckpoint(source, path = null, { signal: stop = signal } = {}) {
      checkBase(connection, source);
      if (path !== null && !isServedFolder(connection, path)) return adapters.open(path, stop);
      const model = modelOf(connection, baseTarget(connection), null, null);
      const fingerprint = () => model.identity.weights;
      return { model, fingerprint, baseFingerprint: fingerprint };
    },
    dispose: () => adapters.dispose(),
  };
}

/** @throws PeriodicEvalError `model` unless `base` is the served model: its name on the server, its folder, or a copy of that. */
function checkBase({ settings, listed: { root } }: Connection, base: string): void {
  const last = (source: string) => basename(hubNameOf(source) ?? source).toLowerCase();
  const isNamed = base === settings.model || (root !== null && last(base) === last(root));
  if (isNamed || isServedFolder({ listed: { root } }, base)) return;
  throw serverError({
    where: settings.where,
    got: `the base model "${base}"`,
    expected: `"${settings.model}"${root === null ? "" : ` or "${root}"`}, the model of the server`,
    fix: "Name the model that the server runs.",
  });
}

/** Returns the name under which a server serves a folder; otherwise the given name, which `vllm` checks. */
export async function servedName(
  url: string,
  model: string,
  tokenEnv: string | null = defaultKeyEnv,
): Promise<string> {
  const service = jsonService({ url, tokenEnv, maxRetries: 3 });
  const models = await listModels({ service }, new AbortController().signal);
  const served = models.find((listed) => listed.parent === null && isServedFolder({ listed }, model));
  return served?.id ?? model;
}

/** Whether a folder is the one that the server loaded. */
function isServedFolder(
  { listed: { root } }: { readonly listed: Pick<ListedModel, "root"> },
  folder: string,
): boolean {
  if (root === null || existsSync(join(folder, "adapter_config.json"))) return false;
  const real = (path: string) => (existsSync(path) ? realpathSync(path) : resolve(path));
  return real(folder) === real(root);
}
