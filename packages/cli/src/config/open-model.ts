import { PeriodicEvalError, type EvaluableModel, type Tokenizer } from "@periodic-eval/core";
import { inMemory } from "@periodic-eval/core/tfjs";
import { loadCausalLM, outlineCausalLM, useBackend, type CheckpointLM } from "@periodic-eval/models";
import { loadTokenizer } from "@periodic-eval/models/tokenizer";
import { showLoading } from "../terminal/loading-progress.ts";
import type { Terminal } from "../terminal/terminal.ts";

/** Selects a backend, by default the fastest one installed. Warns about installed backends that do not start. */
export async function startBackend(
  backend: string | undefined,
  terminal: Terminal,
): ReturnType<typeof useBackend> {
  const started = await useBackend(backend === undefined ? {} : { backend });
  for (const { name, reason } of started.unusable)
    terminal.err(`${name} is installed but does not start: ${reason}`);
  return started;
}

/**
 * Loads a model and its tokenizer and shows the progress. The caller disposes the model.
 *
 * @param tokenizer Replaces the model's own tokenizer.
 */
export async function openModel(
  source: string,
  terminal: Terminal,
  tokenizer?: Tokenizer,
): Promise<{ readonly model: CheckpointLM; readonly tokenizer: Tokenizer }> {
  const { onDownload, onLoad, close } = showLoading(terminal);
  try {
    const loaded = tokenizer ?? (await loadTokenizer(source, { onDownload }));
    return { tokenizer: loaded, model: await loadCausalLM(source, { onDownload, onLoad }) };
  } finally {
    close();
  }
}

/** Opens only a model's configuration and tokenizer. The result renders prompts and reads data; its logits throw. */
export async function openModelOutline(source: string, terminal: Terminal): Promise<EvaluableModel> {
  const { onDownload, close } = showLoading(terminal);
  try {
    const tokenizer = await loadTokenizer(source, { onDownload });
    const { name, vocabSize, contextLength } = await outlineCausalLM(source, { onDownload });
    const logits = () => {
      throw new PeriodicEvalError({
        code: "model",
        where: name,
        got: "a request for logits, but the weights are not loaded",
        expected: "only prompts and data to be read",
        fix: "Load the model: `periodic-eval eval` does.",
      });
    };
    return inMemory({ name, vocabSize, contextLength, logits }, tokenizer);
  } finally {
    close();
  }
}
