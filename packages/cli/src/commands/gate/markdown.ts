import { printable } from "@periodic-eval/contracts/options";
import { undisturbedText } from "@periodic-eval/core/console";
import { countsText, factsOf, oneLine, outcomeOf, placeOf, type GateResult } from "./output.ts";

const glyphs = { passed: "✅", failed: "❌", inconclusive: "⚠️" } as const;

/** Returns the summary for a pull request. Texts of the run are in code spans, where Markdown, HTML and mentions mean nothing. */
export function gateMarkdown(result: GateResult): string {
  const rows = result.checks.map((check) => {
    const { value, interval, n, step, change, warnings, inconclusive } = factsOf(check);
    const notes = [change, ...warnings, inconclusive].filter((note) => note !== null);
    const cells = [
      check.condition.text,
      placeOf(check),
      value,
      interval,
      n,
      step,
      notes.length === 0 ? null : notes.join("; "),
    ];
    return `| ${glyphs[check.outcome]} ${check.outcome} | ${cells.map(cell).join(" | ")} |`;
  });
  const undisturbed = undisturbedText(result.undisturbed);
  const facts = [result.runDir, ...(undisturbed === null ? [] : [undisturbed])];
  return `### ${glyphs[outcomeOf(result)]} periodic-eval gate: ${countsText(result)}

${facts.map(codeSpan).join(", ")}

| | fails on | metric | value | 95 % interval | n | step | against the baseline |
|---|---|---|---|---|---|---|---|
${rows.join("\n")}
`;
}

const cell = (text: string | null): string => (text === null ? "" : codeSpan(text).replaceAll("|", "\\|"));

/** Encloses a text in more backticks than it has in a row. */
function codeSpan(text: string): string {
  const shown = printable(oneLine(text)).replaceAll("\t", " ");
  const longest = Math.max(0, ...[...shown.matchAll(/`+/g)].map(([run]) => run.length));
  const fence = "`".repeat(longest + 1);
  return longest === 0 ? `\`${shown}\`` : `${fence} ${shown} ${fence}`;
}
