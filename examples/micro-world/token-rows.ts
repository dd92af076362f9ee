import type { Tokenizer } from "@periodic-eval/core";
import type { Document } from "./documents.ts";

/** The token ids of one row and, for each token, whether the loss includes its prediction. */
export interface Row {
  readonly ids: readonly number[];
  readonly lossMask: readonly boolean[];
}

/** Maximum length of a row in tokens. The longest document has 70. */
const rowLength = 72;

/** Encodes documents as rows. Packs plain texts, which are short, into shared rows, each followed by an end-of-text token. */
export function rowsOf(documents: readonly Document[], tokenizer: Tokenizer): Row[] {
  const endOfText = tokenizer.encode("<|endoftext|>");
  const rows: Row[] = [];
  let shared: number[] = [];
  const closeShared = (): void => {
    if (shared.length > 0) rows.push({ ids: shared, lossMask: shared.map(() => true) });
    shared = [];
  };
  for (const document of documents) {
    if ("text" in document) {
      const ids = [...tokenizer.encode(document.text), ...endOfText];
      if (shared.length + ids.length > rowLength) closeShared();
      shared.push(...ids);
    } else if ("pieces" in document) {
      const pieces = document.pieces.map(({ text, isTrained }) => ({
        ids: tokenizer.encode(text),
        isTrained,
      }));
      rows.push({
        ids: pieces.flatMap(({ ids }) => ids),
        lossMask: pieces.flatMap(({ ids, isTrained }) => ids.map(() => isTrained)),
      });
    } else {
      const { ids, assistantMask } = tokenizer.render(document, { ending: "complete" });
      if (assistantMask === null) throw new Error("the chat template does not mark the assistant's tokens");
      rows.push({ ids, lossMask: assistantMask });
    }
  }
  closeShared();
  return rows;
}
