#include "checkpoint/convert.h"

#include <algorithm>

#include "checkpoint/convert_plan.h"
#include "checkpoint/convert_warnings.h"
#include "checkpoint/hf_model.h"
#include "checkpoint/widen.h"
#include "ops/linear/quantize.h"

namespace zaya {
namespace {

// Elements in memory at once, where they have to be computed.
constexpr int64_t kPieceElements = int64_t{1} << 24;
constexpr uint64_t kHeaderBytesPerTensor = 512;

// What goes along with the weights, where it is there.
constexpr const char* kCompanions[] = {"tokenizer.json",         "tokenizer.model",
                                       "tokenizer.byte",         "tokenizer_config.json",
                                       "added_tokens.json",      "special_tokens_map.json",
                                       "generation_config.json", "chat_template.jinja",
                                       "chat_template.json",     "preprocessor_config.json"};

class Conversion {
 public:
  Conversion(Context& ctx, const TensorFolder& source, uint64_t total,
             const ConvertProgress& progress)
      : ctx_(ctx), source_(source), total_(total), progress_(progress) {}

  uint64_t write_file(const fs::path& folder, const PlannedFile& file) {
    std::vector<TensorDeclaration> declarations;
    for (const PlannedParameter& p : file.parameters)
      declarations.insert(declarations.end(), p.tensors.begin(), p.tensors.end());
    SafetensorsWriter writer(folder / file.name, std::move(declarations), {{"format", "pt"}});
    for (const PlannedParameter& p : file.parameters)
      p.codes ? write_codes(writer, p) : write_floats(writer, p);
    return writer.finish().bytes;
  }

 private:
  // Rows [begin, end) of the parameter as views of what is stored, each of at most max_rows.
  template <class F>
  static void for_pieces(const PlannedParameter& p, int64_t begin, int64_t end, int64_t max_rows,
                         F&& visit) {
    int64_t first = 0;
    for (const Weight& weight : p.source) {
      const int64_t last = first + weight.rows();
      for (int64_t row = std::max(begin, first); row < std::min(end, last);) {
        const int64_t stop = std::min({row + max_rows, end, last});
        visit(weight.row_range(row - first, stop - first));
        row = stop;
      }
      first = last;
    }
  }

  static int64_t rows_of(const PlannedParameter& p) {
    int64_t rows = 0;
    for (const Weight& weight : p.source) rows += weight.rows();
    return rows;
  }

  static int64_t piece_rows(const PlannedParameter& p) {
    return std::max<int64_t>(1, kPieceElements / p.source.front().columns());
  }

  void write_floats(SafetensorsWriter& writer, const PlannedParameter& p) {
    const int64_t rows = rows_of(p), count = static_cast<int64_t>(p.tensors.size());
    for (int64_t i = 0; i < count; ++i) {
      writer.begin(p.tensors[static_cast<size_t>(i)].name);
      for_pieces(p, rows * i / count, rows * (i + 1) / count, piece_rows(p), [&](const Weight& w) {
        write(writer, w.quantized() ? floats_of(w, p) : w.values);
        source_.release(w.values);
      });
    }
  }

  void write_codes(SafetensorsWriter& writer, const PlannedParameter& p) {
    const TensorDeclaration &codes = p.tensors[0], &scales = p.tensors[1];
    const int64_t rows = rows_of(p), groups = p.source.front().columns() / kQuantGroup;
    scales_.resize(static_cast<size_t>(rows * groups));
    const Tensor all_scales(scales_.data(), DType::bf16, {rows, groups});
    writer.begin(codes.name);
    int64_t row = 0;
    for_pieces(p, 0, rows, piece_rows(p), [&](const Weight& w) {
      const int64_t bytes = codes.shape.size() / rows;
      codes_.resize(static_cast<size_t>(w.rows() * bytes));
      const Tensor some_codes(codes_.data(), codes.dtype, {w.rows(), bytes});
      quantize(ctx_, {some_codes, all_scales.row_range(row, row + w.rows())}, floats_of(w, p));
      write(writer, some_codes);
      source_.release(w.values);
      row += w.rows();
    });
    writer.begin(scales.name);
    write(writer, all_scales.reshaped(scales.shape));
  }

