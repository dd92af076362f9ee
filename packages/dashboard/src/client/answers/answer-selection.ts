import { hashOf } from "../../page-data/answers-data.ts";
import type { AnswerFilters } from "./answer-filters.ts";

/** The answers that the page shows. The address of the page holds the selection. Other values than the named ones count as the first. */
export interface AnswerSelection extends AnswerFilters {
  readonly phase: string;
  readonly id: string;
  /** A step as a string; empty for the last one. */
  readonly step: string;
  /** `worst`, `asked`, or `blind`: one of each question first, without the judge's grades. */
  readonly order: string;
  /** 1-based. */
  readonly page: number;
  /** The item whose answers at all steps are shown; empty for the list of answers. */
  readonly item: string;
  readonly sample: number;
  /** Which words are marked: those that changed `before`, since the previous measurement; since the `start` of the phase; `none`. */
  readonly marks: string;
}

/** The worst answers of the last phase's first callback. */
export const noSelection: AnswerSelection = {
  phase: "",
  id: "",
  step: "",
  show: "",
  persona: "",
  question: "",
  text: "",
  order: "worst",
  page: 1,
  item: "",
  sample: 0,
  marks: "before",
};

export const linkTo = (selection: AnswerSelection): string =>
  hashOf(
    "answers",
    Object.fromEntries(
      Object.entries(selection).filter(
        ([name, value]) => value !== noSelection[name as keyof AnswerSelection],
      ),
    ),
  );

/**
 * Reads the selection of one part of the page from the page's address: `#answers?step=80`. Missing and wrong values are as in
 * `defaults`. Null if the address is about another part.
 */
export function readSelection<T extends object>(part: string, defaults: T): T | null {
  const prefix = `#${part}?`;
  const { hash } = window.location;
  if (!hash.startsWith(prefix)) return null;
  const parameters = new URLSearchParams(hash.slice(prefix.length));
  const valueOf = (name: string, least: string | number): string | number => {
    const text = parameters.get(name) ?? "";
    if (typeof least === "number") return /^\d{1,9}$/.test(text) ? Math.max(least, Number(text)) : least;
    return text === "" ? least : text;
  };
  return Object.fromEntries(
    Object.entries(defaults).map(([name, least]) => [name, valueOf(name, least as string)]),
  ) as T;
}

/** Puts a selection into the page's address, without a new entry in the browser's history. */
export function writeHash(hash: string): void {
  window.history.replaceState(window.history.state, "", hash);
}

/** Follows a link to a selection, also if the page's address is that link already. */
export function openHash(hash: string): void {
  if (window.location.hash === hash) window.dispatchEvent(new HashChangeEvent("hashchange"));
  else window.location.hash = hash;
}

/** Calls `show` when a link leads to a selection of a part, and moves the view and the keyboard there, also if the page opens with it. */
export function onHash<T extends object>(
  part: string,
  defaults: T,
  element: HTMLElement,
  show: (selection: T) => void,
): void {
  window.addEventListener("hashchange", () => {
    const selection = readSelection(part, defaults);
    // The page may have been updated without this part.
    if (selection === null || !element.isConnected) return;
    show(selection);
    focusOn(element);
  });
  if (readSelection(part, defaults) !== null) focusOn(element);
}

export function focusOn(element: HTMLElement): void {
  element.tabIndex = -1;
  element.focus({ preventScroll: true });
  (element.closest("section") ?? element).scrollIntoView();
}
