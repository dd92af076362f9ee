import type { ShownDocument, TaskAudit, GenerationSettings } from "./audit-task.ts";
import type { Finding } from "./findings.ts";
import type { ShownToken } from "./shown-tokens.ts";

/** Functions that color the parts of an audit in a terminal; plain text by default. */
export type AuditPaint = Readonly<
  Record<"title" | "dim" | "special" | "right" | "warning" | "note" | "good", (text: string) => string>
>;

const plain: AuditPaint = {
  title: String,
  dim: String,
  special: String,
  right: String,
  warning: String,
  note: String,
  good: String,
};

/** Formats an audit for a terminal: prompts split into tokens, the scored choices or the generation settings, then findings. */
export function auditText(audit: TaskAudit, paint: AuditPaint = plain): string {
  const { name, version, model, documents, audited, shown, generation, findings } = audit;
  const warnings = findings.filter(({ severity }) => severity === "warning").length;
  const counted = `${plural(warnings, "warning")}, ${plural(findings.length - warnings, "note")}`;
  const auditedText = `${audited === documents ? "all" : `the first ${audited}`} audited`;
  return [
    `${paint.title(`${name} ${version} on ${model}`)}  ${plural(documents, "document")}, ${auditedText}`,
    ...shown.map((document) => documentText(document, paint)),
    ...(generation === null ? [] : [generationText(generation, paint)]),
    [
      findings.length === 0 ? paint.good("✓ no findings") : paint.title(counted),
      ...findings.map((finding) => findingText(finding, audited, paint)),
    ].join("\n"),
  ].join("\n\n");
}

function documentText(document: ShownDocument, paint: AuditPaint): string {
  const { id, prompt, failure, continuations, gold } = document;
  const head = `document "${id}"`;
  if (prompt === null) return `${paint.title(head)}  cannot be rendered: ${failure}`;
  const choices = continuations.map((tokens, at) => {
    const isRight = gold.includes(at);
    const text = cut(tokens, paint);
    return `${isRight ? paint.right("✓") : " "} ${at + 1} ${paint.dim("│")}${isRight ? paint.right(text) : text}`;
  });
  return [
    `${paint.title(head)}  ${plural(prompt.length, "token")}${choices.length === 0 ? "" : `, then ${plural(choices.length, "choice")}`}`,
    cut(prompt, paint),
    ...choices,
  ].join("\n");
}

/** Joins tokens with bars. A line feed is shown as ⏎ and also breaks the line. */
const cut = (tokens: readonly ShownToken[], paint: AuditPaint): string =>
  tokens
    .map(({ text, isSpecial }) => (isSpecial ? paint.special(text) : text.replaceAll("\n", "⏎\n")))
    .join(paint.dim("│"));

/** Returns `then the model generates at most 256 tokens, greedily, until "Question:" or <|im_end|> (2)`. */
function generationText(
  { maxNewTokens, temperature, stop, stopTokens }: GenerationSettings,
  paint: AuditPaint,
): string {
  const ends = [
    ...stop.map((text) => JSON.stringify(text)),
    ...stopTokens.map(({ id, text }) => `${paint.special(text)} (${id})`),
  ];
  const parts = [
    `then the model generates${maxNewTokens === null ? "" : ` at most ${maxNewTokens} tokens`}`,
    ...(temperature === null ? [] : [temperature === 0 ? "greedily" : `at temperature ${temperature}`]),
    ends.length === 0 ? "and no token or string stops it" : `until ${ends.join(" or ")}`,
  ];
  return parts.join(", ");
}

function findingText(
  { kind, severity, documents, message, fix }: Finding,
  audited: number,
  paint: AuditPaint,
): string {
  const of = documents === null ? "" : ` (${documents} of ${audited})`;
  const sign = severity === "warning" ? paint.warning("▲ warning") : paint.note("○ note");
  return `${sign} ${kind}${of}: ${message}\n  ${paint.dim(fix)}`;
}

const plural = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? "" : "s"}`;
