import type { ShownToken, TaskAudit } from "./audit-task.ts";

/** An audit as a terminal shows it: the first prompt cut at its tokens, then what was found. */
export function auditText({ name, version, model, documents, audited, first, findings }: TaskAudit): string {
  const prompt = first.prompt === null ? "(its template fails)" : cut(first.prompt);
  const choices = first.continuations.map((tokens) => `  choice  ${cut(tokens)}`);
  const told = findings.map(({ kind, severity, documents: some, message }) => {
    const of = some === null ? "" : ` (${some} of ${audited})`;
    return `${severity}: ${kind}${of}: ${message}`;
  });
  return [
    `${name} ${version} on ${model}: ${documents} documents, ${audited} looked at`,
    `The prompt of document "${first.id}", ${first.prompt?.length ?? 0} tokens:`,
    prompt,
    ...choices,
    ...(told.length === 0 ? ["Nothing found."] : told),
    "",
  ].join("\n");
}

/** Tokens between bars; a line's end is shown, and ends the line. */
const cut = (tokens: readonly ShownToken[]): string =>
  tokens.map(({ text }) => text.replaceAll("\n", "⏎\n")).join("│");
