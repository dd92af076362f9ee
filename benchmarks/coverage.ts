// How often does the interval of a rate over questions contain the true rate? Prints the tables of docs/explanations/coverage.md.
//   npm run bench coverage
import { coverageGrid, equalRow, unequalRow } from "../packages/core/src/statistics/coverage.test-data.ts";
import { markdownTable } from "./doc-section.ts";

const { questions, answers, correlations, unequal, unequalCorrelations } = coverageGrid;
const coverage = (correlation: number) => `coverage, correlation ${correlation}`;
const equalHead = [
  "questions",
  "answers",
  ...correlations.map(coverage),
  ...[5, 50].flatMap((rate) =>
    [0.5, 0].map((correlation) => `width at ${rate} %, correlation ${correlation}`),
  ),
];
const equalRows = questions.flatMap((count) =>
  answers.map((each) => equalRow({ questions: count, answers: each })),
);
console.log(markdownTable([equalHead, ...equalRows]));
console.log();
console.log(markdownTable([["answers", ...unequalCorrelations.map(coverage)], ...unequal.map(unequalRow)]));
