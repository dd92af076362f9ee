/** Looks of one id that are still to come, and what they cost. */
export interface Wanted {
  readonly id: string;
  /** Of a whole look. */
  readonly items: number;
  /** At least 1. */
  readonly looks: number;
  /** Seconds of a look of m items are `fixed + m · perItem`. */
  readonly fixed: number;
  readonly perItem: number;
}

/** So many of the wanted looks, of so many items each; none is `{ looks: 0, items: 0 }`. */
export interface Share {
  readonly looks: number;
  readonly items: number;
}

/** Of the seconds, split evenly before the rest goes where it buys most items: what is dear must not starve. */
const evenShare = 0.05;
/** Items given up, at most, so that there are more looks. */
const itemsForLooks = 0.05;
/** A look of a smaller share of its items tells too little: there are fewer looks instead. */
const leastLook = 0.1;

/**
 * Shares seconds among the looks to come: all whole where they fit; else first a little for each id, and the rest to
 * the ids in the order of seconds per item, so that nearly as many items are measured as can be. Within an id the
 * seconds go to as many looks of equal size as cost few items.
 */
export function shareSeconds(seconds: number, wanted: readonly Wanted[]): ReadonlyMap<string, Share> {
  const lookSeconds = ({ fixed, perItem, items }: Wanted) => fixed + perItem * items;
  const dear = (one: Wanted) => lookSeconds(one) / one.items;
  const all = (one: Wanted) => one.looks * lookSeconds(one);
  const even = Math.max(0, (evenShare * seconds) / wanted.length);
  const given = new Map(
    wanted.map((one) => [one.id, even < one.fixed + one.perItem ? 0 : Math.min(even, all(one))]),
  );
  let left = seconds - [...given.values()].reduce((sum, one) => sum + one, 0);
  for (const one of [...wanted].sort((a, b) => dear(a) - dear(b))) {
    const more = Math.max(0, Math.min(left, all(one) - given.get(one.id)!));
    given.set(one.id, given.get(one.id)! + more);
    left -= more;
  }
  return new Map(wanted.map((one) => [one.id, spread(given.get(one.id)!, one)]));
}

function spread(seconds: number, { items, looks, fixed, perItem }: Wanted): Share {
  // A whisker more, for sums that rounding made too small.
  const room = seconds * (1 + 1e-9);
  const sizeAt = (count: number) =>
    Math.min(items, perItem > 0 ? Math.floor((room / count - fixed) / perItem) : items);
  if (room < fixed || sizeAt(1) < 1) return { looks: 0, items: 0 };
  const whole = Math.min(looks, Math.max(1, Math.floor(room / (fixed + perItem * items))));
  const most = Math.max(whole * sizeAt(whole), whole < looks ? (whole + 1) * sizeAt(whole + 1) : 0);
  // Largest count whose looks are not too small, and whose fixed seconds do not cost too many items.
  const least = Math.min(sizeAt(1), Math.max(1, Math.ceil(leastLook * items)));
  const bySize = least * perItem + fixed > 0 ? Math.floor(room / (least * perItem + fixed)) : looks;
  const byItems = fixed > 0 ? Math.floor((room - (1 - itemsForLooks) * most * perItem) / fixed) : looks;
  const count = Math.max(1, Math.min(looks, bySize, Math.max(whole, byItems)));
  return { looks: count, items: sizeAt(count) };
}
