import { hashOf } from "../../page-data/answers-data.ts";
import type { AnswerFilters } from "./answer-filters.ts";

/** Which words are marked: those that changed since the previous measurement, or since the first one of the phase, or none. */
export type MarkedFrom = "before" | "start" | "none";

/** The answers that the page shows. The address of the page holds the selection. */
export interface AnswerSelection extends AnswerFilters {
  readonly phase: string;
  readonly id: string;
  /** A step as a string; empty for the last one. */
  readonly step: string;
  readonly order: "worst" | "asked";
  /** 1-based. */
  readonly page: number;
  /** The item whose answers at all steps are shown; empty for the list of answers. */
  readonly item: string;
  readonly sample: number;
  readonly marks: MarkedFrom;
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

export function linkTo({ order, page, sample, marks, ...others }: AnswerSelection): string {
  return hashOf("answers", {
    ...others,
    order: order === "worst" ? "" : order,
    page: page === 1 ? "" : page,
    sample: sample === 0 ? "" : sample,
    marks: marks === "before" ? "" : marks,
  });
}

/** Reads a selection from the parameters of an address. Wrong values count as missing. */
export function selectionFrom(parameters: URLSearchParams | null): AnswerSelection {
  if (parameters === null) return noSelection;
  const text = (name: string): string => parameters.get(name) ?? "";
  const count = (name: string, least: number): number =>
    /^\d{1,9}$/.test(text(name)) ? Math.max(least, Number(text(name))) : least;
  return {
    phase: text("phase"),
    id: text("id"),
    step: text("step"),
    show: text("show"),
    persona: text("persona"),
    question: text("question"),
    text: text("text"),
    order: text("order") === "asked" ? "asked" : "worst",
    page: count("page", 1),
    item: text("item"),
    sample: count("sample", 0),
    marks: text("marks") === "start" || text("marks") === "none" ? (text("marks") as MarkedFrom) : "before",
  };
}

/** Returns the parameters of the page's address for one part of the page: `#answers?step=80`. Null if it is about another part. */
export function readHash(part: string): URLSearchParams | null {
  const prefix = `#${part}?`;
  const { hash } = window.location;
  return hash.startsWith(prefix) ? new URLSearchParams(hash.slice(prefix.length)) : null;
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
export function onHash(part: string, place: HTMLElement, show: (parameters: URLSearchParams) => void): void {
  window.addEventListener("hashchange", () => {
    const parameters = readHash(part);
    // The page may have been updated without this part.
    if (parameters === null || !place.isConnected) return;
    show(parameters);
    focusOn(place);
  });
  if (readHash(part) !== null) focusOn(place);
}

export function focusOn(place: HTMLElement): void {
  place.tabIndex = -1;
  place.focus({ preventScroll: true });
  (place.closest("section") ?? place).scrollIntoView();
}
