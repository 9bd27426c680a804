#include "checkpoint/checkpoint_dir.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <set>

#include "checkpoint/exchange.h"
#include "core/error.h"

namespace zaya {
namespace {

constexpr std::string_view kFormat = "zaya-checkpoint";
constexpr int64_t kVersion = 1;
constexpr std::string_view kManifestName = "manifest.json";
constexpr std::string_view kStepPrefix = "step-";
constexpr std::string_view kPartialSuffix = ".partial";
constexpr std::string_view kReplacedSuffix = ".replaced";
constexpr uint64_t kMaxManifestBytes = uint64_t{256} << 20;

std::string folder_name(int64_t step) { return fmt::format("{}{:08}", kStepPrefix, step); }

// The step of "step-00000200"; nothing for names this program would not give.
std::optional<int64_t> step_of(std::string_view name) {
  if (!name.starts_with(kStepPrefix)) return {};
  const std::string_view digits = name.substr(kStepPrefix.size());
  if (digits.size() < 8 || digits.size() > 18 ||
      digits.find_first_not_of("0123456789") != std::string_view::npos)
    return {};
  const int64_t step = std::stoll(std::string(digits));
  if (folder_name(step) != name) return {};
  return step;
}

// Folders of unfinished saves and removals, and of replaced checkpoints on their way out.
bool is_partial(std::string_view name) {
  if (!name.ends_with(kPartialSuffix)) return false;
  name.remove_suffix(kPartialSuffix.size());
  if (name.ends_with(kReplacedSuffix)) name.remove_suffix(kReplacedSuffix.size());
  return step_of(name).has_value();
}

fs::path with_suffix(const fs::path& path, std::string_view suffix) {
  return path.string() + std::string(suffix);
}

// A folder itself; a link to one is somebody else's arrangement.
bool is_own_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(fs::symlink_status(path, ignored));
}

std::string utc_now() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm utc{};
  ::gmtime_r(&now, &utc);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text.data();
}

// The sum of the manifest without its own sum. JSON text is canonical here: keys sorted, numbers in
// their shortest form.
std::string sum_of(Json manifest) {
  manifest.erase("checksum");
  return to_hex(xxh3(json_text(manifest)));
}

std::string manifest_text(const Manifest& manifest) {
  Json json = {{"format", std::string(kFormat)}, {"version", kVersion},
               {"step", manifest.step},          {"created", manifest.created},
               {"files", Json::array()},         {"state", manifest.state}};
  for (const FileSums& sums : manifest.files) json["files"].push_back(to_json(sums));
  // Parsed again, because text may say less than the value (NaN becomes null): the sum is over what
  // a reader will see.
  json = Json::parse(json_text(json));
  json["checksum"] = sum_of(json);
  return json_text(json, 1) + "\n";
}

// Renamed first, so that a crash half-way leaves a partial folder and not half a checkpoint.
void remove_checkpoint(const CheckpointEntry& entry) {
  const fs::path partial = with_suffix(entry.path, kPartialSuffix);
  remove_folder(partial);
  rename_durably(entry.path, partial);
  remove_folder(partial);
}

}  // namespace

uint64_t Manifest::bytes() const {
  uint64_t sum = 0;
  for (const FileSums& file : files) sum += file.bytes;
  return sum;
}

CheckpointWriter::CheckpointWriter(const fs::path& run_dir, int64_t step) : run_dir_(run_dir) {
  ZAYA_REQUIRE(step >= 0);
  manifest_.step = step;
  std::error_code ignored;
  if (!fs::is_directory(run_dir, ignored))
    fail("{}: wanted a folder for checkpoints, got none of that name", run_dir.string());
  partial_ = with_suffix(run_dir / folder_name(step), kPartialSuffix);
  remove_folder(partial_);
  make_folder(partial_);
}

CheckpointWriter::~CheckpointWriter() {
  if (committed_) return;
  std::error_code ignored;  // the folder is not taken for a checkpoint either way
  fs::remove_all(partial_, ignored);
}

fs::path CheckpointWriter::path_of(std::string_view name) const {
  ZAYA_REQUIRE(is_plain_name(name) && name != kManifestName);
  return partial_ / name;
}

void CheckpointWriter::add(FileSums sums) {
  ZAYA_REQUIRE(is_plain_name(sums.name) && sums.name != kManifestName);
  for (const FileSums& file : manifest_.files) ZAYA_REQUIRE(file.name != sums.name);
  manifest_.files.push_back(std::move(sums));
}

