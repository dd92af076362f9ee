import type { Tokenizer } from "@periodic-eval/core";
import { loadCausalLM, type CheckpointLM } from "@periodic-eval/models";
import { loadTokenizer } from "@periodic-eval/models/tokenizer";
import { loadingLine } from "../terminal/loading-line.ts";
import type { Terminal } from "../terminal/terminal.ts";

/** Loads a model and a tokenizer, by default its own, and shows how far that is. The caller disposes the model. */
export async function openModel(
  source: string,
  terminal: Terminal,
  words?: Tokenizer,
): Promise<{ readonly model: CheckpointLM; readonly tokenizer: Tokenizer }> {
  const { onDownload, onLoad, close } = loadingLine(terminal);
  try {
    const tokenizer = words ?? (await loadTokenizer(source, { onDownload }));
    return { tokenizer, model: await loadCausalLM(source, { onDownload, onLoad }) };
  } finally {
    close();
  }
}
