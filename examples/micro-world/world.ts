import { draws } from "./random.ts";
import { relations, type Relation } from "./relations.ts";

/** One fact about the valley: the roofs of `Arlo` are `red`. */
export interface Fact {
  readonly relation: Relation;
  readonly entity: string;
  readonly value: string;
}

/**
 * All facts, which are the same in every run. Values are dealt like cards: all values of a relation are about equally common,
 * so that frequency does not reveal an answer.
 */
export const facts: readonly Fact[] = relations.flatMap((relation) => {
  const deck = draws(`world/${relation.name}`);
  const dealt: string[] = [];
  while (dealt.length < relation.entities.length) dealt.push(...deck.shuffled(relation.values));
  return relation.entities.map((entity, i) => ({ relation, entity, value: dealt[i] as string }));
});

/** The distinct values of all relations. */
export const allValues: readonly string[] = [...new Set(relations.flatMap(({ values }) => values))];

/** Fills `{e}` and `{v}` of a wording and capitalizes its first letter. */
export function word(wording: string, { entity, value }: Pick<Fact, "entity" | "value">): string {
  const text = wording.replaceAll("{e}", entity).replaceAll("{v}", value);
  return text.charAt(0).toUpperCase() + text.slice(1);
}
