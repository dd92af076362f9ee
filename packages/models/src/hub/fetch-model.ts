import { PeriodicEvalError } from "@periodic-eval/core";
import { functionSchema } from "@periodic-eval/contracts/options";
import {
  cacheError,
  fetchFile,
  formatHubId,
  isOffline,
  isUnreachable,
  openHubCache,
  openRepository,
  type HubCache,
  type HubCommit,
  type HubFile,
  type HubId,
  parseHubId,
} from "@periodic-eval/data";
import {
  additionalTemplates,
  companions,
  rejectPickled,
  indexName,
  readShardIndex,
  shardsOf,
  singleName,
} from "../folder/file-names.ts";
import { modelError } from "../folder/model-error.ts";
import { stat } from "@periodic-eval/store/browser";

/** The progress of one file's download. */
export interface DownloadProgress {
  /** `owner/name` or `owner/name@revision`. */
  readonly model: string;
  readonly file: string;
  readonly doneBytes: number;
  readonly totalBytes: number;
}

/** The option `onDownload` of the functions that load models, adapters and tokenizers. */
export const onDownloadSchema = functionSchema<(progress: DownloadProgress) => void>(
  "a function that takes the progress",
);

export interface FetchOptions {
  /**
   * Which files: the configuration, the tokenizer, the whole model with both of these, a PEFT adapter, or `onnxFile` with the
   * configuration and the tokenizer.
   */
  readonly need: "config" | "tokenizer" | "model" | "adapter" | "onnx";
  /** The ONNX file, such as `onnx/model_q4.onnx`. */
  readonly onnxFile?: string;
  /** Name of the configuration. Default: `config.json`. */
  readonly configFile?: string;
  /** Called before, during and after the download of each file. */
  readonly onDownload?: (progress: DownloadProgress) => void;
}

/** The files of a tokenizer; only the first is required. */
const tokenizerNames = [
  "tokenizer.json",
  "tokenizer_config.json",
  "special_tokens_map.json",
  "added_tokens.json",
  "generation_config.json",
  "config.json",
  "chat_template.jinja",
  `${additionalTemplates}/tool_use.jinja`,
];

/** The files of a PEFT adapter. The weights come last: a folder that has them is complete. */
export const adapterNames = { config: "adapter_config.json", weights: "adapter_model.safetensors" } as const;

/**
 * Returns the folder of a hub model in the cache shared with huggingface_hub, after downloading missing files one at a
 * time. A revision stays at the commit of its first request, so that cached files need no request.
 *
 * @throws PeriodicEvalError `model` if the model or a file cannot be had, `store` if the cache cannot be written.
 */
export async function fetchModel(id: HubId, options: FetchOptions): Promise<string> {
  const repo = { type: "model" as const, ...id, where: formatHubId(id) };
  const cache = openHubCache(repo);
  const cached = await cache.commitOf(id.revision);
  const missing = cached === null ? null : await missingFrom(cache, cached, options);
  if (cached !== null && missing === "none") return cache.snapshot(cached);
  if (isOffline()) {
    if (cached !== null && missing === "optional") return cache.snapshot(cached);
    throw modelError({
      where: formatHubId(id),
      got: `HF_HUB_OFFLINE, but not all files are in ${cache.root}`,
      expected: "a model in the cache",
      fix: "Unset HF_HUB_OFFLINE, or pass a local folder.",
    });
  }
  try {
    const repository = await openRepository(repo);
    const commit = cached ?? (await repository.commit());
    const files = await repository.files(commit);
    await cache.setCommit(id.revision, commit);
    await fetchFiles({ repo, cache, repository, commit, files, options });
    return cache.snapshot(commit);
  } catch (error) {
    const isEnough = cached !== null && missing === "optional";
    if (isEnough && PeriodicEvalError.is(error) && isUnreachable(error.cause)) return cache.snapshot(cached);
    throw cacheError(cache, error);
  }
}

/** Returns whether the cache lacks no files, at most optional ones, or required ones. */
async function missingFrom(
  cache: HubCache,
  commit: string,
  { need, configFile = "config.json", onnxFile = "" }: FetchOptions,
): Promise<"none" | "optional" | "required"> {
  const has = (name: string) => cache.has(commit, name);
  const required = {
    config: [configFile],
    tokenizer: ["tokenizer.json"],
    model: [configFile],
    adapter: Object.values(adapterNames),
    onnx: [configFile, "tokenizer.json", onnxFile],
  };
  for (const name of required[need]) if (!(await has(name))) return "required";
  if (need === "model" && !(await hasWeights(cache.snapshot(commit), has))) return "required";
  if (need === "config" || need === "adapter") return "none";
  for (const name of tokenizerNames)
    if (!(await has(name)) && !(await cache.lacks(commit, name))) return "optional";
  return "none";
}

async function hasWeights(folder: string, has: (name: string) => Promise<boolean>): Promise<boolean> {
  if (await has(singleName)) return true;
  const index = await readShardIndex(folder);
  if (index === null) return false;
  for (const name of shardsOf(index)) if (!(await has(name))) return false;
  return true;
}

