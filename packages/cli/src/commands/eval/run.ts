import type { SystemPrompt } from "@periodic-eval/core";
import { chatOptions } from "../../config/task-options.ts";
import type { LoadTasks } from "../../config/task-registry.ts";
import type { Terminal } from "../../terminal/terminal.ts";
import type { EvalOptions } from "./command.ts";
import type { SuiteRequest } from "./suite.ts";

/** Measures capability with a file of questions and prints a table or JSON. */
export async function evaluateQuestions(
  options: EvalOptions,
  questions: string,
  terminal: Terminal,
): Promise<void> {
  const { measureCapability } = await import("./capability.ts");
  const { capabilityTable, capabilityJson } = await import("./capability-output.ts");
  const { model, method, limit, system, subsampleSeed, backend, json } = options;
  const results = await measureCapability(
    {
      model,
      questions,
      methods: method,
      subsample: limit === undefined ? null : { n: limit, seed: subsampleSeed },
      system: systemPrompt(system),
      ...(backend !== undefined && { backend }),
    },
    terminal,
  );
  terminal.out(json ? capabilityJson(results) : capabilityTable(results, terminal.colours));
}

function systemPrompt(value: string): SystemPrompt {
  if (value === "omit" || value === "no_system_block") return value;
  return { text: value === "empty" ? "" : value };
}

/** Measures tasks or a suite and prints a table or JSON. */
export async function evaluateTasks(
  options: EvalOptions,
  loadTasks: LoadTasks,
  terminal: Terminal,
): Promise<void> {
  const { measureSuite } = await import("./suite.ts");
  const { suiteTable, suiteJson } = await import("./suite-output.ts");
  const { model, adapter = null, smoke, backend, name, json } = options;
  const results = options.results ?? (options.tasks === undefined ? "results" : null);
  const run = await measureSuite(
    {
      model,
      adapter,
      measured: measuredOf(options),
      smoke,
      results,
      ...(name !== undefined && { name }),
      ...(backend !== undefined && { backend }),
    },
    await loadTasks(),
    terminal,
  );
  if (json) return terminal.out(suiteJson(run, results));
  if (run.measured.length === 0)
    terminal.err("already measured; nothing has changed since, so the stored results are shown");
  terminal.out(suiteTable(run, terminal.colours));
  if (results !== null) terminal.out(run.folder);
}

function measuredOf({ tasks, suite, data, shots, limit, ...prompt }: EvalOptions): SuiteRequest["measured"] {
  if (tasks === undefined)
    return { suite: typeof suite === "string" ? suite : null, ...(data !== undefined && { data }) };
  return {
    names: tasks,
    data: data!,
    ...(shots !== undefined && { shots }),
    ...(limit !== undefined && { limit }),
    chat: chatOptions(prompt),
  };
}
