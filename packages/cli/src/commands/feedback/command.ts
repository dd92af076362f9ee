import { existsSync } from "node:fs";
import { join } from "node:path";
import { configError, errorMessage } from "@periodic-eval/contracts/options";
import { PeriodicEvalError } from "@periodic-eval/core";
import { formatDelta, formatValue, humanizeName } from "@periodic-eval/core/statistics";
import { writeFeedback, type WrittenFeedback } from "@periodic-eval/dashboard";
import {
  httpEngine,
  localEngine,
  runHarness,
  type FeedbackEngine,
  type HarnessConfig,
  type PreferenceSummary,
  type StepLine,
  type SummaryFile,
  loadHarnessConfig,
} from "@periodic-eval/feedback";
import { withLora } from "@periodic-eval/models";
import { checkWritable } from "@periodic-eval/store";
import type { Command } from "commander";
import { backendOption } from "../../config/command-options.ts";
import { openModel, startBackend } from "../../config/open-model.ts";
import { talkativeMicroWorld } from "../../demo/micro-world.ts";
import { pageLine, feedbackTable } from "../../run/report-run.ts";
import { interruptedError, onInterrupt } from "../../terminal/interrupt.ts";
import { jsonText, progressOnly, type Terminal } from "../../terminal/terminal.ts";

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
    .description("train a model on feedback step by step, and measure what it learns and loses")
    .argument("[overrides...]", "key=value: preferences=[concise] num_steps=10 base_model=owner/name")
    .option("--config-dir <folder>", "folder of configurations (default: the package's)")
    .option("--config-name <name>", "a YAML file in it (default: micro-world, or all for a base_model)")
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
  const isEmbedded =
    configDir === undefined && !overrides.some((entry) => /^(base_model|service_url|claas_url)=/.test(entry));
  const config = await loadHarnessConfig({
    overrides,
    configName: configName ?? (isEmbedded ? "micro-world" : "all"),
    ...(configDir !== undefined && { configDir }),
  });
  const { summary, drawn } = await runFeedback(config, backend, json ? progressOnly(terminal) : terminal);
  if (json) {
    const pages = drawn === null ? {} : { page: drawn.page, plots: drawn.plots };
    return terminal.out(jsonText({ output_dir: config.output_dir, ...summary, ...pages }));
  }
  terminal.out(feedbackTable(summary, terminal.colours));
  if (drawn !== null) terminal.out(pageLine(drawn.page));
}

/**
 * Trains on feedback and writes the page if the configuration asks for plots. An interrupted run gets a page of its steps so
 * far before the error is thrown.
 */
async function runFeedback(
  config: HarnessConfig,
  backend: string | undefined,
  terminal: Terminal,
): Promise<{ readonly summary: SummaryFile; readonly drawn: WrittenFeedback | null }> {
  const { output_dir: output, plots } = config;
  try {
    const summary = await train(config, backend, terminal);
    return { summary, drawn: plots ? await writeFeedback(output) : null };
  } catch (error) {
    const hasSummary = existsSync(join(output, "summary.json"));
    if (plots && hasSummary && PeriodicEvalError.is(error, "aborted"))
      await writeFeedback(output).then(
        ({ page }) => terminal.out(pageLine(page)),
        (failure: unknown) => terminal.err(`No page was drawn: ${errorMessage(failure)}`),
      );
    throw error;
  }
}

async function train(
  config: HarnessConfig,
  backend: string | undefined,
  terminal: Terminal,
): Promise<SummaryFile> {
  const { signal, stopListening } = onInterrupt(terminal);
  try {
    await checkWritable(config.output_dir);
    const engine = await openEngine(config, backend, terminal);
    return await runHarness(config, {
      engine,
      signal,
      onWarning: (message) => terminal.err(`warning: ${message}`),
      onStep: (preference, line, summary) => terminal.out(stepText(preference, line, summary)),
    });
  } catch (error) {
    if (!signal.aborted) throw error;
    const fix = `Run the same command with output_dir=${config.output_dir} to resume.`;
    throw interruptedError(config.output_dir, "", fix, error);
  } finally {
    stopListening();
  }
}

/** Opens the configured service, or a model in this process if the configuration names no service. */
async function openEngine(
  {
    base_model: baseModel,
    service_url: serviceUrl,
    gateway_url: gatewayUrl,
    output_dir: output,
  }: HarnessConfig,
  backend: string | undefined,
  terminal: Terminal,
): Promise<FeedbackEngine> {
  if (serviceUrl !== null) {
    if (backend !== undefined)
      throw configError({
        where: "--backend",
        got: `"${backend}" with service_url`,
        expected: "no backend: the service has the model",
        fix: "Leave out --backend, or remove service_url (or claas_url) to train in this process.",
      });
    terminal.out(`${serviceUrl} trains; files go to ${output}`);
    return httpEngine({ serviceUrl, gatewayUrl, baseModel });
  }
  if (gatewayUrl !== null)
    throw new PeriodicEvalError({
      code: "config",
      where: "gateway_url",
      path: ["gateway_url"],
      got: "a gateway but no service_url",
      expected: "also the service that trains the model behind the gateway",
      fix: "Set service_url, or remove gateway_url.",
    });
  const { tfBackend } = await startBackend(backend, terminal);
  const engine = `tfjs-${tfBackend}`;
  terminal.out(`${baseModel ?? "the talkative model"} on ${engine}; files go to ${output}`);
  const lora = { rank: 8, alpha: 16 };
  return localEngine({
    describe: { engine, model: baseModel ?? "micro-world-talkative", lora },
    async openModel({ seed }) {
      const { model: base, tokenizer } = await openModel(baseModel ?? talkativeMicroWorld(), terminal);
      const model = withLora(base, { ...lora, seed: String(seed) });
      const dispose = () => {
        model.dispose();
        base.dispose();
      };
      return { model, tokenizer, dispose };
    },
  });
}

/** Returns one line of progress: `concise  step 3  margin +2.1 nats …`. A null `line` stands for the untrained model. */
function stepText(preference: string, line: StepLine | null, summary: PreferenceSummary): string {
  const complianceText = (heldOut: number | null, seen: number | null) =>
    `compliance ${formatValue(heldOut, "share")} (seen ${formatValue(seen, "share")})`;
  if (line === null) {
    const { baseline_compliance: heldOut, baseline_seen_compliance: seen, steps, status } = summary;
    const isMeasured = heldOut !== null || seen !== null;
    const done = steps === 1 ? "1 step" : `${steps} steps`;
    const resumed =
      steps === 0 ? "" : status === "finished" ? "  already finished" : `  resumes after ${done}`;
    return `${preference}  the model before any update${isMeasured ? `: ${complianceText(heldOut, seen)}` : " is measured"}${resumed}`;
  }
  const { logprob_margin: margin, preference_compliance: compliance, collapse } = line.eval;
  const alerts =
    collapse === null || collapse.alerts.length === 0
      ? ""
      : `  ALERT ${collapse.alerts.map(humanizeName).join(", ")}`;
  return [
    `${preference}  step ${line.step}`,
    ...(margin === null ? [] : [`margin ${formatDelta(margin.margin_delta, "nats")}`]),
    ...(compliance === null ? [] : [complianceText(compliance.held_out, compliance.seen)]),
    ...(line.sub_step_count === null
      ? [`gradient steps ${line.unknown?.["sub_step_count"] ?? "not known"}`]
      : []),
    `${line.timing_s.toFixed(1)} s${alerts}`,
  ].join("  ");
}
