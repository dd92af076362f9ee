;; The kernels of @periodic-eval/kernels for the wasm backend of TensorFlow.js. Every parameter that names a tensor is the
;; address of its first value. Sizes count float32 values. Each element is computed with the same float32 operations in the same
;; order as the operations that a kernel replaces, so that all bits are equal. Loops go in vectors of four; the last vector of a
;; size that four does not divide overlaps the one before, so inputs and outputs are different memory and sizes are at least 4,
;; unless a kernel says otherwise.
(module
  (import "env" "memory" (memory 1 65536 shared))

  ;; Copies `count` runs of `size` values, 1 or more; a run starts `fromStride` and `toStride` bytes after the one before.
  (func (export "copyRuns")
    (param $from i32) (param $fromStride i32) (param $to i32) (param $toStride i32) (param $count i32) (param $size i32)
    (local $at i32) (local $bytes i32) (local $last i32)
    (local.set $bytes (i32.shl (local.get $size) (i32.const 2)))
    (if (i32.lt_u (local.get $size) (i32.const 4))
      (then
        (loop $shortRuns
          (local.set $at (i32.const 0))
          (loop $values
            (i32.store
              (i32.add (local.get $to) (local.get $at))
              (i32.load (i32.add (local.get $from) (local.get $at))))
            (br_if $values
              (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 4))) (local.get $bytes))))
          (local.set $from (i32.add (local.get $from) (local.get $fromStride)))
          (local.set $to (i32.add (local.get $to) (local.get $toStride)))
          (br_if $shortRuns (local.tee $count (i32.sub (local.get $count) (i32.const 1)))))
        (return)))
    (local.set $last (i32.sub (local.get $bytes) (i32.const 16)))
    (loop $runs
      (local.set $at (i32.const 0))
      (loop $vectors
        (v128.store
          (i32.add (local.get $to) (local.get $at))
          (v128.load (i32.add (local.get $from) (local.get $at))))
        (br_if $vectors
          (i32.le_u (local.tee $at (i32.add (local.get $at) (i32.const 16))) (local.get $last)))
        (if (i32.lt_u (local.get $at) (local.get $bytes))
          (then (local.set $at (local.get $last)) (br $vectors))))
      (local.set $from (i32.add (local.get $from) (local.get $fromStride)))
      (local.set $to (i32.add (local.get $to) (local.get $toStride)))
      (br_if $runs (local.tee $count (i32.sub (local.get $count) (i32.const 1))))))

  ;; x [rows, columns] → out [columns, rows], in blocks of 4 × 4. A strip of 16 rows is read at a time, so that a cache line of
  ;; the output is written at once and those of the input stay in the cache.
  (func (export "transpose") (param $x i32) (param $rows i32) (param $columns i32) (param $out i32)
    (local $strip i32) (local $stripEnd i32) (local $column i32) (local $row i32)
    (local $stride i32) (local $outStride i32) (local $from i32) (local $to i32)
    (local $a v128) (local $b v128) (local $c v128) (local $d v128)
    (local $ab v128) (local $cd v128)
    (local.set $stride (i32.shl (local.get $columns) (i32.const 2)))
    (local.set $outStride (i32.shl (local.get $rows) (i32.const 2)))
    (loop $strips
      (local.set $stripEnd (i32.add (local.get $strip) (i32.const 16)))
      (if (i32.gt_u (local.get $stripEnd) (local.get $rows))
        (then (local.set $stripEnd (local.get $rows))))
      (local.set $column (i32.const 0))
      (loop $columns
        (local.set $row (local.get $strip))
        (loop $blocks
          ;; The last block of a strip or of the rows overlaps the one before, or the strip before.
          (if (i32.gt_u (i32.add (local.get $row) (i32.const 4)) (local.get $stripEnd))
            (then (local.set $row (i32.sub (local.get $stripEnd) (i32.const 4)))))
          (local.set $from
            (i32.add (local.get $x)
              (i32.add
                (i32.mul (local.get $row) (local.get $stride))
                (i32.shl (local.get $column) (i32.const 2)))))
          (local.set $to
            (i32.add (local.get $out)
              (i32.add
                (i32.mul (local.get $column) (local.get $outStride))
                (i32.shl (local.get $row) (i32.const 2)))))
          (local.set $a (v128.load (local.get $from)))
          (local.set $b (v128.load (local.tee $from (i32.add (local.get $from) (local.get $stride)))))
          (local.set $c (v128.load (local.tee $from (i32.add (local.get $from) (local.get $stride)))))
          (local.set $d (v128.load (i32.add (local.get $from) (local.get $stride))))
          (local.set $ab (i8x16.shuffle 0 1 2 3 16 17 18 19 4 5 6 7 20 21 22 23 (local.get $a) (local.get $b)))
          (local.set $cd (i8x16.shuffle 0 1 2 3 16 17 18 19 4 5 6 7 20 21 22 23 (local.get $c) (local.get $d)))
          (v128.store (local.get $to)
            (i8x16.shuffle 0 1 2 3 4 5 6 7 16 17 18 19 20 21 22 23 (local.get $ab) (local.get $cd)))
          (v128.store (local.tee $to (i32.add (local.get $to) (local.get $outStride)))
            (i8x16.shuffle 8 9 10 11 12 13 14 15 24 25 26 27 28 29 30 31 (local.get $ab) (local.get $cd)))
          (local.set $ab (i8x16.shuffle 8 9 10 11 24 25 26 27 12 13 14 15 28 29 30 31 (local.get $a) (local.get $b)))
          (local.set $cd (i8x16.shuffle 8 9 10 11 24 25 26 27 12 13 14 15 28 29 30 31 (local.get $c) (local.get $d)))
          (v128.store (local.tee $to (i32.add (local.get $to) (local.get $outStride)))
            (i8x16.shuffle 0 1 2 3 4 5 6 7 16 17 18 19 20 21 22 23 (local.get $ab) (local.get $cd)))
          (v128.store (i32.add (local.get $to) (local.get $outStride))
            (i8x16.shuffle 8 9 10 11 12 13 14 15 24 25 26 27 28 29 30 31 (local.get $ab) (local.get $cd)))
          (br_if $blocks
            (i32.lt_u (local.tee $row (i32.add (local.get $row) (i32.const 4))) (local.get $stripEnd))))
        (local.set $column (i32.add (local.get $column) (i32.const 4)))
        (if (i32.lt_u (local.get $column) (local.get $columns))
          (then
            (if (i32.gt_u (i32.add (local.get $column) (i32.const 4)) (local.get $columns))
              (then (local.set $column (i32.sub (local.get $columns) (i32.const 4)))))
            (br $columns))))
      (br_if $strips (i32.lt_u (local.tee $strip (local.get $stripEnd)) (local.get $rows)))))

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

  ;; x [rows, columns] → the maximum of each row. Returns 0 if a maximum is 0 or a row has a NaN: they depend on the order.
  (func (export "rowMaximum") (param $x i32) (param $rows i32) (param $columns i32) (param $out i32) (result i32)
    (local $at i32) (local $end i32) (local $last i32) (local $stride i32) (local $value v128) (local $best v128) (local $ordered v128)
    (local $max f32)
    (local.set $stride (i32.shl (local.get $columns) (i32.const 2)))
    (local.set $ordered (v128.const i32x4 -1 -1 -1 -1))
    (loop $all
      (local.set $end (i32.add (local.get $x) (local.get $stride)))
      (local.set $last (i32.sub (local.get $end) (i32.const 16)))
      (local.set $at (local.get $x))
      (local.set $best (v128.load (local.get $x)))
      (loop $vectors
        (local.set $value (v128.load (local.get $at)))
        (local.set $ordered (v128.and (local.get $ordered) (f32x4.eq (local.get $value) (local.get $value))))
        (local.set $best (f32x4.pmax (local.get $best) (local.get $value)))
        (br_if $vectors
          (i32.le_u (local.tee $at (i32.add (local.get $at) (i32.const 16))) (local.get $last)))
        (if (i32.lt_u (local.get $at) (local.get $end))
          (then (local.set $at (local.get $last)) (br $vectors))))
      (local.set $best
        (f32x4.pmax (local.get $best)
          (i8x16.shuffle 8 9 10 11 12 13 14 15 0 1 2 3 4 5 6 7 (local.get $best) (local.get $best))))
      (local.set $max
        (f32.max (f32x4.extract_lane 0 (local.get $best)) (f32x4.extract_lane 1 (local.get $best))))
      (if (f32.eq (local.get $max) (f32.const 0)) (then (return (i32.const 0))))
      (f32.store (local.get $out) (local.get $max))
      (local.set $out (i32.add (local.get $out) (i32.const 4)))
      (local.set $x (local.get $end))
      (br_if $all (local.tee $rows (i32.sub (local.get $rows) (i32.const 1)))))
    (i32x4.all_true (local.get $ordered)))

  ;; a [M, K] · b [K, N] → out [M, N], in tiles of 4 × 8. M ≥ 4, N ≥ 8, K ≥ 1.
  (func (export "matMul")
    (param $a i32) (param $b i32) (param $out i32) (param $rows i32) (param $columns i32) (param $inner i32)
    (local $aRow i32) (local $stride i32) (local $row i32) (local $column i32) (local $k i32) (local $to i32)
    (local $a0 i32) (local $a1 i32) (local $a2 i32) (local $a3 i32) (local $bAt i32)
    (local $left v128) (local $right v128) (local $x v128)
    (local $c00 v128) (local $c01 v128) (local $c10 v128) (local $c11 v128)
    (local $c20 v128) (local $c21 v128) (local $c30 v128) (local $c31 v128)
    (local.set $stride (i32.shl (local.get $columns) (i32.const 2)))
    (local.set $aRow (i32.shl (local.get $inner) (i32.const 2)))
    (loop $rowTiles
      (if (i32.gt_u (i32.add (local.get $row) (i32.const 4)) (local.get $rows))
        (then (local.set $row (i32.sub (local.get $rows) (i32.const 4)))))
      (local.set $column (i32.const 0))
      (loop $columnTiles
        (if (i32.gt_u (i32.add (local.get $column) (i32.const 8)) (local.get $columns))
          (then (local.set $column (i32.sub (local.get $columns) (i32.const 8)))))
        (local.set $a0 (i32.add (local.get $a) (i32.mul (local.get $row) (local.get $aRow))))
        (local.set $a1 (i32.add (local.get $a0) (local.get $aRow)))
        (local.set $a2 (i32.add (local.get $a1) (local.get $aRow)))
        (local.set $a3 (i32.add (local.get $a2) (local.get $aRow)))
        (local.set $bAt (i32.add (local.get $b) (i32.shl (local.get $column) (i32.const 2))))
        (local.set $c00 (v128.const i32x4 0 0 0 0)) (local.set $c01 (v128.const i32x4 0 0 0 0))
        (local.set $c10 (v128.const i32x4 0 0 0 0)) (local.set $c11 (v128.const i32x4 0 0 0 0))
        (local.set $c20 (v128.const i32x4 0 0 0 0)) (local.set $c21 (v128.const i32x4 0 0 0 0))
        (local.set $c30 (v128.const i32x4 0 0 0 0)) (local.set $c31 (v128.const i32x4 0 0 0 0))
        (local.set $k (local.get $inner))
        (loop $steps
          (local.set $left (v128.load (local.get $bAt)))
          (local.set $right (v128.load offset=16 (local.get $bAt)))
          (local.set $x (v128.load32_splat (local.get $a0)))
          (local.set $c00 (f32x4.add (local.get $c00) (f32x4.mul (local.get $x) (local.get $left))))
          (local.set $c01 (f32x4.add (local.get $c01) (f32x4.mul (local.get $x) (local.get $right))))
          (local.set $x (v128.load32_splat (local.get $a1)))
          (local.set $c10 (f32x4.add (local.get $c10) (f32x4.mul (local.get $x) (local.get $left))))
          (local.set $c11 (f32x4.add (local.get $c11) (f32x4.mul (local.get $x) (local.get $right))))
          (local.set $x (v128.load32_splat (local.get $a2)))
          (local.set $c20 (f32x4.add (local.get $c20) (f32x4.mul (local.get $x) (local.get $left))))
          (local.set $c21 (f32x4.add (local.get $c21) (f32x4.mul (local.get $x) (local.get $right))))
          (local.set $x (v128.load32_splat (local.get $a3)))
          (local.set $c30 (f32x4.add (local.get $c30) (f32x4.mul (local.get $x) (local.get $left))))
          (local.set $c31 (f32x4.add (local.get $c31) (f32x4.mul (local.get $x) (local.get $right))))
          (local.set $a0 (i32.add (local.get $a0) (i32.const 4)))
          (local.set $a1 (i32.add (local.get $a1) (i32.const 4)))
          (local.set $a2 (i32.add (local.get $a2) (i32.const 4)))
          (local.set $a3 (i32.add (local.get $a3) (i32.const 4)))
          (local.set $bAt (i32.add (local.get $bAt) (local.get $stride)))
          (br_if $steps (local.tee $k (i32.sub (local.get $k) (i32.const 1)))))
        (local.set $to
          (i32.add (local.get $out)
            (i32.add (i32.mul (local.get $row) (local.get $stride)) (i32.shl (local.get $column) (i32.const 2)))))
        (v128.store (local.get $to) (local.get $c00))
        (v128.store offset=16 (local.get $to) (local.get $c01))
        (v128.store (local.tee $to (i32.add (local.get $to) (local.get $stride))) (local.get $c10))
        (v128.store offset=16 (local.get $to) (local.get $c11))
        (v128.store (local.tee $to (i32.add (local.get $to) (local.get $stride))) (local.get $c20))
        (v128.store offset=16 (local.get $to) (local.get $c21))
        (v128.store (local.tee $to (i32.add (local.get $to) (local.get $stride))) (local.get $c30))
        (v128.store offset=16 (local.get $to) (local.get $c31))
        (br_if $columnTiles
          (i32.lt_u (local.tee $column (i32.add (local.get $column) (i32.const 8))) (local.get $columns))))
      (br_if $rowTiles (i32.lt_u (local.tee $row (i32.add (local.get $row) (i32.const 4))) (local.get $rows)))))

  ;; One row: a [K] · b [K, N] → out [N], in tiles of 8. N ≥ 8, K ≥ 1.
  (func (export "rowMatMul") (param $a i32) (param $b i32) (param $out i32) (param $columns i32) (param $inner i32)
    (local $stride i32) (local $column i32) (local $k i32) (local $aAt i32) (local $bAt i32) (local $to i32)
    (local $x v128) (local $left v128) (local $right v128)
    (local.set $stride (i32.shl (local.get $columns) (i32.const 2)))
    (loop $columnTiles
      (if (i32.gt_u (i32.add (local.get $column) (i32.const 8)) (local.get $columns))
        (then (local.set $column (i32.sub (local.get $columns) (i32.const 8)))))
      (local.set $aAt (local.get $a))
      (local.set $bAt (i32.add (local.get $b) (i32.shl (local.get $column) (i32.const 2))))
      (local.set $left (v128.const i32x4 0 0 0 0))
      (local.set $right (v128.const i32x4 0 0 0 0))
      (local.set $k (local.get $inner))
      (loop $steps
        (local.set $x (v128.load32_splat (local.get $aAt)))
        (local.set $left (f32x4.add (local.get $left) (f32x4.mul (local.get $x) (v128.load (local.get $bAt)))))
        (local.set $right
          (f32x4.add (local.get $right) (f32x4.mul (local.get $x) (v128.load offset=16 (local.get $bAt)))))
        (local.set $aAt (i32.add (local.get $aAt) (i32.const 4)))
        (local.set $bAt (i32.add (local.get $bAt) (local.get $stride)))
        (br_if $steps (local.tee $k (i32.sub (local.get $k) (i32.const 1)))))
      (local.set $to (i32.add (local.get $out) (i32.shl (local.get $column) (i32.const 2))))
      (v128.store (local.get $to) (local.get $left))
      (v128.store offset=16 (local.get $to) (local.get $right))
      (br_if $columnTiles
        (i32.lt_u (local.tee $column (i32.add (local.get $column) (i32.const 8))) (local.get $columns)))))
)
