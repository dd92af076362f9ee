/** Sizes that a graph leaves open, by name. */
export type Sizes = Readonly<Record<string, number>>;

/** A dimension of a tensor, as the product of a constant and open sizes. */
export interface Dimension {
  readonly constant: number;
  /** Names of the sizes; a squared size occurs twice. */
  readonly sizes: readonly string[];
}

/** Factors a dimension into sizes by divisibility. */
export function dimensionOf(value: number, sizes: Sizes): Dimension {
  const factors: string[] = [];
  let constant = value;
  for (const [name, size] of Object.entries(sizes)) {
    while (constant % size === 0 && constant !== 0) {
      factors.push(name);
      constant /= size;
    }
  }
  return { constant, sizes: factors };
}

export function valueOf({ constant, sizes: names }: Dimension, sizes: Sizes): number {
  return names.reduce((product, name) => product * sizes[name]!, constant);
}

/** The element types of a graph's tensors. */
export type GraphType = "float32" | "int32" | "bool";

/** A parameter of an operation, as TensorFlow's protocol buffers name its kinds. */
export type Attribute =
  | { readonly type: GraphType }
  | { readonly b: boolean }
  | { readonly i: number }
  | { readonly f: number }
  | { readonly shape: readonly number[] }
  | { readonly tensor: ConstantTensor };

export interface ConstantTensor {
  readonly type: Exclude<GraphType, "bool">;
  readonly shape: readonly number[];
  readonly values: Float32Array | Int32Array;
}

/** One operation of a TensorFlow graph. */
export interface GraphNode {
  readonly name: string;
  readonly op: string;
  /** `name`, or `name:1` for a second output. */
  readonly inputs: readonly string[];
  readonly attributes: Readonly<Record<string, Attribute>>;
}

/** An output of a node: its name, type and shape. */
export interface Value {
  readonly name: string;
  readonly type: GraphType;
  readonly shape: readonly number[];
}

/** A shape that depends on open sizes, and the name of the input that supplies it. */
export interface ShapeInput {
  readonly name: string;
  readonly dimensions: readonly Dimension[];
}

/** A graph under construction. */
export class Tracer {
  readonly nodes: GraphNode[] = [];
  readonly values = new Map<string, Value>();
  readonly shapeInputs: ShapeInput[] = [];
  readonly #sizes: Sizes;
  readonly #constants = new Map<string, Value>();

  constructor(sizes: Sizes) {
    this.#sizes = sizes;
  }

  input(type: GraphType, shape: readonly number[]): Value {
    return this.node("Placeholder", [], this.#placeholder({ type, shape }), { type, shape });
  }

  /** Returns an input node of another graph that receives this value. */
  placeholder(name: string, value: Value): GraphNode {
    return { name, op: "Placeholder", inputs: [], attributes: this.#placeholder(value) };
  }

  #placeholder({ type, shape }: Pick<Value, "type" | "shape">): GraphNode["attributes"] {
    // −1 means an open size.
    const sizes = shape.map((size) => (this.dimension(size).sizes.length > 0 ? -1 : size));
    return { dtype: { type }, shape: { shape: sizes } };
  }

  /** Returns a constant; equal constants share one node. */
  constant(tensor: ConstantTensor): Value {
    const key = `${tensor.type} ${tensor.shape.join()} ${tensor.values.join()}`;
    let value = this.#constants.get(key);
    if (value === undefined) {
      const { type, shape } = tensor;
      value = this.node("Const", [], { dtype: { type }, value: { tensor } }, { type, shape });
      this.#constants.set(key, value);
    }
    return value;
  }

  integers(values: readonly number[]): Value {
    return this.constant({ type: "int32", shape: [values.length], values: Int32Array.from(values) });
  }

  integer(value: number): Value {
    return this.constant({ type: "int32", shape: [], values: Int32Array.of(value) });
  }

  /** Returns a shape as an operand: a constant with at most one open size, which the operation infers, else an input. */
  shape(shape: readonly number[]): Value {
    const isOpen = shape.map((size) => this.dimension(size).sizes.length > 0);
    if (isOpen.filter(Boolean).length > 1) return this.sizes(shape);
    return this.integers(shape.map((size, i) => (isOpen[i] ? -1 : size)));
  }

  dimension(size: number): Dimension {
    return dimensionOf(size, this.#sizes);
  }

  /** Returns a shape as an operand of an operation that infers no size. */
  sizes(shape: readonly number[]): Value {
    const dimensions = shape.map((size) => this.dimension(size));
    if (dimensions.every(({ sizes }) => sizes.length === 0)) return this.integers(shape);
    const key = JSON.stringify(dimensions);
    const known = this.shapeInputs.find((input) => JSON.stringify(input.dimensions) === key);
    const type = "int32";
    if (known !== undefined) return { name: known.name, type, shape: [shape.length] };
    const value = this.input(type, [shape.length]);
    this.shapeInputs.push({ name: value.name, dimensions });
    return value;
  }

  node(
    op: string,
    inputs: readonly Value[],
    attributes: Readonly<Record<string, Attribute>>,
    of: Pick<Value, "type" | "shape">,
  ): Value {
    const name = `n${this.nodes.length}`;
    this.nodes.push({ name, op, inputs: inputs.map((input) => input.name), attributes });
    return this.note({ name, type: of.type, shape: of.shape });
  }

  /** Returns the value as an output; a graph cannot output its own input, so that gets an Identity node. */
  output(value: Value): Value {
    return this.nodeOf(value.name).op === "Placeholder"
      ? this.node("Identity", [value], { T: { type: value.type } }, value)
      : value;
  }

  nodeOf(value: string): GraphNode {
    return this.nodes[this.indexOf(value)]!;
  }

  /** Returns the index of a value's node. */
  indexOf(value: string): number {
    return Number.parseInt(value.slice(1), 10);
  }

  /** Records a value. */
  note(value: Value): Value {
    this.values.set(value.name, value);
    return value;
  }
}
