// A model.safetensors.index.json beside shards and other things that a folder may hold.

#include <sys/stat.h>

#include "checkpoint/safetensors.h"
#include "fuzz/file_calls.h"
#include "support/temp_folder.h"

namespace zaya::fuzz {
namespace {

void write_shard(const fs::path& path, const std::vector<std::string>& names) {
  std::vector<TensorDeclaration> declarations;
  for (const std::string& name : names) declarations.push_back({name, DType::f32, {2}});
  SafetensorsWriter writer(path, declarations);
  float values[] = {1, 2};
  for (const std::string& name : names) writer.add(name, Tensor(values, DType::f32, {2}));
  writer.finish();
}

// "b" lies in both shards. Beside them a link, a link to nothing, a link to itself, a folder, a
// pipe and an empty file; outside, a shard that would open.
void fill(const TempFolder& parent, const fs::path& folder) {
  make_folder(folder / "folder");
  write_shard(folder / "1.safetensors", {"a", "b"});
  write_shard(folder / "2.safetensors", {"b", "c"});
  write_shard(parent.path() / "outside.safetensors", {"a"});
  fs::create_symlink("1.safetensors", folder / "link");
  fs::create_symlink("nothing", folder / "dangling");
  fs::create_symlink("loop", folder / "loop");
  FUZZ_CHECK(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  InputFileOnDisk(folder / "empty").set("");
}

// Every tensor is one of an opened shard, and the shards are files of the folder.
void check_folder(const TensorFolder& opened, const fs::path& folder) {
  for (const SafetensorsFile& file : opened.files())
    FUZZ_CHECK(file.path().parent_path() == folder);
  for (const std::string& name : opened.names()) {
    const Tensor tensor = opened.get(name);
    FUZZ_CHECK(static_cast<const float*>(tensor.data)[1] == 2);
    bool found = false;
    for (const SafetensorsFile& file : opened.files()) {
      const Tensor* own = file.find(name);
      found |= own && own->data == tensor.data;
    }
    FUZZ_CHECK(found);
  }
}

}  // namespace
}  // namespace zaya::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace zaya;
  using namespace zaya::fuzz;
  static const TempFolder parent;
  static const fs::path folder = parent.path() / "model";
  static const bool filled = (fill(parent, folder), true);
  static_cast<void>(filled);
  static InputFileOnDisk index(folder / "model.safetensors.index.json");
  index.set(as_text(data, size));
  const WatchedFolder watched(folder);
  accepts([&] { check_folder(TensorFolder::open(folder), folder); });
  FUZZ_CHECK(watched.opened() > 0);
  return 0;
}
