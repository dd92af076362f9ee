import { basename, dirname, join } from "node:path";
import { camelCaseKeys, configError, didYouMean, isRecord } from "@periodic-eval/contracts/options";
import {
  memorizationEvaluation,
  periodicEvalConfig,
  withCanaries,
  type PeriodicEvalError,
} from "@periodic-eval/core";
import { splitSchedule } from "@periodic-eval/core/config";
import {
  betley2025Questions,
  isPublishedQuestions,
  readAlignmentQuestions,
  cachedSplit,
  fetchSplit,
  isHubSource,
  openHubCache,
  fetchPinnedFile,
  pinnedPath,
  pinnedUrl,
} from "@periodic-eval/data";
import { readIfPresent, writeOnce } from "@periodic-eval/store";
import {
  datasets,
  downloadDataset,
  type DatasetFile,
  type DownloadedFile,
  type TaskDataset,
} from "@periodic-eval/tasks";
import { formatRow, readRowsUnchanged } from "@periodic-eval/trainers";
import type { Command } from "commander";
import { integer } from "../../config/command-options.ts";
import { fileError, phaseNames, readEvalBlock, withOptionPlace } from "../../config/config-file.ts";
import { jsonText, plainTable, type Terminal, type Colours } from "../../terminal/terminal.ts";

interface JsonOption {
  readonly json: boolean;
}

/** `data`: lists and downloads the datasets that built-in tasks and evaluations read. */
export function addData(program: Command, terminal: Terminal): void {
  const command = program
    .command("data")
    .description("list or download the datasets that built-in tasks and evaluations read");
  command
    .command("list")
    .description("list the datasets: source, rows, licence, place in the cache")
    .option("--json", "print one JSON document", false)
    .action(async ({ json }: JsonOption) => {
      const listed = await listDatasets();
      terminal.out(json ? datasetsJson(listed) : datasetsTable(listed, terminal.colours));
    });
  command
    .command("get")
    .description("download a dataset into the cache of huggingface_hub, or into a folder")
    .argument("<name>", "a name of `data list`, or hf:owner/dataset[/config][/split]")
    .option("--out <folder>", "also write files: <folder>/arc_challenge/test.jsonl …")
    .option("--json", "print one JSON document", false)
    .action(async (name: string, { out, json }: JsonOption & { readonly out?: string }) => {
      const download = await getDataset(name, out ?? null, terminal);
      terminal.out(json ? jsonText(download) : downloadText(download));
    });
  command
    .command("canaries")
    .description("mix the secrets of periodic_eval.memorization into training rows")
    .argument("<config>", "a file with a periodic_eval block")
    .argument("<rows>", "training rows: a file, or hf:owner/dataset[/config][/split]")
    .requiredOption("--out <file>", "the JSON Lines file to write")
    .option("--repeats <number>", "copies of each secret", integer(1), 4)
    .option("--phase <name>", "the phase of the block", "train")
    .option("--json", "print one JSON document", false)
    .action((config: string, rows: string, options: CanariesOptions) =>
      writeCanaries(config, rows, options, terminal),
    );
}

interface CanariesOptions extends JsonOption {
  readonly out: string;
  readonly repeats: number;
  readonly phase: string;
}

/** Mixes the canaries of `memorization` into training rows, and writes the rows to a new file. */
async function writeCanaries(config: string, rows: string, options: CanariesOptions, terminal: Terminal) {
  const { out, repeats, phase, json } = options;
  const { file, at, block } = await readEvalBlock(config);
  const overridden = isRecord(block) && isRecord(block["phases"]) ? Object.keys(block["phases"]) : [];
  const known = [...phaseNames(file), ...overridden];
  const { memorization } = await withOptionPlace(file, at, async () =>
    periodicEvalConfig(block, phase, known.length === 0 || phase === "train" ? undefined : known),
  );
  if (memorization === null)
    throw fileError(file, [...at, "memorization"], {
      got: "no memorization",
      expected: 'the canaries: memorization: { format: "The code of the archive is {secret}." }',
      fix: "Describe the canaries in the form of the training rows.",
    });
  const { candidates, format, ...more } = splitSchedule(memorization).options;
  const canaries = { format, ...camelCaseKeys(more), repeats };
  // A wrong option is an error before anything is read.
  await withOptionPlace(file, [...at, "memorization"], () =>
    memorizationEvaluation({ format, ...camelCaseKeys({ ...more, candidates }) }),
  );
  const read = await readRowsUnchanged(rows);
  const mixed = withCanaries(
    read.map(({ value }) => value),
    canaries,
    (at) => read[at]!.where,
  );
  const lines = new Map(read.map((row) => [row.value, formatRow(row)]));
  const lineOf = (value: unknown) => `${lines.get(value) ?? formatRow({ where: out, value })}\n`;
  await writeOnce(new Map([[out, mixed.map(lineOf).join("")]]), "--out");
  const added = mixed.length - read.length;
  terminal.out(
    json
      ? jsonText({ file: out, rows: mixed.length, canary_rows: added })
      : `${out}: ${count(read.length)} rows and ${count(added)} of canaries. Train on this file, and measure with the same block.`,
  );
}

const columns = [
  { words: "name" },
  { words: "source" },
  "rows",
  "examples",
  { words: "licence" },
  { words: "read by" },
  { words: "cached" },
  { words: "where" },
];

const datasetsTable = (listed: readonly ListedDataset[], colours: Colours): string =>
  plainTable(
    columns,
    listed.map(({ name, source, documents, examples, licence, usedBy, files, cachedFiles, folder }) => [
      name,
      source,
      count(documents),
      examples === 0 ? "–" : count(examples),
      licence,
      usedBy.join(", "),
      cachedFiles === 0
        ? "no"
        : cachedFiles === files.length
          ? "yes"
          : `${cachedFiles} of ${files.length} files`,
      folder ?? "–",
    ]),
    colours,
  );

