// What does live measurement cost in a PyTorch training, beside other programs on the same model?
//   scoring      200 questions of ARC-Challenge by cloze over the host, beside lm-evaluation-harness at its fastest batch size
//   generation   batches of 1 and 16 prompts, greedily and sampled, beside `generate` of transformers
//   fingerprint  all weights, beside their sum and a copy of them
//   trl          the default block in a LoRA training of TRL's SFTTrainer: overhead, receipts, and the cost of a step without messages
//   loop         a plain loop with capability and leakage, and its twin without: equal weights, optimizer, losses and random states
//   npm run bench live [-- --parts scoring,generation,fingerprint,trl --model FOLDER --questions ARC.jsonl --threads 2 --repeats 3]
//   npm run bench live -- --parts trl --steps 150 --batch 4 --length 256
//   npm run bench live -- --billions 0.001 --device cpu     # a Llama of random weights in bfloat16, all parts; also `npm run bench gpu`
// All arms of a part run in one Python process, in turns. It needs a Python with the packages of benchmarks/peers/requirements.txt;
// PERIODIC_EVAL_PEERS_PYTHON is its path. The host is this repository's, or that of PERIODIC_EVAL_HOST.
// Exits with 1 if a measurement is missing, incomplete or disturbed, if a step without messages sends one, or if twins differ.
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { cpus } from "node:os";
import { machineLine } from "./doc-section.ts";
import { median } from "./median.ts";
import { oneOf } from "./one-of.ts";
import { openPeer } from "./peers/peer.ts";
import { type Comparison, sendResults, spreadOf } from "./report/results.ts";

const { values } = parseArgs({
  options: {
    parts: { type: "string" },
    model: { type: "string", default: ".cache/smollm2-135m-instruct" },
    billions: { type: "string" },
    device: { type: "string", default: "cpu" },
    questions: { type: "string" },
    count: { type: "string", default: "200" },
    repeats: { type: "string", default: "3" },
    threads: { type: "string", default: String(cpus().length) },
    tokens: { type: "string", default: "64" },
    batches: { type: "string", default: "1,16" },
    steps: { type: "string", default: "150" },
    batch: { type: "string", default: "4" },
    length: { type: "string", default: "256" },
  },
});
const isRandom = values.billions !== undefined;
const questions =
  values.questions ??
  (isRandom ? "packages/cli/assets/micro-world/questions.jsonl" : "../shared/data/arc_challenge/test.jsonl");
const [count, repeats, steps] = [Number(values.count), Number(values.repeats), Number(values.steps)];
const names = values.parts ?? `scoring,generation,fingerprint,trl${isRandom ? ",loop" : ""}`;

/** Wall seconds, and CPU seconds of the trainer's process and the host. */
type Times = readonly [wall: number, cpu: number];

interface Measured {
  readonly id: string;
  readonly step: number;
  readonly status: string;
  readonly reason: string | null;
  readonly items: number;
  readonly measure: number;
  readonly guards: number;
  readonly total: number;
  readonly disturbed: readonly string[];
}

interface Training {
  readonly whole: Times;
  readonly callback: Times;
  readonly idle: { readonly microseconds: number; readonly messages: number };
  readonly measured: readonly Measured[];
}

process.env["PERIODIC_EVAL_HOST"] ??=
  `${process.execPath} ${fileURLToPath(new URL("../packages/cli/bin/periodic-eval.js", import.meta.url))} live`;
const model = isRandom ? `random:${values.billions}` : values.model;
const peer = await openPeer("live_training.py", [model, values.threads, values.device, questions]);
if (peer === null) process.exit(1);
const machine = [machineLine("the host"), `${values.threads} threads`, peer.versions].join(", ");
const comparisons: Comparison[] = [];
const notes: string[] = [];

const walls = (times: readonly Times[]) => times.map(([wall]) => wall);
const cpuSeconds = (times: readonly Times[]) => times.map(([, cpu]) => cpu);
const ratio = (ours: readonly number[], peers: readonly number[]) =>
  (median(ours) / median(peers)).toFixed(2);

function spread(numbers: readonly number[], digits = 2): string {
  const { median: middle, least, greatest } = spreadOf(numbers);
  return `${middle.toFixed(digits)} (${least.toFixed(digits)}–${greatest.toFixed(digits)})`;
}

function say(line: string): void {
  console.log(line);
  notes.push(line);
}

function complain(problem: string): void {
  say(`PROBLEM: ${problem}`);
  process.exitCode = 1;
}

async function scoring(): Promise<void> {
  const { ours, measure, peers, ...scored } = await peer!.ask<{
    peer: string | null;
    batch_sizes: Readonly<Record<string, number>>;
    rows: number;
    ours: Times[];
    measure: number[];
    peers: Times[];
    difference: number | null;
  }>({ work: "score", count, repeats });
  console.log(
    `scoring, ${count} questions by cloze (${scored.rows} rows): answers ${spread(measure)} s, ` +
      `window with host and guards ${spread(walls(ours))} s`,
  );
  if (scored.peer === null) return console.log("  lm-evaluation-harness is not installed");
  const sizes = Object.entries(scored.batch_sizes).map(([size, seconds]) => `${size}: ${seconds.toFixed(1)}`);
  console.log(`  ${scored.peer}: ${spread(walls(peers))} s; seconds by batch size ${sizes.join(", ")}`);
  console.log(
    `  ratio to it: answers ${ratio(measure, walls(peers))}, whole window ${ratio(walls(ours), walls(peers))}, ` +
      `its CPU time ${ratio(cpuSeconds(ours), cpuSeconds(peers))}; sums within ${scored.difference!.toExponential(1)} nats`,
  );
  const name = `live, ${count} questions by cloze`;
  comparisons.push({
    name,
    unit: "seconds",
    ratio: "share",
    peer: "lm-evaluation-harness",
    ours: measure,
    peers: walls(peers),
  });
}

