#include "backend/cpu/matmul_kernel.h"

#include <omp.h>

#include <memory>
#include <mutex>
#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>

#include "backend/cpu/instruction_set.h"
#include "backend/cpu/threads.h"
#include "core/ceil_div.h"
#include "core/error.h"

namespace zaya {
namespace {

struct HashOfShape {
  size_t operator()(const MatmulShape& s) const {
    const int64_t flags = s.transpose_a | s.transpose_b << 1 | s.accumulate << 2 |
                          (s.in == DType::bf16) << 3 | (s.out == DType::bf16) << 4;
    uint64_t hash = 0;
    for (const int64_t part : {flags, s.m, s.n, s.k}) {
      hash = (hash ^ static_cast<uint64_t>(part)) * 0x9e3779b97f4a7c15u;
      hash ^= hash >> 29;
    }
    return static_cast<size_t>(hash);
  }
};

const dnnl::engine& cpu_engine() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

dnnl::memory::desc dense(int64_t rows, int64_t columns, bool transposed, DType dtype) {
  using Format = dnnl::memory::format_tag;
  return {{rows, columns},
          dtype == DType::bf16 ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32,
          transposed ? Format::ba : Format::ab};
}

// Keeps oneDNN to the calling thread. It asks OpenMP how many threads it may use, and is answered
// one inside a parallel region only.
class OneThread {
 public:
  OneThread() : saved_(omp_get_max_threads()) {
    if (saved_ > 1) omp_set_num_threads(1);
  }
  ~OneThread() {
    if (saved_ > 1) omp_set_num_threads(saved_);
  }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int saved_;
};

dnnl::matmul::primitive_desc describe(const MatmulShape& s) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (s.accumulate) {
    dnnl::post_ops add;
    add.append_sum(1.0f);
    attributes.set_post_ops(add);
  }
  return {{dense(s.m, s.k, s.transpose_a, s.in), dense(s.k, s.n, s.transpose_b, s.in),
           dense(s.m, s.n, false, s.out)},
          attributes,
          cpu_engine()};
}

// What the threads share of a product. Executing it changes nothing in it.
struct Primitive {
  dnnl::matmul::primitive_desc description;
  dnnl::matmul primitive;

  explicit Primitive(const MatmulShape& shape)
      : description(describe(shape)), primitive(description) {}
};

// Every primitive of the process.
class Primitives {
 public:
  const Primitive& get(const MatmulShape& shape) {
    const std::lock_guard lock(mutex_);
    if (!made_.contains(shape)) {
      const OneThread one_thread;
      MatmulShape family = shape;
      (shape.transpose_a ? family.k : family.m) = 0;
      if (++members_[family] == 2) make_all(family);
      make(shape);
    }
    return *made_[shape];
  }
  int64_t count() {
    const std::lock_guard lock(mutex_);
    return static_cast<int64_t>(made_.size());
  }

 private:
  void make(const MatmulShape& shape) {
    std::unique_ptr<Primitive>& entry = made_[shape];
    if (!entry) entry = std::make_unique<Primitive>(shape);
  }
  void make_all(MatmulShape shape) {
    if (shape.transpose_a) {
      for (shape.k = uniform_terms(1); shape.k <= kMostTerms; shape.k = uniform_terms(shape.k + 1))
        make(shape);
    } else {
      for (shape.m = uniform_rows(1); shape.m <= most_rows(); shape.m = uniform_rows(shape.m + 1))
        make(shape);
    }
  }

  std::mutex mutex_;
  std::unordered_map<MatmulShape, std::unique_ptr<Primitive>, HashOfShape> made_;
  std::unordered_map<MatmulShape, int, HashOfShape> members_;
};

Primitives& primitives() {
  static Primitives all;
  return all;
}

// A thread's handles on a primitive's operands: set before each call.
struct Operands {
  const Primitive* shared;
  dnnl::memory a, b, c, scratch;

  explicit Operands(const Primitive& p)
      : shared(&p),
        a(p.description.src_desc(), cpu_engine(), nullptr),
        b(p.description.weights_desc(), cpu_engine(), nullptr),
        c(p.description.dst_desc(), cpu_engine(), nullptr),
        scratch(p.description.scratchpad_desc(), cpu_engine(), nullptr) {}
};

Operands& operands(const MatmulShape& shape) {
  thread_local std::unordered_map<MatmulShape, Operands, HashOfShape> mine;
  const auto found = mine.find(shape);
  if (found != mine.end()) return found->second;
  return mine.emplace(shape, Operands(primitives().get(shape))).first->second;
}

}  // namespace

void matmul(const MatmulShape& shape, void* c, const void* a, const void* b) {
  struct Scratch;
  ZAYA_REQUIRE((shape.in == DType::f32 && shape.out == DType::f32) || multiplies_bf16());
  thread_local dnnl::stream stream(cpu_engine());
  Operands& o = operands(shape);
  o.a.set_data_handle(const_cast<void*>(a));
  o.b.set_data_handle(const_cast<void*>(b));
  o.c.set_data_handle(c);
  const size_t scratch_bytes = o.shared->description.scratchpad_desc().get_size();
  o.scratch.set_data_handle(thread_buffer<Scratch, char>(static_cast<int64_t>(scratch_bytes)));
  const dnnl_exec_arg_t arguments[] = {{DNNL_ARG_SRC, o.a.get()},
                                       {DNNL_ARG_WEIGHTS, o.b.get()},
                                       {DNNL_ARG_DST, o.c.get()},
                                       {DNNL_ARG_SCRATCHPAD, o.scratch.get()}};
  const OneThread one_thread;
  const auto status = dnnl_primitive_execute(o.shared->primitive.get(), stream.get(), 4, arguments);
  ZAYA_REQUIRE(status == dnnl_success);
}

int64_t most_rows() { return has_avx512() ? 512 : 192; }

int64_t uniform_rows(int64_t rows) {
  // Kernels of AVX2 and less treat a lone pair of leftover rows differently. These counts leave no
  // such pair with kernels of 4, 6, 8 and 12 rows.
  if (has_avx512() || rows <= 16) return round_up(rows, 16);
  return rows > 48 && rows <= 64 ? 64 : round_up(rows, 24);
}

bool products_take_memory() { return !has_avx512(); }

int64_t matmul_primitives_made() { return primitives().count(); }

}  // namespace zaya
