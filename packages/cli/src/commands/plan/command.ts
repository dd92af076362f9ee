import type { JudgePrice } from "@periodic-eval/core/grading";
import { InvalidArgumentError, type Command } from "commander";
import type { PlannedPhase, TriedModel } from "./run.ts";
import { backendOption } from "../../config/command-options.ts";
import type { LoadTasks } from "../../config/task-registry.ts";
import type { Terminal } from "../../terminal/terminal.ts";

interface PlanOptions {
  readonly phase: readonly PlannedPhase[];
  readonly model?: string;
  readonly judgePrice?: JudgePrice;
  readonly backend?: string;
  readonly json: boolean;
}

/** `plan`: what a configuration will measure, and what that takes, before anything runs. */
export function addPlan(program: Command, terminal: Terminal, loadTasks: LoadTasks): void {
  program
    .command("plan")
    .description("print when a configuration measures and what it takes, before anything runs")
    .argument("<config>", "YAML or JSON with a periodic_eval block; paths are relative to the file")
    .requiredOption(
      "--phase <name=steps>",
      "a phase and its optimizer steps; again for each further one of the run",
      (text: string, before: readonly PlannedPhase[] | undefined) => [...(before ?? []), phaseOf(text)],
    )
    .option("--model <folder>", "measures a few items of each, to learn seconds and tokens")
    .option(
      "--judge-price <in,out>",
      "of a million tokens, for the judge's cost (default: judge_price of the configuration)",
      priceOf,
    )
    .addOption(backendOption())
    .option("--json", "print one JSON document", false)
    .action((config: string, options: PlanOptions) => plan(config, options, { terminal, loadTasks }));
}

async function plan(
  path: string,
  { phase, model, judgePrice, backend, json }: PlanOptions,
  { terminal, loadTasks }: { readonly terminal: Terminal; readonly loadTasks: LoadTasks },
): Promise<void> {
  const { blockErrorPath } = await import("../../config/config-paths.ts");
  const { withBlockPlace } = await import("../../config/config-place.ts");
  const { readEvalBlock } = await import("../../config/eval-block.ts");
  const { planRun } = await import("./run.ts");
  const { costOfLook, planTables } = await import("./output.ts");
  const { loadEvaluations } = await import("../../config/task-registry.ts");
  const { file, at, block } = await readEvalBlock(path);
  const evaluations = await loadEvaluations(loadTasks);
  const opened = model === undefined ? null : await openTried(model, backend, terminal);
  const tried = opened && { ...opened, isAdapted: !isWholeTraining(file.value) };
  const price = judgePrice ?? null;
  try {
    const planned = await withBlockPlace(
      file,
      at,
      () => planRun(block, phase, tried, evaluations),
      (error) =>
        blockErrorPath(
          block,
          phase.map(({ name }) => name),
          error,
        ),
    );
    if (!json) return terminal.out(planTables(planned, price, terminal.colours));
    const callbacks = planned.map((one) => ({ ...one, judge_cost_a_look: costOfLook(one, price) }));
    terminal.out(JSON.stringify({ config: path, callbacks }, null, 2));
  } finally {
    tried?.dispose();
  }
}

/** Whether a file describes a training of all weights; of a block alone nobody knows. */
const isWholeTraining = (config: unknown): boolean => {
  const { phases, lora, adapter } = (config ?? {}) as Readonly<Record<string, unknown>>;
  return Array.isArray(phases) && lora === undefined && adapter === undefined;
};

/** A model whose weights are loaded where they are asked for. */
async function openTried(
  source: string,
  backend: string | undefined,
  terminal: Terminal,
): Promise<Omit<TriedModel, "isAdapted"> & { dispose(): void }> {
  const { useBackend } = await import("@periodic-eval/models");
  const { inMemory } = await import("@periodic-eval/core/tfjs");
  const { openModel } = await import("../../config/open-model.ts");
  const { outlineModel } = await import("../../config/outline-model.ts");
  let dispose = () => {};
  return {
    outline: await outlineModel(source, terminal),
    async open() {
      await useBackend(backend === undefined ? {} : { backend });
      const { model, tokenizer } = await openModel(source, terminal);
      dispose = () => model.dispose();
      return inMemory(model, tokenizer);
    },
    dispose: () => dispose(),
  };
}

function phaseOf(text: string): PlannedPhase {
  const [, name, steps] = /^([A-Za-z0-9][\w.-]*)=(\d+)$/.exec(text) ?? [];
  if (name === undefined || Number(steps) < 1)
    throw new InvalidArgumentError("Expected name=steps, as em=500.");
  return { name, maxSteps: Number(steps) };
}

function priceOf(text: string): JudgePrice {
  const [input, output, ...more] = text.split(",").map(Number);
  if (!(input! >= 0) || !(output! >= 0) || more.length > 0)
    throw new InvalidArgumentError("Expected two numbers, as 3,15.");
  return { inputPerMillion: input!, outputPerMillion: output! };
}
