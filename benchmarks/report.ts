// How fast is this library, and how much memory does it need, beside programs that do the same work? Is it slower than in the last report?
// Measures the parts of `report/parts.ts`, adds them to docs/performance.md and docs/performance.json, where they replace earlier results
// of the same processor only, and prints what changed.
//   npm run bench report                              # all parts except `gpu`; about an hour on two idle cores
//   npm run bench report -- --part generation,memory  # these parts only; the others stay as they are
//   npm run bench report -- --compare                 # measures and compares, and writes nothing
//   npm run bench report -- --part memory -- --repeats 3   # further arguments for its benchmark
//   npm run bench report -- --page                    # writes the page from performance.json, and measures nothing
// Exits with 1 if a ratio is worse than in the last report (`report/changes.ts`), or if a benchmark found wrong results. Does not
// compare reports of different machines, versions or arguments, of fewer than five repeats, nor times of a busy machine. Leaves out a
// part whose peer or backend is missing, with a message, and keeps its earlier results.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { availableParallelism, loadavg } from "node:os";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { oneOf } from "./one-of.ts";
import { changesOf, obstacleTo } from "./report/changes.ts";
import { pageOf } from "./report/page.ts";
import { parts, type Part } from "./report/parts.ts";
import { addedTo, earlierOf, type MeasuredPart, type Report, type Spread } from "./report/results.ts";
import { runBenchmark } from "./report/run-benchmark.ts";

const args = process.argv.slice(2);
const separator = args.includes("--") ? args.indexOf("--") : args.length;
const extraArgs = args.slice(separator + 1);
const { values } = parseArgs({
  args: args.slice(0, separator),
  options: {
    part: { type: "string" },
    compare: { type: "boolean", default: false },
    page: { type: "boolean", default: false },
  },
});
/** Read once, because a later value contains the load of the parts before. */
const load = loadavg()[0]!;
const fileOf = (name: string) => fileURLToPath(new URL(`../docs/${name}`, import.meta.url));
const [dataFile, pageFile] = [fileOf("performance.json"), fileOf("performance.md")];

function readReport(): Report {
  return existsSync(dataFile) ? (JSON.parse(readFileSync(dataFile, "utf8")) as Report) : {};
}

function writeReport(report: Report): void {
  const inOrder = parts.flatMap(({ name }) => (report[name] ? [[name, report[name]]] : []));
  // Four digits are more than a timing has.
  const rounded = (_: string, value: unknown) =>
    typeof value === "number" && !Number.isInteger(value) ? Number(value.toPrecision(4)) : value;
  writeFileSync(dataFile, `${JSON.stringify(Object.fromEntries(inOrder), rounded, 1)}\n`);
  writeFileSync(pageFile, pageOf(parts, readReport()));
}

/** Prints the changes of a part. Returns whether no ratio is known to be worse. */
function printChanges(name: string, before: MeasuredPart | undefined, after: MeasuredPart): boolean {
  if (before === undefined) {
    console.log(`${name}: not compared, because the last report lacks it on this processor`);
    return true;
  }
  const obstacle = obstacleTo(before, after);
  if (obstacle !== null) {
    console.log(`${name}: not compared, because ${obstacle}`);
    return true;
  }
  const text = ({ median, least, greatest }: Spread) =>
    `${median.toFixed(2)} (${least.toFixed(2)}–${greatest.toFixed(2)})`;
  const changes = changesOf(before.comparisons, after.comparisons);
  console.log(`${name}, ratios in the last report and now:`);
  for (const change of changes)
    console.log(
      `  ${change.name}: ${text(change.before)} → ${text(change.after)}, ${change.verdict ?? "within the spread"}`,
    );
  return changes.every(({ verdict }) => verdict !== "worse");
}

/** Measures a part, and returns null where its peer or backend is missing. */
async function measure({ name, file, args }: Part): Promise<MeasuredPart | null> {
  const start = performance.now();
  const { results, exitCode } = await runBenchmark(file, [...args, ...extraArgs]);
  const took = `${((performance.now() - start) / 60_000).toFixed(1)} min`;
  if (results === null || (results.comparisons.length === 0 && !results.notes?.length)) {
    console.log(
      `${name}: left out, because its benchmark gave no results; see the lines above, which name a missing backend or peer (${took})`,
    );
    return null;
  }
  if (exitCode !== 0) {
    console.log(`${name}: the benchmark exited with ${exitCode}; see the lines above (${took})`);
    process.exitCode = 1;
  }
  console.log(`${name}: measured in ${took}`);
  const measured = new Date().toISOString().slice(0, 10);
  return {
    measured,
    load,
    cores: availableParallelism(),
    ...(extraArgs.length > 0 && { extraArgs }),
    ...results,
  };
}

const byName = Object.fromEntries(parts.map((part) => [part.name, part]));
const chosen =
  values.part?.split(",").map((name) => oneOf("--part", name, byName)) ??
  parts.filter(({ isDefault }) => isDefault !== false);
const began = performance.now();
for (const [at, part] of values.page ? [] : chosen.entries()) {
  const perPart = at === 0 ? null : (performance.now() - began) / 60_000 / at;
  const left = perPart === null ? "" : `, about ${Math.ceil(perPart * (chosen.length - at))} min left`;
  console.log(`\n${part.name}, ${at + 1} of ${chosen.length}${left}`);
  const measured = await measure(part);
  if (measured === null) continue;
  const report = readReport();
  if (!printChanges(part.name, earlierOf(report, part.name, measured), measured)) process.exitCode = 1;
  if (!values.compare) writeReport(addedTo(report, part.name, measured));
}
if (!values.compare) writeReport(readReport());
