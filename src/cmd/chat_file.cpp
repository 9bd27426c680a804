#include "cmd/chat_session.h"
#include "core/error.h"
#include "core/file.h"
#include "core/json.h"

namespace zaya {

void save_messages(const std::vector<Message>& messages, const std::string& file) {
  Json list = Json::array();
  for (const Message& message : messages)
    list.push_back({{"role", message.role}, {"content", message.content}});
  write_file_durably(file, json_text({{"messages", std::move(list)}}) + "\n");
}

std::vector<Message> read_messages(const std::string& file) {
  const Json json = parse_json_file(file);
  const JsonObject whole(json, file);
  std::vector<Message> messages;
  for (const Json& entry : whole.array("messages")) {
    const JsonObject message(entry, fmt::format("{}: messages[{}]", file, messages.size()));
    messages.push_back({message.string("role"), message.string("content")});
    if (messages.back().role == "model") messages.back().role = "assistant";
  }
  return messages;
}

}  // namespace zaya
