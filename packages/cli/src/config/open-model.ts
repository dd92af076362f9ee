import { existsSync, realpathSync } from "node:fs";
import type { EvaluableModel, OpenCheckpoint, OpenCheckpointOptions, Tokenizer } from "@periodic-eval/core";
import {
  loadCausalLM,
  openCheckpoint,
  outlineCheckpoint,
  useBackend,
  type CheckpointLM,
} from "@periodic-eval/models";
import { loadTokenizer } from "@periodic-eval/models/tokenizer";
import { showLoading } from "../terminal/loading-progress.ts";
import type { Terminal } from "../terminal/terminal.ts";

/** Selects a backend, by default the fastest one installed. Warns about installed backends that do not start. */
export async function startBackend(
  backend: string | undefined,
  terminal: Terminal,
): ReturnType<typeof useBackend> {
  const started = await useBackend(backend === undefined ? {} : { backend });
  for (const { name, reason } of started.unusable)
    terminal.err(`${name} is installed but does not start: ${reason}`);
  return started;
}

/** The options of a command that name the model to measure and where it runs. */
export interface EngineOptions {
  readonly backend?: string;
  /** Addresses of a vLLM server or its replicas; without them the model runs in this process. */
  readonly engine?: readonly string[];
  /** The base model: a folder, or `owner/name`. On a server, also its name there. */
  readonly model: string;
  /** On a server, the tokenizer of all its models. Default: the base model's. */
  readonly tokenizer?: string;
}

/** Where models are opened. */
export interface Engine {
  /** As printed: `wasm`. */
  readonly name: string;
  readonly open: OpenCheckpoint;
  /** Opens only configuration and tokenizer. The result renders prompts and reads data; its logits throw. */
  outline(base: string, path?: string | null, options?: OpenCheckpointOptions): Promise<EvaluableModel>;
  /** Frees what the engine itself holds. The caller disposes the models that it opened. */
  dispose(): Promise<void>;
}

/** Starts the engine that a command's options name. Opening a model shows the progress of downloads and of loading. */
export async function startEngine(options: EngineOptions, terminal: Terminal): Promise<Engine> {
  if (options.engine !== undefined) return connectEngine(options, options.engine, terminal);
  const { name } = await startBackend(options.backend, terminal);
  return {
    name,
    open: checkpointOpener(terminal),
    outline: outlineOpener(terminal),
    dispose: async () => {},
  };
}

async function connectEngine(
  { model, tokenizer = model }: EngineOptions,
  urls: readonly string[],
  terminal: Terminal,
): Promise<Engine> {
  const { vllm } = await import("@periodic-eval/remote");
  const { onDownload, close } = showLoading(terminal);
  const loaded = await loadTokenizer(tokenizer, { onDownload }).finally(close);
  const served = await vllm({ urls, model: await servedName(urls[0]!, model), tokenizer: loaded });
  return {
    name: `vLLM at ${urls.join(", ")}`,
    open: served.openCheckpoint,
    outline: async () => served,
    dispose: served.dispose,
  };
}

/** Returns the name under which a server serves a folder; otherwise the given name, which `vllm` checks. */
async function servedName(url: string, model: string): Promise<string> {
  const { arrayOrNull, at, isString, jsonService } = await import("@periodic-eval/remote");
  const service = jsonService({ url, tokenEnv: "VLLM_API_KEY", maxRetries: 3 });
  const reply = await service.ask("v1/models", undefined, new AbortController().signal);
  const real = (path: string) => (existsSync(path) ? realpathSync(path) : path);
  const found = (arrayOrNull(at(reply, "data")) ?? []).find((one) => {
    const root = at(one, "root");
    return !isString(at(one, "parent")) && isString(root) && real(root) === real(model);
  });
  const name = at(found, "id");
  return isString(name) ? name : model;
}

/** Returns a function that opens checkpoints on the current backend and shows the progress. */
export const checkpointOpener =
  (terminal: Terminal): OpenCheckpoint =>
  async (base, path, options) => {
    const { close, ...progress } = showLoading(terminal);
    try {
      return await openCheckpoint(base, path, { ...options, ...progress });
    } finally {
      close();
    }
  };

const outlineOpener =
  (terminal: Terminal): Engine["outline"] =>
  async (base, path, { tokenizer = null } = {}) => {
    const { onDownload, close } = showLoading(terminal);
    try {
      return (await outlineCheckpoint(base, path, { tokenizer, onDownload })).model;
    } finally {
      close();
    }
  };

/** Opens only a model's configuration and tokenizer. The result renders prompts and reads data; its logits throw. */
export const openModelOutline = (source: string, terminal: Terminal): Promise<EvaluableModel> =>
  outlineOpener(terminal)(source);

/**
 * Loads a model to train, with its tokenizer, and shows the progress. The caller disposes the model.
 *
 * @param tokenizer Replaces the model's own tokenizer.
 */
export async function openModel(
  source: string,
  terminal: Terminal,
  tokenizer?: Tokenizer,
): Promise<{ readonly model: CheckpointLM; readonly tokenizer: Tokenizer }> {
  const { onDownload, onLoad, close } = showLoading(terminal);
  try {
    const loaded = tokenizer ?? (await loadTokenizer(source, { onDownload }));
    return { tokenizer: loaded, model: await loadCausalLM(source, { onDownload, onLoad }) };
  } finally {
    close();
  }
}
