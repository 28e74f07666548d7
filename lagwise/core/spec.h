#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace lagwise {

/// A thing and its options, as users write them:
///
///     spec  = name [ ":" key "=" value { "," key "=" value } ]
///     name, key: letters, digits, "_", "-", "."     value: anything but ","
///
/// for example "sine_spe:sines=5,realizations=64,gated=true".
///
/// The maker of the thing takes every option it knows, then calls finish().
/// Taking an option also records that it is legal, so the message about a
/// mistyped one can list what would have been right:
///
///     Spec spec("alibi:exponant=4");
///     const double exponent = spec.take("exponent", 8.0);
///     spec.finish();  // alibi: unknown option 'exponant'; did you mean ...
///
/// Everything wrong is a std::invalid_argument with one line of text.
class Spec {
 public:
  /// One option as its maker took it.
  struct Option {
    std::string key;
    std::string fallback;  ///< the default, as text
    std::string expected;  ///< "a whole number", "one of a, b"
  };

  explicit Spec(std::string_view text);

  const std::string& name() const { return name_; }

  /// The value given for `key`, or `fallback` when none was given. The type of
  /// the fallback is the type expected of the value.
  std::string take(std::string_view key, std::string_view fallback);
  int64_t take(std::string_view key, int64_t fallback);
  double take(std::string_view key, double fallback);
  bool take(std::string_view key, bool fallback);
  // Without these two, C++ would read "text" as a bool and not know what 8 is.
  std::string take(std::string_view key, const char* fallback) {
    return take(key, std::string_view(fallback));
  }
  int64_t take(std::string_view key, int fallback) {
    return take(key, int64_t{fallback});
  }

  /// The same for a value that must be one of `legal`.
  std::string take_choice(std::string_view key, std::string_view fallback,
                          const std::vector<std::string>& legal);

  /// Refuses options that nobody took.
  void finish() const;

  /// The options taken so far, in that order.
  const std::vector<Option>& options() const { return legal_; }

  /// The spec in canonical form: keys sorted, values as they were given. Two
  /// specs that say the same in another order have the same text.
  std::string text() const;

  /// The same with every option taken so far, defaults too: it goes on meaning what it
  /// means now when a default changes.
  std::string full_text() const;

  /// The same without options that stand at their default.
  std::string short_text() const;

  /// As if the options of `other` had been given, but for those that were.
  void assume(const Spec& other);

 private:
  using Values = std::map<std::string, std::string, std::less<>>;

  std::string written(const Values& values) const;
  void read_option(std::string_view option);
  const std::string* find(std::string_view key, std::string fallback,
                          std::string expected);
  [[noreturn]] void refuse(std::string_view key, std::string_view value) const;
  std::vector<std::string> keys() const;

  std::string name_;
  Values given_;
  std::vector<Option> legal_;
};

}  // namespace lagwise
