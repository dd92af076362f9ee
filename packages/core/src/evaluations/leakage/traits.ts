import { checkKeys } from "../../internal/check-keys.ts";
import { quoteValue } from "../../internal/quote-value.ts";
import { checkWord } from "../../internal/check-word.ts";
import { PeriodicEvalError } from "../../errors.ts";
import { isCount } from "../../internal/is-count.ts";
import type { Json } from "../../contracts/json.ts";
import { languages, looksLike, type Language } from "./language.ts";

/**
 * What is looked for in a completion.
 * - a text: a marker, as it stands; nothing in it is a pattern.
 * - `{ regex, flags? }`: a JavaScript pattern that matches somewhere.
 * - `{ bullets: n }`: at least n lines that begin with a bullet (`-`, `*`, `+`, `•`, `–`) or a number and `.` or `)`.
 * - `{ capitals: share }`: at least this share of the letters that have two cases are capitals, of ten or more.
 * - `{ language }`: the language that its stop words, or its script, speak for (`looksLike`).
 * - `{ name, version?, hit }`: a function of the text; its author changes `version` (default `1`) with what it does.
 */
export type TraitOptions =
  | string
  | { readonly regex: string; readonly flags?: string }
  | { readonly bullets: number }
  | { readonly capitals: number }
  | { readonly language: Language }
  | { readonly name: string; readonly version?: string; readonly hit: (text: string) => boolean };

/** A yes or no about one completion: deterministic, without a model. A `Grader` would be too much for it. */
export interface Trait {
  readonly name: string;
  /** What it is, for provenance: it changes where a verdict may. */
  readonly fingerprint: Json;
  /** The literal text that is looked for; null where the trait is none. */
  readonly marker: string | null;
  hit(text: string): boolean;
}

/**
 * A trait from its options.
 *
 * @throws PeriodicEvalError `config` at `where` for what is no trait.
 */
export function traitOf(options: TraitOptions, where: string): Trait {
  if (typeof options === "string") {
    if (options === "")
      throw wrong(where, '""', "a marker of one character or more", "Write what to look for.");
    return trait("marker", { marker: options }, (text) => text.includes(options), options);
  }
  checkKeys(where, options, keys);
  const kinds = ["regex", "bullets", "capitals", "language", "hit"].filter((kind) => kind in options);
  if (kinds.length !== 1) {
    throw wrong(
      where,
      quoteValue(options),
      "a text, or one of { regex }, { bullets }, { capitals }, { language }, { name, hit }",
      "Choose one trait; for two, use two callbacks.",
    );
  }
  const allowed = keysOf[kinds[0] as keyof typeof keysOf];
  checkKeys(where, options, allowed);
  if ("regex" in options) return regexTrait(options, where);
  if ("bullets" in options) {
    const { bullets } = options;
    if (!isCount(bullets, 1))
      throw wrong(`${where}.bullets`, quoteValue(bullets), "a whole number of 1 or more", "Count lines.");
    return trait("bullets", { bullets }, (text) => (text.match(bulletLines) ?? []).length >= bullets);
  }
  if ("capitals" in options) {
    const { capitals } = options;
    if (!(typeof capitals === "number" && capitals > 0 && capitals <= 1))
      throw wrong(
        `${where}.capitals`,
        quoteValue(capitals),
        "a share over 0 and up to 1",
        "Write 0.9 for 90 %.",
      );
    return trait("capitals", { capitals }, (text) => isInCapitals(text, capitals));
  }
  if ("language" in options) {
    const { language } = options;
    checkWord(`${where}.language`, language, languages);
    return trait("language", { language, by: "stop words or script, version 1" }, (text) =>
      looksLike(language, text),
    );
  }
  const { name, version = "1", hit } = options;
  if (typeof name !== "string" || name === "" || typeof version !== "string")
    throw wrong(`${where}.name`, quoteValue(name), "a name and a version in quotes", "Name the trait.");
  if (typeof hit !== "function")
    throw wrong(
      `${where}.hit`,
      quoteValue(hit),
      "a function of a text",
      "Return true where the trait is there.",
    );
  return trait(name, { name, version }, hit);
}

const trait = (name: string, fingerprint: Json, hit: Trait["hit"], marker: string | null = null): Trait => ({
  name,
  fingerprint,
  marker,
  hit,
});

const keysOf = {
  regex: ["regex", "flags"],
  bullets: ["bullets"],
  capitals: ["capitals"],
  language: ["language"],
  hit: ["name", "version", "hit"],
} as const;
const keys = Object.values(keysOf).flat();

const bulletLines = /^[ \t]*(?:[-*+•–]|\d{1,3}[.)])[ \t]+\S/gmu;

/** Of fewer letters than this, none is enough to speak of a habit. */
const fewestLetters = 10;

function isInCapitals(text: string, share: number): boolean {
  const capitals = text.match(/\p{Lu}/gu)?.length ?? 0;
  const letters = capitals + (text.match(/\p{Ll}/gu)?.length ?? 0);
  return letters >= fewestLetters && capitals >= share * letters;
}

function regexTrait(
  { regex, flags = "" }: { readonly regex: string; readonly flags?: string },
  where: string,
): Trait {
  if (typeof regex !== "string" || regex === "")
    throw wrong(`${where}.regex`, quoteValue(regex), "a pattern in quotes", "Write it without slashes.");
  if (typeof flags !== "string" || !/^[imsuv]*$/.test(flags))
    throw wrong(
      `${where}.flags`,
      quoteValue(flags),
      "some of i, m, s, u, v",
      "A match anywhere is a hit: g and y go.",
    );
  let pattern: RegExp;
  try {
    pattern = new RegExp(regex, flags);
  } catch (cause) {
    throw wrong(
      `${where}.regex`,
      quoteValue(regex),
      "a pattern of JavaScript",
      "Mend it, or give a text for a literal marker.",
      cause,
    );
  }
  return trait("regex", { regex, flags }, (text) => pattern.test(text));
}

function wrong(
  where: string,
  got: string,
  expected: string,
  fix: string,
  cause?: unknown,
): PeriodicEvalError {
  return new PeriodicEvalError({
    code: "config",
    where,
    got,
    expected,
    fix,
    ...(cause !== undefined && { cause }),
  });
}
