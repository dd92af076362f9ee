import type { Engine } from "./engine.ts";
import { native } from "./tfjs-node.ts";

/** Native TensorFlow on an NVIDIA GPU. */
export const tfjsNodeGpu: Engine = native("tfjs-node-gpu", "@tensorflow/tfjs-node-gpu");
