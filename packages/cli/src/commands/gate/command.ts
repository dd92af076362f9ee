import { appendFile, mkdir, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { PeriodicEvalError } from "@periodic-eval/core";
import type { Condition } from "@periodic-eval/core/session";
import { readRun, storeError, undisturbed } from "@periodic-eval/store";
import type { Command } from "commander";
import { CommandFailure } from "../../terminal/interrupt.ts";
import type { Terminal } from "../../terminal/terminal.ts";
import { checkConditions } from "./check-conditions.ts";
import { parseCondition, parseDetectable, type DetectableChange } from "./decide.ts";
import {
  gateJUnit,
  gateExitCodes,
  gateAnnotations,
  gateJson,
  gateLines,
  outcomeOf,
  gateMarkdown,
} from "./output.ts";

export interface GateOptions {
  readonly failOn: readonly Condition[];
  readonly detectable: readonly DetectableChange[];
  readonly json: boolean;
  readonly junit?: string;
  readonly markdown?: string;
}

const help = `
A condition is better, worse or changed, or a limit (>, <, >= or <=), at the
end of each phase; em/capability names one. A limit decides if the whole 95 %
interval is on one side; "no evidence" if a change of a fifth of the range (20
points) would have been detected. On GitHub it writes annotations and a summary.

Exit code: 0 if no condition is true, 1 if one is, 2 for wrong usage, 3 if one
is inconclusive.`;

/** `gate`: fails if a condition on a run's last measurements is true. For CI. */
export function addGate(program: Command, terminal: Terminal): void {
  program
    .command("gate")
    .description("fail if a condition on the results of a finished run is true (for CI)")
    .argument("<run-dir>", "a run's folder")
    .requiredOption(
      "--fail-on <condition>",
      "such as 'capability worse', 'alignment.misaligned > 20 %'; repeatable",
      (text: string, before: readonly Condition[] | undefined) => [...(before ?? []), parseCondition(text)],
    )
    .option(
      "--detectable <change>",
      "'no evidence' passes up to it: '10 points', '0.5 nats'; one per unit",
      (text: string, before: readonly DetectableChange[]) => [...before, parseDetectable(text)],
      [],
    )
    .option("--json", "print one JSON document", false)
    .option("--junit <file>", "also write JUnit XML")
    .option("--markdown <file>", "also write the summary for a pull request")
    .addHelpText("after", help)
    .action(async (runDir: string, options: GateOptions) => {
      await gate(runDir, options.failOn, options, terminal);
    });
}

/**
 * Checks conditions on a run, prints the result and writes its files.
 *
 * @throws CommandFailure unless every condition passed: 1 if one failed, 2 for a condition that the run cannot have, 3 if one
 * is inconclusive or an error occurred.
 */
async function gate(
  runDir: string,
  conditions: readonly Condition[],
  { detectable, json, junit, markdown }: Omit<GateOptions, "failOn">,
  terminal: Terminal,
): Promise<void> {
  try {
    const run = await readRun(runDir);
    const snapshots = run.phases.flatMap((phase) => phase.snapshots);
    const checks = checkConditions(run, conditions, detectable);
    const result = { runDir, checks, undisturbed: undisturbed(snapshots) };
    terminal.out(json ? gateJson(result) : gateLines(result, terminal.colours));
    const summary = gateMarkdown(result);
    if (junit !== undefined) await write(writeFile, junit, gateJUnit(result, run));
    if (markdown !== undefined) await write(writeFile, markdown, summary);
    const { GITHUB_STEP_SUMMARY: stepSummary, GITHUB_ACTIONS: isOnGitHub } = process.env;
    // GitHub reads the standard error too; the standard output may be one JSON document.
    if (isOnGitHub === "true") for (const line of gateAnnotations(result)) terminal.err(line);
    if (stepSummary) await write(appendFile, stepSummary, `${summary}\n`);
    const code = gateExitCodes[outcomeOf(result)];
    if (code !== 0) throw new CommandFailure(code);
  } catch (error) {
    if (error instanceof CommandFailure) throw error;
    throw new CommandFailure(PeriodicEvalError.is(error, "config") ? 2 : 3, error);
  }
}

async function write(how: typeof writeFile | typeof appendFile, file: string, text: string): Promise<void> {
  try {
    await mkdir(dirname(file), { recursive: true });
    await how(file, text);
  } catch (error) {
    throw storeError(file, error, undefined, "Name a file that can be written.");
  }
}
