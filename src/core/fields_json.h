#pragma once
// The visitor that turns a struct with a description (core/fields.h) into JSON.

#include <nlohmann/json.hpp>
#include <string>

#include "core/fields.h"

namespace zaya {

class JsonSaver {
 public:
  template <class T>
  void field(const char* key, T& value, const char* /*help*/, const Check& = {}) {
    json_[key] = convert(value);
  }
  nlohmann::ordered_json finish() { return std::move(json_); }

  template <class T>
  static nlohmann::ordered_json convert(const T& value) {
    if constexpr (fields::is_struct<T>) {
      JsonSaver saver;
      T copy = value;
      describe(saver, copy);
      return saver.finish();
    } else if constexpr (fields::is_vector<T>) {
      auto list = nlohmann::ordered_json::array();
      for (const typename T::value_type& element : value) list.push_back(convert(element));
      return list;
    } else if constexpr (std::is_enum_v<T>) {
      return std::string(fields::enum_name(value));
    } else {
      return value;
    }
  }

 private:
  nlohmann::ordered_json json_ = nlohmann::ordered_json::object();
};

template <class T>
nlohmann::ordered_json json_of(const T& value) {
  return JsonSaver::convert(value);
}

}  // namespace zaya