interface Fetching extends HubCommit {
  readonly files: ReadonlyMap<string, HubFile>;
  readonly options: FetchOptions;
}

async function fetchFiles(fetching: Fetching): Promise<void> {
  const { cache, commit, files, options } = fetching;
  const { need, configFile = "config.json", onnxFile = "" } = options;
  const fetchAll = async (names: readonly string[]) => {
    for (const name of names) await fetchNamed(fetching, name);
  };
  if (need === "config") return fetchAll([configFile]);
  if (need === "adapter") {
    await requireWeights(adapterNames.weights, fetching);
    return fetchAll(Object.values(adapterNames));
  }
  for (const name of tokenizerNames) if (!files.has(name)) await cache.setLacking(commit, name);
  const ofTokenizer = tokenizerNames.filter((name) => files.has(name));
  if (need === "tokenizer") return fetchAll(ofTokenizer);
  if (need === "onnx") {
    requireOnnx(onnxFile, fetching);
    // A protobuf file holds at most 2 GB. Larger weights are in more files: `model.onnx_data`, `model.onnx_data_1`.
    const data = [...files.keys()].filter((name) => name.startsWith(`${onnxFile}_data`));
    return fetchAll([configFile, ...ofTokenizer, ...data, onnxFile]);
  }
  // A repository may hold both forms; readers prefer the single file.
  const isSharded = files.has(indexName) && !files.has(singleName);
  if (!isSharded) await requireWeights(singleName, fetching);
  // The weights come last: a folder that has them is complete.
  await fetchAll([configFile, ...[...files.keys()].filter((name) => companions.test(name))]);
  if (!isSharded) return fetchNamed(fetching, singleName);
  await fetchNamed(fetching, indexName);
  const index = await readShardIndex(cache.snapshot(commit));
  return fetchAll(shardsOf(index ?? new Map()));
}

async function requireWeights(weights: string, { repo, files }: Fetching): Promise<void> {
  if (files.has(weights)) return;
  const where = `${repo.where} on the hub`;
  await rejectPickled(where, [...files.keys()], weights);
  throw modelError({ where, got: "no weights", expected: weights, fix: "Name another model." });
}

function requireOnnx(onnxFile: string, { repo, files }: Fetching): void {
  if (files.has(onnxFile)) return;
  throw missingOnnx(`${repo.where} on the hub`, onnxFile, [...files.keys()]);
}

/** Returns the error for a model without an ONNX file of the wanted dtype; `names` are the files of the model. */
export function missingOnnx(where: string, onnxFile: string, names: readonly string[]): PeriodicEvalError {
  const available = names.filter((name) => /^onnx\/.*\.onnx$/.test(name)).sort();
  return modelError({
    where,
    got: available.length === 0 ? "no ONNX file" : `no ${onnxFile}; only ${available.join(", ")}`,
    expected: onnxFile,
    fix:
      available.length === 0
        ? "Name a model with a folder `onnx`, as onnx-community has on the hub; `folder:` and `hf:` open safetensors."
        : "Choose the dtype of a file that is there: model.onnx is fp32, model_quantized.onnx q8, model_q4.onnx q4.",
  });
}

async function fetchNamed(fetching: Fetching, name: string): Promise<void> {
  const { repo, cache, commit, files, options } = fetching;
  if (await cache.has(commit, name)) return;
  const file = files.get(name);
  if (file === undefined)
    throw modelError({
      where: `${repo.where}, ${name} on the hub`,
      got: "no such file",
      expected: "a file that the model needs",
      fix: "Name another model.",
    });
  await fetchFile(fetching, file, (doneBytes) =>
    options.onDownload?.({ model: repo.where, file: name, doneBytes, totalBytes: file.bytes }),
  );
}

/**
 * Returns the folder of a model: `source` itself if it is a local folder, else the cache folder of the hub model
 * `owner/name` or `owner/name@revision`, downloaded if needed.
 *
 * @throws PeriodicEvalError `model` if `source` is neither, or if the download fails.
 */
export async function modelFolder(source: string, options: FetchOptions): Promise<string> {
  const kind = await kindOf(source);
  if (kind === "folder") return source;
  const id = kind === "none" ? parseHubId(source) : null;
  if (id !== null) return fetchModel(id, options);
  throw modelError({
    where: typeof source === "string" ? source : "model",
    got: kind === "none" ? "neither an existing folder nor the name of a model on the hub" : "a file",
    expected: "a folder that Hugging Face libraries saved, or owner/name or owner/name@revision on the hub",
    fix: kind === "none" ? "Check the path." : "Pass the folder that contains the file.",
  });
}

async function kindOf(path: string): Promise<"folder" | "file" | "none"> {
  try {
    return (await stat(path)).isDirectory() ? "folder" : "file";
  } catch (error) {
    // A path that exists but cannot be read fails later, with the reason.
    return absent.has((error as NodeJS.ErrnoException).code ?? "") ? "none" : "folder";
  }
}

const absent = new Set([
  "ENOENT",
  "ENOTDIR",
  "ENAMETOOLONG",
  "ERR_INVALID_ARG_VALUE",
  "ERR_INVALID_ARG_TYPE",
]);
