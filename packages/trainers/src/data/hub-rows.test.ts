// Training rows from a hub on the loopback interface.
import { readdir, realpath, writeFile } from "node:fs/promises";
import { join } from "node:path";
import * as tf from "@tensorflow/tfjs";
import type { Tokenizer } from "@periodic-eval/core";
import { parquetWriteBuffer } from "hyparquet-writer";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import {
  datasetCommit,
  hostDataset,
  startHub,
  type HubServer,
} from "../../../data/src/hub/hub-server.test-data.ts";
import { DPOTrainer } from "../dpo/dpo-trainer.ts";
import { checkDatasets } from "../pipeline/check-pipeline.ts";
import { runPipeline } from "../pipeline/run-pipeline.ts";
import { SFTTrainer } from "../sft/sft-trainer.ts";
import { tinyLM } from "../testing/tiny-lm.test-data.ts";
import { rows, temporaryFolder, tokenizer, ungoverned } from "../testing/tiny-run.test-data.ts";
import { loadDataset, loadPreferences } from "./dataset.ts";
import { threeRowsOfParquet } from "./three-rows.test-data.ts";

type Columns = Readonly<Record<string, readonly unknown[]>>;
const parquet = (columns: Columns) =>
  new Uint8Array(
    parquetWriteBuffer({
      columnData: Object.entries(columns).map(([name, data]) => ({
        name,
        data: [...data],
        type: typeof data[0] === "string" ? "STRING" : "JSON",
      })),
    }),
  );

let hub: HubServer;
let [cache, runDir] = ["", ""];
beforeEach(async () => {
  await tf.setBackend("cpu");
  hub = await startHub();
  [cache, runDir] = [await temporaryFolder(), await temporaryFolder()];
  vi.stubEnv("HF_ENDPOINT", hub.url);
  vi.stubEnv("HF_HUB_CACHE", cache);
  for (const name of ["HF_TOKEN", "HF_HUB_OFFLINE"]) vi.stubEnv(name, "");
  hostDataset(hub, "owner/texts", {
    "default/train/0000.parquet": parquet({ text: ["ab", "cd"] }),
    "default/train/0001.parquet": parquet({ text: ["  ", "ef"] }),
    "default/validation/0000.parquet": parquet({ text: ["gh"] }),
    "default/test/0000.parquet": parquet({ text: ["no"] }),
    "other/train/0000.parquet": parquet({ text: ["ij", "kl", "mn"] }),
  });
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await hub.close();
});

/** Runs `use` with a model and the options that all trainers need. */
async function withParts<T>(use: (parts: ConstructorParameters<typeof SFTTrainer>[0]) => Promise<T>) {
  const model = tinyLM({ vocabSize: tokenizer.vocabSize });
  const config = { maxSteps: 1, batchSize: 2 };
  const dataset = "hf:owner/texts";
  try {
    return await use({ model, tokenizer, runDir, config, dataset, loggers: [], session: ungoverned });
  } finally {
    model.dispose();
  }
}

const textsOf = async (source: string, of: "dataset" | "validation" = "dataset") => {
  const read = await loadDataset(source, tokenizer, { maxLength: 50, onBadRow: "drop", of });
  return read.rows.map(({ ids }) => tokenizer.decode([...ids]).replace("<|end|>", ""));
};

