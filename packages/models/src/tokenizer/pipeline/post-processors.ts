import { isCount, isRecord } from "@periodic-eval/contracts/options";
import { quoteShort } from "../../folder/model-error.ts";
import type { Part } from "./part.ts";

/** Adds the tokens around a text. Without special tokens, a template still decides how often the text occurs. */
export type PostProcessor = (ids: readonly number[], addsSpecialTokens: boolean) => readonly number[];

const around = (part: Part): PostProcessor => {
  const first = idOfPair(part, "cls");
  const last = idOfPair(part, "sep");
  return (ids, adds) => (adds ? [first, ...ids, last] : ids);
};

const postProcessors: Readonly<Record<string, (part: Part) => PostProcessor>> = {
  BertProcessing: around,
  ByteLevel: () => (ids) => ids,
  RobertaProcessing: around,
  Sequence(part) {
    const parts = part.parts("processors");
    const steps = parts.map(readPostProcessor);
    const templates = parts.filter(({ type }) => type === "TemplateProcessing" || type === "Sequence");
    if (
      templates.length > 1 ||
      (templates.length === 1 && parts.some(({ type }) => /^(?:Bert|Rob)/.test(type)))
    )
      throw part.error(
        "processors",
        `${parts.map(({ type }) => type).join(", ")}`,
        "at most one post-processor that adds tokens",
        "Merge the templates into one.",
      );
    return (ids, adds) => steps.reduce((current, step) => step(current, adds), ids);
  },
  TemplateProcessing: template,
};

export function readPostProcessor(part: Part): PostProcessor {
  return part.component(postProcessors);
}

function idOfPair(part: Part, key: string): number {
  const pair = part.list(key);
  if (pair.length === 2 && typeof pair[0] === "string" && isCount(pair[1])) return pair[1];
  throw part.error(key, quoteShort(pair), "a token and its id");
}

function template(part: Part): PostProcessor {
  const tokens = part.part("special_tokens");
  part.list("pair");
  const pieces = part.parts("single").map((piece): readonly number[] | "text" => {
    if (isRecord(piece.fields["Sequence"])) {
      if (piece.part("Sequence").choice("id", ["A", "B"]) === "A") return "text";
      throw piece.error("Sequence", "the sequence B", "the sequence A, in the template of one text");
    }
    const id = piece.part("SpecialToken").string("id");
    if (!Object.hasOwn(tokens.fields, id))
      throw piece.error("SpecialToken", quoteShort(id), `a key of special_tokens`);
    return tokens
      .part(id)
      .list("ids")
      .map((value) => {
        if (!isCount(value)) throw tokens.error(id, quoteShort(value), "integers from 0");
        return value;
      });
  });
  return (ids, adds) => pieces.flatMap((piece) => (piece === "text" ? ids : adds ? piece : []));
}
