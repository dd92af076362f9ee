import type { Command } from "commander";
import type { Terminal } from "../../terminal/terminal.ts";

/** `init`: writes a commented training file. */
export function addInit(program: Command, terminal: Terminal): void {
  program
    .command("init")
    .description("write a commented configuration for train: model, dataset, options and what to measure")
    .argument("[file]", "the file to write", "train.yaml")
    .option("--force", "replace the file if it exists", false)
    .action(async (file: string, { force }: { readonly force: boolean }) => {
      const { writeTemplate } = await import("./run.ts");
      const { shellWord } = await import("@periodic-eval/contracts/options");
      const written = await writeTemplate(file, force);
      terminal.out(
        `wrote ${written.join(" and ")}. Set model, dataset and questions (null downloads ARC-Challenge), then run:\n` +
          `  npx periodic-eval plan ${shellWord(file)}\n  npx periodic-eval train ${shellWord(file)}\n` +
          "To fail a CI job if the model got worse, then run:\n  npx periodic-eval gate runs/1 --fail-on 'capability worse'",
      );
    });
}
