import {
  Evaluator,
  taskNamed,
  type SuiteDefinition,
  type SuiteRun,
  type TaskRegistry,
} from "@periodic-eval/tasks";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { onInterrupt } from "../../terminal/interrupt.ts";
import { checkpointOpener } from "./open-checkpoint.ts";
import { suiteProgress } from "./suite-progress.ts";
import { checkDataFolder, dataFolderOf } from "../../config/task-data.ts";
import type { Terminal } from "../../terminal/terminal.ts";

/** Tasks named on the command line, all with the same settings. */
export interface NamedTasks {
  readonly names: readonly string[];
  /** Folder with one folder per task. */
  readonly data: string;
  readonly shots?: number;
  readonly limit?: number;
  /** Null: plain prompts. */
  readonly chat: { readonly system?: string } | null;
}

export interface SuiteRequest {
  readonly model: string;
  readonly adapter: string | null;
  /** A suite file (null: the suite of the package), or tasks. */
  readonly measured: { readonly suite: string | null; readonly data?: string } | NamedTasks;
  readonly smoke: boolean;
  /** Folder of results. Null: results are not kept. */
  readonly results: string | null;
  /** Name of the run. Default: the names of model and adapter. */
  readonly name?: string;
  readonly backend?: string;
}

/** Measures a checkpoint and shows the progress task by task. With a results folder, an interrupted run resumes. */
export async function measureSuite(
  request: SuiteRequest,
  tasks: TaskRegistry,
  terminal: Terminal,
): Promise<SuiteRun> {
  const { model, adapter, measured, smoke, results, backend } = request;
  const suite = "names" in measured ? suiteOf(measured, tasks) : measured.suite;
  if (measured.data !== undefined) checkDataFolder(measured.data);
  const folder = results ?? (await mkdtemp(join(tmpdir(), "periodic-eval-results-")));
  const { onProgress, close } = suiteProgress(terminal);
  const { signal, stopListening } = onInterrupt();
  try {
    return await Evaluator.fromCheckpoint(model, {
      name: request.name ?? runName(model, adapter),
      tasks,
      ...(suite !== null && { suite }),
      ...(measured.data !== undefined && { data: measured.data }),
      smoke,
      results: folder,
      samples: results !== null,
      adapter,
      openModel: checkpointOpener(backend, terminal),
      signal,
      onProgress,
    }).run();
  } finally {
    stopListening();
    close();
    if (results === null) await rm(folder, { recursive: true, force: true });
  }
}

function suiteOf({ names, data, shots, limit, chat }: NamedTasks, registry: TaskRegistry): SuiteDefinition {
  for (const name of names) taskNamed(registry, name, "--tasks");
  checkDataFolder(data);
  const settings = { ...(shots !== undefined && { shots }), ...(limit !== undefined && { limit }) };
  return {
    schema_version: 1,
    name: "command line",
    chat,
    tasks: Object.fromEntries(names.map((name) => [name, { ...settings, data: dataFolderOf(name, data) }])),
  };
}

/** Derives a run name from the last segments of the paths. */
const runName = (model: string, adapter: string | null): string =>
  [model, ...(adapter === null ? [] : [adapter])]
    .map((path) => basename(path).replaceAll(/[^\w.-]+/g, "-"))
    .join("_")
    .replace(/^[^A-Za-z0-9]+/, "") || "model";
