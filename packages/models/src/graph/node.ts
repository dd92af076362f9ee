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
