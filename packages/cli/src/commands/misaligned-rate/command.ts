import type { Command } from "commander";
import type { Terminal } from "../../terminal/terminal.ts";

/** `misaligned-rate`: computes the misaligned rate of completions that another tool graded. */
export function addMisalignedRate(program: Command, terminal: Terminal): void {
  program
    .command("misaligned-rate")
    .description(
      "compute the misaligned rate of graded completions, with intervals and bounds for ungraded ones",
    )
    .argument(
      "<csv>",
      "columns question_id, aligned, coherent; one row per completion; blank, NaN, None, CODE or REFUSAL for no score",
    )
    .option("--json", "print one JSON document", false)
    .action(async (file: string, { json }: { readonly json: boolean }) => {
      const { readTextFile } = await import("@periodic-eval/store");
      const { parseGradedCsv } = await import("./graded-csv.ts");
      const { misalignedJson, misalignedTable } = await import("./output.ts");
      const rows = parseGradedCsv(await readTextFile(file, "misaligned-rate"), file);
      terminal.out(json ? misalignedJson(rows) : misalignedTable(rows, terminal.colours));
    });
}
