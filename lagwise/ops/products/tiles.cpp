// Products of bf16 by the tiles of AMX.
//
// A tile is 16 rows of 64 bytes. One instruction takes a tile of a, 16 rows x 32 depths,
// and one of b, 16 pairs of depths x 16 columns, and adds 16 x 16 sums of 32 products to a
// tile of c. In both a *word* of 32 bits holds two neighbouring depths of one row of a, or
// of one column of b; call that row or column a lane. So a tile of a has its words by
// [lane][pair], a tile of b by [pair][lane]: each is the other turned.
//
//     for every 512 depths            what a pass needs stays in the second cache
//       pack all lanes of a
//       for every 32 columns of c     these lanes of b, packed, stay in the first cache
//         for every 32 rows of c      2 x 2 tiles of sums, 2 tiles of a, 2 of b

#include "lagwise/ops/products/tiles.h"

#if defined(__x86_64__) && defined(__linux__)

#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "lagwise/core/line_vector.h"

#define LAGWISE_TILES \
  __attribute__((target("amx-tile,amx-bf16,avx512f,avx512bw,avx512vl")))

namespace lagwise::ops::products {
namespace {

using BFloat = c10::BFloat16;

constexpr int64_t kLanes = 16;   // of a tile
constexpr int64_t kDepths = 32;  // of a tile: 16 words
constexpr int64_t kBlock =
    2 * kLanes;  // rows and columns of c that are computed at once
constexpr int64_t kPass = 16 * kDepths;  // depths of a pass
constexpr int64_t kTileNumbers = kLanes * kDepths;

/// Sixteen rows of sixteen words.
struct Words {
  __m512i row[16];
  __m512i& operator[](int64_t i) { return row[i]; }
};

/// One factor, seen by lanes: the rows of a, the columns of b.
struct Factor {
  const BFloat* data;
  int64_t lanes, depths;
  int64_t lane_step, depth_step;  // one of them is 1

