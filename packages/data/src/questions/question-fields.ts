import { dataError, shortened } from "@periodic-eval/contracts/options";

/**
 * Returns a function that throws for an id that an earlier question has.
 *
 * @param fix What to do then.
 */
export function uniqueIds(fix: string): (id: string, place: string) => void {
  const places = new Map<string, string>();
  return (id, place) => {
    const earlier = places.get(id);
    if (earlier !== undefined)
      throw dataError(place, `the id ${shortened(id)}, which ${earlier} already has`, "unique ids", fix);
    places.set(id, place);
  };
}
