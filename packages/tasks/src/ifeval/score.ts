import { checkOf, type IFEvalDocument } from "./ifeval-document.ts";
import { strip } from "./text/python-strings.ts";

/** Whether each instruction of a document is followed, in the document's order. */
export type IFEvalScores = {
  /** Checks the response itself. */
  readonly strict: readonly boolean[];
  /** Accepts the response or one of its loose forms (`looseForms`), so it is true wherever `strict` is. */
  readonly loose: readonly boolean[];
};

/**
 * Checks a response against each instruction of its document, as the task `ifeval` (version 4) of lm-evaluation-harness 0.4.13
 * does. A blank response follows none. benchmarks/results/ifeval.md lists the deviations and their frequency.
 *
 * @throws PeriodicEvalError `data` for a document that `readDocument` would reject.
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
 * Returns the response and its looser variants: without its first line, its last line or both (a model's "Sure, here it is:"),
 * and each of these without asterisks. All are different.
 */
export function looseForms(response: string): readonly string[] {
  const lines = response.split("\n");
  const shortened = [lines.slice(1), lines.slice(0, -1), lines.slice(1, -1)].map((some) =>
    strip(some.join("\n")),
  );
  const forms = [response, ...shortened];
  return [...new Set([...forms, ...forms.map((form) => form.replaceAll("*", ""))])];
}