  // f32 or bf16, finite.
  Tensor floats_of(const Weight& w, const PlannedParameter& p) {
    Tensor floats = w.values;
    if (w.quantized() || w.values.dtype == DType::f16) {
      floats_.resize(static_cast<size_t>(w.rows() * w.columns()));
      floats = Tensor(floats_.data(), DType::f32, {w.rows(), w.columns()});
      w.quantized() ? dequantize(ctx_, floats, w) : widen(floats, w.values);
    }
    if (!all_finite(floats))
      fail("{}: {}: wanted finite weights", source_.path().string(), p.spec.name);
    return floats;
  }

  void write(SafetensorsWriter& writer, const Tensor& piece) {
    writer.write(piece);
    done_ += static_cast<uint64_t>(piece.bytes());
    if (progress_) progress_(std::min(done_, total_), total_);
  }

  Context& ctx_;
  const TensorFolder& source_;
  uint64_t total_, done_ = 0;
  const ConvertProgress& progress_;
  std::vector<float> floats_;
  std::vector<uint8_t> codes_;
  std::vector<bf16> scales_;
};

void copy_durably(const fs::path& from, const fs::path& to) {
  InputFile in(from);
  DurableFile out(to);
  std::vector<char> piece(size_t{1} << 20);
  while (const size_t got = in.read(piece.data(), piece.size())) out.write(piece.data(), got);
  out.finish();
}

std::vector<std::string> companions_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const char* name : kCompanions)
    if (fs::is_regular_file(folder / name, ignored)) names.push_back(name);
  return names;
}

void refuse_to_lose_the_input(const fs::path& in, const fs::path& out) {
  const fs::path from = plain_path(in), to = plain_path(out);
  const auto [end, _] = std::mismatch(to.begin(), to.end(), from.begin(), from.end());
  if (end == to.end())
    fail("{}: wanted another folder than the one that holds the model itself", out.string());
}

void require_space_for(const fs::path& folder, const fs::path& in,
                       const std::vector<PlannedFile>& files,
                       const std::vector<std::string>& companions) {
  uint64_t bytes = uint64_t{1} << 20;
  for (const PlannedFile& file : files) {
    bytes += bytes_of(file);
    for (const PlannedParameter& p : file.parameters)
      bytes += kHeaderBytesPerTensor * p.tensors.size();
  }
  for (const std::string& name : companions) bytes += fs::file_size(in / name);
  require_space(folder, bytes);
}

uint64_t total_bytes(const std::vector<PlannedFile>& files) {
  uint64_t bytes = 0;
  for (const PlannedFile& file : files) bytes += bytes_of(file);
  return bytes;
}

}  // namespace

ConvertSummary convert_model(Context& ctx, const fs::path& in, const fs::path& out,
                             const ConvertOptions& options, const ConvertProgress& progress) {
  refuse_to_lose_the_input(in, out);
  const ModelFile source = read_model_file(in / "config.json");
  const TensorFolder folder = TensorFolder::open(in);
  check_tensors(source.config, source.form, folder);
  const std::vector<PlannedFile> files =
      plan_conversion(source, folder, options.to, options.shard_bytes);
  const std::string config = json_text(config_in_form(source, options.to), 1) + "\n";
  ConvertSummary summary;
  summary.from = source.form;
  summary.to = options.to;
  summary.parameters = count_parameters(source.config).total;
  summary.copied = companions_in(in);
  summary.warnings = conversion_warnings(source, folder, options.to);
  for (const SafetensorsFile& file : folder.files()) summary.bytes_before += file.file_bytes();

  OutputFolder output(out, options.existing);
  require_space_for(output.partial(), in, files, summary.copied);
  Conversion conversion(ctx, folder, total_bytes(files), progress);
  for (const PlannedFile& file : files) {
    summary.bytes += conversion.write_file(output.partial(), file);
    summary.files.push_back(file.name);
  }
  for (const std::string& name : summary.copied) copy_durably(in / name, output.partial() / name);
  if (files.size() > 1)
    write_file_durably(output.partial() / "model.safetensors.index.json",
                       json_text(index_of(files), 1) + "\n");
  write_file_durably(output.partial() / "config.json", config);
  output.commit();
  return summary;
}

}  // namespace zaya
