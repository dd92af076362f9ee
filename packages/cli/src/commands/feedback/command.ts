import type { Command } from "commander";
import { backendOption } from "../../config/command-options.ts";
import { progressOnly, type Terminal } from "../../terminal/terminal.ts";

interface FeedbackOptions {
  readonly configDir?: string;
  readonly configName?: string;
  readonly backend?: string;
  readonly json: boolean;
}

/** `feedback`: trains a model on feedback and measures after each step what it learns and what it loses. */
export function addFeedback(program: Command, terminal: Terminal): void {
  program
    .command("feedback")
    .description(
      "train a model on feedback step by step and measure preference, compliance, ability and collapse",
    )
    .argument(
      "[overrides...]",
      "key=value overrides of the configuration: preferences=[concise] num_steps=10 base_model=owner/name",
    )
    .option("--config-dir <folder>", "folder of configurations (default: those of the package)")
    .option(
      "--config-name <name>",
      "a YAML file in that folder (default: micro-world for the embedded model, all for any other)",
    )
    .addOption(backendOption())
    .option("--json", "print one JSON document", false)
    .action((overrides: readonly string[], options: FeedbackOptions) =>
      feedback(overrides, options, terminal),
    );
}

async function feedback(
  overrides: readonly string[],
  { configDir, configName, backend, json }: FeedbackOptions,
  terminal: Terminal,
): Promise<void> {
  const { loadHarnessConfig } = await import("@periodic-eval/feedback");
  const { feedbackTable } = await import("../../run/report-feedback.ts");
  const { runFeedback } = await import("./run.ts");
  const isEmbedded =
    configDir === undefined && !overrides.some((one) => /^(base_model|service_url|claas_url)=/.test(one));
  const config = await loadHarnessConfig({
    overrides,
    configName: configName ?? (isEmbedded ? "micro-world" : "all"),
    ...(configDir !== undefined && { configDir }),
  });
  const { summary, drawn } = await runFeedback(config, backend, json ? progressOnly(terminal) : terminal);
  if (json) {
    const pages = drawn === null ? {} : { page: drawn.page, plots: drawn.plots };
    return terminal.out(JSON.stringify({ output_dir: config.output_dir, ...summary, ...pages }, null, 2));
  }
  terminal.out(feedbackTable(summary, terminal.colours));
  if (drawn !== null) {
    const { pageLine } = await import("../../run/report-run.ts");
    terminal.out(pageLine(drawn.page));
  }
}
