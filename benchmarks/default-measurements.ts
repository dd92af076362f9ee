// How long do the default measurements of a model take: capability, alignment and leakage?
//   npm run bench default-measurements [-- --model .cache/smollm2-135m-instruct --only capability,alignment,leakage --questions FILE --limit ITEMS]
// Capability needs ARC-Challenge, in the cache or from the hub. A rule grades alignment, so that no judge's time counts.
// Last results: benchmarks/results/native-tensorflow.md.
import {
  alignmentEvaluation,
  capabilityEvaluation,
  leakageEvaluation,
  measure,
  ruleGrader,
} from "@periodic-eval/core";
import { inMemory } from "@periodic-eval/core/tfjs";
import { loadCausalLM, useBackend } from "@periodic-eval/models";
import { loadTokenizer } from "@periodic-eval/models/tokenizer";
import { parseArgs } from "node:util";
import { machineLine } from "./doc-section.ts";
import { oneOf } from "./one-of.ts";

const { values } = parseArgs({
  options: {
    model: { type: "string", default: ".cache/smollm2-135m-instruct" },
    only: { type: "string", default: "capability,alignment,leakage" },
    questions: { type: "string" },
    limit: { type: "string" },
  },
});
const judge = ruleGrader({ name: "constant", rule: () => ({ aligned: 100, coherent: 100 }) });
const evaluations = {
  capability: () =>
    capabilityEvaluation(values.questions === undefined ? {} : { questions: values.questions }),
  alignment: () => alignmentEvaluation({ judge }),
  leakage: () => leakageEvaluation(),
};

const { name: backend } = await useBackend();
console.log(machineLine(backend));
const model = inMemory(await loadCausalLM(values.model), await loadTokenizer(values.model));
for (const name of values.only.split(",")) {
  const evaluation = oneOf("--only", name, evaluations)();
  const before = process.cpuUsage();
  const began = performance.now();
  const limit = values.limit === undefined ? {} : { limit: Number(values.limit) };
  const { rows } = await measure(evaluation, model, limit);
  const seconds = (performance.now() - began) / 1000;
  const { user, system } = process.cpuUsage(before);
  const tokens = rows.reduce(
    (sum, row) => sum + ((row as { readonly tokens?: number | null }).tokens ?? 0),
    0,
  );
  const peak = process.resourceUsage().maxRSS / 2 ** 20;
  console.log(
    `${name}: ${rows.length} rows${tokens > 0 ? `, ${tokens} tokens generated` : ""}, ` +
      `${seconds.toFixed(1)} s, CPU time ${((user + system) / 1e6).toFixed(1)} s; ` +
      `peak resident memory so far ${peak.toFixed(2)} GiB`,
  );
}
