// TableSizes: sizes of pieces of the core's tables.
//
// Thread: any; constants. The preset fuzz defines NOWCALLS_SMALL_TABLES, so few tokens reach all
// code.
#ifndef NOWCALLS_CORE_TABLES_TABLE_SIZES_H_
#define NOWCALLS_CORE_TABLES_TABLE_SIZES_H_

#include <cstddef>
#include <cstdint>

namespace nowcalls::core {

struct TableSizes {
  uint32_t token_chunk;  // Tokens that get their memory together: 1 MiB.
  uint32_t recent;       // Fences that are found without an index.
  size_t index_shards;   // A power of two.
  uint32_t flow_chunk;   // Flows that get their memory together: 2 MiB.
  uint32_t key_chunk;    // Keys that get their memory together.
  uint32_t many_flows;   // From this many on it pays to load a flow before it is needed.
};

#ifdef NOWCALLS_SMALL_TABLES
inline constexpr TableSizes kTableSizes{.token_chunk = 4,
                                        .recent = 4,
                                        .index_shards = 2,
                                        .flow_chunk = 2,
                                        .key_chunk = 2,
                                        .many_flows = 3};
#else
inline constexpr TableSizes kTableSizes{.token_chunk = 16'384,
                                        .recent = 16'384,
                                        .index_shards = 1024,
                                        .flow_chunk = 2048,
                                        .key_chunk = 1024,
                                        .many_flows = 2'048};
#endif

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_TABLES_TABLE_SIZES_H_
