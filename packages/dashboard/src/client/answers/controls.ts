import { create } from "../dom.ts";

/** An option of a list: its value and its text. */
export type Choice = readonly [value: string, text: string];

/** A list with a label. */
export interface SelectControl {
  readonly element: HTMLElement;
  /** Replaces the options. Selects the first one if `value` is not among them, and returns the selected value. */
  fill(choices: readonly Choice[], value: string): string;
}

const maxTextLength = 90;

export function selectControl(label: string, onChange: (value: string) => void): SelectControl {
  const select = create("select");
  select.addEventListener("change", () => onChange(select.value));
  return {
    element: create("label", {}, create("span", {}, label), select),
    fill(choices, value) {
      const isSame =
        select.options.length === choices.length &&
        choices.every(([one, text], at) => {
          const option = select.options[at]!;
          return option.value === one && option.textContent === shortened(text);
        });
      if (!isSame)
        select.replaceChildren(
          ...choices.map(([one, text]) => create("option", { value: one }, shortened(text))),
        );
      select.value = choices.some(([one]) => one === value) ? value : (choices[0]?.[0] ?? "");
      select.disabled = choices.length < 2;
      return select.value;
    },
  };
}

function shortened(text: string): string {
  const line = text.replaceAll(/\s+/g, " ").trim();
  return line.length > maxTextLength ? `${line.slice(0, maxTextLength)}…` : line;
}

/** Returns the distinct values of a list, in order. */
export const distinct = <T>(values: readonly T[]): readonly T[] => [...new Set(values)];
