#include "lagwise/data/formats/strict_json.h"

#include <cctype>
#include <nlohmann/json.hpp>
#include <vector>

#include "lagwise/core/errors.h"

namespace lagwise::data {
namespace {

using Json = nlohmann::json;

/// Builds the tree from the parser's events and stops at the first thing that is
/// not allowed. The parser does not say where an event stands; the place of the
/// mistake is known from how far it has read.
class StrictTree : public nlohmann::json_sax<Json> {
 public:
  explicit StrictTree(const JsonLimits& limits) : limits_(limits) {}

  bool null() override { return put(nullptr); }
  bool boolean(bool value) override { return put(value); }
  bool number_integer(int64_t value) override { return put(value); }
  bool number_unsigned(uint64_t value) override { return put(value); }
  bool number_float(double value, const std::string&) override {
    // Whole numbers beyond 64 bits also come here, rounded.
    if (!limits_.fractions) return refuse("a whole number of at most 64 bits");
    return put(value);
  }
  bool string(std::string& value) override { return put(std::move(value)); }
  bool binary(binary_t&) override { return refuse("JSON"); }

  bool start_object(size_t) override { return open(Json::object()); }
  bool start_array(size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(std::string& name) override {
    if (name.size() > limits_.key_bytes)
      return refuse("a key of at most " + std::to_string(limits_.key_bytes) + " bytes");
    for (const char c : name)
      if (static_cast<uint8_t>(c) < 0x20 || c == 0x7f)
        return refuse("a key without control characters");
    if (stack_.back()->contains(name))
      return refuse("each key once, got '" + name + "' twice");
    key_ = std::move(name);
    return true;
  }

  bool parse_error(size_t, const std::string&, const Json::exception&) override {
    return refuse("JSON in UTF-8");
  }

  Json tree;
  std::string expected;  // of the first mistake

 private:
  bool refuse(const std::string& what) {
    expected = what;
    return false;
  }

  // Adds a value where the parser stands; nullptr when that is one too many.
  Json* add(Json&& value) {
    if (++values_ > limits_.values) {
      refuse("at most " + std::to_string(limits_.values) + " values");
      return nullptr;
    }
    if (stack_.empty()) return &(tree = std::move(value));
    Json& parent = *stack_.back();
    if (parent.is_object()) return &(parent[key_] = std::move(value));
    parent.push_back(std::move(value));
    return &parent.back();
  }

  bool put(Json&& value) { return add(std::move(value)) != nullptr; }

  bool open(Json&& empty) {
    if (stack_.size() == limits_.depth)
      return refuse("at most " + std::to_string(limits_.depth) +
                    " objects and arrays in each other");
    stack_.push_back(add(std::move(empty)));  // stays: only the innermost one grows
    return stack_.back() != nullptr;
  }

  bool close() {
    stack_.pop_back();
    return true;
  }

  const JsonLimits& limits_;
  std::vector<Json*> stack_;
  std::string key_;
  size_t values_ = 0;
};

/// Counts what the parser has taken, which is where it stands.
class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const uint8_t* at, size_t* taken) : at_(at), taken_(taken) {}
  reference operator*() const { return *reinterpret_cast<const char*>(at_); }
  CountingIterator& operator++() {
    ++at_;
    ++*taken_;
    return *this;
  }
  bool operator==(const CountingIterator& other) const { return at_ == other.at_; }
  bool operator!=(const CountingIterator& other) const { return at_ != other.at_; }

 private:
  const uint8_t* at_;
  size_t* taken_;
};

}  // namespace

Json parse_strict_json(const std::string& file, size_t start, Bytes text,
                       const JsonLimits& limits) {
  StrictTree tree(limits);
  size_t taken = 0;
  const uint8_t* const first = text.data();
  const bool good =
      Json::sax_parse(CountingIterator(first, &taken),
                      CountingIterator(first + text.size(), &taken), &tree);
  if (good) return std::move(tree.tree);
  const size_t at = taken > 0 ? taken - 1 : 0;
  throw DataError(file, static_cast<int64_t>(start + at), tree.expected);
}

}  // namespace lagwise::data
