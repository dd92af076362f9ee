import { PeriodicEvalError, type SourceOption } from "@periodic-eval/contracts";
import { command, dataError, optionAt, didYouMean, nearest } from "@periodic-eval/contracts/options";
import { basename, dirname, join } from "@periodic-eval/store/platform";
import { isOffline } from "../hub/access.ts";
import { openHubCache } from "../hub/cache.ts";
import { cacheError, fetchFile } from "../hub/download.ts";
import { openRepository, type HubFile } from "../hub/repository.ts";
import { isUnreachable } from "../hub/request-error.ts";

/** A split of a dataset in the cache. */
export interface DatasetSplit {
  /** `owner/name`. */
  readonly dataset: string;
  readonly config: string;
  readonly split: string;
  /** The commit of the hub's Parquet conversion. */
  readonly commit: string;
  /** The folder that holds the files. */
  readonly folder: string;
  /** In the order of the rows. */
  readonly files: readonly SplitFile[];
}

export interface SplitFile extends HubFile {
  /** Its place in the cache. */
  readonly path: string;
}

/** The branch that holds the hub's Parquet conversion of any dataset: `<config>/<split>/0000.parquet`. */
const revision = "refs/convert/parquet";

/** Names in `periodic-eval data get`, by dataset. */
const downloadNames: Readonly<Record<string, string>> = { "allenai/ai2_arc": "arc_challenge" };

type OpenDataset = ReturnType<typeof openDataset>;

/** @param usualSplits The splits of a source that names none, in order of preference. */
function openDataset(source: string, at: SourceOption | string, usualSplits: readonly string[] = ["test"]) {
  const option = optionAt(at);
  const { where } = option;
  const name = parseDatasetName(source, where);
  const repo = {
    type: "dataset" as const,
    name: name.dataset,
    revision,
    where: `${where}, hf:${name.dataset}`,
  };
  return { name, source, where, option, usualSplits, repo, cache: openHubCache(repo) };
}

/**
 * Returns a split of a dataset in the cache shared with huggingface_hub, after downloading missing files from the hub's
 * Parquet conversion. The revision stays at the commit of its first request, so that a cached split needs no request.
 * HF_ENDPOINT, HF_TOKEN and HF_HUB_OFFLINE apply.
 *
 * @param source `hf:owner/dataset[/config][/split]`; see `chooseSplit` for the defaults.
 * @param option The option that names the source, for errors; or only its place.
 * @param usualSplits The splits of a source that names none, in order of preference. Default: `test`.
 * @throws PeriodicEvalError `data` for a dataset, config or split that cannot be had, `config` for a malformed variable,
 *   `store` if the cache cannot be written.
 */
export async function fetchSplit(
  source: string,
  option: SourceOption | string,
  usualSplits?: readonly string[],
): Promise<DatasetSplit> {
  const opened = openDataset(source, option, usualSplits);
  const { cache, repo, name, where } = opened;
  const cached = await cachedSplitOf(opened);
  if (cached !== null && cached.missing.length === 0) return cached.split;
  if (isOffline()) throw notCached(opened);
  try {
    const repository = await openRepository(repo);
    const commit = (await cache.commitOf(revision)) ?? (await repository.commit());
    const files =
      (await cache.listing(commit)) ?? parquetOf(await repository.files(commit), name.dataset, where);
    const split = splitOf(opened, commit, files);
    await cache.setListing(commit, files);
    await cache.setCommit(revision, commit);
    for (const file of split.files) await fetchFile({ repo, cache, repository, commit }, file);
    return split;
  } catch (error) {
    if (PeriodicEvalError.is(error) && isUnreachable(error.cause)) throw notCached(opened, error);
    throw cacheError(cache, error);
  }
}

/**
 * Returns a split in the cache; null unless the cache holds all its files. Makes no request.
 *
 * @throws PeriodicEvalError `data` for a malformed source.
 */
export async function cachedSplit(source: string, where: string): Promise<DatasetSplit | null> {
  const opened = openDataset(source, where);
  // A dataset in the cache may lack the split.
  const cached = await cachedSplitOf(opened).catch(() => null);
  return cached === null || cached.missing.length > 0 ? null : cached.split;
}

