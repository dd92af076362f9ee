import { readDataBlock } from "../read-data-block.ts";
import { browseAnswers } from "./answers-browser.ts";
import type { AnswersData } from "../../page-data/answers-data.ts";
import { browseQuestions } from "./questions-browser.ts";
import { answersSource, type AnswersSource } from "./source.ts";

/** A started part of the page. */
interface Started {
  readonly source: AnswersSource;
  readonly update: () => void;
}

const started = new WeakMap<HTMLElement, Started>();

/** Shows all answers of a run. On a page that was updated, shows new measurements and keeps what the reader selected. */
export function startAnswers(): void {
  const data = readDataBlock<AnswersData>("answers-data");
  if (data === null || !("DecompressionStream" in window)) return;
  start("[data-answers]", data, browseAnswers);
  start("[data-questions]", data, browseQuestions);
  // Without a script, these links lead to the section.
  for (const link of document.querySelectorAll("[data-select]"))
    link.setAttribute("href", link.getAttribute("data-select")!);
}

function start(
  selector: string,
  data: AnswersData,
  browse: (place: HTMLElement, source: AnswersSource) => { readonly update: () => void },
): void {
  const place = document.querySelector<HTMLElement>(selector);
  if (place === null) return;
  const earlier = started.get(place);
  if (earlier !== undefined) {
    earlier.source.replace(data);
    return earlier.update();
  }
  const source = answersSource(data);
  started.set(place, { source, ...browse(place, source) });
}
