/** The measurements of one id that are still to come, and what they cost. */
export interface Wanted {
  readonly id: string;
  /** Items of a whole measurement. */
  readonly items: number;
  /** Number of measurements; at least 1. */
  readonly measurements: number;
  /** A measurement of m items takes `fixed + m · perItem` seconds. */
  readonly fixed: number;
  readonly perItem: number;
}

/** How many measurements an id gets, and the items of each; both are 0 if it gets none. */
export interface Share {
  readonly measurements: number;
  readonly items: number;
}

/** This share of the seconds is split evenly, so that an expensive id is not starved. The rest buys as many items as it can. */
const evenShare = 0.05;
/** At most this share of the items is given up for more measurements. */
const itemsForMeasurements = 0.05;
/** A measurement of a smaller share of its items is too noisy: take fewer measurements instead. */
const leastItems = 0.1;

/**
 * Shares seconds among the measurements to come. If all fit, all are whole. Otherwise each id gets a small even share, and
 * the rest goes to the ids with the lowest seconds per item, so that nearly as many items as possible are measured. Within
 * an id the seconds go to as many measurements of equal size as cost few items.
 */
export function shareSeconds(seconds: number, wanted: readonly Wanted[]): ReadonlyMap<string, Share> {
  const whole = ({ fixed, perItem, items }: Wanted) => fixed + perItem * items;
  const secondsPerItem = (one: Wanted) => whole(one) / one.items;
  const all = (one: Wanted) => one.measurements * whole(one);
  const even = Math.max(0, (evenShare * seconds) / wanted.length);
  const given = new Map(
    wanted.map((one) => [one.id, even < one.fixed + one.perItem ? 0 : Math.min(even, all(one))]),
  );
  let left = seconds - [...given.values()].reduce((sum, one) => sum + one, 0);
  for (const one of [...wanted].sort((a, b) => secondsPerItem(a) - secondsPerItem(b))) {
    const more = Math.max(0, Math.min(left, all(one) - given.get(one.id)!));
    given.set(one.id, given.get(one.id)! + more);
    left -= more;
  }
  return new Map(wanted.map((one) => [one.id, spread(given.get(one.id)!, one)]));
}

/** Decides how many measurements of which size the seconds of one id pay for. */
function spread(seconds: number, { items, measurements, fixed, perItem }: Wanted): Share {
  // Slightly more, to make up for sums that rounding made too small.
  const room = seconds * (1 + 1e-9);
  const sizeAt = (count: number) =>
    Math.min(items, perItem > 0 ? Math.floor((room / count - fixed) / perItem) : items);
  if (room < fixed || sizeAt(1) < 1) return { measurements: 0, items: 0 };
  const whole = Math.min(measurements, Math.max(1, Math.floor(room / (fixed + perItem * items))));
  const most = Math.max(whole * sizeAt(whole), whole < measurements ? (whole + 1) * sizeAt(whole + 1) : 0);
  // The largest count whose measurements are not too small, and whose fixed seconds do not cost too many items.
  const least = Math.min(sizeAt(1), Math.max(1, Math.ceil(leastItems * items)));
  const bySize = least * perItem + fixed > 0 ? Math.floor(room / (least * perItem + fixed)) : measurements;
  const byItems =
    fixed > 0 ? Math.floor((room - (1 - itemsForMeasurements) * most * perItem) / fixed) : measurements;
  const count = Math.max(1, Math.min(measurements, bySize, Math.max(whole, byItems)));
  return { measurements: count, items: sizeAt(count) };
}
