import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import * as tf from "@tensorflow/tfjs";
import "@tensorflow/tfjs-backend-wasm";
import type { Logger } from "@periodic-eval/core";
import { namedStream } from "@periodic-eval/core/random";
import { fakeTokenizer } from "@periodic-eval/testing";
import type { TrainableLM } from "@periodic-eval/tfjs";
import { afterFile } from "../../../testing/src/after-file.test-data.ts";
import { temporaryFolder as folderUntil } from "../../../testing/src/temporary-folder.test-data.ts";
import type { MessagesRow } from "../data/forms.ts";
import type { PreferenceRow } from "../data/preference-rows.ts";
import type { SFTConfig } from "../sft/sft-config.ts";

export const tokenizer = fakeTokenizer();

/** Selects the backend wasm. For `beforeAll`. */
export async function useWasm(): Promise<void> {
  await tf.setBackend("wasm");
  await tf.ready();
}

/** Creates a folder that is removed after all tests of the file: tests share runs of an earlier test or hook. */
export const temporaryFolder = async (): Promise<string> => folderUntil(afterFile);

/** Returns rows of different lengths, each a question and a short answer of letters. */
export function rows(count: number, seed = "rows"): MessagesRow[] {
  const random = namedStream(seed);
  const word = () =>
    Array.from({ length: 1 + Math.floor(random() * 12) }, () => "abcdefgh"[Math.floor(random() * 8)]).join(
      "",
    );
  return Array.from({ length: count }, () => ({
    messages: [
      { role: "user", content: word() },
      { role: "assistant", content: word() },
    ],
  }));
}

/** Returns preference pairs of different lengths, with questions like those of `rows`. */
export function preferences(count: number, seed = "preferences"): PreferenceRow[] {
  const answers = rows(count, `${seed}, rejected`).map(({ messages }) => messages.slice(1));
  return rows(count, seed).map(({ messages }, i) => ({
    prompt: messages.slice(0, 1),
    chosen: messages.slice(1),
    rejected: answers[i]!,
  }));
}

/** A Llama of 2 layers and hidden size 16, with the vocabulary of `tokenizer`. */
export const tinyLlama = {
  model_type: "llama",
  hidden_size: 16,
  intermediate_size: 32,
  num_hidden_layers: 2,
  num_attention_heads: 2,
  num_key_value_heads: 1,
  max_position_embeddings: 128,
  rms_norm_eps: 1e-5,
  tie_word_embeddings: false,
  vocab_size: tokenizer.vocabSize,
};

/** Writes a file of three questions with two choices each. Returns its path. */
export async function questionFile(): Promise<string> {
  const path = join(await temporaryFolder(), "questions.jsonl");
  const questions = ["abc", "bcd", "cde"].map((question) => ({
    question,
    choice_labels: ["A", "B"],
    choices: [`${question}a`, `${question}b`],
    correct_answer: "B",
  }));
  await writeFile(path, questions.map((question) => JSON.stringify(question)).join("\n"));
  return path;
}

/** A configuration in which everything that changes the arithmetic is on, except dropout, which belongs to the model. */
export const busyConfig: Partial<SFTConfig> = {
  maxSteps: 12,
  batchSize: 3,
  gradientAccumulation: 2,
  learningRate: 0.05,
  schedule: "cosine",
  warmupSteps: 3,
  weightDecay: 0.1,
  maxGradNorm: 0.5,
};

/** No overhead limit: a training of milliseconds would leave no budget for measuring. */
export const ungoverned = { budget: { overheadPercent: null } } as const;

export interface Recording extends Logger {
  /** Metrics by step, without times. */
  readonly metrics: Readonly<Record<string, number>>[];
  readonly warnings: string[];
}

export function recording(): Recording {
  const metrics: Readonly<Record<string, number>>[] = [];
  const warnings: string[] = [];
  return {
    name: "recording",
    metrics,
    warnings,
    train({ tokens_per_second: _time, ...rest }, { step }) {
      metrics.push({ step, ...rest });
    },
    event(event) {
      if (event.kind === "warning") warnings.push(`${event.where}: ${event.message}`);
    },
  };
}

export async function weightsOf(model: TrainableLM): Promise<number[][]> {
  return Promise.all(model.trainables().map(async (variable) => [...(await variable.data<"float32">())]));
}
