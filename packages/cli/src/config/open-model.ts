import * as z from "zod";
import { checked, parseOptions, valueAt } from "@periodic-eval/contracts/options";
import type {
  EvaluableModel,
  OpenCheckpoint,
  OpenCheckpointOptions,
  Tokenizer,
  ValuePath,
} from "@periodic-eval/core";
import { readConfigFile, type ConfigFile } from "@periodic-eval/data/config";
import {
  adapterFolder,
  loadCausalLM,
  openCheckpoint,
  outlineCheckpoint,
  useBackend,
  type CheckpointLM,
} from "@periodic-eval/models";
import { loadTokenizer } from "@periodic-eval/models/tokenizer";
import type { ServedModel } from "@periodic-eval/remote";
import { atFlag } from "./command-options.ts";
import { showLoading } from "../terminal/progress.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { withPlace } from "./config-file.ts";

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
  /** Addresses of a vLLM server or its replicas, or `engine` of a file; without it the model runs in this process. */
  readonly engine?: readonly string[] | EngineConfig;
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

/** Starts the engine that a command's options name, otherwise that of the key `engine` of a file. */
export async function startEngineOf(
  path: string | null,
  options: EngineOptions,
  terminal: Terminal,
): Promise<Engine> {
  const isNamed = options.engine !== undefined || options.backend !== undefined;
  const file = path === null || isNamed ? null : await readConfigFile(path);
  const engine = file === null ? undefined : readEngine(file);
  if (file === null || engine === undefined) return startEngine(options, terminal);
  return withPlace(file, ["engine"], () => startEngine({ ...options, engine }, terminal));
}

async function connectEngine(
  { model, tokenizer = model }: EngineOptions,
  engine: readonly string[] | EngineConfig,
  terminal: Terminal,
): Promise<Engine> {
  const loaded = await showLoading(terminal, ({ onDownload }) => loadTokenizer(tokenizer, { onDownload }));
  const config = "vllm" in engine ? engine : { vllm: [...engine] };
  const connect = () => connectServer(config, model, loaded);
  const { served, name } = await ("vllm" in engine ? connect() : atFlag("--engine", connect));
  return {
    name: `vLLM at ${[config.vllm].flat().join(", ")}`,
    async open(base, path = null, opening) {
      // A server reads folders.
      const folder =
        path && (await showLoading(terminal, ({ onDownload }) => adapterFolder(path, { onDownload })));
      // The file or the server's list says that this name is the model.
      return served.openCheckpoint(base === model ? name : base, folder, opening);
    },
    // Evaluations are checked against it before a model is opened; an adapter needs nothing more.
    outline: async (_base, path = null) => (path === null ? served : { ...served, base: served }),
    dispose: served.dispose,
  };
}

/**
 * Connects to the server that serves a model.
 *
 * @param model A folder, or `owner/name`; or its name on the server.
 */
export async function connectServer(
  { vllm: urls, model: configured, api_key_env: apiKeyEnv, concurrency }: EngineConfig,
  model: string,
  tokenizer: Tokenizer,
): Promise<{ readonly served: ServedModel; readonly name: string }> {
  const { servedName, vllm } = await import("@periodic-eval/remote");
  const name = configured ?? (await servedName([urls].flat()[0]!, model, apiKeyEnv));
  const served = await vllm({
    urls,
    model: name,
    tokenizer,
    ...(apiKeyEnv !== undefined && { apiKeyEnv }),
    ...(concurrency !== undefined && { concurrency }),
  });
  return { served, name };
}

/** Returns a function that opens checkpoints on the current backend and shows the progress. */
export const checkpointOpener =
  (terminal: Terminal): OpenCheckpoint =>
  async (base, path, options) =>
    showLoading(terminal, (progress) => openCheckpoint(base, path, { ...options, ...progress }));

const outlineOpener =
  (terminal: Terminal): Engine["outline"] =>
  async (base, path, { tokenizer = null } = {}) =>
    showLoading(
      terminal,
      async ({ onDownload }) => (await outlineCheckpoint(base, path, { tokenizer, onDownload })).model,
    );

/** Opens only a model's configuration and tokenizer. The result renders prompts and reads data; its logits throw. */
export const openModelOutline = (source: string, terminal: Terminal): Promise<EvaluableModel> =>
  outlineOpener(terminal)(source);

/**
 * Loads a model to train, with its tokenizer, and shows the progress. The caller disposes the model.
 *
 * @param tokenizer Replaces the model's own tokenizer.
 */
export const openModel = (
  source: string,
  terminal: Terminal,
  tokenizer?: Tokenizer,
): Promise<{ readonly model: CheckpointLM; readonly tokenizer: Tokenizer }> =>
  showLoading(terminal, async ({ onDownload, onLoad }) => ({
    tokenizer: tokenizer ?? (await loadTokenizer(source, { onDownload })),
    model: await loadCausalLM(source, { onDownload, onLoad }),
  }));

const text = z.string("a non-empty string").min(1, "a non-empty string");
const addresses = "an address such as http://127.0.0.1:8000, or a list of them";
const count = "a positive integer";

const engineFields = {
  vllm: z
    .union([text, z.array(text).min(1)], addresses)
    .describe("Address of a vLLM server, or a list of replicas: http://127.0.0.1:8000."),
  model: text
    .optional()
    .describe(
      "The base model's name on the server. Default: the one under which the server lists the model.",
    ),
  api_key_env: text
    .nullable()
    .optional()
    .describe("Environment variable with the API key; null sends none. Default: VLLM_API_KEY."),
  concurrency: z
    .int(count)
    .positive(count)
    .optional()
    .describe("Requests in flight per replica. Default: 8."),
};

/** The key `engine` of a file. */
export const engineSchema = z.strictObject(engineFields, "an object such as { vllm: http://127.0.0.1:8000 }");

/** A server on which models are measured. */
type EngineConfig = z.infer<typeof engineSchema>;

/**
 * Parses the key `engine` of a file; undefined if the file has none.
 *
 * @throws PeriodicEvalError `config` with file, line and key.
 */
function readEngine(file: ConfigFile): EngineConfig | undefined {
  const value = valueAt(file.value, ["engine"]);
  if (value === undefined) return undefined;
  const written = { where: file.where, pathOf: (option: ValuePath) => ["engine", ...option] };
  return checked(written, () => parseOptions("engine", engineSchema, value));
}
