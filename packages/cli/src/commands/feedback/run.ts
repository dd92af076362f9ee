import { PeriodicEvalError } from "@periodic-eval/core";
import {
  httpEngine,
  localEngine,
  runHarness,
  type FeedbackEngine,
  type HarnessConfig,
  type LocalEngineOptions,
  type SummaryFile,
} from "@periodic-eval/feedback";
import { useBackend, withLora } from "@periodic-eval/models";
import { stepText } from "./output.ts";
import { onInterrupt } from "../../terminal/interrupt.ts";
import { microWorld } from "../../demo/micro-world.ts";
import { openModel } from "../../config/open-model.ts";
import type { Terminal } from "../../terminal/terminal.ts";

/** Of the adapters that feedback trains; alpha is twice it. */
const rank = 8;

/**
 * Runs the harness over a model of ours, in this process, the embedded one where the configuration names none; or over the
 * service that the configuration names.
 */
export async function runFeedback(
  config: HarnessConfig,
  backend: string | undefined,
  terminal: Terminal,
): Promise<SummaryFile> {
  const { signal, stopListening } = onInterrupt();
  try {
    const engine = await engineOf(config, backend, terminal);
    return await runHarness(config, {
      engine,
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

async function engineOf(
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
    terminal.out(`${serviceUrl} trains; files go to ${output}`);
    return httpEngine({ serviceUrl, gatewayUrl, baseModel });
  }
  if (gatewayUrl !== null)
    throw new PeriodicEvalError({
      code: "config",
      where: "gateway_url",
      got: "a gateway, and no service_url",
      expected: "a service that trains behind the gateway that answers",
      fix: "Name it in service_url, or leave gateway_url out.",
    });
  const parts = await localParts(baseModel, backend, terminal);
  const { engine } = parts.describe;
  terminal.out(`${baseModel ?? "the embedded model"} on ${engine}; files go to ${output}`);
  return localEngine(parts);
}

type LocalParts = LocalEngineOptions & {
  readonly describe: {
    readonly engine: string;
    readonly model: string;
    readonly lora: { readonly rank: number; readonly alpha: number };
  };
};

/** A model of ours with an adapter that feedback trains, on the backend that is asked for; null: the embedded one. */
export async function localParts(
  source: string | null,
  backend: string | undefined,
  terminal: Terminal,
): Promise<LocalParts> {
  const { tfBackend, unusable } = await useBackend(backend === undefined ? {} : { backend });
  for (const one of unusable) terminal.err(`${one.name} is installed and did not start: ${one.reason}`);
  return {
    describe: {
      engine: `tfjs-${tfBackend}`,
      model: source ?? "micro-world",
      lora: { rank, alpha: 2 * rank },
    },
    async openModel({ seed }) {
      const { model: base, tokenizer } = await openModel(source ?? microWorld(), terminal);
      const model = withLora(base, { rank, alpha: 2 * rank, seed: String(seed) });
      const dispose = () => {
        model.dispose();
        base.dispose();
      };
      return { model, tokenizer, dispose };
    },
  };
}
