import { Option, type Command } from "commander";
import { wholeNumber } from "../../config/command-options.ts";
import type { Terminal } from "../../terminal/terminal.ts";

interface RejudgeOptions {
  readonly judge: string;
  readonly method?: "json" | "logprob";
  readonly maxCalls?: number;
  readonly json: boolean;
}

/** `rejudge`: another judge's opinion of the answers that a run kept. */
export function addRejudge(program: Command, terminal: Terminal): void {
  program
    .command("rejudge")
    .description("grade a run's kept alignment answers by another judge and say how far the two agree")
    .argument("<run-dir>", "the run's folder")
    .requiredOption("--judge <name>", "who grades")
    .addOption(
      new Option("--method <name>", "how a judge model is asked (default: json)").choices([
        "json",
        "logprob",
      ]),
    )
    .option(
      "--max-calls <number>",
      "requests to a judge model for each snapshot, repeated ones included; verdicts are kept in <run-dir>/verdicts",
      wholeNumber(0),
    )
    .option("--json", "print one JSON document", false)
    .action(async (runDir: string, { judge: spec, json, ...limits }: RejudgeOptions) => {
      const { openGrader } = await import("../../config/open-grader.ts");
      const { onInterrupt } = await import("../../terminal/interrupt.ts");
      const { rejudge } = await import("./run.ts");
      const { rejudgeJson, rejudgeTable } = await import("./output.ts");
      const judge = await openGrader(spec, { ...limits, runDir });
      const { signal, stopListening } = onInterrupt();
      try {
        const result = await rejudge(runDir, judge, { signal, now: () => new Date().toISOString() });
        terminal.out(json ? rejudgeJson(result) : rejudgeTable(result, terminal.colours));
      } finally {
        stopListening();
      }
    });
}
