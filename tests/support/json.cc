#include "support/json.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>
#include <stdexcept>
#include <utility>

namespace nowcalls::testing {
namespace {

nlohmann::json Foreign(const Json& value) {
  if (value.is_array()) {
    nlohmann::json array = nlohmann::json::array();
    for (const Json& element : value) array.push_back(Foreign(element));
    return array;
  }
  if (value.is_object()) {
    nlohmann::json object = nlohmann::json::object();
    for (const auto& [name, member] : value.items()) object[name] = Foreign(member);
    return object;
  }
  if (value.is_bool()) return value.get<bool>();
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_unsigned()) return value.get<uint64_t>();
  if (value.is_number_integer()) return value.get<int64_t>();
  if (value.is_number()) return value.get<double>();
  return nullptr;
}

Json Own(const nlohmann::json& value) {
  using Type = nlohmann::json::value_t;
  switch (value.type()) {
    case Type::boolean: return value.get<bool>();
    case Type::number_integer: return value.get<int64_t>();
    case Type::number_unsigned: return value.get<uint64_t>();
    case Type::number_float: return value.get<double>();
    case Type::string: return value.get<std::string>();
    case Type::array: {
      Json array = Json::array();
      for (const auto& element : value) array.push_back(Own(element));
      return array;
    }
    case Type::object: {
      Json object = Json::object();
      for (const auto& [name, member] : value.items()) object[name] = Own(member);
      return object;
    }
    default: return nullptr;
  }
}

[[noreturn]] void Fail(const std::string& what, const Json& json) {
  throw std::runtime_error(what + ": " + json.dump());
}

}  // namespace

Json::Json() : value_(nullptr) {}
Json::Json(std::nullptr_t) : value_(nullptr) {}
Json::Json(bool value) : value_(value) {}
Json::Json(int64_t value) : value_(value) {
  if (value >= 0) value_ = static_cast<uint64_t>(value);
}
Json::Json(uint64_t value) : value_(value) {}
Json::Json(double number) : value_(number) {}
Json::Json(const char* text) : value_(std::string(text)) {}
Json::Json(std::string text) : value_(std::move(text)) {}
Json::Json(std::string_view text) : value_(std::string(text)) {}
Json::Json(Array elements) : value_(std::move(elements)) {}
Json::Json(const std::vector<std::string>& texts) : value_(Array(texts.begin(), texts.end())) {}
Json::Json(const Json& other) = default;
Json::Json(Json&& other) noexcept = default;
Json& Json::operator=(const Json& other) = default;
Json& Json::operator=(Json&& other) noexcept = default;
Json::~Json() = default;

Json::Json(std::initializer_list<Json> elements) {
  const bool members = std::all_of(elements.begin(), elements.end(), [](const Json& element) {
    return element.is_array() && element.size() == 2 && element[0].is_string();
  });
  if (!members) {
    value_ = Array(elements);
    return;
  }
  Object object;
  for (const Json& element : elements) object.emplace(element[0].Text(), element[1]);
  value_ = std::move(object);
}

Json Json::array(std::initializer_list<Json> elements) { return Array(elements); }

Json Json::object() {
  Json json;
  json.value_ = Object();
  return json;
}

Json Json::parse(const std::string& text) {
  try {
    return Own(nlohmann::json::parse(text));
  } catch (const nlohmann::json::exception& error) {
    throw std::runtime_error(std::string(error.what()) + ": " + text);
  }
}

std::string Json::dump() const {
  return Foreign(*this).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

size_t Json::size() const {
  if (const auto* array = std::get_if<Array>(&value_)) return array->size();
  if (const auto* object = std::get_if<Object>(&value_)) return object->size();
  return is_null() ? 0 : 1;
}

bool Json::contains(const std::string& name) const {
  const auto* object = std::get_if<Object>(&value_);
  return object != nullptr && object->contains(name);
}

const Json& Json::at(const std::string& name) const {
  if (!contains(name)) Fail("no member " + name, *this);
  return std::get<Object>(value_).at(name);
}

const Json& Json::at(size_t index) const {
  if (!is_array() || index >= size()) Fail("no element " + std::to_string(index), *this);
  return std::get<Array>(value_)[index];
}

Json& Json::operator[](const std::string& name) {
  if (is_null()) value_ = Object();
  if (!is_object()) Fail("no object", *this);
  return std::get<Object>(value_)[name];
}

void Json::push_back(Json element) {
  if (is_null()) value_ = Array();
  MutableElements()->push_back(std::move(element));
}

void Json::erase(const std::string& name) {
  if (!is_object()) Fail("no object", *this);
  std::get<Object>(value_).erase(name);
}

void Json::update(const Json& other) {
  for (const auto& [name, member] : other.items()) (*this)[name] = member;
}

const Json::Object& Json::items() const {
  const auto* object = std::get_if<Object>(&value_);
  if (object == nullptr) Fail("no object", *this);
  return *object;
}

bool operator==(const Json& left, const Json& right) {
  if (left.is_number() && right.is_number() && left.value_.index() != right.value_.index()) {
    // An int64_t is below zero and a uint64_t is not, so only a double can equal another type.
    const bool doubles = !left.is_number_integer() || !right.is_number_integer();
    return doubles && left.Double() == right.Double();
  }
  return left.value_ == right.value_;
}

std::partial_ordering operator<=>(const Json& left, const Json& right) {
  if (left.is_string() && right.is_string()) return left.Text() <=> right.Text();
  if (left == right) return std::partial_ordering::equivalent;
  if (left.is_number_unsigned() && right.is_number_unsigned()) {
    return left.get<uint64_t>() <=> right.get<uint64_t>();
  }
  return left.Double() <=> right.Double();
}

std::ostream& operator<<(std::ostream& out, const Json& json) { return out << json.dump(); }

bool Json::Bool() const {
  const auto* value = std::get_if<bool>(&value_);
  if (value == nullptr) Fail("no bool", *this);
  return *value;
}

int64_t Json::Signed(int64_t min) const {
  const auto* below_zero = std::get_if<int64_t>(&value_);
  if (below_zero == nullptr) return static_cast<int64_t>(Unsigned(static_cast<uint64_t>(-1 - min)));
  if (*below_zero < min) Fail("too small", *this);
  return *below_zero;
}

uint64_t Json::Unsigned(uint64_t max) const {
  const auto* value = std::get_if<uint64_t>(&value_);
  if (value == nullptr || *value > max) Fail("no such integer", *this);
  return *value;
}

double Json::Double() const {
  if (const auto* value = std::get_if<int64_t>(&value_)) return static_cast<double>(*value);
  if (const auto* value = std::get_if<uint64_t>(&value_)) return static_cast<double>(*value);
  const auto* value = std::get_if<double>(&value_);
  if (value == nullptr) Fail("no number", *this);
  return *value;
}

const std::string& Json::Text() const {
  const auto* value = std::get_if<std::string>(&value_);
  if (value == nullptr) Fail("no string", *this);
  return *value;
}

const Json::Array& Json::Elements() const {
  static const Array none;
  if (is_null()) return none;
  if (!is_array()) Fail("no array", *this);
  return std::get<Array>(value_);
}

Json::Array* Json::MutableElements() {
  if (!is_array()) Fail("no array", *this);
  return &std::get<Array>(value_);
}

}  // namespace nowcalls::testing
