// Draws the pictures of the explanations with the library's own statistics, so that they show what it computes.
// Usage: node scripts/docs/pictures.mjs     writes docs/explanations/pictures/*.svg; npm run docs -- --check compares them
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));
const folder = join(root, "docs", "explanations", "pictures");

const [width, left] = [720, 150];
/** Follows the page: an image inherits its color-scheme. */
const style = `text{font:14px system-ui,sans-serif;fill:#333}.s{font-size:12px;fill:#667}.a{stroke:#b9c0cc}.m{stroke:#1f5fbf;fill:#1f5fbf}.f{fill:#cfe0fa}.w{stroke:#b3401f;fill:#b3401f}.g{fill:#e6e9ef}.n{fill:none}@media(prefers-color-scheme:dark){text{fill:#dfe3ea}.s{fill:#a3abba}.a{stroke:#4a5261}.m{stroke:#86b4ff;fill:#86b4ff}.f{fill:#2b4470}.w{stroke:#ff9b7a;fill:#ff9b7a}.g{fill:#333944}.n{fill:none}}`;

const round = (value) => Math.round(value * 10) / 10;
const text = (x, y, content, { kind = "", anchor = "start" } = {}) =>
  `<text x="${round(x)}" y="${round(y)}"${kind === "" ? "" : ` class="${kind}"`} text-anchor="${anchor}">${content}</text>`;
const line = (x1, y1, x2, y2, kind, size = 1) =>
  `<line x1="${round(x1)}" y1="${round(y1)}" x2="${round(x2)}" y2="${round(y2)}" class="${kind}" stroke-width="${size}"/>`;
const box = (x, y, w, h, kind) =>
  `<rect x="${round(x)}" y="${round(y)}" width="${round(w)}" height="${round(h)}" rx="4" class="${kind}"/>`;
const dot = (x, y, kind) => `<circle cx="${round(x)}" cy="${round(y)}" r="5" class="${kind}"/>`;

const svg = (height, title, parts) =>
  `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img"><title>${title}</title><style>${style}</style>\n${parts.flat(9).join("\n")}\n</svg>\n`;

const percent = (share, digits = 1) => `${(100 * share).toFixed(digits)} %`;
const signed = (value) => `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(1)}`;

/** A row with an interval, its value, and its numbers on the right. */
const intervalRow = (scale, y, { label, value, interval, note, kind = "m" }) => [
  text(left - 14, y + 5, label, { anchor: "end" }),
  line(scale(interval[0]), y, scale(interval[1]), y, kind, 3),
  dot(scale(value), y, kind),
  text(width - 6, y + 5, note, { kind: "s", anchor: "end" }),
];

const axis = (scale, ticks, top, bottom, format) =>
  ticks.map((tick) => [
    line(scale(tick), top, scale(tick), bottom, "a"),
    text(scale(tick), bottom + 18, format(tick), { kind: "s", anchor: "middle" }),
  ]);

function intervals({ wilson }) {
  const scale = (share) => left + ((share - 0.4) / 0.4) * 400;
  const rows = [50, 200, 500, 1172].map((n, at) => {
    const interval = wilson(Math.round(0.6 * n), n);
    const note = `${percent(interval[0])} to ${percent(interval[1])}`;
    return intervalRow(scale, 40 + 38 * at, { label: `${n} questions`, value: 0.6, interval, note });
  });
  return svg(220, "Intervals of an accuracy of 60 %", [
    axis(scale, [0.4, 0.5, 0.6, 0.7, 0.8], 20, 180, (tick) => percent(tick, 0)),
    rows,
  ]);
}

function pairs({ newcombePaired, mcnemarExact }) {
  const scale = (change) => left + 30 + ((change + 0.15) / 0.2) * 330;
  const cases = [
    { label: "10 lost, 0 won", cells: [110, 10, 0, 80] },
    { label: "40 lost, 30 won", cells: [80, 40, 30, 50] },
  ];
  const rows = cases.map(({ label, cells }, at) => {
    const { delta, ci95 } = newcombePaired(cells);
    // Newcombe's difference is first minus second; a loss is negative.
    const interval = [-ci95[1], -ci95[0]];
    const note = `${signed(-100 * delta)} [${signed(100 * interval[0])}, ${signed(100 * interval[1])}], p = ${mcnemarExact(cells).toPrecision(2)}`;
    return intervalRow(scale, 50 + 50 * at, {
      label,
      value: -delta,
      interval,
      note,
      kind: at === 0 ? "w" : "m",
    });
  });
  return svg(165, "The change of accuracy on 200 paired questions, in points", [
    axis(scale, [-0.15, -0.1, -0.05, 0, 0.05], 25, 125, (tick) =>
      `${Math.round(100 * tick)} points`.replace("-", "−"),
    ),
    rows,
  ]);
}

