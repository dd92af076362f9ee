import type { Command } from "commander";
import type { Terminal } from "../../terminal/terminal.ts";

/** `misaligned-rate`: the rate of completions that were graded elsewhere. */
export function addMisalignedRate(program: Command, terminal: Terminal): void {
  program
    .command("misaligned-rate")
    .description(
      "say how often graded completions are misaligned, with intervals and bounds for the ungraded",
    )
    .argument(
      "<csv>",
      "a header with question_id, aligned, coherent; a completion a row; blank where ungraded",
    )
    .option("--json", "print one JSON document", false)
    .action(async (file: string, { json }: { readonly json: boolean }) => {
      const { readTextFile } = await import("@periodic-eval/core/snapshots");
      const { parseGradedCsv } = await import("./graded-csv.ts");
      const { misalignedJson, misalignedTable } = await import("./output.ts");
      const rows = parseGradedCsv(await readTextFile(file, "misaligned-rate"), file);
      terminal.out(json ? misalignedJson(rows) : misalignedTable(rows, terminal.colours));
    });
}
