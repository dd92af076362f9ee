import type { Tokenizer } from "../contracts/model.ts";

const views = new WeakMap<Tokenizer, Tokenizer>();

/** Returns a frozen view of a tokenizer. Training uses the tokenizer itself, which an evaluation could change. */
export function tokenizerView(tokenizer: Tokenizer): Tokenizer {
  const known = views.get(tokenizer);
  if (known !== undefined) return known;
  const { fingerprint, vocabSize, stopIds, eosId } = tokenizer;
  const view: Tokenizer = Object.freeze({
    fingerprint,
    vocabSize,
    stopIds: Object.freeze([...stopIds]),
    ...(eosId !== undefined && { eosId }),
    encode: tokenizer.encode.bind(tokenizer),
    decode: tokenizer.decode.bind(tokenizer),
    render: tokenizer.render.bind(tokenizer),
  });
  views.set(tokenizer, view);
  views.set(view, view);
  return view;
}
