import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
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
  type MetricsRun,
  type ChatOptions,
} from "@periodic-eval/tasks";
import type { Command } from "commander";
import { startEngineOf } from "../../config/open-model.ts";
import { loadEvaluations } from "../../config/open-grader.ts";
import { onInterrupt } from "../../terminal/interrupt.ts";
import { showMeasuring } from "../../terminal/progress.ts";
import { jsonText, plainTable, type Terminal, type Colours } from "../../terminal/terminal.ts";
import type { EvalOptions } from "./questions.ts";

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
  if (typeof suite === "string") await readSuite(suite);
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

/** Returns the model's arguments as lm-evaluation-harness writes them. */
const modelArgs = (model: string, adapter: string | null, tokenizer: string): string =>
  [`pretrained=${model}`, ...(adapter === null ? [] : [`peft=${adapter}`]), `tokenizer=${tokenizer}`].join(
    ",",
  );

/** Returns a suite of tasks that are named on the command line, all with the same settings. */
function suiteOf(
  { shots, limit, ...prompt }: EvalOptions,
  names: readonly string[],
  registry: TaskRegistry,
): SuiteDefinition {
  for (const name of names) taskNamed(registry, name, "--tasks");
  const settings = { ...(shots !== undefined && { shots }), ...(limit !== undefined && { limit }) };
  return {
    schema_version: 1,
    name: "command line",
    chat: chatOptions(prompt),
    tasks: Object.fromEntries(names.map((name) => [name, settings])),
  };
}

/** Derives a run name from the last segments of the paths. */
const runName = (model: string, adapter: string | null): string =>
  [model, ...(adapter === null ? [] : [adapter])]
    .map((path) => basename(path).replaceAll(/[^\w.-]+/g, "-"))
    .join("_")
    .replace(/^[^A-Za-z0-9]+/, "") || "model";

const columns = [
  { words: "task" },
  { words: "metric" },
  { words: "filter" },
  "value",
  "± stderr",
  "n",
  "95 % interval",
];

/** Returns a table of a run's metrics. A task with groups has one row; a line below the table counts the groups. */
function suiteTable({ run }: SuiteRun, colours: Colours): string {
  const keys = Object.keys(run.metrics);
  const shown = keys.filter((key) => isTask(key, run));
  const groups = new Set(keys.filter((key) => !shown.includes(key)).map((key) => key.split("/")[0]));
  const table = plainTable(
    columns,
    shown.map((key) => {
      const [, task, metric, filter] = /^([^/]+)\/([^,]+),(.+)$/.exec(key)!;
      const { [key]: interval = null } = run.ci95;
      return [
        task!,
        `${metric}${arrow(run.higher_is_better[key])}`,
        filter!,
        number(run.metrics[key]),
        number(run.stderr[key]),
        String(run.n[key] ?? missingValue),
        interval === null ? missingValue : `[${interval.map(number).join(", ")}]`,
      ];
    }),
    colours,
  );
  return groups.size === 0 ? table : `${table}\n${colours.dim(`and ${groups.size} groups: --json`)}`;
}

const missingValue = "–";

/** Formats a number as lm-evaluation-harness does. */
const number = (value: number | null | undefined): string => value?.toFixed(4) ?? missingValue;

const arrow = (isHigherBetter: boolean | null | undefined): string =>
  isHigherBetter == null ? "" : isHigherBetter ? " ↑" : " ↓";

/** Whether a metric's key belongs to a task of the suite rather than to a group of one. */
function isTask(key: string, { suite }: MetricsRun): boolean {
  const { tasks } = suite as { readonly tasks: object };
  const name = key.slice(0, key.indexOf("/"));
  // The name of a group begins with that of its task. All other names are of the suite's `evaluations`.
  return Object.hasOwn(tasks, name) || !Object.keys(tasks).some((task) => name.startsWith(`${task}_`));
}

/** @param results The folder of results; null if they are not kept. */
function suiteJson({ run, measured, folder }: SuiteRun, results: string | null): string {
  return jsonText({ ...run, measured, folder: results === null ? null : folder });
}

/** How a command prompts tasks. */
interface TaskPromptOptions {
  readonly chat: boolean;
  readonly system: string;
}

/** Ends the command if a system prompt is given that tasks cannot use. */
export function checkSystemPrompt({ chat, system }: TaskPromptOptions, command: Command): void {
  if (system !== "omit" && !chat)
    command.error("error: option '--system <text>' requires --chat: plain prompts have no system prompt");
  if (system === "no_system_block")
    command.error(
      "error: option '--system no_system_block' is only for --questions: pass omit, empty or the prompt",
    );
}

/** Returns the chat options of a task, or null for plain text. */
function chatOptions({ chat, system }: TaskPromptOptions): ChatOptions | null {
  if (!chat) return null;
  return system === "omit" ? {} : { system: system === "empty" ? "" : system };
}