async function generation(): Promise<void> {
  for (const batch of values.batches.split(",").map(Number))
    for (const sampled of [false, true]) {
      const { ours, peers, same } = await peer!.ask<{ ours: Times[]; peers: Times[]; same: number }>({
        work: "complete",
        batch,
        new_tokens: Number(values.tokens),
        sampled,
        repeats,
      });
      const name = `batch ${batch}, ${sampled ? "sampled" : "greedy"}`;
      const rate = (times: readonly Times[]) =>
        ((batch * Number(values.tokens)) / median(walls(times))).toFixed(1);
      // The two sides sample from different streams, so only their speed can be compared.
      const alike = sampled ? "" : `; ${same} of ${batch} completions identical`;
      console.log(
        `generation, ${name}: ${rate(ours)} tokens per second, model.generate ${rate(peers)}; ` +
          `ratio of times ${ratio(walls(ours), walls(peers))}, of CPU time ${ratio(cpuSeconds(ours), cpuSeconds(peers))}${alike}`,
      );
      comparisons.push({
        name: `live, ${name}`,
        unit: "seconds",
        ratio: "share",
        peer: "model.generate",
        ours: walls(ours),
        peers: walls(peers),
      });
    }
}

async function fingerprint(): Promise<void> {
  const { bytes, ours, sums, copies } = await peer!.ask<{
    bytes: number;
    ours: Times[];
    sums: Times[];
    copies: Times[];
  }>({ work: "hash_weights", repeats: 2 * repeats });
  const rate = (times: readonly Times[]) => (bytes / 1e9 / median(walls(times))).toFixed(2);
  console.log(
    `fingerprint of ${(bytes / 1e9).toFixed(2)} GB: ${rate(ours)} GB/s, torch.sum ${rate(sums)}, a copy ${rate(copies)}; ` +
      `ratio to the sum ${ratio(walls(ours), walls(sums))}, to a copy ${ratio(walls(ours), walls(copies))}`,
  );
  comparisons.push({
    name: "live, fingerprint of all weights",
    unit: "seconds",
    ratio: "share",
    peer: "torch.sum",
    ours: walls(ours),
    peers: walls(sums),
  });
}

/** Prints what measuring added to a training, and complains about measurements that are incomplete or disturbed. */
function report(name: string, { whole, callback, idle, measured }: Training): void {
  const percent = (at: 0 | 1) => ((100 * callback[at]) / (whole[at] - callback[at])).toFixed(1);
  say(
    `${name}, ${steps} steps: ${(whole[0] - callback[0]).toFixed(1)} s of training, ${callback[0].toFixed(1)} s in the callback: ` +
      `overhead ${percent(0)} %, of CPU time ${percent(1)} %`,
  );
  say(
    `  an idle step takes ${idle.microseconds.toFixed(2)} µs of Python and sends ${idle.messages} messages`,
  );
  for (const measurement of measured)
    console.log(
      `  ${measurement.id} at step ${measurement.step}: ${measurement.status}, ${measurement.items} items, answers ${measurement.measure.toFixed(1)} s, ` +
        `guards ${measurement.guards.toFixed(2)} s, window ${measurement.total.toFixed(1)} s`,
    );
  if (idle.messages > 0) complain(`an idle step sent ${idle.messages} messages`);
  if (measured.length === 0) complain("no measurements");
  for (const { id, step, status, reason, disturbed } of measured) {
    if (status !== "complete") complain(`${id} at step ${step}: ${status} (${reason})`);
    if (disturbed.length > 0) complain(`${id} at step ${step} disturbed ${disturbed.join(", ")}`);
  }
}

const size = { steps, batch: Number(values.batch), length: Number(values.length) };

async function trl(): Promise<void> {
  report("SFTTrainer with LoRA", await peer!.ask<Training>({ work: "train_with_trl", ...size }));
}

async function loop(): Promise<void> {
  const train = (measured: boolean) =>
    peer!.ask<Training & { digest: string }>({ work: "train_in_a_loop", ...size, measured });
  const [measured, plain] = [await train(true), await train(false)];
  report("plain loop with LoRA", measured);
  say(`  weights, optimizer, losses and random states equal the twin's: ${measured.digest === plain.digest}`);
  if (measured.digest !== plain.digest)
    complain("the measured training ended in another state than its twin");
}

const parts = { scoring, generation, fingerprint, trl, loop };
console.log(`${machine}; ${model}, ${repeats} repeats, in turns`);
for (const name of names.split(",")) await oneOf("--parts", name, parts)();
sendResults({ machine, comparisons, notes });
peer.close();
