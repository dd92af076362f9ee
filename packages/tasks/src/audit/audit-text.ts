import type { ShownDocument, TaskAudit, Writing } from "./audit-task.ts";
import type { Finding } from "./findings.ts";
import type { ShownToken } from "./shown-tokens.ts";

/** How a terminal paints the parts of an audit; plain by default. */
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

/** An audit as a terminal shows it: prompts cut at their tokens, what is scored or written, then what was found. */
export function auditText(audit: TaskAudit, paint: AuditPaint = plain): string {
  const { name, version, model, documents, audited, shown, writing, findings } = audit;
  const warnings = findings.filter(({ severity }) => severity === "warning").length;
  const counted = `${plural(warnings, "warning")}, ${plural(findings.length - warnings, "note")}`;
  const looked = `${audited === documents ? "all" : `the first ${audited}`} looked at`;
  return [
    `${paint.title(`${name} ${version} on ${model}`)}  ${plural(documents, "document")}, ${looked}`,
    ...shown.map((document) => documentText(document, paint)),
    ...(writing === null ? [] : [writingText(writing, paint)]),
    [
      findings.length === 0 ? paint.good("✓ nothing found") : paint.title(counted),
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

/** Tokens between bars; a line's end is shown, and ends the line. */
const cut = (tokens: readonly ShownToken[], paint: AuditPaint): string =>
  tokens
    .map(({ text, isSpecial }) => (isSpecial ? paint.special(text) : text.replaceAll("\n", "⏎\n")))
    .join(paint.dim("│"));

/** `then it writes at most 256 tokens, greedily, until "Question:" or <|im_end|> (2)`. */
function writingText({ maxNewTokens, temperature, stop, stopTokens }: Writing, paint: AuditPaint): string {
  const ends = [
    ...stop.map((text) => JSON.stringify(text)),
    ...stopTokens.map(({ id, text }) => `${paint.special(text)} (${id})`),
  ];
  const parts = [
    maxNewTokens === null ? "then it writes" : `then it writes at most ${maxNewTokens} tokens`,
    ...(temperature === null ? [] : [temperature === 0 ? "greedily" : `at temperature ${temperature}`]),
    ends.length === 0 ? "until no token or text: nothing stops it" : `until ${ends.join(" or ")}`,
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
