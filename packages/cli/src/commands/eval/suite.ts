import { fromWritten, type Written } from "@periodic-eval/contracts/options";
import { checkWritable } from "@periodic-eval/store";
import {
  datasetOf,
  defaultSuitePath,
  Evaluator,
  readSuite,
  taskNamed,
  type SuiteDefinition,
  type SuiteRun,
  type TaskRegistry,
} from "@periodic-eval/tasks";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { startEngineOf } from "../../config/open-model.ts";
import { checkDataFolder, dataFolderOf } from "../../config/task-data.ts";
import { loadEvaluations } from "../../config/task-registry.ts";
import { chatOptions } from "../../config/task-options.ts";
import { onInterrupt } from "../../terminal/interrupt.ts";
import { showMeasuring } from "../../terminal/measuring-progress.ts";
import type { Terminal } from "../../terminal/terminal.ts";
import type { EvalOptions } from "./command.ts";
import { suiteJson, suiteTable } from "./suite-output.ts";

/** Measures tasks or a suite and prints a table or JSON. Without a suite, the results of tasks are kept only on request. */
export async function evaluateTasks(
  options: EvalOptions,
  tasks: TaskRegistry,
  terminal: Terminal,
): Promise<void> {
  const results = options.results ?? (options.tasks === undefined ? "results" : null);
  const run = await measureSuite(options, results, tasks, terminal);
  if (options.json) return terminal.out(suiteJson(run, results));
  if (run.measured.length === 0)
    terminal.err(
      `already measured; nothing has changed since, so the stored results are shown${labelNote(options, run)}`,
    );
  terminal.out(suiteTable(run, terminal.colours));
  if (results !== null) terminal.out(run.folder);
}

/** Says that a label which is given now is not stored. */
const labelNote = ({ method }: EvalOptions, { run }: SuiteRun): string =>
  method === undefined || method === run.method
    ? ""
    : `. They are stored with ${run.method === null ? "no method" : `the method "${run.method}"`}: to store them as "${method}", add another --name`;

/** Shows the progress task by task. With a results folder, an interrupted run resumes. */
async function measureSuite(
  options: EvalOptions,
  results: string | null,
  tasks: TaskRegistry,
  terminal: Terminal,
): Promise<SuiteRun> {
  const { model, adapter = null, tokenizer = null, data, smoke } = options;
  const suite = options.tasks === undefined ? options.suite : suiteOf(options, options.tasks, tasks);
  const names = await tasksIn(suite);
  if (data !== undefined) checkDataFolder(data, names);
  if (results !== null) await checkWritable(results);
  // Before the evaluations open their judges, which run on this engine.
  const engine = await startEngineOf(typeof suite === "string" ? suite : null, options, terminal);
  const evaluations = await loadEvaluations(async () => tasks);
  const folder = results ?? (await mkdtemp(join(tmpdir(), "periodic-eval-results-")));
  const { show, close } = showMeasuring(terminal, { edges: true });
  const { signal, stopListening } = onInterrupt(terminal);
  try {
    const [evaluator] = Evaluator.fromCheckpoint(model, {
      name: options.name ?? runName(model, adapter),
      tasks,
      evaluations,
      suite: suite === undefined || suite === true ? defaultSuitePath : suite,
      ...(data !== undefined && { data }),
      ...(options.tasks === undefined && options.method !== undefined && { method: options.method }),
      smoke,
      results: folder,
      samples: results !== null,
      adapter,
      tokenizer,
      ...(tokenizer !== null && { modelArgs: modelArgs(model, adapter, tokenizer) }),
      openModel: engine.open,
      outlineModel: async (base, path) => ({ model: await engine.outline(base, path, { tokenizer }) }),
      signal,
      onProgress: ({ task, ...progress }) => show({ name: task, ...progress }),
      onDownload: ({ task, sources }) => {
        const count = `${sources.length} ${sources.length === 1 ? "split" : "splits"}`;
        terminal.err(`downloading ${count} of ${datasetOf(task)?.name ?? task}`);
      },
    });
    return options.tasks === undefined
      ? await evaluator.run()
      : await fromWritten(taskFlags, () => evaluator.run());
  } finally {
    stopListening();
    close();
    await engine.dispose();
    if (results === null) await rm(folder, { recursive: true, force: true });
  }
}

/** The flags that set an option for all tasks of the command: `--shots` for `tasks.gsm8k.shots` of its suite. */
const taskFlags: Written = {
  where: ([name = "tasks"]) => `--${name}`,
  pathOf: ([list, , ...option]) => (list === "tasks" ? option : null),
};

async function tasksIn(suite: string | true | SuiteDefinition | undefined): Promise<readonly string[]> {
  const read =
    typeof suite === "object" ? suite : await readSuite(suite === true ? defaultSuitePath : suite!);
  return Object.keys(read.tasks);
}

/** Returns the model's arguments as lm-evaluation-harness writes them. */
const modelArgs = (model: string, adapter: string | null, tokenizer: string): string =>
  [`pretrained=${model}`, ...(adapter === null ? [] : [`peft=${adapter}`]), `tokenizer=${tokenizer}`].join(
    ",",
  );

/** Returns a suite of tasks that are named on the command line, all with the same settings. */
function suiteOf(
  { data, shots, limit, ...prompt }: EvalOptions,
  names: readonly string[],
  registry: TaskRegistry,
): SuiteDefinition {
  for (const name of names) taskNamed(registry, name, "--tasks");
  const settings = { ...(shots !== undefined && { shots }), ...(limit !== undefined && { limit }) };
  return {
    schema_version: 1,
    name: "command line",
    chat: chatOptions(prompt),
    tasks: Object.fromEntries(
      names.map((name) => [
        name,
        { ...settings, ...(data !== undefined && { data: dataFolderOf(name, data) }) },
      ]),
    ),
  };
}

/** Derives a run name from the last segments of the paths. */
const runName = (model: string, adapter: string | null): string =>
  [model, ...(adapter === null ? [] : [adapter])]
    .map((path) => basename(path).replaceAll(/[^\w.-]+/g, "-"))
    .join("_")
    .replace(/^[^A-Za-z0-9]+/, "") || "model";
