import { create, messageOf } from "../dom.ts";

/** An option of a list: its value and its text. */
export type Choice = readonly [value: string, text: string];

/** A list with a label. */
interface SelectControl {
  readonly element: HTMLElement;
  /** Replaces the options. Selects the first one if `value` is not among them, and returns the selected value. */
  fill(choices: readonly Choice[], value: string): string;
}

const maxTextLength = 90;

export function selectControl(label: string, onChange: (value: string) => void): SelectControl {
  const select = create("select");
  let shown = "";
  select.addEventListener("change", () => onChange(select.value));
  return {
    element: create("label", {}, create("span", {}, label), select),
    fill(choices, value) {
      const next = JSON.stringify(choices);
      if (next !== shown)
        select.replaceChildren(
          ...choices.map(([option, text]) => create("option", { value: option }, shortened(text))),
        );
      shown = next;
      select.value = choices.some(([option]) => option === value) ? value : (choices[0]?.[0] ?? "");
      select.disabled = choices.length < 2;
      return select.value;
    },
  };
}

function shortened(text: string): string {
  const line = text.replaceAll(/\s+/g, " ").trim();
  return line.length > maxTextLength ? `${line.slice(0, maxTextLength)}…` : line;
}

export function button(text: string, onClick: () => void): HTMLButtonElement {
  const element = create("button", { type: "button" }, text);
  element.addEventListener("click", onClick);
  return element;
}

/** Returns the distinct values of a list, in order. */
export const distinct = <T>(values: readonly T[]): readonly T[] => [...new Set(values)];

/** Returns a function that calls `show`, and `fail` with the message of its error, unless it has been called again. */
export function latest(
  show: (isCurrent: () => boolean) => Promise<void>,
  fail: (message: string) => void,
): () => void {
  let turn = 0;
  return () => {
    const mine = ++turn;
    const isCurrent = (): boolean => mine === turn;
    show(isCurrent).catch((error: unknown) => isCurrent() && fail(messageOf(error)));
  };
}
