import { appendFile, mkdir, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { PeriodicEvalError } from "@periodic-eval/core";
import { readRun, storeError, undisturbed } from "@periodic-eval/store";
import { CommandFailure } from "../../terminal/command-failure.ts";
import type { Terminal } from "../../terminal/terminal.ts";
import { checkConditions } from "./check-conditions.ts";
import type { GateOptions } from "./command.ts";
import type { Condition } from "./condition.ts";
import { gateJUnit } from "./junit.ts";
import { gateMarkdown } from "./markdown.ts";
import { gateExitCodes, gateJson, gateLines, outcomeOf } from "./output.ts";

/**
 * Checks conditions on a run, prints the result and writes its files.
 *
 * @throws CommandFailure unless every condition passed: 1 if one failed, 2 for a condition that the run cannot have, 3 if one
 * is inconclusive or an error occurred.
 */
export async function gate(
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
    const { GITHUB_STEP_SUMMARY: stepSummary } = process.env;
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
