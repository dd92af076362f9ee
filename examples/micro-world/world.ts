import { draws } from "./random.ts";
import { relations, type Relation } from "./relations.ts";

/** One thing that is true in the valley: `Arlo` has roofs that are `red`. */
export interface Fact {
  readonly relation: Relation;
  readonly entity: string;
  readonly value: string;
}

/**
 * All facts, the same in every run. Values are dealt like cards, so that each value of a relation is about as common as any
 * other and no answer can be guessed from its frequency.
 */
export const facts: readonly Fact[] = relations.flatMap((relation) => {
  const deck = draws(`world/${relation.name}`);
  const dealt: string[] = [];
  while (dealt.length < relation.entities.length) dealt.push(...deck.shuffled(relation.values));
  return relation.entities.map((entity, i) => ({ relation, entity, value: dealt[i] as string }));
});

/** Every word that is a value of some relation, once. */
export const allValues: readonly string[] = [...new Set(relations.flatMap(({ values }) => values))];

/** Fills `{e}` and `{v}` of a wording, with a capital letter at the start. */
export function word(wording: string, { entity, value }: Pick<Fact, "entity" | "value">): string {
  const text = wording.replaceAll("{e}", entity).replaceAll("{v}", value);
  return text.charAt(0).toUpperCase() + text.slice(1);
}
