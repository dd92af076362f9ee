import * as tf from "@tensorflow/tfjs-core";
import { namedStream } from "@periodic-eval/core/random";
import type { CausalLM } from "./causal-lm.ts";
import type { Incremental, KeyValues, TokenBlock } from "./incremental.ts";

/** The smallest model that implements every part of `CausalLM`, for tests. */
export interface TinyLM extends CausalLM {
  readonly embedding: tf.Variable<tf.Rank.R2>;
  readonly head: tf.Variable<tf.Rank.R2>;
  /** The same weights in a model without any optional part. */
  readonly plain: CausalLM;
  /** Training mode adds 1 to the first logit, so that a score computed in it is wrong. */
  training: boolean;
  /** Forward passes so far, as [sequences, tokens] each. */
  readonly passes: (readonly [number, number])[];
  logitsAt(ids: tf.Tensor2D, rows: tf.Tensor1D): tf.Tensor2D;
  readonly incremental: Incremental;
  weights(): readonly { readonly name: string; read(): tf.Variable }[];
  /** Returns the log-probabilities of the token after `ids`, computed in double precision without tensors. */
  reference(ids: readonly number[]): readonly number[];
  dispose(): void;
}

export interface TinyLMOptions {
  readonly vocabSize?: number;
  readonly contextLength?: number;
  readonly fixedLength?: number;
  readonly seed?: string;
  readonly tokenBytes?: number;
  /** In rows with more tokens than this all states are halved, to imitate LongRoPE. */
  readonly reach?: number;
}

/** Returns the model without incremental reading, so that every sequence is scored in a row of its own. */
export function withoutIncremental(lm: CausalLM): CausalLM {
  const { incremental: _, ...plain } = lm;
  return plain;
}

const width = 8;

/**
 * Returns a model with the embedding e [V, 8] and the head h [8, V]. The hidden state at t is
 * tanh(mean(e of ids 0…t) + e of id t / (t + 1)), the logits are its product with h. It is causal and depends on the order of ids.
 */
export function tinyLM(options: TinyLMOptions = {}): TinyLM {
  const { vocabSize = 261, contextLength = 48, fixedLength, seed = "tiny", tokenBytes = 4 } = options;
  const { reach = contextLength } = options;
  const random = namedStream(seed);
  const values = (count: number, scale: number) =>
    Float32Array.from({ length: count }, () => (random() * 2 - 1) * scale);
  const embedding = tf.variable(tf.tensor2d(values(vocabSize * width, 1), [vocabSize, width]), true);
  const head = tf.variable(tf.tensor2d(values(width * vocabSize, 2), [width, vocabSize]), true);

  const hidden = (ids: tf.Tensor2D): tf.Tensor2D =>
    tf.tidy(() => {
      const [batch, tokens] = ids.shape;
      lm.passes.push([batch, tokens]);
      const vectors = tf.gather(embedding, tf.reshape(ids, [-1]));
      const before = tf.tensor2d(
        Float32Array.from({ length: tokens * tokens }, (_, at) => {
          const [row, column] = [Math.floor(at / tokens), at % tokens];
          return (column <= row ? 1 / (row + 1) : 0) + (column === row ? 1 / (row + 1) : 0);
        }),
        [tokens, tokens],
      );
      const rows = tf.unstack(tf.reshape(vectors, [batch, tokens, width]));
      const states: tf.Tensor2D = tf.tanh(tf.concat(rows.map((row) => tf.matMul(before, row))));
      return tokens > reach ? tf.mul(states, 0.5) : states;
    });
  const project = (states: tf.Tensor2D): tf.Tensor2D =>
    tf.tidy(() => {
      const logits: tf.Tensor2D = tf.matMul(states, head);
      if (!lm.training) return logits;
      return tf.add(logits, tf.oneHot(tf.zeros([1], "int32"), vocabSize));
    });

  const plain: CausalLM = {
    vocabSize,
    contextLength,
    ...(fixedLength !== undefined && { fixedLength }),
    logits: (ids) => tf.tidy(() => tf.reshape(project(hidden(ids)), [...ids.shape, vocabSize])),
  };
  const lm: TinyLM = {
    ...plain,
    plain,
    embedding,
    head,
    training: false,
    passes: [],
    logitsAt: (ids, rows) => tf.tidy(() => project(tf.gather(hidden(ids), rows))),
    incremental: {
      reach,
      tokenBytes,
      extend(block, { past = [], into = null, rows, keep = false }) {
        lm.passes.push([block.batch, block.length]);
        const e = embedding.dataSync();
        const pieces = [...past, ...(into ? [into] : [])] as TinyKeyValues[];
        const states = rows.flatMap((row) => {
          const seen = seenBy(block, row, pieces);
          return Array.from({ length: width }, (_, k) => {
            const sum = seen.reduce((total, id) => total + e[id * width + k]!, 0);
            return Math.tanh((sum + e[block.ids[row]! * width + k]!) / (block.positions[row]! + 1));
          });
        });
        (into as TinyKeyValues | null)?.grow(block);
        return {
          states: tf.tensor2d(Float32Array.from(states), [rows.length, width]),
          keyValues: keep ? keyValuesOf(block) : null,
        };
      },
      logitsOf: (states) => project(states),
    },
    enterEval() {
      const before = lm.training;
      lm.training = false;
      return () => {
        lm.training = before;
      };
    },
    modes: () => `training=${lm.training}\nhead trainable=${head.trainable}`,
    weights: () => [
      { name: "embedding", read: () => embedding },
      { name: "head", read: () => head },
    ],
    reference(ids) {
      const [e, h] = [embedding.dataSync(), head.dataSync()];
      const state = Array.from({ length: width }, (_, k) => {
        const sum = ids.reduce((total, id) => total + e[id * width + k]!, 0);
        return Math.tanh((sum + e[ids.at(-1)! * width + k]!) / ids.length) * (ids.length > reach ? 0.5 : 1);
      });
      const logits = Array.from({ length: vocabSize }, (_, v) =>
        state.reduce((total, value, k) => total + value * h[k * vocabSize + v]!, 0),
      );
      const partition = Math.log(logits.reduce((total, value) => total + Math.exp(value), 0));
      return logits.map((value) => value - partition);
    },
    dispose: () => tf.dispose([embedding, head]),
  };
  return lm;
}

