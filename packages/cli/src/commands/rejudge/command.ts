import { Option, type Command } from "commander";
import { integer, judgeNames } from "../../config/command-options.ts";
import type { Terminal } from "../../terminal/terminal.ts";

interface RejudgeOptions {
  readonly judge?: string;
  readonly heal: boolean;
  readonly method?: "json" | "logprob";
  readonly maxCalls?: number;
  readonly json: boolean;
}

/** `rejudge`: grades the stored answers of a run with another judge. */
export function addRejudge(program: Command, terminal: Terminal): void {
  program
    .command("rejudge")
    .description("grade a run's stored alignment answers with another judge and report their agreement")
    .argument("<run-dir>", "folder of the run")
    .option("--judge <name>", judgeNames)
    .option(
      "--heal",
      "instead, grade the answers that an interruption or a judge's outage left ungraded, with the run's judge, and complete their snapshots",
      false,
    )
    .addOption(
      new Option("--method <name>", "how a judge model replies (default: json)").choices(["json", "logprob"]),
    )
    .option(
      "--max-calls <number>",
      "requests to a judge model per snapshot, retries included; verdicts are kept in <run-dir>/verdicts",
      integer(0),
    )
    .option("--json", "print one JSON document", false)
    .action(
      async (runDir: string, { judge: spec, json, heal, ...limits }: RejudgeOptions, command: Command) => {
        if (heal) return healRun(runDir, { judge: spec ?? null, json, ...limits }, terminal);
        if (spec === undefined) return command.error("error: required option '--judge <name>' not specified");
        const { openGrader } = await import("../../config/open-grader.ts");
        const { atFlag } = await import("../../terminal/at-flags.ts");
        const { onInterrupt } = await import("../../terminal/interrupt.ts");
        const { rejudge } = await import("./run.ts");
        const { rejudgeJson, rejudgeTable } = await import("./output.ts");
        const judge = await atFlag("--judge", () => openGrader(spec, { ...limits, runDir }));
        const { signal, stopListening } = onInterrupt(terminal);
        try {
          const result = await rejudge(runDir, judge, {
            signal,
            now: () => new Date().toISOString(),
            terminal,
          });
          terminal.out(json ? rejudgeJson(result) : rejudgeTable(result, terminal.colours));
        } finally {
          stopListening();
          await judge.dispose?.();
        }
      },
    );
}

async function healRun(
  runDir: string,
  { judge, json, ...limits }: Omit<RejudgeOptions, "judge" | "heal"> & { readonly judge: string | null },
  terminal: Terminal,
): Promise<void> {
  const { openGrader } = await import("../../config/open-grader.ts");
  const { atFlag } = await import("../../terminal/at-flags.ts");
  const { onInterrupt } = await import("../../terminal/interrupt.ts");
  const { checkHealed, heal, healedJson, healedTable } = await import("./heal.ts");
  const opener = (name: string) => openGrader(name, { ...limits, runDir });
  const open = judge === null ? opener : (name: string) => atFlag("--judge", () => opener(name));
  const { signal, stopListening } = onInterrupt(terminal);
  try {
    const healed = await heal(runDir, { judge, open, signal }, terminal);
    const { snapshots } = healed;
    terminal.out(json ? healedJson(snapshots) : healedTable(snapshots, terminal.colours));
    checkHealed(healed, runDir);
  } finally {
    stopListening();
  }
}
