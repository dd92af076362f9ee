import { createHash } from "node:crypto";
import { errorMessage } from "@periodic-eval/contracts/options";
import { afterAll, beforeAll, expect, it } from "vitest";
import { askPython, needsPython, pythonHas } from "../../testing/python.test-data.ts";
import { fuzzIds, fuzzTexts } from "../fuzz-texts.test-data.ts";
import { transparent, type Case } from "./component-parts.test-data.ts";
import { componentCases, refusedCases } from "./components.test-data.ts";
import { familyCases, modelCases } from "./models.test-data.ts";
import { Pipeline } from "./pipeline.ts";

interface Verdict {
  readonly refused?: string;
  readonly accepted?: boolean;
  readonly count?: number;
  readonly different?: readonly { readonly input: unknown; readonly expected: unknown }[];
}

// tokenizers takes about 0.1 ms for a text.
const texts = fuzzTexts(2000, 7);
const briefTexts = texts.slice(0, texts.length / 4);
const lists = fuzzIds(1000, 330, 8);

const digest = (...values: unknown[]) =>
  createHash("sha1").update(JSON.stringify(values)).digest("hex").slice(0, 10);
const attempt = <T>(work: () => T): T | "error" => {
  try {
    return work();
  } catch {
    return "error";
  }
};

/** Returns which results are compared: only some cases add tokens around a text, and only some have decoders. */
const needsOf = (json: Case["json"]) => ({
  addsTokens: json["post_processor"] !== null,
  decodes: json["decoder"] !== null || json["model"] !== transparent,
});

function resultOfText(pipeline: Pipeline, json: Case["json"], text: string): unknown[] {
  const ids = attempt(() => pipeline.encode(text, true));
  if (ids === "error") return ["error"];
  const { addsTokens, decodes } = needsOf(json);
  return [
    ids,
    ...(addsTokens ? [pipeline.encode(text, false)] : []),
    ...(decodes ? resultOfIds(pipeline, ids) : []),
  ];
}

const resultOfIds = (pipeline: Pipeline, ids: readonly number[]) => [
  pipeline.decode(ids, true),
  pipeline.decode(ids, false),
];

function open(json: unknown): Pipeline {
  return new Pipeline(json, "tokenizer.json", { added: [], splitsSpecialTokens: false, around: null });
}

const has = pythonHas("tokenizers");
// All cases are compared by one program, which takes about a minute.
const cases = [...componentCases, ...modelCases, ...familyCases];
const opened = has ? cases.map(({ json }) => attempt(() => open(json))) : [];
let verdicts: readonly Verdict[] = [];
// Much longer than it takes, for machines that do other work.
beforeAll(() => void (verdicts = has ? compare() : []), 1_800_000);

function compare(): Verdict[] {
  const work = cases.map(({ json, isBrief }, i) => {
    const pipeline = opened[i]!;
    if (pipeline === "error") return { json: JSON.stringify(json), refused: true };
    return {
      json: JSON.stringify(json),
      texts: (isBrief === true ? briefTexts : texts).map((text) =>
        digest(...resultOfText(pipeline, json, text)),
      ),
      lists: lists.map((ids) => digest(...resultOfIds(pipeline, ids))),
      ...needsOf(json),
    };
  });
  const answer = askPython("tokenizers-reference.test-data.py", { cases: work, inputs: texts, lists });
  return JSON.parse(answer) as Verdict[];
}

it.skipIf(!has).each(cases.map(({ name, json }, i) => [name, json, i] as const))(
  `equals tokenizers: %s (${needsPython("tokenizers")})`,
  (_, json, i) => {
    const verdict = verdicts[i]!;
    const pipeline = opened[i]!;
    if (pipeline === "error") open(json);
    const found = (verdict.different ?? []).map(({ input, expected }) => ({
      input,
      expected,
      got:
        typeof input === "string"
          ? resultOfText(pipeline as Pipeline, json, input)
          : resultOfIds(pipeline as Pipeline, input as number[]),
    }));
    expect(verdict.refused).toBeUndefined();
    expect(found.map((each) => each.got)).toEqual(found.map((each) => each.expected));
  },
);

const refusals: string[] = [];
afterAll(() => console.warn(`refused components:\n${refusals.join("\n")}`));

it.each(refusedCases.map(({ name, json }) => [name, json] as const))("refuses %s by name", (name, json) => {
  let message = "";
  try {
    open(json);
  } catch (error) {
    message = errorMessage(error);
  }
  expect(message).toMatch(
    /^\[periodic-eval\] tokenizer\.json, (?:normalizer|pre_tokenizer|model|post_processor|decoder)/,
  );
  refusals.push(`${name}: ${message}`);
});
