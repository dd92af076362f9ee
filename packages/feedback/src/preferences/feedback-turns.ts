import type { Preference } from "./preference.ts";

/** Returns the user's feedback, repeated. */
export const feedbackOf = ({ feedback_string: feedback }: Preference, repetitions: number): string =>
  Array.from({ length: repetitions }, () => feedback).join(" ");

/** Returns the user turn in which the teacher reads the feedback; null if the engine uses its default. */
export function teacherTurnOf(
  { hindsight }: Pick<Preference, "hindsight">,
  texts: { readonly prompt: string; readonly response: string; readonly feedback: string },
): string | null {
  // All placeholders are replaced in one pass, so that a placeholder inside an inserted text stays.
  return (
    hindsight?.replaceAll(
      /\{(prompt|response|feedback)\}/g,
      (_, name) => texts[name as keyof typeof texts],
    ) ?? null
  );
}
