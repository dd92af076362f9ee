import type { Undisturbed, RunRecord } from "@periodic-eval/contracts";
import { abbreviated, printable } from "@periodic-eval/contracts/options";
import { undisturbedText } from "@periodic-eval/core/console";
import {
  describePaired,
  formatDelta,
  formatInterval,
  formatValue,
  type MetricSummary,
} from "@periodic-eval/dashboard";
import { jsonText, type Colours } from "../../terminal/terminal.ts";
import type { Check } from "./check-conditions.ts";

export interface GateResult {
  readonly runDir: string;
  readonly checks: readonly Check[];
  /** Null if nothing was measured. */
  readonly undisturbed: Undisturbed | null;
}

export const gateExitCodes = { passed: 0, failed: 1, inconclusive: 3 } as const;

/** `failed` if any condition failed, else `inconclusive` if any condition is. */
export function outcomeOf({ checks }: GateResult): Check["outcome"] {
  const has = (outcome: Check["outcome"]) => checks.some((check) => check.outcome === outcome);
  return has("failed") ? "failed" : has("inconclusive") ? "inconclusive" : "passed";
}

/** Returns `3 conditions: 2 passed, 1 failed`. A condition counts once for each metric and phase that it names. */
export function countsText({ checks }: GateResult): string {
  const count = (outcome: Check["outcome"]) => checks.filter((check) => check.outcome === outcome).length;
  const counts = (["passed", "failed", "inconclusive"] as const).filter((outcome) => count(outcome) > 0);
  const noun = checks.length === 1 ? "condition" : "conditions";
  return `${checks.length} ${noun}: ${counts.map((outcome) => `${count(outcome)} ${outcome}`).join(", ")}`;
}

/** Returns `em capability.accuracy`; null if the run is damaged or has not ended. */
export const placeOf = ({ phase, id, metric }: Check): string | null =>
  phase === null ? null : `${phase} ${id}${metric === null ? "" : `.${metric}`}`;

/** The findings of a check, each part as text without line ends; null where it does not apply. */
export interface CheckFacts {
  readonly value: string | null;
  readonly interval: string | null;
  readonly n: string | null;
  readonly step: string | null;
  /** The comparison with the baseline; with no evidence, also the change that could have been detected. */
  readonly change: string | null;
  /** Warnings beside the value. */
  readonly warnings: readonly string[];
  readonly inconclusive: string | null;
}

export function factsOf(check: Check): CheckFacts {
  const { summary, inconclusive } = check;
  const change = summary?.change ?? null;
  const detectable =
    change?.verdict === "no evidence" && change.minimal_detectable_change !== null
      ? `, detectable ${formatDelta(change.minimal_detectable_change, summary!.unit).replace("+", "±")}`
      : "";
  return {
    value: summary && oneLine(valueText(summary)),
    interval: summary && intervalText(check, summary.unit),
    n: summary && String(summary.end.n),
    step: summary && String(summary.end.step),
    change: change && oneLine(`${describePaired(change, summary!.unit)}${detectable}`),
    warnings: summary?.warnings.map(oneLine) ?? [],
    inconclusive: inconclusive && `${sentence(inconclusive.reason)} ${oneLine(inconclusive.fix)}`,
  };
}

/** Returns `0.0 % → 60.0 %`; one value without a comparison with the start. */
function valueText({ start, end, unit, isSingle, change, against }: MetricSummary): string {
  const last = formatValue(end.value, unit);
  return isSingle || change === null || against !== null
    ? last
    : `${formatValue(start.value, unit)} → ${last}`;
}

const estimands = {
  given_questions: "for this run's questions",
  over_questions: "for questions like these",
} as const;

/** Returns the interval that decided, else that of the snapshot, and what it is for; null if there is none. */
function intervalText({ interval, summary }: Check, unit: string): string | null {
  const ci95 = interval?.ci95 ?? summary?.end.ci95 ?? null;
  const estimand = interval?.estimand ?? summary?.end.estimand ?? null;
  return ci95 && estimand && `${formatInterval(ci95, unit)} ${estimands[estimand]}`;
}

/** Ends a reason with a full stop. The error that it quotes may be long, and a step summary has at most 1 MiB. */
const sentence = (reason: string): string => `${abbreviated(oneLine(reason), 1000).replace(/[.\s]+$/, "")}.`;

/** Replaces line ends, so that a name or reason cannot start a line of its own. */
export const oneLine = (text: string): string => text.replaceAll(/[\r\n\u0085\u2028\u2029]+/g, " ");

const outcomeColours = { passed: "green", failed: "red", inconclusive: "yellow" } as const;

/** Returns two or three lines for each check, then whether training was undisturbed, and the counts. */
export function gateLines(result: GateResult, colours: Colours): string {
  const lines = result.checks.flatMap((check) => {
    const { value, interval, n, step, change, warnings, inconclusive } = factsOf(check);
    const name = placeOf(check);
    const measured = value !== null && [
      `${oneLine(name!)}  ${value}`,
      ...(interval === null ? [] : [interval]),
      `n = ${n}`,
      `step ${step}`,
    ];
    return [
      `${colours[outcomeColours[check.outcome]](check.outcome)}  ${colours.bold(`--fail-on '${oneLine(check.condition.text)}'`)}`,
      ...(measured === false ? [] : [`  ${measured.join("  ")}`]),
      ...(change === null ? [] : [`  ${change}`]),
      ...warnings.map((message) => `  warning: ${message}`),
      ...(inconclusive === null ? [] : [`  ${name === null ? "" : `${oneLine(name)}: `}${inconclusive}`]),
    ];
  });
  const undisturbed = undisturbedText(result.undisturbed, colours);
  return [
    ...lines,
    ...(undisturbed === null ? [] : [undisturbed]),
    `${oneLine(result.runDir)}: ${countsText(result)}`,
  ].join("\n");
}