function falseAlarms() {
  const counts = Array.from({ length: 20 }, (_, at) => at + 1);
  const x = (count) => 60 + (count / 20) * 460;
  const y = (share) => 220 - share * 280;
  const curve = (chance, kind) =>
    `<polyline points="${counts.map((count) => `${round(x(count))},${round(y(chance(count)))}`).join(" ")}" class="${kind} n" fill="none" stroke-width="3"/>`;
  const [each, shared] = [(count) => 1 - 0.95 ** count, (count) => 1 - (1 - 0.05 / count) ** count];
  return svg(265, "The chance of a false alarm by the number of measurements", [
    [0, 0.2, 0.4, 0.6].map((share) => [
      line(60, y(share), x(20), y(share), "a"),
      text(52, y(share) + 4, percent(share, 0), { kind: "s", anchor: "end" }),
    ]),
    [1, 5, 10, 15, 20].map((count) => text(x(count), 240, count, { kind: "s", anchor: "middle" })),
    text(x(10), 260, "independent measurements of an unchanged model", { kind: "s", anchor: "middle" }),
    curve(each, "w"),
    curve(shared, "m"),
    text(x(20) + 10, y(each(20)) + 5, "5 % each"),
    text(x(20) + 10, y(shared(20)) + 5, "5 % shared"),
    dot(x(10), y(each(10)), "w"),
    text(x(10) + 8, y(each(10)) + 20, percent(each(10), 0), { kind: "s" }),
  ]);
}

function receipt() {
  const steps = (from) =>
    [0, 1, 2].map((at) => [
      box(from + 44 * at, 60, 38, 40, "f"),
      text(from + 44 * at + 19, 85, "step", { kind: "s", anchor: "middle" }),
    ]);
  return svg(200, "The window of a measurement between two training steps", [
    steps(20),
    box(170, 40, 380, 80, "g"),
    text(360, 30, "window: training is paused", { kind: "s", anchor: "middle" }),
    box(182, 55, 96, 50, "f"),
    text(230, 85, "observe", { anchor: "middle" }),
    text(360, 85, "measure", { anchor: "middle" }),
    box(442, 55, 96, 50, "f"),
    text(490, 85, "observe", { anchor: "middle" }),
    steps(570),
    line(230, 105, 230, 150, "m", 2),
    line(490, 105, 490, 150, "m", 2),
    line(230, 150, 490, 150, "m", 2),
    text(360, 172, "equal to the bit: weights, optimizer, mode, random numbers, tensors", {
      anchor: "middle",
    }),
  ]);
}

function budget() {
  const row = (y, label, windows) => [
    text(10, y + 24, label, { kind: "s" }),
    box(left, y, 550, 36, "f"),
    windows.map(([at, size]) => box(left + at * 550 - size / 2, y, size, 36, "m")),
  ];
  const [full, less] = [22, 9];
  return svg(200, "Measurements during training", [
    row(20, "within the grace", [
      [0.02, full],
      [0.2, full],
      [0.4, full],
      [0.6, full],
      [0.8, full],
      [0.98, full],
    ]),
    row(75, "beyond it", [
      [0.02, full],
      [0.2, less],
      [0.4, less],
      [0.6, less],
      [0.8, less],
      [0.98, full],
    ]),
    row(130, "far beyond it", [
      [0.02, full],
      [0.33, less],
      [0.67, less],
      [0.98, full],
    ]),
    text(
      left,
      190,
      "start and end: always in full · between them: fewer questions, then fewer measurements",
      { kind: "s" },
    ),
  ]);
}

/** Returns the pictures by file name. */
export async function pictures() {
  const built = join(root, "packages/core/dist/statistics");
  const load = (file) => import(pathToFileURL(join(built, file)).href);
  const statistics = { ...(await load("index.js")), ...(await load("paired-shares.js")) };
  return new Map([
    ["intervals.svg", intervals(statistics)],
    ["pairs.svg", pairs(statistics)],
    ["false-alarms.svg", falseAlarms()],
    ["receipt.svg", receipt()],
    ["budget.svg", budget()],
  ]);
}

export const picturesFolder = folder;

if (process.argv[1] === fileURLToPath(import.meta.url))
  for (const [name, content] of await pictures()) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), content);
  }
