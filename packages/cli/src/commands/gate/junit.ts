import { printable } from "@periodic-eval/contracts/options";
import type { RunRecord } from "@periodic-eval/contracts";
import type { Check } from "./check-conditions.ts";
import { factsOf, oneLine, placeOf, type GateResult } from "./output.ts";

/**
 * Returns JUnit XML, valid for the schema of Ant's JUnit task: a test case for each condition and metric. A failed condition is a
 * `failure`, an inconclusive one an `error`.
 *
 * @param run Its newest measurement gives the time stamp.
 */
export function gateJUnit(result: GateResult, run: Pick<RunRecord, "phases">): string {
  const { runDir, checks } = result;
  const count = (outcome: Check["outcome"]) => checks.filter((check) => check.outcome === outcome).length;
  const times = run.phases.flatMap(({ snapshots }) => snapshots.map((one) => Date.parse(one.created_at)));
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
  const place = placeOf(check) ?? "run";
  const of = attributes({ name: `${check.condition.text}: ${place}`, classname: place, time: "0" });
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
