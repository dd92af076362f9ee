import type { Tokenizer } from "@periodic-eval/core";
import type { Document } from "./documents.ts";

/** The token ids of one row and, for each, whether its prediction is trained. */
export interface Row {
  readonly ids: readonly number[];
  readonly learnt: readonly boolean[];
}

/** Maximum length of a row in tokens. The longest document has 70. */
const rowLength = 72;

/** Encodes documents as rows. Packs plain texts, which are short, into shared rows, each followed by the end-of-text token. */
export function rowsOf(documents: readonly Document[], tokenizer: Tokenizer): Row[] {
  const endOfText = tokenizer.encode("<|endoftext|>");
  const rows: Row[] = [];
  let shared: number[] = [];
  const closeShared = (): void => {
    if (shared.length > 0) rows.push({ ids: shared, learnt: shared.map(() => true) });
    shared = [];
  };
  for (const document of documents) {
    if ("text" in document) {
      const ids = [...tokenizer.encode(document.text), ...endOfText];
      if (shared.length + ids.length > rowLength) closeShared();
      shared.push(...ids);
    } else if ("pieces" in document) {
      const pieces = document.pieces.map(({ text, isLearnt }) => ({ ids: tokenizer.encode(text), isLearnt }));
      rows.push({
        ids: pieces.flatMap(({ ids }) => ids),
        learnt: pieces.flatMap(({ ids, isLearnt }) => ids.map(() => isLearnt)),
      });
    } else {
      const { ids, assistantMask } = tokenizer.render(document, { ending: "complete" });
      if (assistantMask === null) throw new Error("the chat template does not mark the assistant's words");
      rows.push({ ids, learnt: assistantMask });
    }
  }
  closeShared();
  return rows;
}