void CheckpointWriter::add_bytes(std::string_view name, std::string_view bytes) {
  ChecksummedFile file(path_of(name));
  file.write(bytes.data(), bytes.size());
  add(file.finish());
}

fs::path CheckpointWriter::commit(const Json& state) {
  ZAYA_REQUIRE(!committed_ && state.is_object());
  manifest_.created = utc_now();
  manifest_.state = state;
  write_file_durably(partial_ / kManifestName, manifest_text(manifest_));
  const fs::path target = run_dir_ / folder_name(manifest_.step);
  std::error_code ignored;
  if (fs::exists(fs::symlink_status(target, ignored)))
    replace(target);
  else
    rename_durably(partial_, target);
  committed_ = true;
  return target;
}

void CheckpointWriter::replace(const fs::path& target) {
  verify_checkpoint(partial_);
  // Without an exchange, a crash between the renames loses this step's checkpoint, and no other.
  exchange_folders(partial_, target,
                   with_suffix(with_suffix(target, kReplacedSuffix), kPartialSuffix));
  sync_folder(run_dir_);
  committed_ = true;
  remove_folder(partial_);
}

Manifest read_manifest(const fs::path& checkpoint) {
  const fs::path path = checkpoint / kManifestName;
  const std::string place = path.string();
  const Json json = parse_json_file(path, kMaxManifestBytes);
  const JsonObject object(json, place);
  if (object.string("format") != kFormat) object.fail_wanted("format", json_quoted(kFormat));
  if (object.integer("version") != kVersion)
    object.fail_wanted("version", fmt::format("{}", kVersion));
  if (object.string("checksum") != sum_of(json))
    object.fail_wanted("checksum", json_quoted(sum_of(json)));
  Manifest manifest;
  manifest.step = object.integer("step");
  manifest.created = object.string("created");
  manifest.state = object.object("state").value();
  std::set<std::string> names;
  for (const Json& entry : object.array("files")) {
    manifest.files.push_back(file_sums_from_json(entry, place));
    if (!names.insert(manifest.files.back().name).second)
      fail("{}: the file {} comes twice", place, json_quoted(manifest.files.back().name));
  }
  return manifest;
}

Manifest verify_checkpoint(const fs::path& checkpoint) {
  Manifest manifest = read_manifest(checkpoint);
  for (const FileSums& file : manifest.files) verify_file(checkpoint, file);
  return manifest;
}

std::vector<CheckpointEntry> list_checkpoints(const fs::path& run_dir) {
  std::vector<CheckpointEntry> checkpoints;
  for (const std::string& name : list_folder(run_dir)) {
    const std::optional<int64_t> step = step_of(name);
    std::error_code ignored;
    if (step && is_own_folder(run_dir / name) &&
        fs::exists(run_dir / name / kManifestName, ignored))
      checkpoints.push_back({*step, run_dir / name});
  }
  std::sort(checkpoints.begin(), checkpoints.end(),
            [](const auto& a, const auto& b) { return a.step > b.step; });
  return checkpoints;
}

GoodCheckpoint newest_good_checkpoint(const fs::path& run_dir) {
  GoodCheckpoint result;
  for (const CheckpointEntry& entry : list_checkpoints(run_dir)) {
    try {
      const Manifest manifest = verify_checkpoint(entry.path);
      if (manifest.step != entry.step)
        fail("{}: manifest.json: step: wanted {}, got {}", entry.path.string(), entry.step,
             manifest.step);
      result.checkpoint = entry;
      break;
    } catch (const Error& error) {
      result.skipped.push_back(error.what());
    }
  }
  return result;
}

std::vector<fs::path> prune_checkpoints(const fs::path& run_dir, int64_t keep_last,
                                        int64_t keep_every) {
  ZAYA_REQUIRE(keep_last >= 1 && keep_every >= 0);
  std::vector<fs::path> removed;
  for (const std::string& name : list_folder(run_dir)) {
    if (!is_partial(name) || !is_own_folder(run_dir / name)) continue;
    remove_folder(run_dir / name);
    removed.push_back(run_dir / name);
  }
  const GoodCheckpoint good = newest_good_checkpoint(run_dir);
  if (!good.checkpoint) return removed;
  int64_t older = 0;  // seen so far
  for (const CheckpointEntry& entry : list_checkpoints(run_dir)) {
    if (entry.step >= good.checkpoint->step) continue;
    const bool milestone = keep_every > 0 && entry.step % keep_every == 0;
    if (++older < keep_last || milestone) continue;
    remove_checkpoint(entry);
    removed.push_back(entry.path);
  }
  return removed;
}

}  // namespace zaya
