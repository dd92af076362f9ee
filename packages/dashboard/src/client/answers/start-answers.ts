import { pageData } from "../page-data.ts";
import { browseAnswers } from "./answers-browser.ts";
import type { AnswersData } from "./answers-data.ts";
import { browseQuestions } from "./questions-browser.ts";
import { answersSource } from "./source.ts";

/** Shows all answers of a run. The event `run-changed` of the document makes a served page read them again. */
export function startAnswers(): void {
  const data = pageData<AnswersData>("answers-data");
  const answers = document.querySelector<HTMLElement>("[data-answers]");
  if (data === null || answers === null || !("DecompressionStream" in window)) return;
  const source = answersSource(data);
  const parts = [browseAnswers(answers, source)];
  const questions = document.querySelector<HTMLElement>("[data-questions]");
  if (questions !== null) parts.push(browseQuestions(questions, source));
  document.addEventListener("run-changed", () => {
    source.forget();
    for (const { update } of parts) update();
  });
}
