import { markdownTable } from "../doc-section.ts";
import type { Part } from "./parts.ts";
import {
  isRough,
  processorOf,
  ratioOf,
  spreadOf,
  type Comparison,
  type MeasuredPart,
  type Report,
} from "./results.ts";

/** Returns the report as a Markdown page. */
export function pageOf(parts: readonly Part[], report: Report): string {
  const measured = parts.filter(({ name }) => report[name] !== undefined);
  const missing = parts.filter(({ name }) => report[name] === undefined);
  const sections = measured.map((part) => sectionOf(part, report[part.name]!));
  const left = missing.map(
    ({ name, title, whyMissing }) =>
      `- ${title}${whyMissing ? ` (${whyMissing})` : ""}: \`${commandOf(name)}\``,
  );
  return [
    introduction,
    ...sections,
    ...(left.length === 0 ? [] : [`## Not measured yet\n\n${left.join("\n")}`]),
  ]
    .map((section) => `${section}\n`)
    .join("\n");
}

const introduction = `# Performance

Each table compares this library with another program on the same weights and data. Both use the same number of threads, unless the text above
the table says otherwise. They take turns, so that other work on the machine affects both.

- A cell shows the median of the repeats and, in brackets, their range.
- A ratio divides the medians. The range in brackets is that of the ratios of the single repeats.
- A ratio that ends in "as fast" is better if it is larger. A ratio of memory or time is better if it is smaller.
- A target is the ratio that the project aims for. A dash means that there is no target.
- Each processor has its own rows and, below the table, a line with the date, the number of repeats, the versions, the machine's load average when
  the report began, and the command that measures the part again.

\`npm run bench report\` measures all parts except the GPU, and adds the results of this machine's processor to this page and \`performance.json\`:
earlier results of the same processor are replaced, those of others stay. It exits with 1 if a ratio is worse
than in the last report: by 3 % or more, and with ranges that do not overlap. It does not compare reports from different machines or versions, with
different arguments, or with fewer than five repeats, nor times from a busy machine. \`--part NAME\` measures one part; \`--compare\` writes
nothing. The other programs need a Python with the packages of \`benchmarks/peers/requirements.txt\`; set \`PERIODIC_EVAL_PEERS_PYTHON\` to its path.
Those for Node need \`npm run llama\` and \`npm run transformers\`.`;

function sectionOf({ name, title, about, targets = {} }: Part, parts: readonly MeasuredPart[]): string {
  const rows = parts.flatMap((part) =>
    part.comparisons.map((comparison) => [
      `${processorOf(part)}, ${part.measured}`,
      comparison.name,
      spreadText(comparison.ours, comparison.unit),
      `${spreadText(comparison.peers, comparison.unit)}, ${comparison.peer}`,
      ratioText(comparison),
      targetText(comparison, targets[comparison.name] ?? targets[`${comparison.name}, ${comparison.peer}`]),
    ]),
  );
  const head = ["processor", "work", "this library", "peer", "ratio", "target"];
  return [
    `## ${title}`,
    about,
    ...(rows.length === 0 ? [] : [markdownTable([head, ...rows])]),
    ...parts.flatMap((part) => circumstancesOf(name, part)),
  ].join("\n\n");
}

/** Returns paragraphs about how a part was measured on one processor. */
function circumstancesOf(name: string, part: MeasuredPart): readonly string[] {
  const { measured, load, machine, extraArgs, comparisons, peaks, notes = [] } = part;
  const repeats = Math.max(0, ...comparisons.map(({ ours }) => ours.length));
  const repeated = repeats === 0 ? [] : [repeats === 1 ? "1 repeat" : `${repeats} repeats`];
  const sides = peaks ? [["this library", peaks.ours] as const, ...Object.entries(peaks.peers)] : [];
  const memory = sides.map(([side, bytes]) => `${side} ${gibibytes(bytes)} GiB`).join(", ");
  return [
    `${[measured, ...repeated, machine, `load ${load.toFixed(1)}`].join(", ")}: \`${commandOf(name, extraArgs)}\``,
    ...(isRough(part) ? [rough] : []),
    ...notes,
    ...(memory === "" ? [] : [`Peak resident memory: ${memory}.`]),
  ];
}

function commandOf(part: string, extraArgs: readonly string[] = []): string {
  return ["npm run bench report -- --part", part, ...(extraArgs.length > 0 ? ["--", ...extraArgs] : [])].join(
    " ",
  );
}

const rough =
  "**The machine was busy with other work.** These ratios are rough: other work slows a program more if its threads wait for each other.";

/** Returns a ratio with its range, such as `**2.10 ×** as fast (1.98–2.21)`; one repeat has no range. */
export function ratioText(comparison: Comparison): string {
  const { median, least, greatest } = ratioOf(comparison);
  const range = comparison.ours.length === 1 ? "" : ` (${least.toFixed(2)}–${greatest.toFixed(2)})`;
  return `**${median.toFixed(2)} ×** ${nounOf(comparison)}${range}`;
}

const nounOf = ({ ratio, unit }: Comparison): string =>
  ratio === "speed" ? "as fast" : unit === "bytes" ? "the memory" : "the time";

function targetText({ ratio }: Comparison, target: number | undefined): string {
  if (target === undefined) return "–";
  return `${ratio === "speed" ? "≥" : "≤"} ${Number(target.toFixed(2))} ×`;
}

const gibibytes = (bytes: number): string => (bytes / 2 ** 30).toFixed(2);

function spreadText(numbers: readonly number[], unit: Comparison["unit"]): string {
  const { median, least, greatest } = spreadOf(numbers);
  const [divisor, name] = unit === "bytes" ? [2 ** 30, "GiB"] : median < 0.1 ? [1e-3, "ms"] : [1, "s"];
  const text = (value: number) => {
    const scaled = value / divisor;
    return scaled.toFixed(scaled < 10 ? 2 : scaled < 100 ? 1 : 0);
  };
  return `${text(median)} ${name}${numbers.length === 1 ? "" : ` (${text(least)}–${text(greatest)})`}`;
}
