import type { Command } from "commander";
import type { Terminal } from "../../terminal/terminal.ts";

const exitCodes = `
Exit code: 0 if everything is verified, 1 with problems, 2 for wrong usage.`;

/** `verify`: checks every snapshot of a run and its rows against their hashes. It changes nothing. */
export function addVerify(program: Command, terminal: Terminal): void {
  program
    .command("verify")
    .description("check that no snapshot or row of a run was damaged or edited")
    .argument("<run-dir>", "a run's folder")
    .option("--json", "print one JSON document", false)
    .addHelpText("after", exitCodes)
    .action(async (runDir: string, { json }: { readonly json: boolean }) => {
      const { PeriodicEvalError } = await import("@periodic-eval/core");
      const { verifyRun, verifyJson, verifyTable } = await import("./run.ts");
      const verified = await verifyRun(runDir);
      terminal.out(json ? verifyJson(verified) : verifyTable(verified, terminal.colours));
      const { length } = verified.problems;
      if (length === 0) return;
      throw new PeriodicEvalError({
        code: "store",
        where: runDir,
        got: `${length} ${length === 1 ? "problem" : "problems"}`,
        expected: "snapshots and rows as they were written",
        fix: "Restore the files from a copy, or resume the run: it measures again what the model still can.",
      });
    });
}
