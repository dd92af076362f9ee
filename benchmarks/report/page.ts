import { markdownTable } from "../doc-section.ts";
import type { Part } from "./parts.ts";
import { ratioOf, spreadOf, type Comparison, type Results, type Spread } from "./results.ts";

/** The results of a part, and the day on which they were measured. */
export interface MeasuredPart extends Results {
  /** YYYY-MM-DD, in UTC. */
  readonly measured: string;
  /** The load average just before: how many processes wanted a core. */
  readonly load: number;
}

/** The measured parts by name: the content of docs/performance.json. */
export type Report = Readonly<Record<string, MeasuredPart>>;

/** Returns the report as a Markdown page. */
export function pageOf(parts: readonly Part[], report: Report): string {
  const measured = parts.filter(({ name }) => report[name] !== undefined);
  const missing = parts.filter(({ name }) => report[name] === undefined);
  const sections = measured.map((part) => sectionOf(part, report[part.name]!));
  const left = missing.map(({ name, title }) => `- ${title}: \`npm run bench report -- --part ${name}\``);
  return [
    introduction,
    ...sections,
    ...(left.length === 0 ? [] : [`## Not measured yet\n\n${left.join("\n")}`]),
  ]
    .map((section) => `${section}\n`)
    .join("\n");
}

const introduction = `# Performance

Each table compares this library with another program that does the same work with the same weights, data and number of threads. The two
take turns in one run, so that noise of the machine affects both.

- A cell has the median of all repeats, and in brackets the least and the greatest value.
- The ratio is that of the medians; its range is that of the ratios of single repeats. A ratio of speeds above 1 means that this library is faster;
  one of shares below 1, that it needs less.
- A target is a ratio that the project aims for. A dash means that there is none.
- The line below a table names the CPU, the versions and the machine's load before the run. Other work widens the ranges, and makes
  threads that wait for each other slower than others.

\`npm run bench report\` measures all parts again, writes this page and \`performance.json\`, and exits with 1 if a ratio is worse than in the
last report: its range does not overlap the last one. \`--part NAME\` measures one part, and \`--compare\` writes nothing. Peers need a Python with
the packages of \`benchmarks/peers/requirements.txt\`; its path is \`PERIODIC_EVAL_PEERS_PYTHON\`.`;

function sectionOf(
  { name, title, about, targets = {} }: Part,
  { measured, load, machine, ...results }: MeasuredPart,
): string {
  const { comparisons, peaks, notes = [] } = results;
  const rows = comparisons.map((one) => [
    one.name,
    spreadText(spreadOf(one.ours), one.unit),
    `${spreadText(spreadOf(one.peers), one.unit)}, ${one.peer}`,
    ratioText(one),
    targetText(one, targets[one.name]),
  ]);
  const repeats = Math.max(0, ...comparisons.map(({ ours }) => ours.length));
  const memory = peaks
    ? [
        `Highest resident size of the process: ${gibibytes(peaks.ours)} GiB; of the peer's ${gibibytes(peaks.peer)} GiB.`,
      ]
    : [];
  // Threads of one process wait for each other, so that other work slows down one side more than the other.
  const isBusy = load > busyLoad && comparisons.some(({ unit }) => unit === "seconds");
  return [
    `## ${title}`,
    about,
    ...(rows.length === 0
      ? []
      : [markdownTable([["work", "this library", "peer", "ratio", "target"], ...rows])]),
    ...(isBusy ? [busy] : []),
    ...notes,
    ...memory,
    `${measured}, ${repeats === 0 ? "" : `${repeats} repeats, `}${machine}, load ${load.toFixed(1)}: \`npm run bench report -- --part ${name}\``,
  ].join("\n\n");
}

/** Above this load average, other work takes much of two cores. */
const busyLoad = 1;
const busy =
  "**The machine had other work.** These ratios are rough, and favour the side whose threads wait for each other less.";

/** Returns a ratio with its range, such as `2.10 × as fast (1.98–2.21)`. */
export function ratioText(comparison: Comparison): string {
  const { median, least, greatest } = ratioOf(comparison);
  return `**${median.toFixed(2)} ×** ${nounOf(comparison)} (${least.toFixed(2)}–${greatest.toFixed(2)})`;
}

const nounOf = ({ ratio, unit }: Comparison): string =>
  ratio === "speed" ? "as fast" : unit === "bytes" ? "the memory" : "the time";

function targetText({ ratio }: Comparison, target: number | undefined): string {
  if (target === undefined) return "–";
  return `${ratio === "speed" ? "≥" : "≤"} ${Number(target.toFixed(2))} ×`;
}

const gibibytes = (bytes: number): string => (bytes / 2 ** 30).toFixed(2);

function spreadText({ median, least, greatest }: Spread, unit: Comparison["unit"]): string {
  const [divisor, name] = unit === "bytes" ? [2 ** 30, "GiB"] : median < 0.1 ? [1e-3, "ms"] : [1, "s"];
  const text = (value: number) => {
    const scaled = value / divisor;
    return scaled.toFixed(scaled < 10 ? 2 : scaled < 100 ? 1 : 0);
  };
  return `${text(median)} ${name} (${text(least)}–${text(greatest)})`;
}
