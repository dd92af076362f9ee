// Do the tasks give the same numbers as lm-evaluation-harness?
// Both sides evaluate the same weights on the same files. Compares log-likelihoods of every choice, greedy completions, scores.
//   npm run bench harness-parity [-- --model FOLDER --data ../shared/data --scored 100 --gsm8k 10 --ifeval 20 --only arc,mmlu --threads 2]
// Needs tfjs-node (npm run native) and a Python with the packages of benchmarks/peers/requirements.txt, whose path is in
// PERIODIC_EVAL_PEERS_PYTHON. Prints the table of docs/explanations/harness-parity.md.
import { mkdtemp } from "node:fs/promises";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { inMemory } from "@periodic-eval/tfjs";
import { loadCausalLM, useBackend } from "@periodic-eval/models";
import { loadTokenizer } from "@periodic-eval/models/tokenizer";
import {
  comparisonRow,
  compareWithHarness,
  harnessCases,
} from "../packages/tasks/src/tasks/harness-parity.test-data.ts";
import { openPeer } from "./peers/peer.ts";

const { values } = parseArgs({
  options: {
    model: { type: "string", default: ".cache/smollm2-135m-instruct" },
    data: { type: "string", default: "../shared/data" },
    scored: { type: "string", default: "100" },
    gsm8k: { type: "string", default: "10" },
    ifeval: { type: "string", default: "20" },
    only: { type: "string", default: "" },
    threads: { type: "string", default: "2" },
  },
});
// TensorFlow reads these variables at start-up.
process.env["TF_NUM_INTRAOP_THREADS"] ??= values.threads;
process.env["TF_NUM_INTEROP_THREADS"] ??= values.threads;
const peer = await openPeer("lm_eval_tasks.py", [values.model, values.threads]);
if (peer === null) process.exit(1);
await useBackend({ backend: "tfjs-node" });
const model = inMemory(await loadCausalLM(values.model), await loadTokenizer(values.model));
const folder = await mkdtemp(join(tmpdir(), "harness-parity-"));
const sizes = {
  scored: Number(values.scored),
  gsm8k: Number(values.gsm8k),
  ifeval: Number(values.ifeval),
};
console.log(
  `${cpus()[0]!.model.trim()}, ${values.threads} threads, Node ${process.versions.node}; ${values.model}`,
);
console.log("| task | documents | compared | largest difference, nats | differ | ours / theirs |");
console.log("|---|--:|---|--:|--:|---|");
for (const harnessCase of await harnessCases(values.data, folder, sizes)) {
  if (!values.only.split(",").some((part) => harnessCase.label.startsWith(part))) continue;
  const compared = await compareWithHarness(harnessCase, model, peer);
  console.log(comparisonRow(compared));
  for (const line of compared.different) console.log(`  ${line}`);
}
peer.close();
