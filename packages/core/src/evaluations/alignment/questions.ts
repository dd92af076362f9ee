import type { Document, LineCounter, Node } from "yaml";
import { quoteValue } from "../../internal/quote-value.ts";
import { PeriodicEvalError } from "../../errors.ts";
import { isCount } from "../../internal/is-count.ts";
import { errorMessage } from "../../internal/error-message.ts";
import { namePattern } from "../../contracts/snapshot.ts";
import { nearest } from "../../internal/nearest.ts";

/** What a judge is asked about an answer, with `{question}` and `{answer}` in it. */
export interface JudgePrompts {
  readonly aligned: string;
  readonly coherent: string;
}

/** An open question, in one or more wordings. */
export interface AlignmentQuestion {
  /** Matches `[A-Za-z0-9][\w.-]*`: it names metrics. */
  readonly id: string;
  readonly paraphrases: readonly string[];
  /** A system prompt of its own; null where it has none. `""` is an explicit empty one. */
  readonly system: string | null;
  /** Null leaves them to the judge. */
  readonly judgePrompts: JudgePrompts | null;
}

/** The one type of question that is asked; the others of Betley et al.'s code are judged another way. */
const askedType = "free_form_judge_0_100";

/** `judge` and `samples_per_paraphrase` are read over: which judge and how many samples is said by the options. */
const known = ["id", "type", "paraphrases", "system", "samples_per_paraphrase", "judge", "judge_prompts"];

/** An anchor may be referred to so often; a file that multiplies aliases of aliases goes beyond at once. */
const mostAliases = 10_000;

/**
 * Parses a list of questions in the form of Betley et al. 2025 (arXiv:2502.17424): YAML with anchors and aliases, or JSON.
 * Each has `id` and `paraphrases`, and may have `system` and `judge_prompts: {aligned, coherent}`. A file whose every
 * question is right, or a `data` error that names file, line, got, expected and fix.
 */
export async function parseAlignmentQuestions(
  text: string,
  file: string,
): Promise<readonly AlignmentQuestion[]> {
  const { parseDocument, LineCounter: Counter, isSeq } = await import("yaml");
  const lines = new Counter();
  const document = parseDocument(text, { lineCounter: lines, merge: true });
  const [fault] = document.errors;
  if (fault !== undefined) {
    const [first] = fault.message.split("\n");
    throw new PeriodicEvalError({
      code: "data",
      where: `${file}:${lines.linePos(fault.pos[0]).line}`,
      got: `text that is neither YAML nor JSON (${first!.replace(/ at line \d+, column \d+:?$/, "")})`,
      expected: "a list of questions",
      fix: "Correct the file at that line.",
      cause: fault,
    });
  }
  const list = valueOf(document, file);
  if (!Array.isArray(list) || list.length === 0) {
    throw new PeriodicEvalError({
      code: "data",
      where: file,
      got: Array.isArray(list) ? "an empty list" : short(list),
      expected: "a list of questions",
      fix: "Write one `- id: …` with its `paraphrases` for each question.",
    });
  }
  const nodes = isSeq(document.contents) ? document.contents.items : [];
  const seen = new Map<string, string>();
  return (list as readonly unknown[]).map((value, at) => {
    const place = `${file}:${lineOf(nodes[at], lines)}`;
    const question = checkedQuestion(value, place);
    const earlier = seen.get(question.id);
    if (earlier !== undefined) {
      throw wrong(place, `the id ${short(question.id)}, which ${earlier} has already`, "ids that differ");
    }
    seen.set(question.id, place);
    return question;
  });
}

function valueOf(document: Document.Parsed, file: string): unknown {
  try {
    return document.toJS({ maxAliasCount: mostAliases });
  } catch (cause) {
    throw new PeriodicEvalError({
      code: "data",
      where: file,
      got: errorMessage(cause),
      expected: "aliases of anchors that stand before them, in a reasonable number",
      fix: "Write out what the aliases stand for.",
      cause,
    });
  }
}

function lineOf(node: Node | undefined, lines: LineCounter): number {
  return lines.linePos(node?.range?.[0] ?? 0).line;
}

function checkedQuestion(value: unknown, place: string): AlignmentQuestion {
  if (!isObject(value)) throw wrong(place, short(value), "a question with `id` and `paraphrases`");
  for (const key of Object.keys(value)) checkKey(key, known, place);
  const { id, type = askedType, paraphrases, system = null, judge_prompts: prompts = null } = value;
  if (typeof id !== "string" || !namePattern.test(id)) {
    throw wrong(place, gotOf(value, "id"), `an id that matches ${namePattern.source}`);
  }
  const where = `${place} (${id})`;
  if (type !== askedType) {
    const fix = `Leave the question out: questions of other types are graded in ways that are not supported.`;
    throw wrong(where, `the type ${short(type)}`, `"${askedType}"`, fix);
  }
  if (!Array.isArray(paraphrases) || paraphrases.length === 0 || !paraphrases.every(isFilled)) {
    throw wrong(where, gotOf(value, "paraphrases"), "paraphrases: a list of texts, none empty");
  }
  if (system !== null && typeof system !== "string") {
    throw wrong(where, gotOf(value, "system"), "system: a text");
  }
  const samples = value["samples_per_paraphrase"];
  if (samples !== undefined && !isCount(samples, 1)) {
    throw wrong(where, gotOf(value, "samples_per_paraphrase"), "a whole number of 1 or more");
  }
  return { id, paraphrases, system, judgePrompts: prompts === null ? null : checkedPrompts(prompts, where) };
}

function checkedPrompts(value: unknown, where: string): JudgePrompts {
  const place = `${where} judge_prompts`;
  const expected = "two texts, `aligned` and `coherent`, with {answer} in each";
  if (!isObject(value)) throw wrong(place, short(value), expected);
  for (const key of Object.keys(value)) checkKey(key, ["aligned", "coherent"], place);
  const { aligned, coherent } = value;
  for (const name of ["aligned", "coherent"]) {
    const prompt = value[name];
    if (isFilled(prompt) && prompt.includes("{answer}")) continue;
    const got = isFilled(prompt) ? `${name} without {answer}` : gotOf(value, name);
    throw wrong(place, got, expected, "Say where the judge is shown the answer: write {answer}.");
  }
  return { aligned: aligned as string, coherent: coherent as string };
}

function checkKey(key: string, allowed: readonly string[], where: string): void {
  if (allowed.includes(key)) return;
  const close = nearest(key, allowed);
  const fix = close === null ? "Remove it." : `Did you mean "${close}"?`;
  throw wrong(where, `the unknown key "${key}"`, `one of ${allowed.join(", ")}`, fix);
}

type Fields = Readonly<Record<string, unknown>>;

const isObject = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const isFilled = (value: unknown): value is string => typeof value === "string" && value.trim() !== "";

const gotOf = (value: Fields, name: string): string =>
  name in value ? `${name} = ${short(value[name])}` : `no ${name} (keys: ${Object.keys(value).join(", ")})`;

function short(value: unknown): string {
  const text = quoteValue(value);
  return text.length > 60 ? `${text.slice(0, 57)}…` : text;
}

function wrong(
  where: string,
  got: string,
  expected: string,
  fix = "Correct that question.",
): PeriodicEvalError {
  return new PeriodicEvalError({ code: "data", where, got, expected, fix });
}
