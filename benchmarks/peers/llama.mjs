// llama.cpp, by node-llama-cpp, as a peer of benchmarks/generation.ts and benchmarks/scoring.ts. `npm run llama` installs it.
// Answers the same lines as transformers_generation.py and lm_eval_scoring.py. With "only_read", it reads the same tokens without
// their log-probabilities, and answers with no sums: a lower bound for any scorer on llama.cpp.
//   node llama.mjs MODEL.gguf THREADS
import { createInterface } from "node:readline";
import { getLlama, getModuleVersion } from "node-llama-cpp";

const [modelPath, threadsText] = process.argv.slice(2);
const threads = Number(threadsText);
/** Rows that are read together, and tokens of one pass. */
const [maxRows, batchSize] = [16, 512];

const llama = await getLlama({ gpu: false, build: "never", maxThreads: threads, logLevel: "error" });
const model = await llama.loadModel({ modelPath });

/** Runs `work` on rows of a new context, so that it shares no cache with an earlier question. Returns its result with its seconds. */
async function timed(sequences, contextSize, work) {
  const context = await model.createContext({
    sequences,
    contextSize,
    batchSize,
    threads: { ideal: threads, min: threads },
  });
  const rows = Array.from({ length: sequences }, () => context.getSequence());
  const [start, startCpu] = [performance.now(), process.cpuUsage()];
  const result = await work(rows);
  const { user, system } = process.cpuUsage(startCpu);
  const seconds = (performance.now() - start) / 1000;
  await context.dispose();
  return { ...result, seconds, cpu_seconds: (user + system) / 1e6 };
}

async function generate({ prompts, new_tokens: newTokens, sampled }) {
  const longest = Math.max(...prompts.map(({ length }) => length));
  return timed(prompts.length, longest + newTokens, async (rows) => {
    const completion = async (row, at) => {
      const how = sampled ? { temperature: 1, topP: 0.95, topK: 0, seed: at + 1 } : { temperature: 0 };
      const ids = [];
      for await (const id of row.evaluate(prompts[at], { ...how, yieldEogToken: true })) {
        ids.push(id);
        if (ids.length === newTokens) break;
      }
      return ids;
    };
    return { tokens: await Promise.all(rows.map(completion)) };
  });
}

/** The softmax of all logits. */
const generateNext = { probabilities: true, options: { temperature: 1, topK: 0, topP: 1, minP: 0 } };

/** Scores continuations. A context that several of them follow is read once, as llama.cpp's scorer of multiple choice does. */
async function score({ requests, only_read: onlyRead }) {
  const questions = new Map();
  for (const [at, [context, continuation]] of requests.entries()) {
    const ids = model.tokenize(context);
    const rest = model.tokenize(context + continuation).slice(ids.length);
    if (!questions.has(context)) questions.set(context, { ids, choices: [] });
    questions.get(context).choices.push({ at, ids: rest });
  }
  const longest = Math.max(
    ...[...questions.values()].flatMap(({ ids, choices }) =>
      choices.map((choice) => ids.length + choice.ids.length),
    ),
  );
  const waiting = [...questions.values()];
  const sums = Array.from(requests, () => 0);
  /** Reads tokens. Returns what each of the last `count` tokens predicts. */
  const read = async (row, ids, count) => {
    if (onlyRead) return void (await row.evaluateWithoutGeneratingNewTokens(ids));
    const outputs = await row.controlledEvaluate(
      ids.map((id, index) => (index < ids.length - count ? id : [id, { generateNext }])),
    );
    return outputs.slice(ids.length - count).map(({ next }) => next.probabilities);
  };
  const work = async (row) => {
    for (let question = waiting.shift(); question !== undefined; question = waiting.shift()) {
      const { ids, choices } = question;
      await row.clearHistory();
      const first = await read(row, ids, 1);
      for (const choice of choices) {
        const known = choice.ids.slice(0, -1);
        const rest = known.length === 0 ? [] : await read(row, known, known.length);
        if (known.length > 0)
          await row.eraseContextTokenRanges([{ start: ids.length, end: ids.length + known.length }]);
        if (onlyRead) continue;
        const predicted = [...first, ...rest];
        for (const [index, id] of choice.ids.entries()) sums[choice.at] += Math.log(predicted[index].get(id));
      }
    }
  };
  const rows = Math.min(maxRows, waiting.length);
  const { seconds } = await timed(rows, longest, (all) => Promise.all(all.map(work)));
  return { seconds, sums: onlyRead ? null : sums };
}

console.log(JSON.stringify({ ready: `node-llama-cpp ${await getModuleVersion()}` }));
for await (const line of createInterface(process.stdin)) {
  const question = JSON.parse(line);
  console.log(JSON.stringify(await (question.prompts ? generate(question) : score(question))));
}
// llama.cpp's threads outlive standard input.
process.exit();
