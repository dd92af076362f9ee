// The standing attack: generates hostile cases from seeds, and fails if one breaks a promise.
// Usage: npm run attack [-- --minutes N] [--seed S] [--area NAME] [--case SEED]
//   --minutes N  stops after N minutes, shared equally by the areas (default: 10)
//   --seed S     seed of all cases (default: a new one, which is printed)
//   --area NAME  only this area: damage, fuzz, http or callbacks (the top of its file says what it attacks)
//   --case SEED  only the case with this seed, as a failure prints it
// Prints the number of cases and failures by area, the seed of each failure, and the largest memory of a process. Exits with 1 if
// a case failed, 2 for wrong usage.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { memoryOf } from "./memory.mjs";
import { inWorker } from "./worker-area.mjs";

const usage = (got) => {
  console.error(`[periodic-eval] attack: got ${got}. See the top of scripts/attack/main.mjs.`);
  process.exit(2);
};
const options = (() => {
  try {
    const string = { type: "string" };
    return parseArgs({ options: { minutes: string, seed: string, area: string, case: string } }).values;
  } catch (error) {
    return usage(error.message);
  }
})();
const minutes = Number(options.minutes ?? 10);
if (!(minutes > 0)) usage(`--minutes ${options.minutes}, expected a positive number`);
const seed = options.seed ?? String(Date.now() % 1_000_000);

/** An area: `prepare(folder)` returns `attack(seed)`, which throws if the case breaks a promise, and `close()`. */
const all = {
  damage: inWorker("damage"),
  fuzz: inWorker("fuzz"),
  http: inWorker("http"),
  callbacks: inWorker("callbacks"),
};
const wanted = options.case?.split("/")[1] ?? options.area;
if (wanted !== undefined && !(wanted in all))
  usage(`area ${wanted}, expected ${Object.keys(all).join(", ")}`);
const areas = Object.entries(all).filter(([name]) => wanted === undefined || name === wanted);

const gibibyte = 2 ** 30;
/** Failures after which an area ends: the rest would only repeat them. */
const mostFailures = 20;
/** Memory that no process may exceed. */
const mostBytes = 1.5 * gibibyte;
const results = [];
const folder = mkdtempSync(join(tmpdir(), "attack-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true, maxRetries: 3 }));

async function attackArea([name, area]) {
  const result = { area: name, cases: 0, failures: [], peakBytes: 0 };
  results.push(result);
  const { attack, peakBytes, close } = await area.prepare(join(folder, name));
  const until = performance.now() + (minutes * 60_000) / areas.length;
  for (let i = 0; i === 0 || (options.case === undefined && performance.now() < until); i += 1) {
    const caseSeed = options.case ?? `${seed}/${name}/${i}`;
    result.cases += 1;
    try {
      await attack(caseSeed);
    } catch (error) {
      result.failures.push(caseSeed);
      console.log(`FAILED --case ${caseSeed}\n  ${String(error?.message ?? error).slice(0, 2000)}`);
      if (result.failures.length === mostFailures) break;
    }
  }
  await close();
  result.peakBytes = Math.max(peakBytes(), memoryOf(process.pid));
  if (result.peakBytes > mostBytes) {
    result.failures.push(`${seed} (memory)`);
    console.log(`FAILED ${name}: a process used ${(result.peakBytes / gibibyte).toFixed(2)} GiB`);
  }
}

console.log(`seed ${seed}, ${minutes} minutes`);
for (const area of areas) await attackArea(area);
console.log("area       cases  failures  peak memory of a process");
for (const { area, cases, failures, peakBytes } of results)
  console.log(
    `${area.padEnd(9)} ${String(cases).padStart(6)} ${String(failures.length).padStart(9)}  ${(peakBytes / gibibyte).toFixed(2)} GiB`,
  );
for (const one of results.flatMap(({ failures }) => failures)) console.log(`failed: ${one}`);
process.exitCode = results.some(({ failures }) => failures.length > 0) ? 1 : 0;
