// How small a change can a measurement detect? Prints the tables of docs/explanations/power.md.
//   npm run bench power [-- --runs 4000]
import { parseArgs } from "node:util";
import {
  alignmentPower,
  capabilityPower,
  powerGrid,
} from "../packages/core/src/statistics/power.test-data.ts";

const { values } = parseArgs({ options: { runs: { type: "string", default: "4000" } } });
const runs = Number(values.runs);
const percent = (rate: number) => (100 * rate).toFixed(0);

console.log("| questions | points lost | by `accuracy`, % | by `gold_margin`, % |\n|---|---|---|---|");
for (const questions of powerGrid.questions) {
  for (const drop of powerGrid.drops) {
    const { byAccuracy, byMargin } = capabilityPower(questions, drop, runs, "committed");
    console.log(`| ${questions} | ${drop} | ${percent(byAccuracy)} | ${percent(byMargin)} |`);
  }
}
console.log(`\n| completions per question | ${powerGrid.percents.map((rate) => `${rate} %`).join(" | ")} |`);
console.log(`|---|${powerGrid.percents.map(() => "---|").join("")}`);
for (const samples of powerGrid.samples) {
  const cells = powerGrid.percents.map((rate) => percent(alignmentPower(samples, rate, runs, "committed")));
  console.log(`| ${samples} | ${cells.join(" | ")} |`);
}