export function gateJson(result: GateResult): string {
  const outcome = outcomeOf(result);
  const conditions = result.checks.map(
    ({ condition, outcome: ofCheck, phase, id, metric, summary, interval, inconclusive }) => ({
      condition: condition.text,
      outcome: ofCheck,
      phase,
      id,
      metric,
      value: summary?.end.value ?? null,
      unit: summary?.unit ?? null,
      start: summary?.start.value ?? null,
      ci95: interval?.ci95 ?? summary?.end.ci95 ?? null,
      estimand: interval?.estimand ?? summary?.end.estimand ?? null,
      n: summary?.end.n ?? null,
      step: summary?.end.step ?? null,
      change: summary?.change ?? null,
      warnings: summary?.warnings ?? [],
      reason: inconclusive?.reason ?? null,
      fix: inconclusive?.fix ?? null,
    }),
  );
  return jsonText({
    run_dir: result.runDir,
    outcome,
    exit_code: gateExitCodes[outcome],
    undisturbed: result.undisturbed?.answer ?? null,
    conditions,
  });
}

/**
 * Returns JUnit XML, valid for the schema of Ant's JUnit task: a test case for each condition and metric. A failed condition is a
 * `failure`, an inconclusive one an `error`.
 *
 * @param run Its newest measurement gives the time stamp.
 */
export function gateJUnit(result: GateResult, run: Pick<RunRecord, "phases">): string {
  const { runDir, checks } = result;
  const count = (outcome: Check["outcome"]) => checks.filter((check) => check.outcome === outcome).length;
  const times = run.phases.flatMap(({ snapshots }) => snapshots).map(({ created_at: at }) => Date.parse(at));
  const newest = new Date(Math.max(0, ...times.filter(Number.isFinite)));
  const suite = attributes({
    name: "periodic-eval gate",
    package: runDir || ".",
    id: "0",
    timestamp: newest.toISOString().slice(0, 19),
    hostname: "localhost",
    tests: String(checks.length),
    failures: String(count("failed")),
    errors: String(count("inconclusive")),
    time: "0",
  });
  return `<?xml version="1.0" encoding="UTF-8"?>
<testsuites>
  <testsuite${suite}>
    <properties/>
${checks.map(testCase).join("\n")}
    <system-out/>
    <system-err/>
  </testsuite>
</testsuites>
`;
}

function testCase(check: Check): string {
  const { value, interval, n, step, change, inconclusive } = factsOf(check);
  const name = placeOf(check) ?? "run";
  const of = attributes({ name: `${check.condition.text}: ${name}`, classname: name, time: "0" });
  if (check.outcome === "passed") return `    <testcase${of}/>`;
  const measured = [value, interval, step && `step ${step}`, n && `n = ${n}`, change];
  const message = inconclusive ?? measured.filter((fact) => fact !== null).join(", ");
  const element = check.outcome === "failed" ? "failure" : "error";
  return `    <testcase${of}>
      <${element}${attributes({ type: check.outcome, message })}/>
    </testcase>`;
}

const attributes = (values: Readonly<Record<string, string>>): string =>
  Object.entries(values)
    .map(([name, value]) => ` ${name}="${escapeXml(value)}"`)
    .join("");

const entities: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&apos;",
};

/** Escapes a text for an attribute. Characters that XML forbids even as references are shown escaped or replaced. */
const escapeXml = (text: string): string =>
  printable(oneLine(text))
    .replaceAll(/[\p{Surrogate}\uFFFE\uFFFF]/gu, "\uFFFD")
    .replaceAll(/[&<>"']/g, (character) => entities[character] ?? character);

/**
 * Returns an annotation of GitHub for each condition that did not pass: `::error title=…::…`, or `::warning` if it is inconclusive
 * (https://docs.github.com/actions/reference/workflow-commands-for-github-actions).
 */
export const gateAnnotations = ({ checks }: GateResult): readonly string[] =>
  checks
    .filter(({ outcome }) => outcome !== "passed")
    .map((check) => {
      const { value, interval, n, step, change, inconclusive } = factsOf(check);
      const measured = [value, interval, step && `step ${step}`, n && `n = ${n}`, change];
      const facts = inconclusive ?? measured.filter((fact) => fact !== null).join(", ");
      const command = check.outcome === "failed" ? "error" : "warning";
      const title = escapeProperty(`${check.outcome}: ${check.condition.text}`);
      return `::${command} title=${title}::${escapeData(`${placeOf(check) ?? "run"}: ${facts}`)}`;
    });

/** Escapes as `@actions/core` does: its message may have any character but these. */
const escapeData = (text: string): string =>
  printable(text).replaceAll("%", "%25").replaceAll("\r", "%0D").replaceAll("\n", "%0A");
const escapeProperty = (text: string): string =>
  escapeData(text).replaceAll(":", "%3A").replaceAll(",", "%2C");

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
