import type { BulkOptions, BulkTokenizer } from "@periodic-eval/contracts";

type Ids = readonly number[];

const appendedBy = new WeakMap<object, Ids>();

/**
 * Encodes texts that a model continues: with the special tokens that the tokenizer puts before a text, without those that it appends
 * to each one (`add_eos_token` of Llama and Gemma). After an end-of-text token a model predicts another text.
 */
export async function encodePrompts(
  tokenizer: Pick<BulkTokenizer, "encode">,
  texts: readonly string[],
  options: BulkOptions = {},
): Promise<readonly Ids[]> {
  if (texts.length === 0) return [];
  const encoded = await tokenizer.encode(texts, { ...options, specialTokens: true });
  const at = texts.findIndex((text) => text !== "");
  if (!appendedBy.has(tokenizer) && at >= 0) {
    const [plain] = await tokenizer.encode([texts[at]!], { ...options, specialTokens: false });
    const appended = appendedIds(encoded[at]!, plain!);
    if (appended !== null) appendedBy.set(tokenizer, appended);
  }
  const appended = appendedBy.get(tokenizer) ?? [];
  return encoded.map((ids) => withoutAppended(ids, appended));
}

/**
 * Returns the ids that a tokenizer appends to a text; null if the text's ids without special tokens are not at exactly one place of
 * those with special tokens.
 */
export function appendedIds(encoded: Ids, plain: Ids): Ids | null {
  const offsets = encoded.flatMap((_, at) =>
    plain.length > 0 && plain.every((id, index) => id === encoded[at + index]) ? [at] : [],
  );
  return offsets.length === 1 ? encoded.slice(offsets[0]! + plain.length) : null;
}

/** Returns `ids` without `appended` at their end. */
export function withoutAppended(ids: Ids, appended: Ids): Ids {
  const length = ids.length - appended.length;
  return appended.every((id, index) => id === ids[length + index]) ? ids.slice(0, length) : ids;
}
