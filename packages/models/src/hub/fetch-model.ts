import { PeriodicEvalError } from "@periodic-eval/core";
import { storeError } from "@periodic-eval/core/snapshots";
import { companions } from "../folder/companions.ts";
import { pickled } from "../folder/pickled.ts";
import { indexName, readShardIndex, shardsOf, singleName } from "../folder/shard-index.ts";
import { openHubCache, type HubCache } from "./cache.ts";
import { download } from "./download.ts";
import { hubError, isUnreachable } from "./hub-errors.ts";
import { shownId, type HubId } from "./hub-id.ts";
import { openRepository, type HubFile, type Repository } from "./repository.ts";

/** How far the download of one file is. */
export interface DownloadProgress {
  /** `owner/name` or `owner/name@revision`. */
  readonly model: string;
  readonly file: string;
  readonly doneBytes: number;
  readonly totalBytes: number;
}

export interface FetchOptions {
  /** The configuration alone, the tokenizer's files alone, the model's and all these, or those of a PEFT adapter. */
  readonly need: "config" | "tokenizer" | "model" | "adapter";
  /** `config.json`, or the name asked for in its place. */
  readonly configFile?: string;
  /** Told before, while and after a file is fetched. */
  readonly onDownload?: (progress: DownloadProgress) => void;
}

/** Files that a tokenizer is read from; only the first must be there. */
const tokenizerNames = [
  "tokenizer.json",
  "tokenizer_config.json",
  "special_tokens_map.json",
  "generation_config.json",
  "chat_template.jinja",
];

/** The files of a PEFT adapter, the weights last: a folder that has them has all. */
export const adapterNames = { config: "adapter_config.json", weights: "adapter_model.safetensors" } as const;

/**
 * The folder of a model of the hub, in the cache that huggingface_hub shares, with what is missing fetched one file at a
 * time. A revision is the commit that it was when it was first asked for: what is here is used without a request.
 */
export async function fetchModel(id: HubId, options: FetchOptions): Promise<string> {
  const cache = openHubCache(id);
  const held = await cache.commitOf(id.revision);
  const missing = held === null ? null : await missingFrom(cache, held, options);
  if (held !== null && missing === "nothing") return cache.snapshot(held);
  if (isOffline()) {
    if (held !== null && missing === "nothing needed") return cache.snapshot(held);
    throw hubError(
      shownId(id),
      `HF_HUB_OFFLINE, and not all of its files in ${cache.root}`,
      "a model that was fetched before",
      "Unset HF_HUB_OFFLINE, or give a local folder.",
    );
  }
  try {
    const repository = await openRepository(id);
    const commit = held ?? (await repository.commit());
    const files = await repository.files(commit);
    await cache.setCommit(id.revision, commit);
    await fetchFiles({ id, cache, repository, commit, files, options });
    return cache.snapshot(commit);
  } catch (error) {
    const isEnough = held !== null && missing === "nothing needed";
    if (isEnough && PeriodicEvalError.is(error) && isUnreachable(error.cause)) return cache.snapshot(held);
    throw isOfDisk(error) ? storeError(cache.root, error, "a cache that can be written") : error;
  }
}

/** What of the files is not here: nothing; nothing that must be there, others perhaps; or some that must be. */
async function missingFrom(
  cache: HubCache,
  commit: string,
  { need, configFile = "config.json" }: FetchOptions,
): Promise<"nothing" | "nothing needed" | "some"> {
  const has = (name: string) => cache.has(commit, name);
  if (need === "config") return (await has(configFile)) ? "nothing" : "some";
  if (need === "adapter")
    return (await has(adapterNames.config)) && (await has(adapterNames.weights)) ? "nothing" : "some";
  const isEnough =
    need === "tokenizer"
      ? await has("tokenizer.json")
      : (await has(configFile)) && (await hasWeights(cache.snapshot(commit), has));
  if (!isEnough) return "some";
  for (const name of tokenizerNames)
    if (!(await has(name)) && !(await cache.lacks(commit, name))) return "nothing needed";
  return "nothing";
}

async function hasWeights(folder: string, has: (name: string) => Promise<boolean>): Promise<boolean> {
  if (await has(singleName)) return true;
  const index = await readShardIndex(folder);
  if (index === null) return false;
  for (const name of shardsOf(index)) if (!(await has(name))) return false;
  return true;
}

interface Fetching {
  readonly id: HubId;
  readonly cache: HubCache;
  readonly repository: Repository;
  readonly commit: string;
  readonly files: ReadonlyMap<string, HubFile>;
  readonly options: FetchOptions;
}

async function fetchFiles(fetching: Fetching): Promise<void> {
  const { cache, commit, files, options } = fetching;
  const { need, configFile = "config.json" } = options;
  if (need === "config") return fetchFile(fetching, configFile);
  if (need === "adapter") {
    refuseWithout(adapterNames.weights, fetching);
    for (const name of Object.values(adapterNames)) await fetchFile(fetching, name);
    return;
  }
  for (const name of tokenizerNames) if (!files.has(name)) await cache.setLacking(commit, name);
  if (need === "tokenizer") {
    for (const name of tokenizerNames) if (files.has(name)) await fetchFile(fetching, name);
    return;
  }
  // A repository may hold both: the one file is what readers take.
  const isSharded = files.has(indexName) && !files.has(singleName);
  if (!isSharded) refuseWithout(singleName, fetching);
  // Weights last: a folder that has them has all.
  await fetchFile(fetching, configFile);
  for (const name of files.keys()) if (companions.test(name)) await fetchFile(fetching, name);
  if (!isSharded) return fetchFile(fetching, singleName);
  await fetchFile(fetching, indexName);
  const index = await readShardIndex(cache.snapshot(commit));
  for (const name of shardsOf(index ?? new Map())) await fetchFile(fetching, name);
}

function refuseWithout(weights: string, { id, files }: Fetching): void {
  if (files.has(weights)) return;
  const where = `${shownId(id)} on the hub`;
  throw pickled(where, [...files.keys()]) ?? hubError(where, "no weights", weights, "Name another model.");
}

async function fetchFile(fetching: Fetching, name: string): Promise<void> {
  const { id, cache, repository, commit, files, options } = fetching;
  if (await cache.has(commit, name)) return;
  const where = `${shownId(id)}, ${name} on the hub`;
  const file = files.get(name);
  if (file === undefined)
    throw hubError(where, "no such file", "one that the model needs", "Name another model.");
  const { bytes, hash } = file;
  const tell = (doneBytes: number) =>
    options.onDownload?.({ model: shownId(id), file: name, doneBytes, totalBytes: bytes });
  const read = (from: number) => repository.read(commit, file, from);
  await download(cache.blob(hash), { where, bytes, hash }, read, tell);
  await cache.place(commit, name, hash);
}

const isOffline = (): boolean =>
  ["1", "true", "yes", "on"].includes(process.env["HF_HUB_OFFLINE"]?.toLowerCase() ?? "");

const isOfDisk = (error: unknown): boolean =>
  !PeriodicEvalError.is(error) && typeof (error as NodeJS.ErrnoException | null)?.syscall === "string";
