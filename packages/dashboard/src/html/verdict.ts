import type { Paired } from "@periodic-eval/core";
import { formatPercent } from "./format.ts";
import { html, type Html } from "./html.ts";

type Verdict = NonNullable<Paired["verdict"]>;

/** Each verdict has a glyph as well as a colour, so that readers who cannot see colours can distinguish verdicts. */
export const verdictStyles: Readonly<
  Record<Verdict, { readonly glyph: string; readonly colour: string; readonly className: string }>
> = {
  better: { glyph: "▲", colour: "var(--better)", className: "better" },
  worse: { glyph: "▼", colour: "var(--worse)", className: "worse" },
  changed: { glyph: "◆", colour: "var(--changed)", className: "changed" },
  "no evidence": { glyph: "○", colour: "var(--muted)", className: "none" },
};

/** Explains the glyphs: `▲ better, ▼ worse, ◆ changed, ○ no evidence`. */
export const verdictKey = Object.entries(verdictStyles)
  .map(([verdict, { glyph }]) => `${glyph} ${verdict}`)
  .join(", ");

export const verdictGlyph = (verdict: Verdict): string => verdictStyles[verdict].glyph;

/** Stands in place of the verdict of a metric that cannot be judged. */
export const voidTag = (reason: string): Html =>
  html`<span class="verdict worse" title="${reason}"><span aria-hidden="true">!</span> cannot be judged</span>`;

/** Renders a verdict with its glyph and significance level; null if there is no verdict. */
export function verdictTag(paired: Paired | null): Html | null {
  if (!paired?.verdict) return null;
  const { glyph, className } = verdictStyles[paired.verdict];
  return html`<span class="verdict ${className}"
    ><span aria-hidden="true">${glyph}</span> ${paired.verdict}</span
  >${paired.alpha !== null && html` <small>at ${formatPercent(100 * paired.alpha)}</small>`}`;
}
