// Json: a JSON value for tests. Costs little to compile: nlohmann/json stays in json.cc.
//
// Thread: any, one at a time. Names and meanings are those of nlohmann/json and the containers.
// Members of an object are sorted by name. Numbers are equal if their values are, whatever their
// types. A test that asks for what is not there gets a std::runtime_error with the value's text.
#ifndef NOWCALLS_SUPPORT_JSON_H_
#define NOWCALLS_SUPPORT_JSON_H_

#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

namespace nowcalls::testing {

class Json {
 public:
  using Array = std::vector<Json>;
  using Object = std::map<std::string, Json>;
  // Integers below zero are int64_t, others uint64_t.
  using Value =
      std::variant<std::nullptr_t, bool, int64_t, uint64_t, double, std::string, Array, Object>;

  Json();
  // NOLINTBEGIN(google-explicit-constructor): tests write {1, "a", nullptr}.
  Json(std::nullptr_t);
  Json(double number);
  Json(const char* text);
  Json(std::string text);
  Json(std::string_view text);
  Json(Array elements);
  Json(const std::vector<std::string>& texts);
  Json(bool value);
  Json(int64_t value);
  Json(uint64_t value);
  template <std::integral T>
  Json(T value)
      : Json(static_cast<std::conditional_t<std::signed_integral<T>, int64_t, uint64_t>>(value)) {}
  // NOLINTEND(google-explicit-constructor)
  // An object if every element is an array of a string and a value, else an array.
  Json(std::initializer_list<Json> elements);
  Json(const Json& other);
  Json(Json&& other) noexcept;
  Json& operator=(const Json& other);
  Json& operator=(Json&& other) noexcept;
  ~Json();

  static Json array(std::initializer_list<Json> elements = {});
  static Json object();
  // Throws std::runtime_error if `text` is not one JSON document.
  static Json parse(const std::string& text);
  // One line, as nlohmann/json prints it.
  std::string dump() const;

  bool is_null() const { return value_.index() == 0; }
  bool is_bool() const { return value_.index() == 1; }
  bool is_number() const { return value_.index() >= 2 && value_.index() <= 4; }
  bool is_number_integer() const { return value_.index() == 2 || value_.index() == 3; }
  bool is_number_unsigned() const { return value_.index() == 3; }
  bool is_string() const { return value_.index() == 5; }
  bool is_array() const { return value_.index() == 6; }
  bool is_object() const { return value_.index() == 7; }

  // Throws unless the value is of this kind and, if an integer, in T's range. Any number is a
  // double.
  template <typename T>
  T get() const {
    if constexpr (std::same_as<T, bool>) {
      return Bool();
    } else if constexpr (std::signed_integral<T>) {
      return static_cast<T>(Signed(INT64_C(-1) << (8 * sizeof(T) - 1)));
    } else if constexpr (std::unsigned_integral<T>) {
      return static_cast<T>(Unsigned(static_cast<T>(-1)));
    } else if constexpr (std::same_as<T, double>) {
      return Double();
    } else {
      static_assert(std::same_as<T, std::string>);
      return Text();
    }
  }

  // Elements of an array, members of an object; 0 for null, 1 for others.
  size_t size() const;
  bool empty() const { return size() == 0; }
  bool contains(const std::string& name) const;
  const Json& at(const std::string& name) const;
  const Json& at(size_t index) const;
  const Json& operator[](const char* name) const { return at(name); }
  template <std::integral Index>
  const Json& operator[](Index index) const {
    return at(static_cast<size_t>(index));
  }
  template <std::integral Index>
  Json& operator[](Index index) {
    return MutableElements()->at(static_cast<size_t>(index));
  }
  // Adds the member if it is missing. Null becomes an object.
  Json& operator[](const std::string& name);
  Json& operator[](const char* name) { return (*this)[std::string(name)]; }
  // Null becomes an array.
  void push_back(Json element);
  void erase(const std::string& name);
  // Takes over all members of another object.
  void update(const Json& other);

  // Of an array; null has none.
  Array::const_iterator begin() const { return Elements().begin(); }
  Array::const_iterator end() const { return Elements().end(); }
  Array::iterator begin() { return MutableElements()->begin(); }
  Array::iterator end() { return MutableElements()->end(); }
  const Object& items() const;

  friend bool operator==(const Json& left, const Json& right);
  // Of two numbers or two strings; throws for others.
  friend std::partial_ordering operator<=>(const Json& left, const Json& right);
  friend std::ostream& operator<<(std::ostream& out, const Json& json);

 private:
  bool Bool() const;
  int64_t Signed(int64_t min) const;  // From min to -1 - min.
  uint64_t Unsigned(uint64_t max) const;
  double Double() const;
  const std::string& Text() const;
  const Array& Elements() const;
  Array* MutableElements();

  Value value_;
};

}  // namespace nowcalls::testing

#endif  // NOWCALLS_SUPPORT_JSON_H_
