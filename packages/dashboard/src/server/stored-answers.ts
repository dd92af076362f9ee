import { join } from "node:path/posix";
import type { Json } from "@periodic-eval/core";
import { readRows, type FileReader, type RunRecord } from "@periodic-eval/core/snapshots";
import { formatValue, missingValueText, humanizeName } from "../html/format.ts";
import { html, type Html } from "../html/html.ts";
import { jsonField, ownValue } from "../html/json-field.ts";

/** The stored answers of a callback's last measurement in a phase. */
export interface StoredAnswers {
  readonly phase: string;
  readonly id: string;
  readonly step: number;
  /** The first rows with a generated text. */
  readonly rows: readonly { readonly [key: string]: Json }[];
  /** Number of all rows with a generated text. */
  readonly count: number;
}

/**
 * Reads the stored answers of each callback's last measurement in each phase. Omits callbacks that do not generate text.
 *
 * @param maxRows Number of rows to return per callback.
 */
export async function readStoredAnswers(
  run: RunRecord,
  fs: FileReader,
  maxRows: number,
): Promise<readonly StoredAnswers[]> {
  const found: StoredAnswers[] = [];
  for (const { name: phase, series, snapshots } of run.phases) {
    for (const { id, points } of series) {
      const withRows = snapshots.filter((snapshot) => snapshot.id === id && snapshot.samples !== null);
      const point = points.findLast(({ step }) => withRows.some((snapshot) => snapshot.step === step));
      if (point === undefined) continue;
      const { samples } = withRows.find(({ step }) => step === point.step)!;
      const file = join(run.runDir, "periodic_eval", point.file);
      const rows = (await readRows(file, samples, fs)) as readonly unknown[];
      const answers = rows.filter(
        (row): row is StoredAnswers["rows"][number] => jsonField(row as Json, "text") !== null,
      );
      if (answers.length > 0)
        found.push({ phase, id, step: point.step, rows: answers.slice(0, maxRows), count: answers.length });
    }
  }
  return found;
}

/** Renders the answers, folded by phase and callback. */
export function answerSections(answers: readonly StoredAnswers[]): Html | false {
  return (
    answers.length > 0 &&
    html`<section>
      <h2>Answers</h2>
      <p class="sub">Answers from the last measurement of each callback in each phase.</p>
      ${answers.map(({ phase, id, step, rows, count }) => {
        const counts = rows.length === count ? String(count) : `${rows.length} of ${count}`;
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