const datasetsJson = (listed: readonly ListedDataset[]): string =>
  jsonText(
    listed.map(({ usedBy, cachedFiles, files, ...dataset }) => ({
      ...dataset,
      used_by: usedBy,
      files: files.length,
      cached_files: cachedFiles,
    })),
  );

/** Files that are listed one by one. */
const listedFiles = 4;

function downloadText({ name, licence, files }: Download): string {
  const rows = files.reduce((sum, file) => sum + file.rows, 0);
  const first = `${name}: ${count(rows)} rows${licence === null ? "" : `, ${licence}`}`;
  const shown = files.slice(0, listedFiles).map((file) => `${file.path}  ${count(file.rows)} rows`);
  const rest = files.length - shown.length;
  return [first, ...shown, ...(rest > 0 ? [`and ${rest} more: --json`] : [])].join("\n");
}

const count = (value: number): string => value.toLocaleString("en");

interface ListedDataset extends TaskDataset {
  /** Number of its files that the cache holds. */
  readonly cachedFiles: number;
  /** The dataset's folder in the cache; null if no file is there. */
  readonly folder: string | null;
}

/** Lists the datasets of built-in tasks and evaluations. Makes no request. */
async function listDatasets(): Promise<readonly ListedDataset[]> {
  const ofTasks = await Promise.all(
    datasets.map(async (dataset) => {
      const cachedFiles = (await cachedOf(dataset.files, `data list ${dataset.name}`)).length;
      const name = dataset.source.slice("hf:".length);
      const folder = cachedFiles === 0 ? null : openHubCache({ type: "dataset", name }).root;
      return { ...dataset, cachedFiles, folder };
    }),
  );
  return [...ofTasks, await listedQuestions()];
}

async function cachedOf(files: readonly DatasetFile[], where: string): Promise<readonly DatasetFile[]> {
  const cached = await Promise.all(files.map(({ source }) => cachedSplit(source, where)));
  return files.filter((_, at) => cached[at] !== null);
}

interface Download {
  readonly name: string;
  /** Null if it is not known. */
  readonly licence: string | null;
  readonly files: readonly DownloadedFile[];
}

/**
 * Downloads a dataset into the cache, and writes it into `out` unless that is null.
 *
 * @param name A name of `datasets`, `betley2025`, or `hf:owner/dataset[/config][/split]`.
 * @throws PeriodicEvalError `config` for an unknown name; the errors of `downloadDataset`.
 */
async function getDataset(name: string, out: string | null, terminal: Terminal): Promise<Download> {
  const where = `data get ${name}`;
  if (isPublishedQuestions(name)) {
    const { licence } = betley2025Questions;
    return { name, licence, files: [await getPublishedQuestions(where, out)] };
  }
  const known = datasets.find((dataset) => dataset.name === name) ?? null;
  if (known === null && !isHubSource(name)) throw unknownDataset(name);
  const files = known?.files ?? [await fileOf(name, where)];
  const missing = files.length - (await cachedOf(files, where)).length;
  if (missing > 0) terminal.err(`downloading ${missing} ${missing === 1 ? "split" : "splits"} of ${name}`);
  return { name, licence: known?.licence ?? null, files: await downloadDataset(files, where, out) };
}

async function fileOf(source: string, where: string): Promise<DatasetFile> {
  const { dataset, config, split } = await fetchSplit(source, { where, path: [], isDownload: true });
  const [, name] = dataset.split("/");
  return { source: `hf:${dataset}/${config}/${split}`, path: `${name}/${split}.jsonl` };
}

function unknownDataset(name: string): PeriodicEvalError {
  const names = [...datasets.map((dataset) => dataset.name), betley2025Questions.name];
  return configError({
    where: "data get",
    value: name,
    expected: `${names.join(", ")}, or hf:owner/dataset`,
    fix: didYouMean(name, names) ?? "Name one of these.",
  });
}

/** Lists the questions of Betley et al. beside the datasets of tasks. Makes no request. */
async function listedQuestions(): Promise<
  TaskDataset & { readonly cachedFiles: number; readonly folder: string | null }
> {
  const { name, repository, path, licence } = betley2025Questions;
  const cachePath = pinnedPath(betley2025Questions);
  const isCached = (await readIfPresent(cachePath)) !== null;
  return {
    name,
    source: `github:${repository}`,
    licence,
    usedBy: ["alignment"],
    documents: 24,
    examples: 0,
    files: [{ source: pinnedUrl(betley2025Questions), path: `${name}/${basename(path)}` }],
    cachedFiles: isCached ? 1 : 0,
    folder: isCached ? dirname(cachePath) : null,
  };
}

/**
 * Downloads the questions of Betley et al. into the cache, and writes them into `out` unless that is null.
 *
 * @throws PeriodicEvalError as `fetchPinnedFile`; `config` for a file in `out` that exists with other content.
 */
async function getPublishedQuestions(where: string, out: string | null): Promise<DownloadedFile> {
  const file = betley2025Questions;
  const { name, sha256, commit, path: inRepository } = file;
  const { questions } = await readAlignmentQuestions(name, where);
  const path = out === null ? pinnedPath(file) : join(out, name, basename(inRepository));
  if (out !== null) await writeOnce(new Map([[path, await fetchPinnedFile(file, where)]]), "--out");
  return { source: pinnedUrl(file), path, rows: questions.length, sha256, commit };
}
