import type { Command } from "commander";
import type { Terminal } from "../../terminal/terminal.ts";

/** `export`: writes every metric of every measurement as one tidy table. */
export function addExport(program: Command, terminal: Terminal): void {
  program
    .command("export")
    .description("write all metrics of runs as one tidy table, CSV or Parquet")
    .argument("<runs...>", "folders of runs, each as folder or condition=folder")
    .option("--out <file>", "a file ending in .csv or .parquet (default: CSV to stdout)")
    .action(async (names: readonly string[], { out }: { readonly out?: string }) => {
      const { readLabelledRuns } = await import("../../run/labelled-runs.ts");
      const { tidyRows, writeFileAtomic } = await import("@periodic-eval/store");
      const { tableContent } = await import("./output.ts");
      const runs = await readLabelledRuns(names, terminal);
      const rows = runs.flatMap(({ run, condition }) => tidyRows(run, condition));
      const content = tableContent(rows, out ?? ".csv");
      if (out === undefined) return terminal.out(String(content).trimEnd());
      await writeFileAtomic(
        out,
        typeof content === "string" ? content : async (file) => await file.write(content),
      );
      terminal.out(`${out}: ${rows.length} rows`);
    });
}
