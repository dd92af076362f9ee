import { seededDraw } from "./random.ts";
import { relations, type Relation } from "./relations.ts";

/** One fact about the valley. With the relation `roofs`, the entity `Arlo` and the value `red`: the roofs of Arlo are red. */
export interface Fact {
  readonly relation: Relation;
  readonly entity: string;
  readonly value: string;
}

/**
 * All facts. They are the same in every run. Values are assigned from a shuffled list, so that all values of a relation are
 * about equally common and frequency does not reveal an answer.
 */
export const facts: readonly Fact[] = relations.flatMap((relation) => {
  const deck = seededDraw(`world/${relation.name}`);
  const dealt: string[] = [];
  while (dealt.length < relation.entities.length) dealt.push(...deck.shuffled(relation.values));
  return relation.entities.map((entity, i) => ({ relation, entity, value: dealt[i] as string }));
});

/** The distinct values of all relations. */
export const allValues: readonly string[] = [...new Set(relations.flatMap(({ values }) => values))];

/** Replaces `{e}` and `{v}` in a wording by the fact's entity and value, and capitalizes the first letter. */
export function fillWording(wording: string, { entity, value }: Pick<Fact, "entity" | "value">): string {
  const text = wording.replaceAll("{e}", entity).replaceAll("{v}", value);
  return text.charAt(0).toUpperCase() + text.slice(1);
}
