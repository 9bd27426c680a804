#pragma once
// Compares what the model computes with reference tensors made elsewhere: logits, loss, hidden
// states, expert choices, every gradient the file holds; and cached decoding with the full forward.

#include <filesystem>
#include <string>
#include <vector>

#include "checkpoint/safetensors.h"
#include "model/zaya.h"

namespace zaya {

struct ParityRow {
  std::string name;
  Shape shape;
  double error = 0;  // Frobenius norm of the difference over that of the reference
  double tolerance = 0;
  std::string note;  // what is compared, where the name does not say it

  bool passed() const { return error <= tolerance; }  // NaN fails
};

struct ParityReport {
  std::vector<ParityRow> rows;

  bool passed() const;
  const ParityRow& worst() const;  // the row that is furthest over (or nearest to) its tolerance
};

// Whether there is any grad.NAME to compare with: only then does the model need gradients.
bool has_gradients(const SafetensorsFile& reference);

// The file holds input_ids and labels [B, S] i64, optionally cu_seqlens [n + 1] (B = 1), and any of
// logits, loss, hidden.N, expert_choice, grad.NAME. Error when it does not fit the model.
ParityReport check_parity(Context& ctx, Zaya& model, const SafetensorsFile& reference);

}  // namespace zaya