describe("rows of the hub", () => {
  it("train, validate, and are read from the cache without a request", async () => {
    const token = "hf_secret";
    hub.datasets.set("owner/texts", {
      ...hub.datasets.get("owner/texts")!,
      gate: { token, status: 401, message: "no" },
    });
    vi.stubEnv("HF_TOKEN", token);
    const train = () => withParts((parts) => new SFTTrainer({ ...parts, validation: parts.dataset }).train());
    const { steps, badRows } = await train();
    expect(steps).toBe(1);
    expect(badRows).toMatchObject([
      { where: "hf:owner/texts/default/train/0001.parquet:row 1", reason: "empty" },
    ]);
    expect(hub.authorizations.length).toBeGreaterThan(0);
    expect(new Set(hub.authorizations)).toEqual(new Set([`Bearer ${token}`]));
    hub.requests.length = 0;
    vi.stubEnv("HF_HUB_OFFLINE", "1");
    expect((await train()).resumedFrom).toBe(1);
    expect(hub.requests).toEqual([]);
  });

  it("are the split that the source names, train by default, and validation or test for validation", async () => {
    expect(await textsOf("hf:owner/texts")).toEqual(["ab", "cd", "ef"]);
    expect(await textsOf("hf:owner/texts", "validation")).toEqual(["gh"]);
    expect(await textsOf("hf:owner/texts/other")).toEqual(["ij", "kl", "mn"]);
    expect(await textsOf("hf:owner/texts/default/test")).toEqual(["no"]);
    hostDataset(hub, "owner/two", {
      "default/train/0000.parquet": parquet({ text: ["ab"] }),
      "default/test/0000.parquet": parquet({ text: ["cd"] }),
    });
    expect(await textsOf("hf:owner/two", "validation")).toEqual(["cd"]);
  });

  it.each<[form: string, bytes: Uint8Array, tokens: readonly number[]]>([
    ["messages", threeRowsOfParquet, [8, 8]],
    ["text", parquet({ text: ["abc"] }), [4]],
    ["prompt and completion", parquet({ prompt: ["ab"], completion: ["cd"] }), [5]],
  ])("may have the form %s", async (_, bytes, tokens) => {
    hostDataset(hub, "owner/form", { "default/train/0000.parquet": bytes });
    const read = await loadDataset("hf:owner/form", tokenizer, { maxLength: 50, onBadRow: "drop" });
    expect(read.rows.map(({ ids }) => ids.length)).toEqual(tokens);
  });

  it("may be preferences, with their prompt or without", async () => {
    const [chosen, rejected] = [["ab yes"], ["ab no"]];
    const options = { maxLength: 50, onBadRow: "error", isPrecomputed: false } as const;
    hostDataset(hub, "owner/pairs", {
      "default/train/0000.parquet": parquet({ chosen, rejected }),
      "prompted/train/0000.parquet": parquet({ prompt: ["ab"], chosen: [" yes"], rejected: [" no"] }),
    });
    const implicit = await loadPreferences("hf:owner/pairs", tokenizer, options);
    const given = await loadPreferences("hf:owner/pairs/prompted", tokenizer, options);
    expect(implicit.hash).toBe(given.hash);
    expect([...given.rows[0]!.chosen.scored]).toEqual([2, 3, 4, 5, 6]);
  });

  it("are rendered once for the check and the training", async () => {
    let rendered = 0;
    const counting: Tokenizer = {
      ...tokenizer,
      encode(...given) {
        rendered += 1;
        return tokenizer.encode(...given);
      },
    };
    await withParts(async (parts) => {
      const { model, dataset, config } = parts;
      const phase = { phase: "train", dataset, config: config! };
      expect(await checkDatasets(phase, { model, tokenizer: counting, runDir })).toEqual([]);
      const before = rendered;
      await new SFTTrainer({ ...parts, tokenizer: counting }).train();
      expect([before > 0, rendered]).toEqual([true, before]);
    });
  });
});

