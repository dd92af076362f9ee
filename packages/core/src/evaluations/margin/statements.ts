import { quoteValue } from "../../internal/quote-value.ts";
import { PeriodicEvalError } from "../../errors.ts";
import { namePattern } from "../../contracts/snapshot.ts";
import { nearest } from "../../internal/nearest.ts";
import { readYaml } from "../prompting/yaml-file.ts";

export type Side = "affirm" | "negate";

export interface Statement {
  /** `variant/affirm/0`: by its place in the file. */
  readonly id: string;
  readonly variant: string;
  readonly side: Side;
  readonly text: string;
}

/**
 * The statements of a file `{ variant: { affirm: [texts], negate: [texts], … } }`, and its text. Names that begin with
 * an underscore are remarks.
 *
 * @throws PeriodicEvalError `data` for a file of another form, a side without statements, a variant that is not there.
 */
export async function readProbes(
  path: string,
  variants?: readonly string[],
): Promise<{ readonly statements: readonly Statement[]; readonly text: string }> {
  const { value, text } = await readYaml(path, "margin.probes");
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw wrong(path, value, "a map of variants", "Write { variant: { affirm: [texts], negate: [texts] } }.");
  const entries = Object.entries(value as Readonly<Record<string, unknown>>).filter(
    ([name]) => !name.startsWith("_"),
  );
  const names = entries.map(([name]) => name);
  if (names.length === 0) throw wrong(path, value, "at least one variant", "Add one beside the remarks.");
  for (const wanted of variants ?? []) {
    if (names.includes(wanted)) continue;
    const close = nearest(wanted, names);
    throw wrong(
      "margin.variants",
      wanted,
      `some of ${names.join(", ")}`,
      close === null ? `Look into ${path}.` : `Did you mean "${close}"?`,
    );
  }
  const chosen = variants === undefined ? entries : entries.filter(([name]) => variants.includes(name));
  return { statements: chosen.flatMap(([name, variant]) => statementsOf(path, name, variant)), text };
}

function statementsOf(path: string, variant: string, value: unknown): readonly Statement[] {
  if (!namePattern.test(variant))
    throw wrong(
      path,
      variant,
      `a variant's name that matches ${namePattern.source}`,
      "Rename it: it names metrics.",
    );
  return (["affirm", "negate"] as const).flatMap((side) => {
    const where = `${path} ${variant}.${side}`;
    const texts: unknown = (value as Readonly<Record<string, unknown>> | null)?.[side];
    if (!Array.isArray(texts) || texts.length === 0)
      throw wrong(where, texts, "a list of statements", "Write at least one statement of each side.");
    return texts.map((text: unknown, at) => {
      if (typeof text !== "string" || text.trim() === "")
        throw wrong(`${where}[${at}]`, text, "a statement", "Write it in quotes.");
      return { id: `${variant}/${side}/${at}`, variant, side, text };
    });
  });
}

const wrong = (where: string, got: unknown, expected: string, fix: string) => {
  const quoted = quoteValue(got);
  return new PeriodicEvalError({
    code: "data",
    where,
    got: quoted.length > 80 ? `${quoted.slice(0, 79)}…` : quoted,
    expected,
    fix,
  });
};