  bool depths_side_by_side() const { return depth_step == 1; }
};

constexpr __mmask16 kAll = 0xffff;

uint32_t first_bits(int64_t count) {
  return count >= 32 ? ~uint32_t{0} : (uint32_t{1} << std::max<int64_t>(count, 0)) - 1;
}

/// The words of 16 lanes and 32 depths, by [lane][pair] where depths lie side by side,
/// else by [pair][lane]; zeros beyond the ends.
LAGWISE_TILES void load_words(const Factor& x, int64_t lane, int64_t depth,
                              Words& words) {
  const BFloat* const from = x.data + lane * x.lane_step + depth * x.depth_step;
  const int64_t lanes = x.lanes - lane, depths = x.depths - depth;
  if (x.depths_side_by_side()) {
    const __mmask32 there = first_bits(depths);
    for (int64_t i = 0; i < 16; ++i)
      words[i] = i < lanes ? _mm512_maskz_loadu_epi16(there, from + i * x.lane_step)
                           : _mm512_setzero_si512();
    return;
  }
  const auto there = static_cast<__mmask16>(first_bits(std::min<int64_t>(lanes, 16)));
  for (int64_t p = 0; p < 16; ++p) {
    const auto half = [&](int64_t d) LAGWISE_TILES {
      const __m256i row = d < depths
                              ? _mm256_maskz_loadu_epi16(there, from + d * x.depth_step)
                              : _mm256_setzero_si256();
      return _mm512_maskz_cvtepu16_epi32(kAll, row);
    };
    words[p] = _mm512_or_si512(half(2 * p),
                               _mm512_maskz_slli_epi32(kAll, half(2 * p + 1), 16));
  }
}

// The forms with a mask, all of whose bits are set: g++ 12 warns of its own header in the
// others.
template <int kWhich>
LAGWISE_TILES inline __m512i shuffled(__m512i a, __m512i b) {
  return _mm512_maskz_shuffle_i32x4(kAll, a, b, kWhich);
}
LAGWISE_TILES inline __m512i low32(__m512i a, __m512i b) {
  return _mm512_maskz_unpacklo_epi32(kAll, a, b);
}
LAGWISE_TILES inline __m512i high32(__m512i a, __m512i b) {
  return _mm512_maskz_unpackhi_epi32(kAll, a, b);
}
LAGWISE_TILES inline __m512i low64(__m512i a, __m512i b) {
  return _mm512_maskz_unpacklo_epi64(0xff, a, b);
}
LAGWISE_TILES inline __m512i high64(__m512i a, __m512i b) {
  return _mm512_maskz_unpackhi_epi64(0xff, a, b);
}

/// words[i][j] <-> words[j][i]: within quarters of rows, then whole quarters.
LAGWISE_TILES void turn(Words& w) {
  Words t;
  for (int64_t i = 0; i < 16; i += 2) {
    t[i] = low32(w[i], w[i + 1]);
    t[i + 1] = high32(w[i], w[i + 1]);
  }
  for (int64_t i = 0; i < 16; i += 4) {
    w[i] = low64(t[i], t[i + 2]);
    w[i + 1] = high64(t[i], t[i + 2]);
    w[i + 2] = low64(t[i + 1], t[i + 3]);
    w[i + 3] = high64(t[i + 1], t[i + 3]);
  }
  for (int64_t i = 0; i < 4; ++i) {
    t[i] = shuffled<0x88>(w[i], w[i + 4]);
    t[i + 4] = shuffled<0xdd>(w[i], w[i + 4]);
    t[i + 8] = shuffled<0x88>(w[i + 8], w[i + 12]);
    t[i + 12] = shuffled<0xdd>(w[i + 8], w[i + 12]);
  }
  for (int64_t i = 0; i < 4; ++i) {
    w[i] = shuffled<0x88>(t[i], t[i + 8]);
    w[i + 8] = shuffled<0xdd>(t[i], t[i + 8]);
    w[i + 4] = shuffled<0x88>(t[i + 4], t[i + 12]);
    w[i + 12] = shuffled<0xdd>(t[i + 4], t[i + 12]);
  }
}

/// Tiles of the lanes [lane, end) and of a pass, two rows of them at a time: to[(block,
/// depth, half)], where a block has 32 lanes.
LAGWISE_TILES void pack(const Factor& x, int64_t lane, int64_t end, int64_t depth,
                        int64_t depths, bool by_lane, BFloat* to) {
  for (; lane < end; lane += kBlock)
    for (int64_t d = 0; d < depths; d += kDepths)
      for (int64_t half = 0; half < kBlock; half += kLanes) {
        Words words;
        load_words(x, lane + half, depth + d, words);
        if (by_lane != x.depths_side_by_side()) turn(words);
        for (int64_t i = 0; i < 16; ++i, to += kDepths)
          _mm512_store_si512(to, words[i]);
      }
}

/// 32 x 32 sums, at `c` with `step` numbers from row to row, over `tiles` tiles of depth.
LAGWISE_TILES void block(const BFloat* a, const BFloat* b, int64_t tiles, bool add,
                         float* c, int64_t step) {
  const auto bytes = static_cast<int>(step * 4);
  float* const below = c + kLanes * step;
  if (add) {
    _tile_loadd(0, c, bytes);
    _tile_loadd(1, c + kLanes, bytes);
    _tile_loadd(2, below, bytes);
    _tile_loadd(3, below + kLanes, bytes);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  for (; tiles > 0; --tiles, a += 2 * kTileNumbers, b += 2 * kTileNumbers) {
    _tile_loadd(4, a, 64);
    _tile_loadd(6, b, 64);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(7, b + kTileNumbers, 64);
    _tile_dpbf16ps(1, 4, 7);
    _tile_loadd(5, a + kTileNumbers, 64);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, c, bytes);
  _tile_stored(1, c + kLanes, bytes);
  _tile_stored(2, below, bytes);
  _tile_stored(3, below + kLanes, bytes);
}

/// The same at the border of c, of which `rows` x `cols` are there.
LAGWISE_TILES void border_block(const BFloat* a, const BFloat* b, int64_t tiles,
                                bool add, MatView<float> c) {
  alignas(64) float sums[kBlock * kBlock] = {};
  for (int64_t i = 0; i < c.rows && add; ++i)
    std::copy_n(c.row(i), c.cols, sums + i * kBlock);
  block(a, b, tiles, add, sums, kBlock);
  for (int64_t i = 0; i < c.rows; ++i) std::copy_n(sums + i * kBlock, c.cols, c.row(i));
}

/// Eight tiles of 16 rows of 64 bytes.
struct alignas(64) Configuration {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(Configuration) == 64);

int64_t up_to(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }

LAGWISE_TILES void multiply_here(const Factor& a, const Factor& b, bool add,
                                 MatView<float> c) {
  thread_local LineVector<BFloat> packed_a, packed_b;
  const auto room = [](LineVector<BFloat>& in, int64_t numbers) {
    if (in.size() < static_cast<size_t>(numbers))
      in.resize(static_cast<size_t>(numbers));
    return in.data();
  };
  const Configuration configuration;
  _tile_loadconfig(&configuration);
  for (int64_t depth = 0; depth < a.depths; depth += kPass) {
    const int64_t depths = up_to(std::min(kPass, a.depths - depth), kDepths);
    const int64_t block_numbers = kBlock * depths;
    BFloat* const left = room(packed_a, up_to(c.rows, kBlock) * depths);
    BFloat* const right = room(packed_b, block_numbers);
    pack(a, 0, c.rows, depth, depths, true, left);
    for (int64_t j = 0; j < c.cols; j += kBlock) {
      pack(b, j, std::min(c.cols, j + kBlock), depth, depths, false, right);
      const int64_t cols = std::min(kBlock, c.cols - j);
      for (int64_t i = 0; i < c.rows; i += kBlock) {
        const int64_t rows = std::min(kBlock, c.rows - i);
        const BFloat* const from = left + i / kBlock * block_numbers;
        const bool more = add || depth > 0;
        if (rows == kBlock && cols == kBlock)
          block(from, right, depths / kDepths, more, c.row(i) + j, c.row_step);
        else
          border_block(from, right, depths / kDepths, more,
                       c.slice(i, i + rows).columns(j, j + cols));
      }
    }
  }
  _tile_release();
}

}  // namespace

bool can_use_tiles() {
  static const bool can = [] {
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (!__builtin_cpu_supports("avx512bw") || !__builtin_cpu_supports("avx512vl") ||
        !__get_cpuid_count(7, 0, &a, &b, &c, &d))
      return false;
    constexpr unsigned kTilesOfBf16 = 1u << 22, kTiles = 1u << 24;
    if (!(d & kTilesOfBf16) || !(d & kTiles)) return false;
    // Linux grants tiles to a process, all its threads, that asks (<asm/prctl.h>).
    constexpr long kRequestPermission = 0x1023, kTileData = 18;
    return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  }();
  return can;
}

void multiply_by_tiles(MatView<const BFloat> a, MatView<const BFloat> b, bool add,
                       MatView<float> c) {
  multiply_here({a.data, a.rows, a.cols, a.row_step, a.col_step},
                {b.data, b.cols, b.rows, b.col_step, b.row_step}, add, c);
}

}  // namespace lagwise::ops::products

#else

#include <c10/util/Exception.h>

namespace lagwise::ops::products {

bool can_use_tiles() { return false; }
void multiply_by_tiles(MatView<const c10::BFloat16>, MatView<const c10::BFloat16>, bool,
                       MatView<float>) {
  TORCH_CHECK(false, "matrix_product: there are no tiles on this system");
}

}  // namespace lagwise::ops::products

#endif