describe("a dataset that cannot be had", () => {
  const offline = {
    code: "data",
    path: ["dataset"],
    got: expect.stringContaining("HF_HUB_OFFLINE, but hf:owner/texts is not in the cache"),
    fix: expect.stringMatching(
      /`npx periodic-eval data get hf:owner\/texts\/train --out FOLDER`.*, or unset HF_HUB_OFFLINE\.$/,
    ),
  };

  it("ends a training before step 1 with both remedies, offline and without a cache", async () => {
    vi.stubEnv("HF_HUB_OFFLINE", "1");
    await withParts(async (parts) => {
      const { dataset, model, config, ...shared } = parts;
      await expect(new SFTTrainer(parts).train()).rejects.toMatchObject({ ...offline, where: "dataset" });
      const pairs = { tokenizer, model, runDir, dataset: "hf:owner/texts" };
      await expect(new DPOTrainer(pairs).train()).rejects.toMatchObject(offline);
      const phases = [
        { phase: "early", dataset: rows(4) },
        { phase: "late", dataset },
      ];
      await expect(runPipeline(phases, { ...shared, model, config: config! })).rejects.toMatchObject(offline);
      const held = { ...parts, dataset: rows(4), validation: "hf:owner/texts/validation" };
      await expect(new SFTTrainer(held).train()).rejects.toMatchObject({
        path: ["validation"],
        fix: expect.stringContaining("data get hf:owner/texts/validation --out"),
      });
    });
    expect([await readdir(runDir), hub.requests]).toEqual([[], []]);
  });

  it("names the network if the hub does not answer", async () => {
    await hub.close();
    await withParts((parts) =>
      expect(new SFTTrainer(parts).train()).rejects.toMatchObject({
        ...offline,
        got: expect.stringContaining("no answer from the hub"),
        fix: expect.stringContaining("or check the network and HF_ENDPOINT."),
      }),
    );
  });

  it.each([
    [
      "hf:owner/texts/trian",
      { got: 'the split "trian" of owner/texts, config default', fix: 'Did you mean "train"?' },
    ],
    ["hf:owner/none", { got: expect.stringContaining("404") }],
  ])("is reported for %s", async (source, problem) => {
    await withParts((parts) =>
      expect(new SFTTrainer({ ...parts, dataset: source }).train()).rejects.toMatchObject({
        code: "data",
        path: ["dataset"],
        ...problem,
      }),
    );
  });

  it.each(["hf:texts", "hf:owner/../x", "hf:a/b/c/d/e", "hf:"])(
    "is an error of the constructor for the name %s",
    async (name) => {
      await withParts(async (parts) => {
        const problem = { code: "data", got: JSON.stringify(name) };
        const make = (more: object) => () => new SFTTrainer({ ...parts, ...more });
        expect(make({ dataset: name })).toThrow(
          expect.objectContaining({ ...problem, where: "dataset", path: ["dataset"] }),
        );
        expect(make({ validation: name })).toThrow(
          expect.objectContaining({ ...problem, where: "validation", path: ["validation"] }),
        );
      });
      expect(hub.requests).toEqual([]);
    },
  );

  it("is reported if its file in the cache has changed, and if its rows have another form", async () => {
    await textsOf("hf:owner/texts");
    const path = join(cache, "datasets--owner--texts/snapshots", datasetCommit, "default/train/0001.parquet");
    const file = await realpath(path);
    await writeFile(file, parquet({ text: ["changed"] }));
    await withParts(async (parts) => {
      await expect(new SFTTrainer(parts).train()).rejects.toMatchObject({
        code: "data",
        path: ["dataset"],
        got: expect.stringContaining(`${file} with the SHA-256 `),
      });
      hostDataset(hub, "owner/numbers", { "default/train/0000.parquet": parquet({ n: ["1"] }) });
      const numbers = { ...parts, dataset: "hf:owner/numbers" };
      await expect(new SFTTrainer(numbers).train()).rejects.toMatchObject({
        code: "data",
        path: ["dataset"],
        where: "hf:owner/numbers",
        got: expect.stringContaining("unknown_form"),
      });
    });
  });

  it("leaves no half of a file that stops early", async () => {
    hub.tamper = () => ({ stopAfter: 10 });
    await expect(textsOf("hf:owner/texts")).rejects.toMatchObject({ code: "data" });
    hub.tamper = null;
    expect(await textsOf("hf:owner/texts")).toEqual(["ab", "cd", "ef"]);
  });
});
