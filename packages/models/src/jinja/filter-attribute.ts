import { getItem } from "./attributes.ts";
import { str } from "./print.ts";
import { Undefined, isText, type Value } from "./values.ts";

type Getter = (item: Value) => Value;

/** Returns the key by which filters sort and compare: text in lowercase, other values unchanged. */
export const ignoreCase: Getter = (value) => (isText(value) ? str(value).toLowerCase() : value);
export const identity: Getter = (value) => value;

/** Returns a function that looks up an attribute such as `function.name` or `0.name`; null is the item itself. */
export function attributeGetter(attribute: Value, after: Getter = identity, missing: Value = null): Getter {
  const parts = partsOf(attribute);
  return (item) => {
    let value = item;
    for (const part of parts) {
      value = getItem(value, part);
      if (missing !== null && value instanceof Undefined) value = missing;
    }
    return after(value);
  };
}

/** As `attributeGetter`, for several attributes that are separated by commas; returns a list. */
export function attributesGetter(attribute: Value, after: Getter): Getter {
  const attributes = isText(attribute) ? str(attribute).split(",") : [attribute];
  const getters = attributes.map((each) => attributeGetter(each, after));
  return (item) => getters.map((get) => get(item));
}

function partsOf(attribute: Value): readonly Value[] {
  if (attribute === null) return [];
  if (!isText(attribute)) return [attribute];
  return str(attribute)
    .split(".")
    .map((part) => (/^\d+$/.test(part) ? Number(part) : part));
}
