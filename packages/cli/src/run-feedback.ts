import { PeriodicEvalError } from "@periodic-eval/core";
import {
  localEngine,
  runHarness,
  type FeedbackEngine,
  type HarnessConfig,
  type SummaryFile,
} from "@periodic-eval/feedback";
import { useBackend, withLora } from "@periodic-eval/models";
import { stepText } from "./feedback-output.ts";
import { onInterrupt } from "./interrupt.ts";
import { microWorld } from "./micro-world.ts";
import { openModel } from "./open-model.ts";
import type { Terminal } from "./terminal.ts";

/** Of the adapters that feedback trains; alpha is twice it. */
const rank = 8;

/** Runs the harness over a model of ours, in this process; the embedded one where the configuration names none. */
export async function runFeedback(
  config: HarnessConfig,
  backend: string | undefined,
  terminal: Terminal,
): Promise<SummaryFile> {
  refuseService(config);
  const { name: backendName, unusable } = await useBackend(backend === undefined ? {} : { backend });
  for (const { name, reason } of unusable) terminal.err(`${name} is installed and did not start: ${reason}`);
  const { signal, stopListening } = onInterrupt();
  terminal.out(
    `${config.base_model ?? "the embedded model"} on ${backendName}; files go to ${config.output_dir}`,
  );
  try {
    return await runHarness(config, {
      engine: engineOf(config, backendName, terminal),
      signal,
      onStep: (preference, line, summary) => terminal.out(stepText(preference, line, summary)),
    });
  } catch (error) {
    if (!signal.aborted) throw error;
    throw new PeriodicEvalError({
      code: "aborted",
      where: config.output_dir,
      got: "an interrupt",
      expected: "the end of training",
      fix: `Run the same command with output_dir=${config.output_dir} to go on.`,
      cause: error,
    });
  } finally {
    stopListening();
  }
}

function engineOf(
  { base_model: source }: HarnessConfig,
  backend: string,
  terminal: Terminal,
): FeedbackEngine {
  return localEngine({
    describe: { engine: `tfjs-${backend}`, model: source ?? "micro-world", lora: { rank, alpha: 2 * rank } },
    async openModel({ seed }) {
      const { model: base, tokenizer } = await openModel(source ?? microWorld(), terminal);
      const model = withLora(base, { rank, alpha: 2 * rank, seed: String(seed) });
      const dispose = () => {
        model.dispose();
        base.dispose();
      };
      return { model, tokenizer, dispose };
    },
  });
}

function refuseService({ service_url: service, gateway_url: gateway }: HarnessConfig): void {
  const given = service ?? gateway;
  if (given === null) return;
  throw new PeriodicEvalError({
    code: "config",
    where: service === null ? "gateway_url" : "service_url",
    got: given,
    expected: "none: this command trains in its own process",
    fix: "Leave it out, or give a FeedbackEngine for the service to runHarness.",
  });
}
