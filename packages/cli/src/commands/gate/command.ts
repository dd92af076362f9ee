import type { Command } from "commander";
import type { Terminal } from "../../terminal/terminal.ts";
import { parseCondition, parseDetectable, type Condition, type DetectableChange } from "./condition.ts";

export interface GateOptions {
  readonly failOn: readonly Condition[];
  readonly detectable: readonly DetectableChange[];
  readonly json: boolean;
  readonly junit?: string;
  readonly markdown?: string;
}

const help = `
A condition is a verdict on an evaluation (capability worse; better, worse or changed), or a limit for a metric
(alignment.misaligned > 20 %; >, <, >= or <=, with the metric's unit). It is checked against the last measurement
of each phase. em/capability names a single phase.

A limit decides only if the whole 95 % interval lies on one side of it. "no evidence" decides only if a change of 20
points (a fifth of the metric's range) would have been detected. Otherwise the condition is inconclusive, as it is for
a metric that cannot be judged.

With the variable GITHUB_STEP_SUMMARY, the summary for the pull request is appended to that file.

Exit code: 0 if no condition is true, 1 if one is, 2 for wrong usage, 3 if a condition is inconclusive.`;

/** `gate`: fails if a condition on a run's last measurements is true. For CI. */
export function addGate(program: Command, terminal: Terminal): void {
  program
    .command("gate")
    .description("check conditions on the results of a finished run, and fail if one is true (for CI)")
    .argument("<run-dir>", "a run's folder")
    .requiredOption(
      "--fail-on <condition>",
      "when to fail: 'capability worse', 'alignment.misaligned > 20 %'; repeatable",
      (text: string, before: readonly Condition[] | undefined) => [...(before ?? []), parseCondition(text)],
    )
    .option(
      "--detectable <change>",
      "largest detectable change at which 'no evidence' passes: '10 points', '0.5 nats'; repeatable, one per unit (default: a fifth of the metric's range, such as 20 points; any in nats)",
      (text: string, before: readonly DetectableChange[]) => [...before, parseDetectable(text)],
      [],
    )
    .option("--json", "print one JSON document", false)
    .option("--junit <file>", "also write JUnit XML")
    .option("--markdown <file>", "also write the summary for a pull request")
    .addHelpText("after", help)
    .action(async (runDir: string, options: GateOptions) => {
      const { gate } = await import("./run.ts");
      await gate(runDir, options.failOn, options, terminal);
    });
}
