// Compares the tasks with lm-evaluation-harness on SmolLM2-135M-Instruct.
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inMemory } from "@periodic-eval/tfjs";
import { loadCausalLM, useBackend } from "@periodic-eval/models";
import { loadTokenizer } from "@periodic-eval/models/tokenizer";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openPeer, type Peer } from "../../../../benchmarks/peers/peer.ts";
import { data } from "../../../testing/src/fixtures.test-data.ts";
import { hasNative, nativeBackend } from "../../../models/src/testing/backends.test-data.ts";
import { smollm2 } from "../../../models/src/testing/fixtures.test-data.ts";
import { needsPython, pythonHas } from "../../../models/src/testing/python.test-data.ts";
import {
  compareWithHarness,
  harnessCases,
  toleranceNats,
  type HarnessCase,
} from "./harness-parity.test-data.ts";

const benchmarks = ["arc_challenge", "mmlu", "truthfulqa", "gsm8k", "ifeval"];
const isThere =
  existsSync(smollm2) &&
  benchmarks.every((name) => existsSync(join(data, name))) &&
  hasNative &&
  pythonHas("lm_eval");
const needs = `${benchmarks.join(", ")} in ${data}, SmolLM2, tfjs-node; ${needsPython("lm_eval")}`;
/** `npm run bench harness-parity` compares 100, 10 and 20, which takes half an hour on two cores. */
const sizes = { scored: 2, gsm8k: 1, ifeval: 1 };
/** The harness' IFEval task imports these packages; NLTK_DATA locates NLTK's models. */
const hasIfeval = pythonHas("langdetect", "immutabledict", "nltk");
const patience = { timeout: 3_600_000 };

describe.skipIf(!isThere)(`SmolLM2-135M-Instruct on tfjs-node (${needs})`, () => {
  let peer: Peer;
  let folder: string;
  let cases: readonly HarnessCase[];
  let model: ReturnType<typeof inMemory>;
  beforeAll(async () => {
    peer = (await openPeer("lm_eval_tasks.py", [smollm2, "2"]))!;
    folder = await mkdtemp(join(tmpdir(), "harness-parity-"));
    cases = await harnessCases(data, folder, sizes);
    await useBackend({ backend: nativeBackend });
    model = inMemory(await loadCausalLM(smollm2), await loadTokenizer(smollm2));
  }, patience.timeout);
  afterAll(async () => {
    peer.close();
    await rm(folder, { recursive: true });
  });

  it.each(["arc_challenge", "mmlu_", "truthfulqa_mc2", "gsm8k", ...(hasIfeval ? ["ifeval"] : [])])(
    "%s has the prompts, log-likelihoods or texts, and scores of lm-evaluation-harness",
    patience,
    async (name) => {
      const chosen = cases.filter(({ task }) => task.startsWith(name));
      expect(chosen.length).toBeGreaterThan(0);
      for (const one of chosen) {
        const { documents, different, largestNats, metrics } = await compareWithHarness(one, model, peer);
        expect(documents).toBe(one.limit);
        expect(different).toEqual([]);
        expect(largestNats ?? 0).toBeLessThan(toleranceNats);
        expect(Object.keys(metrics).length).toBeGreaterThan(0);
        for (const [ours, theirs] of Object.values(metrics)) expect(ours).toBeCloseTo(theirs, 3);
      }
    },
  );
});