async function cachedSplitOf(
  opened: OpenDataset,
): Promise<{ readonly split: DatasetSplit; readonly missing: readonly SplitFile[] } | null> {
  const { cache } = opened;
  const commit = await cache.commitOf(revision);
  const files = commit === null ? null : await cache.listing(commit);
  if (commit === null || files === null) return null;
  const split = splitOf(opened, commit, files);
  const missing: SplitFile[] = [];
  for (const file of split.files) if (!(await cache.has(commit, file.name))) missing.push(file);
  return { split, missing };
}

function splitOf(
  { name, where, cache, usualSplits }: OpenDataset,
  commit: string,
  listed: readonly HubFile[],
): DatasetSplit {
  const paths = listed.map((file) => file.name);
  const { config, split } = chooseSplit(name, paths, where, usualSplits);
  const root = cache.snapshot(commit);
  const files = listed
    .filter((file) => file.name.startsWith(`${config}/${split}/`))
    .map((file) => ({ ...file, path: join(root, file.name) }));
  return { dataset: name.dataset, config, split, commit, folder: join(root, config, split), files };
}

function parquetOf(files: ReadonlyMap<string, HubFile>, dataset: string, where: string): readonly HubFile[] {
  const listed = [...files.values()]
    .filter(({ name }) => /^[^/]+\/[^/]+\/.*\.parquet$/.test(name))
    .toSorted((a, b) => (a.name < b.name ? -1 : 1));
  if (listed.length > 0) return listed;
  const fix = "Download the dataset and name its file.";
  throw dataError(where, `no Parquet file of ${dataset}`, "the hub's Parquet conversion of it", fix);
}

/** Returns the error for a dataset that is needed now, with all remedies. */
function notCached(
  { name, source, option, cache, usualSplits: [split] }: OpenDataset,
  unanswered?: PeriodicEvalError,
): PeriodicEvalError {
  // `data get` without a split gets the one of questions.
  const wanted = split === "test" || name.names.length > 0 ? source : `${source}/${split}`;
  const copy = `copy ${basename(cache.root)} from the cache of a machine with network to ${dirname(cache.root)}`;
  const online = unanswered === undefined ? "unset HF_HUB_OFFLINE" : "check the network and HF_ENDPOINT";
  const reason = unanswered === undefined ? "HF_HUB_OFFLINE" : `no answer from the hub (${unanswered.got})`;
  const get = command(`data get ${downloadNames[name.dataset] ?? wanted} --out FOLDER`);
  const named = option.path.length === 0 ? "" : ` in \`${option.path.at(-1)}\``;
  // The command that downloads takes no file, and would fail again.
  const fix =
    option.isDownload === true
      ? `${online[0]!.toUpperCase()}${online.slice(1)}, or ${copy}.`
      : `Name the path of a file${named}; ${get} writes one on a machine with network. Or ${copy}, or ${online}.`;
  return new PeriodicEvalError({
    code: "data",
    where: option.where,
    got: `${reason}, ${unanswered === undefined ? "but" : "and"} ${source} is not in the cache ${cache.root}`,
    expected: "a dataset in the cache, or a network",
    fix,
    // `got` repeats the messages of the errors around the reason.
    cause: innermostCause(unanswered),
    detail: { kind: "not-cached", reason },
  });
}

function innermostCause(error: unknown): unknown {
  let at = error;
  while (at instanceof Error && at.cause !== undefined) at = at.cause;
  return at;
}

/** Begins every source that is a dataset on the hub. */
const hubPrefix = "hf:";

/** Whether a source of rows is a dataset on the hub, rather than a file. */
export const isHubSource = (source: string): boolean => source.startsWith(hubPrefix);

/** Whether a source holds rows: a dataset on the hub, JSON Lines, Parquet or a compressed file. Any other file holds YAML, JSON or text. */
export const isRowSource = (source: string): boolean =>
  isHubSource(source) || /\.(jsonl|ndjson|parquet|gz)$/i.test(source);

/** A dataset as a source names it. */
interface DatasetName {
  /** `owner/name`. */
  readonly dataset: string;
  /** Config and split, or one of them, or neither. */
  readonly names: readonly string[];
}

const word = /^\w[\w.-]*$/;

