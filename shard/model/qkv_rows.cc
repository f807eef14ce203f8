#include "shard/model/qkv_rows.h"

namespace penstock::shard {
namespace {

// Rows that follow those of the last slice join it.
void Add(const RowSlice& slice, std::vector<RowSlice>& slices) {
  if (slice.rows.count == 0) return;
  if (!slices.empty() && slice.step == 1) {
    RowSlice& last = slices.back();
    const bool follows = last.rows.first + last.rows.count == slice.rows.first;
    if (last.name == slice.name && last.step == 1 && follows) {
      last.rows.count += slice.rows.count;
      return;
    }
  }
  slices.push_back(slice);
}

}  // namespace

std::vector<RowSlice> HeadRows(const std::string& name, std::uint64_t stored_rows,
                               std::uint64_t first, std::uint64_t dim, std::uint64_t interleaved) {
  if (interleaved == 0) return {{name, stored_rows, {first, dim}}};
  std::vector<RowSlice> slices{{name, stored_rows, {first, interleaved / 2}, 2},
                               {name, stored_rows, {first + 1, interleaved / 2}, 2}};
  Add({name, stored_rows, {first + interleaved, dim - interleaved}}, slices);
  return slices;
}

void QkvRows::AddQueries(const Source& source, std::vector<RowSlice>& slices) const {
  for (std::uint64_t i = 0; i < mine_.query_heads; ++i) {
    for (const RowSlice& slice :
         HeadRows(source.name, source.stored_rows, source.row_of(first_query_head_ + i),
                  all_.key_dim, interleaved_)) {
      Add(slice, slices);
    }
  }
}

void QkvRows::AddKeys(const Source& source, std::vector<RowSlice>& slices) const {
  for (std::uint64_t i = 0; i < mine_.kv_heads; ++i) {
    for (const RowSlice& slice :
         HeadRows(source.name, source.stored_rows, source.row_of(first_kv_head_ + i), all_.key_dim,
                  interleaved_)) {
      Add(slice, slices);
    }
  }
}

void QkvRows::AddValues(const Source& source, std::vector<RowSlice>& slices) const {
  for (std::uint64_t i = 0; i < mine_.kv_heads; ++i) {
    Add({source.name, source.stored_rows, {source.row_of(first_kv_head_ + i), all_.value_dim}},
        slices);
  }
}

std::vector<RowSlice> QkvRows::All(const Source& q, const Source& k, const Source& v) const {
  std::vector<RowSlice> slices, keys, values;
  AddQueries(q, slices);
  AddKeys(k, keys);
  AddValues(v, values);
  slices.insert(slices.end(), keys.begin(), keys.end());
  slices.insert(slices.end(), values.begin(), values.end());
  return slices;
}

QkvRows::Source QkvRows::Plain(const std::string& name, std::uint64_t heads,
                               std::uint64_t dim) const {
  return {name, heads * dim, [dim](std::uint64_t head) { return head * dim; }};
}

std::vector<RowSlice> QkvRows::Separate(const std::string& q, const std::string& k,
                                        const std::string& v) const {
  return All(Plain(q, all_.query_heads, all_.key_dim), Plain(k, all_.kv_heads, all_.key_dim),
             Plain(v, all_.kv_heads, all_.value_dim));
}

std::vector<RowSlice> QkvRows::Queries(const std::string& q) const {
  std::vector<RowSlice> slices;
  AddQueries(Plain(q, all_.query_heads, all_.key_dim), slices);
  return slices;
}

std::vector<RowSlice> QkvRows::Fused(const std::string& name) const {
  const auto from = [&](std::uint64_t first, std::uint64_t dim) {
    return Source{name, all_.QkvWidth(),
                  [first, dim](std::uint64_t head) { return first + head * dim; }};
  };
  const std::uint64_t queries = all_.QueryWidth(), keys = all_.KeyWidth();
  return All(from(0, all_.key_dim), from(queries, all_.key_dim),
             from(queries + keys, all_.value_dim));
}

std::vector<RowSlice> QkvRows::ByHead(const std::string& name) const {
  const std::uint64_t group = all_.Group(), dim = all_.key_dim;
  const std::uint64_t each = (group + 1) * dim + all_.value_dim;
  const auto in_group = [&](std::uint64_t first) {
    return Source{name, all_.QkvWidth(),
                  [first, each](std::uint64_t head) { return head * each + first; }};
  };
  const Source queries{name, all_.QkvWidth(), [group, dim, each](std::uint64_t head) {
                         return head / group * each + head % group * dim;
                       }};
  return All(queries, in_group(group * dim), in_group((group + 1) * dim));
}

std::vector<RowSlice> QkvRows::ByBlock(const std::string& name, std::uint32_t blocks) const {
  const std::uint64_t heads = all_.query_heads / blocks, dim = all_.key_dim;
  const auto part = [&](std::uint64_t index) {
    return Source{name, all_.QkvWidth(), [index, heads, dim](std::uint64_t head) {
                    return ((head / heads * 3 + index) * heads + head % heads) * dim;
                  }};
  };
  return All(part(0), part(2), part(1));
}

std::vector<RowSlice> QkvRows::BesideGates(const std::string& q, const std::string& k,
                                           const std::string& v) const {
  const std::uint64_t dim = all_.key_dim;
  return All({q, 2 * all_.QueryWidth(), [dim](std::uint64_t head) { return 2 * head * dim; }},
             Plain(k, all_.kv_heads, all_.key_dim), Plain(v, all_.kv_heads, all_.value_dim));
}

std::vector<RowSlice> QkvRows::Gates(const std::string& q) const {
  std::vector<RowSlice> slices;
  const std::uint64_t dim = all_.key_dim;
  for (std::uint64_t i = 0; i < mine_.query_heads; ++i) {
    const std::uint64_t head = first_query_head_ + i;
    Add({q, 2 * all_.QueryWidth(), {(2 * head + 1) * dim, dim}}, slices);
  }
  return slices;
}

}  // namespace penstock::shard
