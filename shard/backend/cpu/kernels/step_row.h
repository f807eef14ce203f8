// A row against the columns of a tile, for products whose integers join a sum in one instruction
// (AVX512_VNNI). Compilers spill sums and copy them where each instruction is theirs to place, so
// it is assembly, which no template parameter can change: hence a macro. Internal to the including
// file.
#pragma once

// Members StepRow of a product (gemm_tile.h): `instruction` multiplies packs of a row, spread over
// a register, with those of the columns and adds to the sums.
#define PENSTOCK_STEP_ROW(instruction)                                                            \
  [[gnu::always_inline]] static void StepRow(Ints(&sums)[2], const std::byte* left,               \
                                             const Ints(&columns)[2]) {                           \
    Ints row;                                                                                     \
    __asm__ volatile(                                                                             \
        "vpbroadcastd %[left], %[row]\n\t" instruction                                            \
        " %[row], %[column0], %[sum0]\n\t" instruction " %[row], %[column1], %[sum1]"             \
        : [sum0] "+v"(sums[0]), [sum1] "+v"(sums[1]), [row] "=&v"(row)                            \
        : [left] "m"(IntegersAt(left)), [column0] "v"(columns[0]), [column1] "v"(columns[1]));    \
  }                                                                                               \
  [[gnu::always_inline]] static void StepRow(Ints(&sums)[4], const std::byte* left,               \
                                             const Ints(&columns)[4]) {                           \
    Ints row;                                                                                     \
    __asm__ volatile(                                                                             \
        "vpbroadcastd %[left], %[row]\n\t" instruction                                            \
        " %[row], %[column0], %[sum0]\n\t" instruction                                            \
        " %[row], %[column1], %[sum1]\n\t" instruction                                            \
        " %[row], %[column2], %[sum2]\n\t" instruction " %[row], %[column3], %[sum3]"             \
        : [sum0] "+v"(sums[0]), [sum1] "+v"(sums[1]), [sum2] "+v"(sums[2]), [sum3] "+v"(sums[3]), \
          [row] "=&v"(row)                                                                        \
        : [left] "m"(IntegersAt(left)), [column0] "v"(columns[0]), [column1] "v"(columns[1]),     \
          [column2] "v"(columns[2]), [column3] "v"(columns[3]));                                  \
  }
