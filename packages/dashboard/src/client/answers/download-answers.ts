import type { AnswerRow, MeasurementAnswers } from "../../page-data/answers-data.ts";
import { create } from "../dom.ts";
import { save } from "../save.ts";

/** An answer and the measurement that it belongs to. */
export interface PlacedAnswer {
  readonly measurement: Pick<MeasurementAnswers, "phase" | "id" | "step">;
  readonly row: AnswerRow;
}

/**
 * Creates a button that downloads answers as JSON Lines, one answer per line.
 *
 * @param name What the answers have in common, for the name of the file.
 */
export function downloadButton(answers: readonly PlacedAnswer[], name: readonly string[]): HTMLElement {
  const text = `Download ${answers.length === 1 ? "this answer" : `these ${answers.length} answers`} as JSONL`;
  const button = create("button", { type: "button" }, text);
  button.addEventListener("click", () => {
    const lines = answers.map(
      ({ measurement: { phase, id, step }, row }) => `${JSON.stringify({ phase, id, step, ...row })}\n`,
    );
    save(new Blob(lines, { type: "application/jsonl" }), `${name.join("_")}.jsonl`);
  });
  return create("p", { class: "download-answers" }, button);
}
