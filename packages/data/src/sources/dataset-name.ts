import { dataError, didYouMean, nearest } from "@periodic-eval/contracts/options";

/** Begins every source that is a dataset on the hub. */
export const hubPrefix = "hf:";

/** Whether a source of rows is a dataset on the hub, rather than a file. */
export const isHubSource = (source: string): boolean => source.startsWith(hubPrefix);

/** Whether a source holds rows: a dataset on the hub, JSON Lines, Parquet or a compressed file. Any other file holds YAML, JSON or text. */
export const isRowSource = (source: string): boolean =>
  isHubSource(source) || /\.(jsonl|ndjson|parquet|gz)$/i.test(source);

/** A dataset as a source names it. */
export interface DatasetName {
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
