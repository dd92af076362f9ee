import * as z from "zod";
import { namePattern } from "@periodic-eval/contracts";
import { atOption, codeOption, dataError, isRecord, quoteValue } from "@periodic-eval/contracts/options";
import { isRowSource, parseData, placesIn, readData, type SourceData } from "@periodic-eval/data";

export type Side = "affirm" | "negate";

export interface Statement {
  /** `variant/affirm/0`: its position in the file. */
  readonly id: string;
  readonly variant: string;
  readonly side: Side;
  readonly text: string;
}

const sideSchema = z
  .array(
    z.string("a statement").refine((text) => text.trim() !== "", "a statement"),
    "an array of statements",
  )
  .min(1, "an array of statements")
  .meta({ fix: "Write at least one statement in quotes for each side." });
const variantSchema = z.object({ affirm: sideSchema, negate: sideSchema } satisfies Record<Side, z.ZodType>);

/**
 * Reads the statements of a YAML or JSON file `{ variant: { affirm: [string], negate: [string], … } }`, or of rows `{ variant,
 * affirm, negate }` of a source of `readData`. Names that start with an underscore are comments.
 *
 * @throws PeriodicEvalError `data` for a source of another form or a side without statements.
 */
export const readStatements = (path: string) =>
  atOption(codeOption("margin", "probes"), async () => {
    const data = await readData(path, codeOption("margin", "probes"));
    const value = Array.isArray(data.value) && isRowSource(path) ? byVariant(data.value, data) : data.value;
    const names = isRecord(value) ? Object.keys(value).filter((name) => !name.startsWith("_")) : [];
    if (!isRecord(value) || names.length === 0)
      throw dataError(path, shortened(value), "an object of at least one variant", writeVariant);
    const statements = names.flatMap((name) => statementsOf(path, name, value[name]));
    return { statements, provenance: data.provenance };
  });

const writeVariant = "Write { variant: { affirm: [string], negate: [string] } }.";

/** Returns rows `{ variant, affirm, negate }` as an object from variant to its sides. */
function byVariant(rows: readonly unknown[], { placeOf }: SourceData): Readonly<Record<string, unknown>> {
  const variants = new Map<string, unknown>();
  for (const [at, row] of rows.entries()) {
    const variant = isRecord(row) ? row["variant"] : undefined;
    if (typeof variant !== "string" || variants.has(variant)) {
      const got = typeof variant === "string" ? `the variant ${shortened(variant)} twice` : shortened(row);
      const expected = "one row { variant, affirm, negate } for each variant";
      throw dataError(placeOf([at]), got, expected, "Correct that row, or write one object as YAML or JSON.");
    }
    variants.set(variant, row);
  }
  return Object.fromEntries(variants);
}

function statementsOf(file: string, variant: string, value: unknown): readonly Statement[] {
  if (!namePattern.test(variant)) {
    const expected = `a variant's name that matches ${namePattern.source}`;
    throw dataError(file, shortened(variant), expected, "Rename it: it names metrics.");
  }
  const sides = parseData(placesIn(`${file} ${variant}`), variantSchema, isRecord(value) ? value : {});
  return (["affirm", "negate"] as const).flatMap((side) =>
    sides[side].map((text, at) => ({ id: `${variant}/${side}/${at}`, variant, side, text })),
  );
}

const shortened = (value: unknown): string => quoteValue(value, 80);
