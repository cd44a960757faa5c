;; Dot products of rows of bytes with one query: `quick.js` says what they are for. scan.wasm is made of this text by
;; `python -c "import pathlib, wasmtime; here = pathlib.Path('vectorize/stand_in');
;;  (here / 'scan.wasm').write_bytes(wasmtime.wat2wasm((here / 'scan.wat').read_text()))"` (`pip install wasmtime`).
(module
  (memory (export "memory") 1)
  ;; row, end: where the rows begin and end. width: bytes of a row, a multiple of 16. query: where it begins, two bytes
  ;; for each value. out: where a number of four bytes is written for each row. All of them signed.
  (func (export "scan")
    (param $row i32) (param $end i32) (param $width i32) (param $query i32) (param $out i32)
    (local $at i32) (local $stop i32) (local $bytes v128) (local $sum v128)
    (loop $rows
      (local.set $sum (v128.const i32x4 0 0 0 0))
      (local.set $at (local.get $query))
      (local.set $stop (i32.add (local.get $row) (local.get $width)))
      (loop $values
        (local.set $bytes (v128.load (local.get $row)))
        (local.set $sum
          (i32x4.add
            (local.get $sum)
            (i32x4.add
              (i32x4.dot_i16x8_s (i16x8.extend_low_i8x16_s (local.get $bytes)) (v128.load (local.get $at)))
              (i32x4.dot_i16x8_s (i16x8.extend_high_i8x16_s (local.get $bytes)) (v128.load offset=16 (local.get $at))))))
        (local.set $row (i32.add (local.get $row) (i32.const 16)))
        (local.set $at (i32.add (local.get $at) (i32.const 32)))
        (br_if $values (i32.lt_u (local.get $row) (local.get $stop))))
      (i32.store
        (local.get $out)
        (i32.add
          (i32.add (i32x4.extract_lane 0 (local.get $sum)) (i32x4.extract_lane 1 (local.get $sum)))
          (i32.add (i32x4.extract_lane 2 (local.get $sum)) (i32x4.extract_lane 3 (local.get $sum)))))
      (local.set $out (i32.add (local.get $out) (i32.const 4)))
      (br_if $rows (i32.lt_u (local.get $row) (local.get $end))))))
