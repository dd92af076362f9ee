import { checkOf, type IFEvalDocument } from "./ifeval-document.ts";
import { strip } from "./text/python-strings.ts";

/** Whether each instruction of a document is followed, in its order. */
export type IFEvalScores = {
  /** By the response as it is. */
  readonly strict: readonly boolean[];
  /** By it or one of its loose forms (`looseForms`): never false where strict is true. */
  readonly loose: readonly boolean[];
};

/**
 * Checks a response against each instruction of its document, as lm-evaluation-harness 0.4.13's task ifeval (version 4)
 * does. A blank response follows none. Deviations and how often they are seen: docs/decisions/2026-11-22-ifeval.md.
 *
 * @throws PeriodicEvalError `data` for a document that `readDocument` would refuse.
 */
export function scoreResponse(document: IFEvalDocument, response: string): IFEvalScores {
  const checks = document.instructions.map((instruction, at) =>
    checkOf(instruction, `IFEval document ${document.key}, kwargs[${at}]`),
  );
  const [whole, ...forms] = looseForms(response).map((form) => (strip(form) === "" ? null : form));
  const follows = (check: (form: string) => boolean, form: string | null) => form !== null && check(form);
  const strict = checks.map((check) => follows(check, whole!));
  const loose = checks.map((check, at) => strict[at]! || forms.some((form) => follows(check, form)));
  return { strict, loose };
}

/**
 * The response, then what a looser reading allows for: without its first line, its last or both (a model's "Sure,
 * here it is:"), and each of these without asterisks. No two are equal.
 */
export function looseForms(response: string): readonly string[] {
  const lines = response.split("\n");
  const shortened = [lines.slice(1), lines.slice(0, -1), lines.slice(1, -1)].map((some) =>
    strip(some.join("\n")),
  );
  const forms = [response, ...shortened];
  return [...new Set([...forms, ...forms.map((form) => form.replaceAll("*", ""))])];
}
