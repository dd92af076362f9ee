import type * as tf from "@tensorflow/tfjs-core";
import type { Sizes } from "../graph/dimensions.ts";
import type { AttentionTables } from "../ops/attention.ts";
import type { RotaryTables } from "../ops/rotary.ts";
import type { DecoderDescription } from "./description.ts";
import { memoized } from "./tables.ts";

export interface TracedSizes extends Sizes {
  readonly batch: number;
  readonly length: number;
  readonly rows: number;
}

/** Applies `convert` to each distinct tensor of the tables; `shapeOf` returns its shape for other sizes. */
export function mapTables(
  { heads, keyValueHeads }: DecoderDescription["attention"],
  tables: readonly AttentionTables[],
  convert: (table: tf.Tensor, shapeOf: (sizes: TracedSizes) => number[]) => tf.Tensor,
): AttentionTables[] {
  // Rows of several documents have separate tables for each head of each row.
  const first = (table: tf.Tensor, { batch }: TracedSizes, count: number) =>
    table.rank === 3 ? [batch * count] : [];
  const ofSwap = memoized((table: tf.Tensor) => convert(table, () => table.shape) as tf.Tensor2D);
  const ofAngles = (count: number) =>
    memoized((table: tf.Tensor) =>
      convert(table, (sizes) => [...first(table, sizes, count), sizes.length, table.shape.at(-1)!]),
    );
  const [ofQueries, ofKeys] = [ofAngles(heads), ofAngles(keyValueHeads)];
  const ofMask = memoized((table: tf.Tensor) =>
    convert(table, (sizes) => [...first(table, sizes, heads), sizes.length, sizes.length]),
  );
  const ofRotary = ({ cosines, sines, swap }: RotaryTables, angles: typeof ofQueries): RotaryTables => ({
    cosines: angles(cosines),
    sines: angles(sines),
    swap: ofSwap(swap),
  });
  return tables.map(({ rotary, mask, ...rest }) => ({
    ...rest,
    rotary: rotary && { query: ofRotary(rotary.query, ofQueries), key: ofRotary(rotary.key, ofKeys) },
    mask: ofMask(mask),
  }));
}

/** Lists the distinct tensors of the tables, and describes which layers share them; short sequences need no windows. */
export function listTables(
  attention: DecoderDescription["attention"],
  tables: readonly AttentionTables[],
): { readonly list: readonly tf.Tensor[]; readonly layout: string } {
  const list: tf.Tensor[] = [];
  mapTables(attention, tables, (table) => {
    list.push(table);
    return table;
  });
  const layout = tables.map(({ rotary, mask }) =>
    [mask, rotary?.query.cosines, rotary?.key.cosines].map((table) => (table ? list.indexOf(table) : "")),
  );
  return { list, layout: [...layout, ...list.map(({ rank }) => rank)].join(" ") };
}
