import type { Tokenizer } from "@periodic-eval/core";
import { loadCausalLM, type CheckpointLM } from "@periodic-eval/models";
import { loadTokenizer } from "@periodic-eval/models/tokenizer";
import { downloadLine } from "./download-line.ts";
import type { Terminal } from "./terminal.ts";

/** Loads a model and its tokenizer, and shows what is fetched for it. The caller disposes the model. */
export async function openModel(
  source: string,
  terminal: Terminal,
): Promise<{ readonly model: CheckpointLM; readonly tokenizer: Tokenizer }> {
  const { onDownload, close } = downloadLine(terminal);
  try {
    const tokenizer = await loadTokenizer(source, { onDownload });
    return { tokenizer, model: await loadCausalLM(source, { onDownload }) };
  } finally {
    close();
  }
}
