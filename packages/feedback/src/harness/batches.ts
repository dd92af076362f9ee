import { subsetOrder } from "@periodic-eval/core/evaluations";
import type { Preference } from "../preferences/preference.ts";

/** The prompts of a step: `size` of them, in an order of their own for each time that all have been asked. */
export function promptsOf(
  prompts: readonly string[],
  step: number,
  size: number,
  seed: number,
): readonly string[] {
  const orders = new Map<number, readonly number[]>();
  return Array.from({ length: size }, (_, i) => {
    const place = step * size + i;
    const pass = Math.floor(place / prompts.length);
    const order = orders.get(pass) ?? subsetOrder(seed + pass, prompts.length);
    orders.set(pass, order);
    return prompts[order[place % prompts.length]!]!;
  });
}

/** What the user says to an answer, said over. */
export const feedbackOf = ({ feedback_string: feedback }: Preference, repetitions: number): string =>
  Array.from({ length: repetitions }, () => feedback).join(" ");

/** The user turn in which the teacher reads the feedback; null where that is left to the engine. */
export function teacherTurnOf(
  { hindsight }: Pick<Preference, "hindsight">,
  texts: { readonly prompt: string; readonly response: string; readonly feedback: string },
): string | null {
  // By pieces: no text is looked through for what another one holds.
  return (
    hindsight?.replaceAll(
      /\{(prompt|response|feedback)\}/g,
      (_, name) => texts[name as keyof typeof texts],
    ) ?? null
  );
}
