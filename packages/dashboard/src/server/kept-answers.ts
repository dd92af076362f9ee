import { join } from "node:path/posix";
import type { Json } from "@periodic-eval/core";
import { readRows, type FileReader, type RunRecord } from "@periodic-eval/core/snapshots";
import { formatValue, missingValueText, humanizeName } from "../html/format.ts";
import { html, type Html } from "../html/html.ts";
import { jsonField, ownValue } from "../html/json-field.ts";

/** What a model answered at the last look of a callback, as it was kept. */
export interface KeptAnswers {
  readonly phase: string;
  readonly id: string;
  readonly step: number;
  /** Rows that have a text: the first of them. */
  readonly rows: readonly { readonly [key: string]: Json }[];
  /** Of all rows that have a text. */
  readonly count: number;
}

/**
 * The answers kept at the last look of each callback in each phase; callbacks that draw no text have none.
 *
 * @param most of a callback's answers, the first of which are given
 */
export async function keptAnswers(
  run: RunRecord,
  fs: FileReader,
  most: number,
): Promise<readonly KeptAnswers[]> {
  const found: KeptAnswers[] = [];
  for (const { name: phase, series, snapshots } of run.phases) {
    for (const { id, points } of series) {
      const kept = snapshots.filter((snapshot) => snapshot.id === id && snapshot.samples !== null);
      const point = points.findLast(({ step }) => kept.some((snapshot) => snapshot.step === step));
      if (point === undefined) continue;
      const rows = (await readRows(join(run.runDir, "periodic_eval", point.file), fs)) as readonly unknown[];
      const told = rows.filter(
        (row): row is KeptAnswers["rows"][number] => jsonField(row as Json, "text") !== null,
      );
      if (told.length > 0)
        found.push({ phase, id, step: point.step, rows: told.slice(0, most), count: told.length });
    }
  }
  return found;
}

/** Folded. */
export function answerSections(answers: readonly KeptAnswers[]): Html | false {
  return (
    answers.length > 0 &&
    html`<section>
      <h2>Answers</h2>
      <p class="sub">What the model said at the last look of each callback in each phase.</p>
      ${answers.map(({ phase, id, step, rows, count }) => {
        const told = rows.length === count ? String(count) : `${rows.length} of ${count}`;
        return html`<details>
          <summary>${phase}, ${humanizeName(id)} <span>step ${step} · ${told}</span></summary>
          ${rows.map(answer)}
        </details>`;
      })}
    </section>`
  );
}

/** What a row tells beside its text, where it does; what goes without saying is not said. */
const usual = ["graded", "generated", "stop"];
const facts = ["aligned", "coherent", "hit", "score", "status", "finish"] as const;

function answer(row: KeptAnswers["rows"][number]): Html {
  const asked = [jsonField(row, "persona"), jsonField(row, "question") ?? jsonField(row, "id")];
  const told = facts.flatMap((name) => {
    const value = ownValue(row, name);
    if (value === undefined || (typeof value === "object" && value !== null)) return [];
    if (usual.includes(String(value))) return [];
    return [`${name} ${typeof value === "number" ? formatValue(value, "") : (value ?? missingValueText)}`];
  });
  return html`<div class="answer">
    <p>${[...asked.filter((part) => part !== null), ...told].join(" · ")}</p>
    <pre>${jsonField(row, "text")}</pre>
  </div>`;
}
