#pragma once

#include <cstdint>

namespace lagwise {

/// Which tokens may come next. A model that samples only legal ones writes what the
/// encoder of its data could have written.
class Grammar {
 public:
  virtual ~Grammar() = default;
  virtual bool legal(int32_t id) const = 0;
  virtual void advance(int32_t id) = 0;  ///< id must be legal
};

}  // namespace lagwise
