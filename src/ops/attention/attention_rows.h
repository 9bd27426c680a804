#pragma once
// Attention of queries that are computed one by one (ctx.rows apart): bound by reading the keys and
// values, which are read once, as they lie.

#include "ops/attention/attention.h"

namespace zaya {

// As attention_forward. Keys are cut into pieces of a fixed length, each with its own maximum, sum
// and weighted values, combined in order: long contexts find work for many threads, and a query's
// bits depend on its own span alone.
void attention_rows_forward(const Tensor& o, const Tensor& lse, const Tensor& q, const Tensor& k,
                            const Tensor& v, std::span<const AttentionSpan> spans,
                            const AttentionShape& shape);

}  // namespace zaya
