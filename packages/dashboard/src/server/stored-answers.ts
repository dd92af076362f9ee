import { createHash, type Hash } from "node:crypto";
import { join } from "node:path/posix";
import type { Json, Snapshot } from "@periodic-eval/core";
import { checkRows, type RunRecord } from "@periodic-eval/core/snapshots";
import { formatValue, missingValueText, humanizeName } from "../html/format.ts";
import { html, type Html } from "../html/html.ts";
import { jsonField, ownValue } from "../html/json-field.ts";
import type { ContainedFiles } from "./contained-files.ts";

/** The stored answers of a callback's last measurement in a phase. */
export interface StoredAnswers {
  readonly phase: string;
  readonly id: string;
  readonly step: number;
  /** 0-based position of the first of `rows` among all rows with a generated text. */
  readonly first: number;
  /** Some rows with a generated text. */
  readonly rows: readonly { readonly [key: string]: Json }[];
  /** Number of all rows with a generated text. */
  readonly count: number;
}

/** Which answers of each callback to read. */
export interface AnswerRange {
  /** 0-based. */
  readonly first: number;
  readonly count: number;
}

/**
 * Reads the stored answers of each callback's last measurement in each phase, with the memory of `range`. Omits callbacks that
 * do not generate text.
 */
export async function readStoredAnswers(
  run: RunRecord,
  files: ContainedFiles,
  range: AnswerRange,
  maxCharacters = maxReplyCharacters,
): Promise<readonly StoredAnswers[]> {
  const found: StoredAnswers[] = [];
  const budget: Budget = { left: maxCharacters, all: maxCharacters };
  for (const { name: phase, series, snapshots } of run.phases) {
    for (const { id, points } of series) {
      const withRows = snapshots.filter((snapshot) => snapshot.id === id && snapshot.samples !== null);
      const steps = new Set(withRows.map(({ step }) => step));
      const point = points.findLast(({ step }) => steps.has(step));
      if (point === undefined) continue;
      const { samples } = withRows.find(({ step }) => step === point.step)!;
      const file = join(run.runDir, "periodic_eval", point.file);
      const { rows, count } = await readRange(file, samples, files, range, budget);
      if (count > 0) found.push({ phase, id, step: point.step, first: range.first, rows, count });
    }
  }
  return found;
}

/** Maximum size of the answers in a reply, together, and of a line. */
const maxReplyCharacters = 64 * 2 ** 20;

/** The characters of answers that a reply may have. */
interface Budget {
  left: number;
  readonly all: number;
}

/**
 * Returns the answers of a range, and the number of all answers.
 *
 * @param snapshotFile The snapshot with the answers.
 * @param budget Reduced by the characters of the returned answers.
 * @throws Error if the rows are not those that were written, or for more answers than a reply may have.
 */
async function readRange(
  snapshotFile: string,
  samples: Snapshot["samples"],
  files: ContainedFiles,
  range: AnswerRange,
  budget: Budget,
): Promise<Pick<StoredAnswers, "rows" | "count">> {
  if (samples === null) return { rows: [], count: 0 };
  const { first, count: most } = range;
  const { left } = budget;
  const file = snapshotFile.replace(/\.json$/, ".samples.jsonl");
  const hash = createHash("sha256");
  const rows: StoredAnswers["rows"][number][] = [];
  let [count, line] = [0, 0];
  for await (const text of linesOf(files.chunks(file), hash)) {
    line++;
    if (text === "") continue;
    const row = parseRow(text, `${file}:${line}`);
    if (jsonField(row, "text") === null) continue;
    if (count >= first && count < first + most) {
      budget.left -= text.length;
      if (budget.left < 0) throw tooManyAnswers(file, budget.all);
      rows.push(row as StoredAnswers["rows"][number]);
    }
    count++;
  }
  const check = await checkRows(snapshotFile, samples, hash.digest("hex"), files);
  if (check.state === "replaced") {
    budget.left = left;
    return readRange(snapshotFile, check.samples, files, range, budget);
  }
  if (check.state === "sound") return { rows, count };
  throw new Error(
    `${file}: got ${line} rows, edited or damaged after they were written, expected the ${samples.rows} rows that ` +
      "the snapshot names. Restore the file, or measure again.",
  );
}

const tooManyAnswers = (file: string, most: number): Error =>
  new Error(
    `${file}: got answers of more than ${most} characters, expected fewer. Request them in parts, with page and per_page.`,
  );

async function* linesOf(chunks: AsyncIterable<Uint8Array>, hash: Hash): AsyncGenerator<string, void, void> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of chunks) {
    hash.update(chunk);
    // Splits only the new part: a line may have many parts.
    const [end = "", ...lines] = decoder.decode(chunk, { stream: true }).split("\n");
    lines.unshift(rest + end);
    rest = lines.pop()!;
    if (rest.length > maxReplyCharacters)
      throw new Error(`a line of more than ${maxReplyCharacters} characters`);
    yield* lines;
  }
  if (rest !== "") yield rest;
}

function parseRow(text: string, where: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch {
    throw new Error(`${where}: got a line that is not JSON, expected a row.`);
  }
}

/** Renders the answers, folded by phase and callback. */
export function answerSections(answers: readonly StoredAnswers[]): Html | false {
  return (
    answers.length > 0 &&
    html`<section>
      <h2>Answers</h2>
      <p class="sub">Answers from the last measurement of each callback in each phase.</p>
      ${answers.map(({ phase, id, step, first, rows, count }) => {
        const shown = first === 0 ? String(rows.length) : `${first + 1} to ${first + rows.length}`;
        const counts =
          rows.length === count
            ? String(count)
            : rows.length === 0
              ? `none of ${count} on this page`
              : `${shown} of ${count}`;
        return html`<details>
          <summary>${phase}, ${humanizeName(id)} <span>step ${step} · ${counts}</span></summary>
          ${rows.map(answer)}
        </details>`;
      })}
    </section>`
  );
}

/** Values that are not shown, because most answers have them. */
const usualValues = ["graded", "generated", "stop"];
/** Fields of a row to show beside its text. */
const shownFields = ["aligned", "coherent", "hit", "score", "status", "finish"] as const;

function answer(row: StoredAnswers["rows"][number]): Html {
  const origin = [jsonField(row, "persona"), jsonField(row, "question") ?? jsonField(row, "id")];
  const grades = shownFields.flatMap((name) => {
    const value = ownValue(row, name);
    if (value === undefined || (typeof value === "object" && value !== null)) return [];
    if (usualValues.includes(String(value))) return [];
    return [`${name} ${typeof value === "number" ? formatValue(value, "") : (value ?? missingValueText)}`];
  });
  return html`<div class="answer">
    <p>${[...origin.filter((part) => part !== null), ...grades].join(" · ")}</p>
    <pre>${jsonField(row, "text")}</pre>
  </div>`;
}
