import * as z from "zod";
import { namePattern, PeriodicEvalError } from "@periodic-eval/contracts";
import {
  configError,
  isRecord,
  nearest,
  quoteValue,
  atOption,
  codeOption,
} from "@periodic-eval/contracts/options";
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
 * @throws PeriodicEvalError `data` for a source of another form or a side without statements; `config` for an unknown variant.
 */
export const readStatements = (path: string, variants?: readonly string[]) =>
  atOption(codeOption("margin", "probes"), () => statementsIn(path, variants));

async function statementsIn(
  path: string,
  variants?: readonly string[],
): Promise<{ readonly statements: readonly Statement[]; readonly provenance: SourceData["provenance"] }> {
  const data = await readData(path, codeOption("margin", "probes"));
  const value = Array.isArray(data.value) && isRowSource(path) ? byVariant(data.value, data) : data.value;
  const names = isRecord(value) ? Object.keys(value).filter((name) => !name.startsWith("_")) : [];
  if (!isRecord(value) || names.length === 0)
    throw new PeriodicEvalError({
      code: "data",
      where: path,
      got: shortened(value),
      expected: "an object of at least one variant",
      fix: "Write { variant: { affirm: [string], negate: [string] } }.",
    });
  checkVariants(path, variants ?? [], names);
  const chosen = names.filter((name) => variants === undefined || variants.includes(name));
  return {
    statements: chosen.flatMap((name) => statementsOf(path, name, value[name])),
    provenance: data.provenance,
  };
}

/** Returns rows `{ variant, affirm, negate }` as an object from variant to its sides. */
function byVariant(rows: readonly unknown[], { placeOf }: SourceData): Readonly<Record<string, unknown>> {
  const found = new Map<string, unknown>();
  for (const [at, row] of rows.entries()) {
    const variant = isRecord(row) ? row["variant"] : undefined;
    if (typeof variant !== "string" || found.has(variant))
      throw new PeriodicEvalError({
        code: "data",
        where: placeOf([at]),
        got: typeof variant === "string" ? `the variant ${shortened(variant)} twice` : shortened(row),
        expected: "one row { variant, affirm, negate } for each variant",
        fix: "Correct that row, or write { variant: { affirm: [string], negate: [string] } } as YAML or JSON.",
      });
    found.set(variant, row);
  }
  return Object.fromEntries(found);
}

function checkVariants(file: string, variants: readonly string[], names: readonly string[]): void {
  const at = variants.findIndex((variant) => !names.includes(variant));
  if (at < 0) return;
  const close = nearest(variants[at]!, names);
  throw configError({
    where: "margin options",
    path: ["variants", at],
    value: variants[at],
    expected: `some of ${names.join(", ")}`,
    fix: close === null ? `Choose a variant of ${file}.` : `Did you mean "${close}"?`,
  });
}

function statementsOf(file: string, variant: string, value: unknown): readonly Statement[] {
  if (!namePattern.test(variant))
    throw new PeriodicEvalError({
      code: "data",
      where: file,
      got: shortened(variant),
      expected: `a variant's name that matches ${namePattern.source}`,
      fix: "Rename it: it names metrics.",
    });
  const sides = parseData(placesIn(`${file} ${variant}`), variantSchema, isRecord(value) ? value : {});
  return (["affirm", "negate"] as const).flatMap((side) =>
    sides[side].map((text, at) => ({ id: `${variant}/${side}/${at}`, variant, side, text })),
  );
}

const shortened = (value: unknown): string => quoteValue(value, 80);
