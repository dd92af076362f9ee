import type { Command } from "commander";
import { wholeNumber } from "../../config/command-options.ts";
import { addTaskOptions, checkSystem, type TaskAsking } from "../../config/task-options.ts";
import type { LoadTasks } from "../../config/task-registry.ts";
import type { Terminal } from "../../terminal/terminal.ts";

interface AuditCommandOptions extends TaskAsking {
  readonly data: string;
  readonly limit: number;
  readonly show: number;
  readonly json: boolean;
}

const exitCodes = `
Exit code: 0 where there is no warning (notes are none), 1 where there are warnings or the audit could not be made,
2 for wrong usage.`;

/** `audit`: how a model reads a task's prompts, without its weights. */
export function addAudit(program: Command, terminal: Terminal, loadTasks: LoadTasks): void {
  const command = program
    .command("audit")
    .description("show how a model reads a benchmark's prompts, token by token, and what is wrong with that")
    .argument(
      "<model>",
      "a folder as Hugging Face saves a model, or owner/name of its hub; weights are not read",
    )
    .argument("<task>", "a benchmark: arc_challenge, mmlu, gsm8k …")
    .requiredOption("--data <folder>", "a folder for each task in it: arc_challenge/, mmlu/ …");
  addTaskOptions(command)
    .option("--limit <number>", "documents to look at, the first of the task's order", wholeNumber(1), 200)
    .option("--show <number>", "documents to print", wholeNumber(0), 2)
    .option("--json", "print one JSON document", false)
    .addHelpText("after", exitCodes)
    .action((model: string, task: string, options: AuditCommandOptions, self: Command) => {
      checkSystem(options, self);
      return audit(model, task, options, { terminal, loadTasks });
    });
}

async function audit(
  model: string,
  task: string,
  options: AuditCommandOptions,
  { terminal, loadTasks }: { readonly terminal: Terminal; readonly loadTasks: LoadTasks },
): Promise<void> {
  const { PeriodicEvalError } = await import("@periodic-eval/core");
  const { auditText } = await import("@periodic-eval/tasks");
  const { auditCheckpoint } = await import("./run.ts");
  const report = await auditCheckpoint(model, task, options, await loadTasks(), terminal);
  const { bold, dim, green, magenta, yellow, cyan } = terminal.colours;
  const paint = {
    title: bold,
    dim,
    special: magenta,
    right: green,
    warning: yellow,
    note: cyan,
    good: green,
  };
  terminal.out(options.json ? JSON.stringify(report, null, 2) : auditText(report, paint));
  const kinds = report.findings.flatMap(({ kind, severity }) => (severity === "warning" ? [kind] : []));
  if (kinds.length === 0) return;
  throw new PeriodicEvalError({
    code: "data",
    where: `audit of ${task} on ${model}`,
    got: kinds.join(", "),
    expected: "no warning",
    fix: "Do what stands below each of them.",
  });
}
