// transformers.js, on onnxruntime-node, as a peer of benchmarks/generation.ts and benchmarks/scoring.ts. `npm run transformers`
// installs it. Answers the same lines as transformers_generation.py and lm_eval_scoring.py.
//   node transformers-js.mjs FOLDER_WITH_ONNX THREADS
import { createInterface } from "node:readline";
import { AutoModelForCausalLM, AutoTokenizer, env, Tensor } from "@huggingface/transformers";

const [folder, threadsText] = process.argv.slice(2);
const tokenizer = await AutoTokenizer.from_pretrained(folder, { local_files_only: true });
const model = await AutoModelForCausalLM.from_pretrained(folder, {
  dtype: "fp32",
  device: "cpu",
  local_files_only: true,
  session_options: { intraOpNumThreads: Number(threadsText) },
});

/** Returns the inputs for rows of ids, padded to one length on the given side. */
function inputsOf(rows, side) {
  const longest = Math.max(...rows.map(({ length }) => length));
  const table = (valueOf) => {
    const padded = rows.map((row) => {
      const padding = Array(longest - row.length).fill(0);
      const values = row.map(valueOf);
      return side === "left" ? [...padding, ...values] : [...values, ...padding];
    });
    return new Tensor("int64", BigInt64Array.from(padded.flat(), BigInt), [rows.length, longest]);
  };
  return { longest, input_ids: table((id) => id), attention_mask: table(() => 1) };
}

async function generate({ prompts, new_tokens: newTokens, sampled }) {
  const { longest, ...inputs } = inputsOf(prompts, "left");
  const how = sampled ? { do_sample: true, temperature: 1, top_p: 0.95, top_k: 0 } : { do_sample: false };
  const output = await model.generate({
    ...inputs,
    ...how,
    max_new_tokens: newTokens,
    min_new_tokens: newTokens,
  });
  return { tokens: output.tolist().map((row) => row.slice(longest).map(Number)) };
}

/** Scores whole rows, longest first, in batches of similar lengths. */
async function score({ requests, batch_size: batchSize }) {
  const encode = (text) => tokenizer.encode(text, { add_special_tokens: false });
  const rows = requests.map(([context, continuation], at) => {
    const ids = encode(context + continuation);
    return { at, ids, from: encode(context).length };
  });
  rows.sort((a, b) => b.ids.length - a.ids.length);
  const sums = Array.from(requests, () => 0);
  for (let start = 0; start < rows.length; start += batchSize) {
    const batch = rows.slice(start, start + batchSize);
    const { longest, ...inputs } = inputsOf(
      batch.map(({ ids }) => ids.slice(0, -1)),
      "right",
    );
    const { logits } = await model.forward(inputs);
    const size = logits.dims[2];
    for (const [row, { at, ids, from }] of batch.entries())
      for (let index = from; index < ids.length; index++) {
        const first = (row * longest + index - 1) * size;
        sums[at] += logProbability(logits.data.subarray(first, first + size), ids[index]);
      }
    logits.dispose();
  }
  return { sums };
}

function logProbability(logits, id) {
  const greatest = logits.reduce((a, b) => Math.max(a, b));
  let total = 0;
  for (const logit of logits) total += Math.exp(logit - greatest);
  return logits[id] - greatest - Math.log(total);
}

console.log(JSON.stringify({ ready: `transformers.js ${env.version}` }));
for await (const line of createInterface(process.stdin)) {
  const question = JSON.parse(line);
  const [start, startCpu] = [performance.now(), process.cpuUsage()];
  const answer = await (question.prompts ? generate(question) : score(question));
  const { user, system } = process.cpuUsage(startCpu);
  const seconds = (performance.now() - start) / 1000;
  console.log(JSON.stringify({ ...answer, seconds, cpu_seconds: (user + system) / 1e6 }));
}