/**
 * Parses `hf:owner/dataset`, `hf:owner/dataset/config`, `hf:owner/dataset/split` or `hf:owner/dataset/config/split`.
 *
 * @param where The option that names the source, for errors.
 * @throws PeriodicEvalError `data` for any other string.
 */
export function parseDatasetName(source: string, where: string): DatasetName {
  const parts = isHubSource(source) ? source.slice(hubPrefix.length).split("/") : [];
  const isName = parts.length >= 2 && parts.length <= 4 && parts.every((part) => word.test(part));
  const name = `${parts[0]}/${parts[1]}`;
  if (isName && !/--|\.\./.test(name)) return { dataset: name, names: parts.slice(2) };
  const expected = "hf:owner/dataset, hf:owner/dataset/split or hf:owner/dataset/config/split";
  throw dataError(
    where,
    JSON.stringify(source),
    expected,
    "Copy the name from the dataset's page on the hub.",
  );
}

/** The config of a dataset that has several configs and none named `default`. */
const usualConfigs: Readonly<Record<string, string>> = { "allenai/ai2_arc": "ARC-Challenge" };

/**
 * Returns the config and split that a source names. Without a config: the dataset's usual one (`ARC-Challenge` of
 * `allenai/ai2_arc`), `default`, or the only one. Without a split: the first of `usualSplits` that exists, or the only one.
 *
 * @param paths The paths of the dataset's Parquet files: `config/split/0000.parquet`.
 * @throws PeriodicEvalError `data` for an unknown name, with the nearest known one, or for a missing name.
 */
export function chooseSplit(
  { dataset, names }: DatasetName,
  paths: readonly string[],
  where: string,
  usualSplits: readonly string[] = ["test"],
): { readonly config: string; readonly split: string } {
  const configs = foldersOf(paths, "");
  const splitsOf = (config: string) => foldersOf(paths, `${config}/`);
  const choose = (config: string, split: string | null) => ({
    config,
    split: chosen("split", split, splitsOf(config), usualSplits, `${dataset}, config ${config}`, where),
  });
  const usual = usualConfigs[dataset] ?? "default";
  const [first = null, second = null] = names;
  if (second !== null) return choose(chosen("config", first, configs, [usual], dataset, where), second);
  // One name may be either.
  const preset = configs.includes(usual) ? usual : configs.length === 1 ? configs[0]! : null;
  const isConfig = first !== null && configs.includes(first);
  if (isConfig && !(preset !== null && splitsOf(preset).includes(first))) return choose(first, null);
  if (first !== null && preset === null && !configs.some((config) => splitsOf(config).includes(first)))
    return choose(chosen("config", first, configs, [usual], dataset, where), null);
  if (first !== null && preset !== null && configs.length > 1 && !splitsOf(preset).includes(first)) {
    const known = [...configs, ...splitsOf(preset)];
    const isMisspeltConfig = configs.includes(nearest(first, known) ?? "");
    const got = isMisspeltConfig
      ? `the config "${first}" of ${dataset}`
      : `the split "${first}" of ${dataset}, config ${preset}`;
    const expected = `a config (${configs.join(", ")}) or a split (${splitsOf(preset).join(", ")})`;
    throw dataError(where, got, expected, didYouMean(first, known) ?? writeAll);
  }
  return choose(preset ?? chosen("config", null, configs, [usual], dataset, where), first);
}

const writeAll = "Write hf:owner/dataset/config/split.";

const foldersOf = (paths: readonly string[], under: string): readonly string[] => [
  ...new Set(
    paths.flatMap((path) => (path.startsWith(under) ? [path.slice(under.length).split("/")[0]!] : [])),
  ),
];

/** Returns the requested name; without a request the first usual one, or the only one. */
function chosen(
  kind: "config" | "split",
  asked: string | null,
  names: readonly string[],
  usual: readonly string[],
  of: string,
  where: string,
): string {
  if (asked !== null && names.includes(asked)) return asked;
  const known = asked === null ? usual.find((name) => names.includes(name)) : undefined;
  if (known !== undefined) return known;
  if (asked === null && names.length === 1) return names[0]!;
  throw dataError(
    where,
    asked === null ? `no ${kind} of ${of}, which has ${names.length}` : `the ${kind} "${asked}" of ${of}`,
    `one of ${names.join(", ")}`,
    didYouMean(asked, names) ?? writeAll,
  );
}