interface TinyKeyValues extends KeyValues {
  readonly block: TokenBlock;
  grow(by: TokenBlock): void;
}

/** Holds a tensor, so that tests detect a cache that is not disposed. */
function keyValuesOf(first: TokenBlock): TinyKeyValues {
  const held = tf.tensor1d(first.ids, "int32");
  let block = first;
  const append = (by: TokenBlock) => joinedBlock([block, by]);
  const replacing = (others: readonly KeyValues[], made: TokenBlock) => {
    held.dispose();
    for (const other of others) other.dispose();
    return keyValuesOf(made);
  };
  return {
    batch: first.batch,
    get length() {
      return block.length;
    },
    get block() {
      return block;
    },
    grow: (by) => void (block = append(by)),
    select: (rows) => replacing([], mapBlock([block], rows)),
    append: (later) => replacing([later], append((later as TinyKeyValues).block)),
    stack: (below) => replacing(below, stacked([block, ...below.map((one) => (one as TinyKeyValues).block)])),
    dispose: () => held.dispose(),
  };
}

const joinedBlock = (blocks: readonly TokenBlock[]): TokenBlock =>
  mapBlock(
    blocks,
    Array.from({ length: blocks[0]!.batch }, (_, row) => row),
  );

/** Stacks the rows of blocks, padded to the longest. */
function stacked(blocks: readonly TokenBlock[]): TokenBlock {
  const length = Math.max(...blocks.map((block) => block.length));
  const cells = (key: Cells) =>
    Int32Array.from(
      blocks.flatMap((block) =>
        Array.from({ length: block.batch * length }, (_, cell) => {
          const [row, at] = [Math.floor(cell / length), cell % length];
          return at < block.length ? block[key][row * block.length + at]! : -1;
        }),
      ),
    );
  return { batch: blocks.reduce((sum, { batch }) => sum + batch, 0), length, ...ofCells(cells) };
}

type Cells = "ids" | "positions" | "segments" | "lastSegments";

const ofCells = (cells: (key: Cells) => Int32Array) => ({
  ids: cells("ids"),
  positions: cells("positions"),
  segments: cells("segments"),
  lastSegments: cells("lastSegments"),
});

/** Returns the given rows, with the tokens of all blocks one after another. */
function mapBlock(blocks: readonly TokenBlock[], rows: readonly number[]): TokenBlock {
  const cells = (key: Cells) =>
    Int32Array.from(
      rows.flatMap((row) =>
        blocks.flatMap(({ length, [key]: values }) => [...values.subarray(row * length, (row + 1) * length)]),
      ),
    );
  return {
    batch: rows.length,
    length: blocks.reduce((sum, { length }) => sum + length, 0),
    ...ofCells(cells),
  };
}

/** Returns the ids that a token attends to, including its own. */
function seenBy(block: TokenBlock, at: number, past: readonly TinyKeyValues[]): number[] {
  const row = Math.floor(at / block.length);
  const [position, segment] = [block.positions[at]!, block.segments[at]!];
  const inBlock = (other: TokenBlock): number[] => {
    const start = other.batch === 1 ? 0 : row * other.length;
    return Array.from({ length: other.length }, (_, i) => start + i)
      .filter((i) => {
        const isOpen = other.segments[i]! <= segment && segment <= other.lastSegments[i]!;
        return isOpen && other.positions[i]! < position;
      })
      .map((i) => other.ids[i]!);
  };
  return [...past.flatMap((piece) => inBlock(piece.block)), ...inBlock(block), block.ids[at]!];
}
