import type { TrainingRow } from "./render-row.ts";

/** Rows side by side, as a loss takes them. B rows, T tokens, N scored positions. */
export interface Batch {
  /** [B, T], right-padded with 0: attention is causal, so that what stands there reaches no scored position. */
  readonly ids: Int32Array;
  readonly shape: readonly [B: number, T: number];
  /** [N] positions in the flattened B·T whose logits predict a scored token: the ones before it. */
  readonly rows: Int32Array;
  /** [N] the tokens to be predicted. */
  readonly targets: Int32Array;
  /** Tokens fed, padding not counted. */
  readonly tokens: number;
  /** [B·T] as `TrainableLM.trainingLogits` takes them; null where no row holds more than one document. */
  readonly documentStarts: Int32Array | null;
}

/** A row as a batch takes it. */
export interface Collatable extends Pick<TrainingRow, "ids" | "scored"> {
  /** Places at which its documents begin, ascending, the first 0; one document where it is left out. */
  readonly starts?: readonly number[];
}

/** T is the longest row less its last token, which predicts nothing; or `fixedLength` where the model takes no other. */
export function collate(rows: readonly Collatable[], fixedLength?: number): Batch {
  const length = fixedLength ?? Math.max(...rows.map(({ ids }) => ids.length - 1));
  const ids = new Int32Array(rows.length * length);
  const documentStarts = new Int32Array(rows.length * length);
  const scored: number[] = [];
  const targets: number[] = [];
  let tokens = 0;
  for (const [i, row] of rows.entries()) {
    const fed = row.ids.subarray(0, Math.min(length, row.ids.length));
    ids.set(fed, i * length);
    tokens += fed.length;
    for (const at of row.scored) {
      scored.push(i * length + at - 1);
      targets.push(row.ids[at]!);
    }
    for (const start of row.starts ?? []) {
      if (start < length) documentStarts.fill(start, i * length + start, (i + 1) * length);
    }
  }
  return {
    ids,
    shape: [rows.length, length],
    rows: Int32Array.from(scored),
    targets: Int32Array.from(targets),
    tokens,
    documentStarts: rows.some(({ starts = [] }) => starts.length > 1) ? documentStarts : null,
  };
}
