#pragma once

#include <map>
#include <string>

namespace lagwise {

/// What a comparison remembers between commands besides its runs: compare.json in its
/// folder. Every change is on the disk before it counts.
class CompareLedger {
 public:
  /// Reads the folder's; DataError where the file is not what we wrote.
  explicit CompareLedger(const std::string& folder);

  double spent() const { return spent_; }  ///< seconds, of all commands together
  void spend(double seconds);

  struct Failure {
    int code = 0;
    std::string message;
  };
  /// Of the run "CELL/seed-0"; null: none.
  const Failure* failure(const std::string& run) const;
  void failed(const std::string& run, const Failure& failure);
  void forget_failure(const std::string& run);

 private:
  void write() const;

  std::string file_;
  double spent_ = 0;
  std::map<std::string, Failure> failures_;
};

}  // namespace lagwise
