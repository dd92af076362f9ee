;; The kernels of @periodic-eval/models for the wasm backend of TensorFlow.js. Every parameter that names a tensor is the
;; address of its first value. Sizes count float32 values. Each element is computed with the same float32 operations in the same
;; order as the operations that a kernel replaces, so that all bits are equal. Loops go in vectors of four; the last vector of a
;; size that four does not divide overlaps the one before, so inputs and outputs are different memory and sizes are at least 4.
(module
  (import "env" "memory" (memory 1 65536 shared))

  ;; One step of AdamW: gradient g, weight w, means m and v → the new weight, m and v.
  (func (export "adamW")
    (param $g i32) (param $w i32) (param $m i32) (param $v i32) (param $wOut i32) (param $mOut i32) (param $vOut i32)
    (param $size i32) (param $keep1 f32) (param $take1 f32) (param $keep2 f32) (param $take2 f32)
    (param $epsilon f32) (param $stepSize f32) (param $decay f32)
    (local $at i32) (local $bytes i32) (local $last i32) (local $gradient v128) (local $mean v128) (local $meanSq v128)
    (local.set $bytes (i32.shl (local.get $size) (i32.const 2)))
    (local.set $last (i32.sub (local.get $bytes) (i32.const 16)))
    (loop $vectors
      (local.set $gradient (v128.load (i32.add (local.get $g) (local.get $at))))
      (local.set $mean
        (f32x4.add
          (f32x4.mul (v128.load (i32.add (local.get $m) (local.get $at))) (f32x4.splat (local.get $keep1)))
          (f32x4.mul (local.get $gradient) (f32x4.splat (local.get $take1)))))
      (local.set $meanSq
        (f32x4.add
          (f32x4.mul (v128.load (i32.add (local.get $v) (local.get $at))) (f32x4.splat (local.get $keep2)))
          (f32x4.mul (f32x4.mul (local.get $gradient) (local.get $gradient)) (f32x4.splat (local.get $take2)))))
      (v128.store (i32.add (local.get $mOut) (local.get $at)) (local.get $mean))
      (v128.store (i32.add (local.get $vOut) (local.get $at)) (local.get $meanSq))
      (v128.store (i32.add (local.get $wOut) (local.get $at))
        (f32x4.sub
          (f32x4.mul (v128.load (i32.add (local.get $w) (local.get $at))) (f32x4.splat (local.get $decay)))
          (f32x4.mul
            (f32x4.div
              (local.get $mean)
              (f32x4.add (f32x4.sqrt (local.get $meanSq)) (f32x4.splat (local.get $epsilon))))
            (f32x4.splat (local.get $stepSize)))))
      (br_if $vectors
        (i32.le_u (local.tee $at (i32.add (local.get $at) (i32.const 16))) (local.get $last)))
      (if (i32.lt_u (local.get $at) (local.get $bytes))
        (then (local.set $at (local.get $last)) (br $vectors)))))
)
